"""Several processes, on CPUs and loopback: the same training as one process, the data prepared once.

FSDP through Trainer needs GPUs (accelerate has it for no CPU); here its sharding is applied to the model itself."""

import os
import re
import subprocess

import pytest
import torch
from processes import COMMAND, run_program, run_side_by_side
from shared import QUIET, TINY_TRANSLATOR, read_json, tiny_config
from torch import distributed
from torch.distributed.fsdp import fully_shard

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)


CONFIG = f'{TINY_TRANSLATOR[1][:-1]}, "dropout": 0.0, "attention_dropout": 0.0, "embedding_dropout": 0.0}}'
SETTINGS = ["--config", CONFIG, "--logging_steps", "1", "--learning_rate", "1e-2", "--use_cpu", "true", *QUIET]
SETTINGS += ["--eval_strategy", "no"]


def output(*results: subprocess.CompletedProcess) -> str:
    """What programs print that have ended well."""
    assert not any(result.returncode for result in results), results
    return "".join(result.stdout for result in results)


SMALL = ["--max_length", "12", "--vocab_size", "60", "--max_tokens", "16"]
TRANSLATION = ["train-translation", "--data", "{}", "--source_column", "num", "--target_column", "de", *SMALL]
TRANSLATION += ["--validation_prefix", "val"]
PRETRAINING = ["pretrain", "--texts", "{}/train.de", "--validation", "12", *SMALL]
CLASSIFICATION = ["train-classifier", "--data", "sample", "--vocab_size", "1500", "--per_device_train_batch_size", "4"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "nodes", "steps"), [(TRANSLATION, 1, 8), (PRETRAINING, 1, 8), (CLASSIFICATION, 2, 20)]
)
def test_two_processes_do_the_steps_of_one_with_twice_the_accumulation(command, nodes, steps, corpus, tmp_path):
    """A launcher with a batch for each process; and one a machine prepares the data, one of all writes."""
    words = [argument.format(corpus) for argument in command]
    words += [*SETTINGS, "--max_steps", str(steps), "--save_steps", str(steps)]
    folders = [tmp_path / "one", tmp_path / "two"]
    homes = [tmp_path / f"home-{number}" for number in range(1 + nodes)]
    alone = [*words, "--output_dir", folders[0], "--gradient_accumulation_steps", "2"]
    printed = [output(run_program(COMMAND, *alone, environment={**os.environ, "HF_HOME": str(homes[0])}))]
    together = run_side_by_side(COMMAND, *words, "--output_dir", folders[1], homes=homes[1:])
    printed.append(output(*together))

    losses, measured = [], []
    for folder, text in zip(folders, printed, strict=True):
        assert len(re.findall("^(?:test|validation) (?:accuracy|BLEU|perplexity).*: ", text, re.MULTILINE)) == 1
        report = read_json(folder / "metrics.json")["validation"]
        measured.append({name: report[name] for name in ("accuracy", "perplexity") if name in report})
        state = read_json(folder / f"checkpoint-{steps}" / "trainer_state.json")
        assert state["epoch"] < 1  # an epoch's last step may have less than its batches
        losses.append([entry["loss"] for entry in state["log_history"] if "loss" in entry])
    assert read_json(folders[1] / "run.json")["processes"] == 2
    assert len(losses[0]) == steps and losses[0][0] != losses[0][-1]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    assert measured[0] and measured[1] == pytest.approx(measured[0], abs=1e-3)  # each row counts once
    prepared = [sorted(file.name for file in home.rglob("*.arrow")) for home in homes]
    assert prepared[0] and all(files == prepared[0] for files in prepared)


@pytest.mark.slow
def test_the_papers_own_recipe_trains_in_two_processes(corpus, tmp_path):
    """At tiny size, on other data, to the mean of five checkpoints and the beam search of the paper."""
    _, *data = [argument.format(corpus) for argument in TRANSLATION]
    few = ["--vocab_lines", "50", "--max_steps", "6", "--save_steps", "1"]
    words = ["train-translation", "wmt14-en-de-base", *data, *SETTINGS, *few, "--output_dir", tmp_path / "run"]
    assert "test BLEU" in output(*run_side_by_side(COMMAND, *words, homes=[tmp_path / "home"]))
    assert read_json(tmp_path / "run" / "metrics.json")["averaged_steps"] == [2, 3, 4, 5, 6]
    assert read_json(tmp_path / "run" / "run.json")["processes"] == 2
    generation = read_json(tmp_path / "run" / "generation_config.json")
    assert (generation["num_beams"], generation["length_penalty"]) == (4, 0.6)


TERMINATED = """
import os, signal, sys
import transformers
from hf_vanilla_transformer.__main__ import main

step, calls = transformers.Trainer.training_step, []

def training_step(*args, **kwargs):
    calls.append(1)
    if len(calls) == (5 if os.environ["RANK"] == "0" else 3):
        os.kill(os.getpid(), signal.SIGTERM)
    return step(*args, **kwargs)

transformers.Trainer.training_step = training_step
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_processes_that_get_sigterm_at_different_steps_stop_after_the_same_one(corpus, tmp_path):
    """As a launcher sends it; the resumed run ends with the weights of one that nothing happened to."""
    words = [argument.format(corpus) for argument in TRANSLATION]
    words += [*SETTINGS, "--max_steps", "6", "--save_steps", "2"]
    home, folders = tmp_path / "home", [tmp_path / "whole", tmp_path / "run"]
    output(*run_side_by_side(COMMAND, *words, "--output_dir", folders[0], homes=[home]))
    stopped = run_side_by_side(TERMINATED, *words, "--output_dir", folders[1], homes=[home])
    assert [result.returncode for result in stopped] == [143, 143]
    lines = "".join(result.stderr for result in stopped)
    assert lines.count("--resume_from_checkpoint") == 1 and "Traceback" not in lines
    assert {file.name for file in folders[1].iterdir()} == {"checkpoint-2", "stopped-checkpoint-3"}
    output(*run_side_by_side(COMMAND, *words, "--output_dir", folders[1], "--resume_from_checkpoint", homes=[home]))
    assert read_json(folders[1] / "run.json")["resumed_from"] == "stopped-checkpoint-3"
    weights = [(folder / "model.safetensors").read_bytes() for folder in folders]
    assert weights[0] == weights[1]
    assert not (folders[1] / "stopped-checkpoint-3").exists()


BROADCAST = """
import os, sys, torch
from accelerate import PartialState
from hf_vanilla_transformer.training.run import broadcast_from_main

PartialState(cpu=True)
here = []
made = broadcast_from_main(lambda: here.append(1) or os.getpid())
torch.save((made, os.getpid(), len(here)), f"{sys.argv[1]}-{os.environ['RANK']}.pt")
"""


@pytest.mark.slow
def test_one_process_makes_what_all_receive(tmp_path):
    output(*run_side_by_side(BROADCAST, tmp_path / "made", homes=[tmp_path / "home"]))
    (made, process, first), (received, other, second) = (torch.load(tmp_path / f"made-{rank}.pt") for rank in (0, 1))
    assert made == received == process != other
    assert (first, second) == (1, 0)


def _sharded_gradients(rank: int, rendezvous: str, sent) -> None:
    """In one of two processes: the gradients of half a batch each, of a model whose layers are sharded."""
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    mesh = distributed.init_device_mesh("cpu", (2,))
    torch.set_num_threads(1)
    for number, (model, batch) in enumerate(_models_and_batches()):
        for module in model.modules():
            if type(module).__name__ in model._no_split_modules:
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
        model(**{name: tensor[rank::2].contiguous() for name, tensor in batch.items()}).loss.backward()
        gradients = {name: weight.grad.full_tensor() for name, weight in model.named_parameters()}
        if rank == 0:
            torch.save(gradients, f"{sent}-{number}.pt")
    distributed.destroy_process_group()


def _models_and_batches():
    torch.manual_seed(0)
    config = tiny_config(dropout=0.0, attention_dropout=0.0)
    ids = torch.randint(7, config.vocab_size, (4, 6))
    yield VanillaTransformerForConditionalGeneration(config), {"input_ids": ids, "labels": ids.flip(1)}
    yield VanillaTransformerForSequenceClassification(config), {"input_ids": ids, "labels": ids[:, 0] % 2}


@pytest.mark.slow
def test_a_sharded_model_has_the_gradients_of_the_whole(tmp_path):
    files = str(tmp_path / "rendezvous"), str(tmp_path / "sent")
    torch.multiprocessing.start_processes(_sharded_gradients, files, nprocs=2, start_method="forkserver")
    for number, (model, batch) in enumerate(_models_and_batches()):
        model(**batch).loss.backward()
        gradients = torch.load(tmp_path / f"sent-{number}.pt")
        assert gradients.keys() == dict(model.named_parameters()).keys()
        for name, weight in model.named_parameters():
            torch.testing.assert_close(gradients[name], weight.grad, rtol=1e-4, atol=1e-6)
