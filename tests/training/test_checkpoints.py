"""A run's checkpoints: where it resumes, and the mean of the last ones."""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.distributed.checkpoint
from datasets import Dataset
from shared import tiny_config
from transformers import Trainer, TrainerState, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration, VanillaTransformerModel
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.training.checkpoints import (
    AUTO,
    LAST_CHECKPOINT,
    average_checkpoints,
    check_unchanged,
    checkpoint_damage,
    last_checkpoints,
    prepare_output_dir,
)
from hf_vanilla_transformer.training.run import RunFolder
from hf_vanilla_transformer.training.trainer import CheckedTrainer


def test_a_run_neither_overwrites_nor_starts_where_there_is_nothing(tmp_path):
    new = tmp_path / "a" / "b"
    assert prepare_output_dir(str(new), None) is None
    assert new.is_dir() and not any(new.iterdir())
    # As a recipe and a flag say it: `resume_from_checkpoint: true`, `--resume_from_checkpoint True`.
    for last in (LAST_CHECKPOINT, True, "True"):
        with pytest.raises(ValueError, match="b: no checkpoint"):
            prepare_output_dir(str(new), last)
    assert prepare_output_dir(str(new), False) is None
    (new / "checkpoint-5").mkdir()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(new), None)
    with pytest.raises(ValueError, match="no checkpoint to go on from"):  # it is empty
        prepare_output_dir(str(new), LAST_CHECKPOINT)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare_output_dir(str(tmp_path / "file"), None)


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """The files of LoRA's weights and of Trainer's states."""
    folder = tmp_path / "checkpoint-1"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    safetensors.torch.save_file({"a": torch.zeros(1)}, folder / "adapter_model.safetensors")
    torch.save({"state": {0: torch.zeros(1)}, "param_groups": []}, folder / "optimizer.pt")
    torch.save({"last_epoch": 1}, folder / "scheduler.pt")
    numbers = {"python": random.getstate(), "numpy": np.random.get_state(), "cpu": torch.get_rng_state()}
    torch.save(numbers, folder / "rng_state.pth")
    TrainerState(epoch=0.5, global_step=1, train_batch_size=8).save_to_json(folder / "trainer_state.json")
    return folder


def test_an_adapters_checkpoint_is_whole_without_a_configuration(checkpoint, monkeypatch):
    assert prepare_output_dir(str(checkpoint.parent), LAST_CHECKPOINT) == str(checkpoint)
    assert prepare_output_dir(str(checkpoint.parent), str(checkpoint)) == str(checkpoint)
    monkeypatch.setattr(Trainer, "train", lambda trainer, resume: resume)
    model = VanillaTransformerModel(tiny_config())
    trainer = CheckedTrainer(model, TrainingArguments(str(checkpoint.parent), use_cpu=True, report_to="none"))
    assert trainer.train(resume_from_checkpoint=True) == str(checkpoint)


@pytest.mark.parametrize("kept", [None, {}, {"seed": 7}])
def test_settings_are_compared_with_those_that_a_checkpoint_keeps(checkpoint, kept):
    """All defaults are not the same as none kept, as by older versions."""
    kinds = {} if kept is None else {"StepSize": {"args": {}, "attributes": {"given_settings": kept}}}
    TrainerState(stateful_callbacks=kinds).save_to_json(checkpoint / "trainer_state.json")
    arguments = str(checkpoint), "settings", {"seed": 7}, TrainingArguments(use_cpu=True), {"seed": 42}
    if kept == {}:
        with pytest.raises(DataError, match="other settings: seed 42 -> 7"):
            check_unchanged(*arguments)
    else:
        check_unchanged(*arguments)


def test_auto_resumes_where_a_run_was_and_else_begins_one(checkpoint, monkeypatch):
    folder = checkpoint.parent
    (folder / "_run.lock").touch()
    assert prepare_output_dir(str(folder), AUTO) == str(checkpoint)
    (checkpoint / "optimizer.pt").unlink()  # killed while it saved its first checkpoint
    assert prepare_output_dir(str(folder), AUTO) is None
    (folder / "notes.txt").touch()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(folder), AUTO)
    assert prepare_output_dir(str(folder / "new"), AUTO) is None
    monkeypatch.setattr(Trainer, "train", lambda trainer, resume: resume)
    arguments = TrainingArguments(str(folder / "new"), use_cpu=True, report_to="none")
    trainer = CheckedTrainer(VanillaTransformerModel(tiny_config()), arguments)
    assert trainer.train(resume_from_checkpoint="auto") is False


def test_fsdp_is_refused_without_a_gpu(tmp_path):
    arguments = TrainingArguments(str(tmp_path / "run"), use_cpu=True, report_to="none", fsdp="full_shard")
    with pytest.raises(DataError, match="--fsdp"), RunFolder(arguments):
        pass
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "file", ["adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"]
)
def test_a_checkpoint_is_whole_or_not(checkpoint, file, caplog):
    """Whichever file was being written: those after it are missing, and so may be some of its own bytes."""
    folder = checkpoint.parent
    shutil.copytree(checkpoint, folder / "checkpoint-7")
    shutil.copytree(checkpoint, folder / "checkpoint-9-copy")
    damaged = checkpoint.rename(folder / "checkpoint-8")
    size = (damaged / file).stat().st_size
    for length in (size - 2, size // 2, 1, 0):
        os.truncate(damaged / file, length)
        assert checkpoint_damage(str(damaged)) == f"{file} is broken off"
    with pytest.raises(ValueError, match="checkpoint-8: not a whole checkpoint"):
        prepare_output_dir(str(folder), str(damaged))
    assert prepare_output_dir(str(folder), LAST_CHECKPOINT) == str(folder / "checkpoint-7")
    assert f"checkpoint-8: not a whole checkpoint ({file} is broken off), skipped" in caplog.text
    (damaged / file).unlink()
    assert "is missing" in checkpoint_damage(str(damaged))
    shutil.rmtree(folder / "checkpoint-7")
    with pytest.raises(ValueError, match="no checkpoint to go on from"):
        prepare_output_dir(str(folder), LAST_CHECKPOINT)


def test_a_checkpoint_of_two_processes_has_the_state_of_both(checkpoint, monkeypatch):
    """The second may be killed before it has written, when the first has written all else."""
    (checkpoint / "rng_state.pth").rename(checkpoint / "rng_state_0.pth")
    monkeypatch.setattr("hf_vanilla_transformer.training.checkpoints.world_size", lambda: 2)
    assert checkpoint_damage(str(checkpoint)) == "rng_state_1.pth is missing"
    shutil.copy(checkpoint / "rng_state_0.pth", checkpoint / "rng_state_1.pth")
    assert checkpoint_damage(str(checkpoint)) is None


def test_weights_of_an_adapter_may_be_pickled(checkpoint):
    (checkpoint / "adapter_model.safetensors").unlink()
    torch.save({"weight": torch.zeros(1)}, checkpoint / "adapter_model.bin")
    assert checkpoint_damage(str(checkpoint)) is None


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_checkpoint_in_parts_is_whole_when_their_list_is_there(checkpoint):
    """As FSDP's are written: weights and the optimizer's state are folders of torch.distributed.checkpoint."""
    for single, parts in (("adapter_model.safetensors", "pytorch_model_fsdp_0"), ("optimizer.pt", "optimizer_0")):
        (checkpoint / single).unlink()
        assert "is missing" in checkpoint_damage(str(checkpoint))
        torch.distributed.checkpoint.save({"a": torch.zeros(3)}, checkpoint_id=checkpoint / parts, no_dist=True)
        assert checkpoint_damage(str(checkpoint)) is None
    (checkpoint / "optimizer_0" / ".metadata").unlink()
    assert checkpoint_damage(str(checkpoint)) == "optimizer_0 is broken off"


class Code:
    def __reduce__(self):
        return print, ("run",)


def test_code_in_a_checkpoint_is_not_run(checkpoint, capsys):
    model = VanillaTransformerModel(tiny_config())
    model.save_pretrained(checkpoint)
    (checkpoint / "adapter_config.json").unlink()
    torch.save({"state": Code()}, checkpoint / "optimizer.pt")
    arguments = TrainingArguments(str(checkpoint.parent), use_cpu=True, report_to="none", max_steps=2)
    with pytest.raises(ValueError, match="checkpoint-1: .* holds code.$"):
        CheckedTrainer(model, arguments, train_dataset=Dataset.from_dict({"input_ids": [[1]]})).train(str(checkpoint))
    assert capsys.readouterr().out == ""


def test_the_average_is_the_mean_of_the_last_weights(tmp_path):
    """Of half precision, too: summed in full precision and rounded once."""
    config = tiny_config(share_encoder_decoder_embeddings=True, tie_word_embeddings=True)
    models = {}
    for step in (10, 9, 200, 11, 12, 13):
        models[step] = VanillaTransformerForConditionalGeneration(config).to(torch.bfloat16)
        models[step].save_pretrained(tmp_path / f"checkpoint-{step}")
    folders, steps = last_checkpoints(str(tmp_path), 5), [10, 11, 12, 13, 200]
    assert [Path(folder).name for folder in folders] == [f"checkpoint-{step}" for step in steps]

    average = average_checkpoints(folders)
    assert type(average) is VanillaTransformerForConditionalGeneration and average.dtype == torch.bfloat16
    assert average.lm_head.weight is average.model.encoder.embed_tokens.weight
    for value, *parts in zip(average.parameters(), *(models[step].parameters() for step in steps), strict=True):
        mean = torch.stack(parts).double().mean(dim=0)
        torch.testing.assert_close(value.double(), mean, rtol=2**-8, atol=1e-6)


def test_what_cannot_be_averaged_is_refused(tmp_path):
    VanillaTransformerForConditionalGeneration(tiny_config()).save_pretrained(tmp_path / "checkpoint-1")
    VanillaTransformerForConditionalGeneration(tiny_config(d_model=8)).save_pretrained(tmp_path / "checkpoint-2")
    with pytest.raises(ValueError, match="checkpoint-2: another model than .*checkpoint-1"):
        average_checkpoints(last_checkpoints(str(tmp_path), 2))
    with pytest.raises(ValueError, match="at least 1"):
        last_checkpoints(str(tmp_path), 0)
