"""What a release needs: the owner's name in one file, distributions with the right files."""

import re
import subprocess
import sys
import tarfile
import zipfile

import yaml
from shared import ROOT


sys.path.insert(0, str(ROOT / "scripts" / "maintainer"))
import release_check


sys.path.pop(0)


def test_the_owners_name_stands_in_one_file():
    """The chapters' notebooks are made from it."""
    words = ["git", "grep", "-lE", "github.com/[^/ ]+/hf_vanilla_transformer", ":!docs/walkthrough/*.ipynb"]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "pyproject.toml\n"


def test_files_that_are_missing_or_too_many_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(release_check, "expected_files", lambda: {"hf_vanilla_transformer/a.py"})
    sources, wheel = tmp_path / "x.tar.gz", tmp_path / "x.whl"
    with tarfile.open(sources, "w:gz") as archive:
        for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py", "PKG-INFO", "hf_vanilla_transformer/a.py"):
            (tmp_path / "file").write_text("")
            archive.add(tmp_path / "file", f"x-1/{name}")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("hf_vanilla_transformer/a.py", "")
    assert release_check.check_files(sources, wheel) == []
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tests/test_a.py", "")
    wrong = release_check.check_files(sources, wheel)
    assert wrong == ["x.whl lacks hf_vanilla_transformer/a.py", "x.whl should not have tests/test_a.py"]


def test_the_versions_of_hooks_are_those_of_the_checks():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (ruff,) = [repo["rev"] for repo in hooks["repos"] if "ruff" in repo["repo"]]
    assert f"\nruff=={ruff.removeprefix('v')}\n" in (ROOT / "constraints.txt").read_text()


def test_workflows_name_models_and_targets_that_are_there():
    makefile = (ROOT / "Makefile").read_text()
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = file.read_text()
        assert yaml.safe_load(text)["jobs"]
        for target in re.findall(r"run: make ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    models = yaml.safe_load((ROOT / ".github" / "workflows" / "models.yml").read_text())
    listed = models["jobs"]["upload"]["strategy"]["matrix"]["model"]
    assert sorted(listed) == sorted(path.name for path in (ROOT / "model_cards").iterdir() if path.is_dir())
