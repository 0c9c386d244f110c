import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import create_autospec

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HTTPError
from huggingface_hub.utils import build_hf_headers, filter_repo_objects

from hub.repository import UNLISTED


class Hub:
    """The Hub behind `HfApi`, in memory: `branches` by (repository, branch), `titles` of commits, `requests`."""

    def __init__(self):
        self.branches: dict[tuple[str, str], dict[str, bytes]] = {}
        self.private, self.titles, self.requests, self.refuses = {}, [], [], False

    def create_repo(self, api: HfApi, repo_id: str, private: bool | None = None, **_) -> SimpleNamespace:
        build_hf_headers(token=api.token)  # an error without a token
        self.requests.append("create_repo")
        self.branches.setdefault((repo_id, "main"), {})
        self.private.setdefault(repo_id, bool(private))
        return SimpleNamespace(repo_id=repo_id)

    def model_info(self, api: HfApi, repo_id: str) -> SimpleNamespace:
        config = self.branches[repo_id, "main"].get("config.json", b"{}")
        return SimpleNamespace(config=json.loads(config), private=self.private[repo_id])

    def create_branch(self, api: HfApi, repo_id: str, *, branch: str, exist_ok: bool) -> None:
        self.branches.setdefault((repo_id, branch), dict(self.branches[repo_id, "main"]))

    def upload_folder(
        self, api: HfApi, *, repo_id, folder_path, commit_message, allow_patterns=None, revision=None, **_
    ) -> SimpleNamespace:
        if self.refuses:
            raise HTTPError("500: on purpose")
        names = [file.relative_to(folder_path).as_posix() for file in Path(folder_path).rglob("*") if file.is_file()]
        sent = filter_repo_objects(names, allow_patterns=allow_patterns)
        self.branches[repo_id, revision or "main"] |= {name: (Path(folder_path) / name).read_bytes() for name in sent}
        self.titles.append(commit_message)
        return SimpleNamespace(commit_url=f"https://huggingface.co/{repo_id}/commit/{len(self.titles)}")


@pytest.fixture
def hub(monkeypatch) -> Hub:
    """A Hub without repositories, on which a user is logged in."""
    hub = Hub()
    for name in ("create_repo", "model_info", "create_branch", "upload_folder"):
        monkeypatch.setattr(HfApi, name, create_autospec(getattr(HfApi, name), side_effect=getattr(hub, name)))
    monkeypatch.setenv("HF_TOKEN", "hf_" + "k" * 34)
    return hub


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """The test's own copy of the run's folder, with `UNLISTED`."""
    folder = shutil.copytree(trained, tmp_path / "sample", ignore=shutil.ignore_patterns("checkpoint-*"))
    (folder / "sub" / "checkpoint-2").mkdir(parents=True)
    for file in UNLISTED:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("{}")
        (folder / "sub" / file).write_text("{}")
    assert (folder / "training_args.bin").is_file()
    return folder
