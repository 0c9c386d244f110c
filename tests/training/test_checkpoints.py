"""A run's checkpoints: where it resumes, and the mean of the last ones."""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import tiny_config
from transformers import TrainerState

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.training.checkpoints import (
    AUTO,
    CHECKPOINT_PREFIX,
    average_checkpoints,
    is_whole,
    list_checkpoints,
    prepare_output_dir,
)


def test_a_new_run_overwrites_nothing(tmp_path):
    new = tmp_path / "a" / "b"
    assert prepare_output_dir(str(new)) is None
    assert new.is_dir() and not any(new.iterdir())
    (new / "checkpoint-5").mkdir()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(new))
    assert prepare_output_dir(str(new), "runs/other/checkpoint-3") == "runs/other/checkpoint-3"


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """The files of a checkpoint that Trainer writes last."""
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    numbers = {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}
    torch.save(numbers, folder / "rng_state.pth")
    TrainerState(epoch=0.5, global_step=1, train_batch_size=8).save_to_json(folder / "trainer_state.json")
    return folder


def test_auto_resumes_where_a_run_was_and_else_begins_one(checkpoint):
    folder = checkpoint.parent
    (folder / "_run.lock").touch()
    (folder / "checkpoint-2").mkdir()
    assert prepare_output_dir(str(folder), AUTO) == str(checkpoint)
    (checkpoint / "trainer_state.json").unlink()  # killed while it saved its first checkpoint
    assert prepare_output_dir(str(folder), AUTO) is None
    (folder / "notes.txt").touch()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(folder), AUTO)


@pytest.mark.parametrize("file", ["rng_state.pth", "trainer_state.json"])
def test_a_checkpoint_is_whole_or_not(checkpoint, file):
    """Whichever file was being written, some of its bytes may be missing."""
    size = (checkpoint / file).stat().st_size
    assert is_whole(checkpoint)
    for length in (size - 2, size // 2, 1, 0):
        os.truncate(checkpoint / file, length)
        assert not is_whole(checkpoint)


def test_a_checkpoint_of_two_processes_has_the_state_of_both(checkpoint, monkeypatch):
    """The second may be killed before it has written, when the first has written all else."""
    monkeypatch.setattr("hf_vanilla_transformer.training.checkpoints.world_size", lambda: 2)
    state = (checkpoint / "rng_state.pth").rename(checkpoint / "rng_state_0.pth").read_bytes()
    assert not is_whole(checkpoint)
    (checkpoint / "rng_state_1.pth").write_bytes(state)
    assert is_whole(checkpoint)


def test_the_average_is_the_mean_of_the_last_weights(tmp_path):
    """Of half precision, too: summed in full precision and rounded once."""
    config = tiny_config(share_encoder_decoder_embeddings=True, tie_word_embeddings=True)
    models = {}
    for step in (10, 9, 200, 11, 12, 13):
        models[step] = VanillaTransformerForConditionalGeneration(config).to(torch.bfloat16)
        models[step].save_pretrained(tmp_path / f"checkpoint-{step}")
    folders, steps = list_checkpoints(str(tmp_path), CHECKPOINT_PREFIX)[-5:], [10, 11, 12, 13, 200]
    assert [Path(folder).name for folder in folders] == [f"checkpoint-{step}" for step in steps]

    average = average_checkpoints(folders)
    assert type(average) is VanillaTransformerForConditionalGeneration and average.dtype == torch.bfloat16
    assert average.lm_head.weight is average.model.encoder.embed_tokens.weight
    for value, *parts in zip(average.parameters(), *(models[step].parameters() for step in steps), strict=True):
        mean = torch.stack(parts).double().mean(dim=0)
        torch.testing.assert_close(value.double(), mean, rtol=2**-8, atol=1e-6)
