"""Several processes, on CPUs and loopback: the same training as one process, the data prepared once.

FSDP through Trainer needs GPUs (accelerate has it for no CPU); here its sharding is applied to the model itself."""

import json
import os
import re
import signal
import subprocess

import pytest
import torch
from processes import COMMAND, DISASTER, free_port, run_program, run_side_by_side
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
SIX_STEPS = ["--max_steps", "6", "--save_steps", "2"]


# The command, which then prints the figures of the run that its function returns.
FIGURES = """
import json, sys
from hf_vanilla_transformer.commands.arguments import read_command_line
from hf_vanilla_transformer.training.translator import GROUPS, train_translator

recipe, settings = read_command_line(GROUPS, "", sys.argv[1:])
print("figures:", json.dumps(train_translator(recipe, **settings).metrics))
"""


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run of two processes that nothing happened to, with dropout: its words, home, folder, and what each said."""
    words = [argument.format(corpus) for argument in TRANSLATION] + [*SETTINGS[2:], *TINY_TRANSLATOR, *SIX_STEPS]
    folder = tmp_path_factory.mktemp("whole")
    together = run_side_by_side(FIGURES, *words[1:], "--output_dir", folder / "run", caches=[folder / "cache"])
    return words, folder / "home", folder / "run", [output(result) for result in together]


@pytest.mark.slow
def test_two_processes_do_the_steps_of_one_with_twice_the_accumulation(corpus, tmp_path):
    """On two machines, with a batch for each process: one a machine prepares the data, one of all writes."""
    words, steps = [argument.format(corpus) for argument in [*TRANSLATION, "--average_last", "2"]], 8
    words += [*SETTINGS, "--max_steps", str(steps), "--save_steps", str(steps // 2)]
    folders = [tmp_path / "one", tmp_path / "two"]
    caches = [tmp_path / f"cache-{number}" for number in range(3)]
    alone = [*words, "--output_dir", folders[0], "--gradient_accumulation_steps", "2"]
    printed = [output(run_program(COMMAND, *alone, environment={**os.environ, "HF_DATASETS_CACHE": str(caches[0])}))]
    together = run_side_by_side(COMMAND, *words, "--output_dir", folders[1], caches=caches[1:])
    printed.append(output(*together))

    losses, measured = [], []
    for folder, text in zip(folders, printed, strict=True):
        assert len(re.findall("^test BLEU.*: ", text, re.MULTILINE)) == 1
        measured.append(read_json(folder / "metrics.json")["validation"]["perplexity"])
        state = read_json(folder / f"checkpoint-{steps}" / "trainer_state.json")
        assert state["epoch"] < 1  # an epoch's last step may have less than its batches
        losses.append([entry["loss"] for entry in state["log_history"] if "loss" in entry])
    assert read_json(folders[1] / "run.json")["processes"] == 2
    assert len(losses[0]) == steps and losses[0][0] != losses[0][-1]
    assert losses[1] == pytest.approx(losses[0], abs=1e-4)
    assert measured[1] == pytest.approx(measured[0], abs=1e-3)  # each row counts once
    prepared = [sorted(file.name for file in cache.rglob("*.arrow")) for cache in caches]
    assert prepared[0] and all(files == prepared[0] for files in prepared)


@pytest.mark.slow
def test_every_process_has_the_figures_of_the_run(whole):
    """Of a translator, which also generates."""
    *_, folder, printed = whole
    figures = [json.loads(re.search("^figures: (.*)", text, re.MULTILINE)[1]) for text in printed]
    assert figures[0] == figures[1] == read_json(folder / "metrics.json")
    assert figures[1]["test"]


@pytest.mark.slow
def test_processes_that_get_sigterm_at_different_steps_stop_after_the_same_one(whole, tmp_path):
    """As a launcher sends it; the resumed run ends with the weights of one that nothing happened to."""
    words, home, expected, _ = whole
    words, folder = [*words, "--output_dir", tmp_path / "run"], tmp_path / "run"
    signalled = [int(signal.SIGTERM), "training_step", '{"0": 5, "1": 3}']
    stopped = run_side_by_side(DISASTER, *signalled, *words, caches=[home])
    assert [result.returncode for result in stopped] == [143, 143]
    lines = "".join(result.stderr for result in stopped)
    assert lines.count("--resume_from_checkpoint auto") == 1 and "Traceback" not in lines
    assert {file.name for file in folder.iterdir()} == {"checkpoint-2", "_stopped-checkpoint-3"}
    output(*run_side_by_side(COMMAND, *words, "--resume_from_checkpoint", "auto", caches=[home]))
    assert read_json(folder / "run.json")["resumed_from"] == "_stopped-checkpoint-3"
    assert (folder / "model.safetensors").read_bytes() == (expected / "model.safetensors").read_bytes()
    assert not (folder / "_stopped-checkpoint-3").exists()


# What torchrun does with its arguments, but its workers are forked from a process that has imported torch.
TORCHRUN = """
import dataclasses, runpy, sys
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args

def work():
    runpy.run_path(sys.argv[0], run_name="__main__")

arguments = parse_args(sys.argv[1:])
config = dataclasses.replace(config_from_args(arguments)[0], start_method="fork")
sys.argv = [arguments.training_script, *arguments.training_script_args]
elastic_launch(config, work)()
"""


@pytest.mark.slow
def test_one_command_starts_and_restarts_a_run(whole, tmp_path):
    """One torchrun starts it twice: a rank is killed while it saves its second checkpoint."""
    words, home, expected, _ = whole
    (tmp_path / "program.py").write_text(DISASTER)
    launcher = ["--max-restarts", "1", "--nproc-per-node", "2"]
    launcher += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", tmp_path / "program.py"]
    launcher += [int(signal.SIGKILL), "_save_optimizer_and_scheduler", '{"0": 2}']
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_DATASETS_CACHE": str(home)}
    environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # or else addresses of before a restart stay in use
    command = [*launcher, *words, "--output_dir", tmp_path / "run", "--resume_from_checkpoint", "auto"]
    launched = run_program(TORCHRUN, *command, environment=environment)
    assert launched.returncode == 0, launched.stderr
    assert launched.stdout.count("The result goes to") == 2  # once a start, by the main process
    assert launched.stdout.count("Going on from") == 1
    assert read_json(tmp_path / "run" / "run.json")["resumed_from"] == "checkpoint-2"
    for file in ("model.safetensors", "checkpoint-6/optimizer.pt"):
        assert (tmp_path / "run" / file).read_bytes() == (expected / file).read_bytes()
    assert {file.name for file in (tmp_path / "run").iterdir()} == {file.name for file in expected.iterdir()}


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
