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


@pytest.fixture(scope="session")
def any_device() -> torch.device:
    """The accelerator or, for the tests that also mean something there, the processor."""
    return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
