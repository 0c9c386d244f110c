"""The package as its users install it: a wheel in an environment of its own, far from the checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from shared import ROOT, TINY, TWO_STEPS


def run_pip(*arguments) -> None:
    """Run pip without the network and without dependencies."""
    options = ["--disable-pip-version-check", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", *arguments, *options], check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built without the network from a copy of the checkout."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("wheel")
    source, package = folder / "source", "hf_vanilla_transformer"
    shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    run_pip("wheel", "--no-build-isolation", "--wheel-dir", folder, source)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The programs of a new environment that has the wheel, and sees the installed dependencies."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    its_own = {"base": str(folder), "platbase": str(folder)}
    programs, place = (Path(sysconfig.get_path(name, "venv", its_own)) for name in ("scripts", "purelib"))
    # A folder that a .pth file adds comes later in sys.path, and its own .pth files, such as that of an editable
    # install, are not read.
    paths = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (place / "dependencies.pth").write_text("".join(f"{path}\n" for path in paths))
    options = ["--no-warn-script-location", "--force-reinstall"]
    run_pip("--python", programs / "python", "install", *options, wheel)
    return programs


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel):
    package = ROOT / "hf_vanilla_transformer"
    files = {file.relative_to(ROOT).as_posix() for file in package.rglob("*") if file.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        assert {file for file in files if "__pycache__" not in file} <= set(archive.namelist())


@pytest.mark.slow
def test_links_and_pictures_of_the_wheels_description_are_addresses(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    targets = re.findall(r"]\(([^)]*)\)", metadata)
    assert len(targets) > 20 and all(target.startswith(("https://", "#")) for target in targets)
    assert "/raw/main/docs/figures/page." in metadata and "/blob/main/docs/start.md#install)" in metadata


@pytest.mark.slow
def test_an_installed_wheel_trains_and_predicts_in_an_empty_folder(installed, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HF_"))}
    environment |= {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}

    def run(program: str, *arguments, text: str = "") -> str:
        command = [installed / program, *map(str, arguments)]
        result = subprocess.run(
            command, cwd=elsewhere, env=environment, input=text, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    few = [*TWO_STEPS, "--vocab_size", "1500", *TINY]
    assert "test accuracy: " in run("vanilla-transformer", "train-classifier", "sample", "--output_dir", "run", *few)
    assert (elsewhere / "run" / "README.md").is_file()  # of a template in the wheel
    predict = (
        "import hf_vanilla_transformer.__main__ as package; print(package.__file__); "
        "package.main(['predict', '--model', 'run'])"
    )
    file, *answers = run("python", "-c", predict, text="재미있다\n지루하다\n").splitlines()
    assert Path(file).is_relative_to(installed.parent)
    assert [line.split("\t")[2] for line in answers] == ["재미있다", "지루하다"]
    assert [file.name for file in elsewhere.iterdir()] == ["run"]
