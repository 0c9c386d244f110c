import pytest
import torch


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(__file__.removesuffix("/conftest.py")):
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session")
def device(request) -> torch.device:
    """Where the tests run: `--device`, by default this machine's accelerator."""
    if name := request.config.getoption("--device"):
        return torch.device(name)
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    pytest.skip("torch finds no accelerator; --device cpu runs this test on the processor")


@pytest.fixture
def accelerator(device) -> torch.device:
    """The same, for what no processor can do."""
    if device.type == "cpu":
        pytest.skip("needs an accelerator")
    return device


@pytest.fixture(scope="session")
def place(device) -> list[str]:
    """The flags that let a training command run there."""
    return ["--use_cpu", str(device.type == "cpu").lower()]
