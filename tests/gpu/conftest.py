import pytest
import torch


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(__file__.removesuffix("/conftest.py")):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device() -> torch.device:
    """This machine's accelerator; tests of it skip themselves where torch finds none."""
    if not torch.accelerator.is_available():
        pytest.skip("torch finds no accelerator")
    return torch.accelerator.current_accelerator()
