"""Runs that push: the commands, and a user's Trainer."""

import re

import pytest
from shared import RUN_FILES, error_line

from hub.repository import QUICK, REPO, contents


pytestmark = pytest.mark.slow  # they train and send for seconds
PUSH = ["--push_to_hub", "true", "--hub_model_id", REPO]


def test_a_run_that_pushes_leaves_the_same_repository(hub, succeed, tmp_path):
    """In one commit at its end, of the listed files; Trainer itself would push all that lies in the folder."""
    folder = tmp_path / "trained"
    flags = ["--output_dir", folder, *QUICK, "--save_strategy", "steps", "--save_steps", "1"]
    succeed("train-classifier", *flags, *PUSH)
    pushed = hub.branches[REPO, "main"]
    assert pushed == contents(folder) and pushed.keys() == RUN_FILES and hub.titles == ["Upload the folder"]
    card = pushed["README.md"].decode()
    assert f'model="{REPO}"' in card and "generated_from_trainer" not in card
    # The recipe makes the run again, not the push.
    assert not re.search("hub", (folder / "recipe.yaml").read_text())


def test_a_run_keeps_its_record_if_the_push_fails(hub, run, succeed, tmp_path):
    folder = tmp_path / "trained"
    hub.refuses = True
    status, out, err = run("train-classifier", "--output_dir", folder, *QUICK, *PUSH)
    assert status == 2 and "test accuracy" in out
    assert "500" in error_line("train-classifier", err)
    hub.refuses = False
    succeed("push-to-hub", folder, "--repo_id", REPO)
    assert hub.branches[REPO, "main"] == contents(folder)
