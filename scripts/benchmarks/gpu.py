# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure this package on a GPU: tests, the recipe nsmc, speed beside others, and a larger classifier; nine minutes.

    bash scripts/benchmarks/gpu.sh packed out
    bash scripts/benchmarks/gpu.sh packed out --trial true      # every part at tiny size, on any machine

gpu.sh prepares what pack_gpu.sh packed, and starts this program. Each part has a limit of its own, and out/gpu.json is
written anew after each: a part that fails or is slow takes nothing from the others. What is timed runs alone, one
part after the other; then the tests and the larger classifier, which is measured by its accuracy, run side by side.
"""

import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measures import CONTENDERS, OURS
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.hub.record import describe_environment, save_json


ROOT = Path(__file__).parents[2]
MODULE = [sys.executable, "-m", "hf_vanilla_transformer"]
BENCHMARKS = [sys.executable, str(ROOT / "scripts" / "benchmarks")]
QUIET = ["--disable_tqdm", "true"]
TINY = '{"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}'
FEW_STEPS = ["--max_steps", "2", "--save_steps", "2", "--eval_strategy", "no", "--load_best_model_at_end", "false"]
BATCHES = (1, 32, 256, 1024)
# What is timed, one after the other; the last two run side by side.
PARTS = ("nsmc", "classifiers", "translation", "predict", "settings", "tests", "larger")
# What runs side by side at the end needs so many of the seconds: the larger classifier's pretraining ends then.
LAST = 300
FINE_TUNING = 60


@dataclass
class GpuArguments:
    packed: str = HfArg(help="The folder that pack_gpu.sh made.")
    output_dir: str = HfArg(help="The folder for gpu.json, logs and runs.")
    parts: list[str] = HfArg(default_factory=lambda: list(PARTS), help=f"Of {', '.join(PARTS)}.")
    seconds: int = HfArg(default=540, help="When to end.")
    trial: bool = HfArg(default=False, help="Run every part at tiny size, to see that each works.")


class Measurement:
    """All parts, with their limits, in a folder."""

    def __init__(self, arguments: GpuArguments):
        self.packed, self.folder = Path(arguments.packed).resolve(), Path(arguments.output_dir).resolve()
        self.trial, self.end = arguments.trial, time.monotonic() + arguments.seconds
        self.report = {"arguments": vars(arguments), **describe_environment(), "parts": {}}
        self.lock = threading.Lock()
        self.folder.mkdir(parents=True, exist_ok=True)

    def part(self, name: str, limit: float, *command: Any, results: tuple[str, ...] = (), trial: Any = ()) -> int:
        """Run a command, at most so many seconds; add status, seconds, memory, results and the log's end.

        Args:
            results: JSON files that the command writes, in the folder.
            trial: Arguments that a trial adds.

        Returns:
            The command's status; -15 or 143 where its time was up.
        """
        words = [*map(str, command), *(map(str, trial) if self.trial else ())]
        limit = 600 if self.trial else max(1.0, min(limit, self.end - time.monotonic()))
        begin = time.monotonic()
        log = self.folder / f"{name}.log"
        peak = Peak()
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=ROOT, start_new_session=True
            )
            with peak:
                try:
                    status = process.wait(limit)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGTERM)  # a training command writes a checkpoint
                    try:
                        status = process.wait(10)
                    except subprocess.TimeoutExpired:
                        os.killpg(process.pid, signal.SIGKILL)
                        status = process.wait()
        entry: dict[str, Any] = {"command": shlex.join(words), "status": status, "limit_seconds": round(limit, 1)}
        entry |= {"seconds": round(time.monotonic() - begin, 1), "peak_mib": peak.mebibytes}
        entry["log"] = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        for file in results:
            if (self.folder / file).exists():
                entry[file] = json.loads((self.folder / file).read_text(encoding="utf-8"))
        with self.lock:
            self.report["parts"][name] = entry
            save_json(self.folder / "gpu.json", self.report)
        print(f"{name}: status {status}, {entry['seconds']} s, {peak.mebibytes} MiB", flush=True)
        return status

    def train(self, name: str, limit: float, command: str, *arguments: Any, trial: Any = ()) -> int:
        files = [f"runs/{name}/{file}" for file in ("metrics.json", "run.json")]
        words = [*arguments, *QUIET, "--output_dir", self.folder / "runs" / name]
        tiny = ("--config", TINY, *FEW_STEPS, *trial)
        return self.part(name, limit, *MODULE, command, *words, results=tuple(files), trial=tiny)

    def nsmc(self) -> None:
        """The recipe, whole; then what its settings give, a few hundred updates each."""
        data = ("nsmc", "--data", self.packed / "nsmc", "--precision", "bfloat16", "--dataloader_num_workers", 4)
        self.train("nsmc", 90, "train-classifier", *data, trial=self.few_reviews)
        quick = (*self.few_reviews, "--torch_compile_backend", "eager")
        self.train("nsmc-compiled", 90, "train-classifier", *data, "--torch_compile", "true", trial=quick)

    @property
    def few_reviews(self) -> tuple[str, ...]:
        return ("--data", "sample", "--vocab_size", "1500", "--dataloader_num_workers", "0")

    def settings(self) -> None:
        """Reviews a second with other batches, workers and orders: 300 updates each, without an evaluation."""
        data = ("nsmc", "--data", self.packed / "nsmc", "--precision", "bfloat16", "--max_steps", 300)
        data += ("--eval_strategy", "no", "--save_strategy", "no", "--load_best_model_at_end", "false")
        for name, flags in {
            "batches of 512": ("--per_device_train_batch_size", 512),
            "without workers": ("--dataloader_num_workers", 0),
            "random order": ("--train_sampling_strategy", "random"),
        }.items():
            place = f"settings, {name}".replace(", ", "-").replace(" ", "-")
            self.train(place, 30, "train-classifier", *data, *flags, trial=self.few_reviews)

    def classifiers(self) -> None:
        """Training and inference beside BART, torch.nn.Transformer and the tutorial's code."""
        words = ["--tasks", "training", "inference", "memory", "--data", self.packed / "nsmc", "--texts", 12_800]
        words += ["--batch_size", 512, "--contenders", *(name for name in CONTENDERS if name != OURS)]
        words += ["--output_dir", self.folder / "classifiers"]
        tiny = ("--data", "sample", "--texts", 4, "--batch_size", 2, "--rounds", 1, "--config", TINY)
        program = [BENCHMARKS[0], f"{BENCHMARKS[1]}/benchmark.py"]
        self.part("classifiers", 75, *program, *words, results=("classifiers/benchmark.json",), trial=tiny)

    def translation(self) -> None:
        """Greedy and beam search beside Marian's, which expresses models with post-norm."""
        pairs = ["--data", self.packed / "multi30k", "--source_column", "de", "--target_column", "en"]
        few = ["--max_steps", 300, "--save_steps", 300, "--eval_steps", 300, "--average_last", 1]
        post_norm = ["--config", '{"norm_first": false, "final_norm": false}', "--max_tokens", 16_384]
        tiny = ("--vocab_size", 1000, "--generation_num_beams", 1, "--generation_max_length", 3)
        tiny += ("--config", f'{TINY[:-1]}, "norm_first": false, "final_norm": false}}')
        self.train("translator", 45, "train-translation", "multi30k-de-en", *pairs, *few, *post_norm, trial=tiny)
        pairs += ["--test_prefix", "test_2016_flickr", "--one_by_one", "false", "--rounds", 2]
        for beams in (1, 5):
            for batch in BATCHES:
                name = f"translation-{beams}-beams-batches-of-{batch}"
                words = [
                    "--model",
                    self.folder / "runs" / "translator",
                    *pairs,
                    "--file",
                    self.folder / f"{name}.json",
                ]
                words += ["--batch_size", batch, "--num_beams", beams, "--sentences", min(1000, 64 * batch)]
                program = [BENCHMARKS[0], f"{BENCHMARKS[1]}/benchmark_translation.py"]
                tiny = ("--sentences", 2, "--max_new_tokens", 3)
                self.part(name, 25, *program, *words, results=(f"{name}.json",), trial=tiny)

    def reviews(self, number: int) -> Path:
        """A file of the first reviews."""
        texts = self.folder / f"{number}-reviews.txt"
        with open(self.packed / "reviews.txt", encoding="utf-8") as lines, open(texts, "w", encoding="utf-8") as file:
            file.writelines(itertools.islice(lines, number))
        return texts

    def predict(self) -> None:
        """200,000 reviews through the command."""
        texts = self.reviews(10 if self.trial else 200_000)
        words = ["--model", ROOT / "model_cards" / "nsmc-small", "--file", texts]
        for dtype in ("float32", "bfloat16"):
            self.part(f"predict-{dtype}", 40, *MODULE, "predict", *words, "--dtype", dtype)

    def tests(self) -> None:
        words = ["-m", "pytest", "-q", "-n", 4, "--dist", "load", "-p", "no:cacheprovider", ROOT / "tests" / "gpu"]
        self.part("tests", 240, sys.executable, *words, trial=("-k", "every_tensor"))

    def larger(self) -> None:
        """6 + 6 layers of 512, pretrained on reviews for what time there is, then fine-tuned."""
        recipes = ROOT / "scripts" / "recipes"
        texts = self.reviews(6000) if self.trial else self.packed / "reviews.txt"
        words = [recipes / "pretrain-reviews-gpu.yaml", "--texts", texts]
        limit = min(240, self.end - time.monotonic() - FINE_TUNING)
        self.train("larger-pretraining", limit, "pretrain", *words, trial=("--vocab_size", 3000))
        pretrained = self.folder / "runs" / "larger-pretraining"
        if not (pretrained / "config.json").exists():  # stopped: its last checkpoint
            checkpoints = [*pretrained.glob("_stopped-checkpoint-*"), *pretrained.glob("checkpoint-*")]
            pretrained = max(checkpoints, key=lambda path: int(path.name.split("-")[-1]), default=pretrained)
        words = [recipes / "nsmc-gpu.yaml", "--data", self.packed / "nsmc", "--model", pretrained]
        self.part(
            "larger",
            FINE_TUNING,
            *MODULE,
            "train-classifier",
            *words,
            *QUIET,
            "--output_dir",
            self.folder / "runs" / "larger",
            results=("runs/larger/metrics.json", "runs/larger/run.json"),
            trial=("--data", "sample", *FEW_STEPS),
        )

    def run(self) -> None:
        """The parts. The larger classifier keeps its time: what is timed ends before it."""
        parts = self.report["arguments"]["parts"]
        end, self.end = self.end, self.end - LAST
        for name in PARTS[:-2]:
            if name in parts:
                getattr(self, name)()
        self.end = end
        last = [threading.Thread(target=getattr(self, name)) for name in PARTS[-2:] if name in parts]
        for thread in last:
            thread.start()
        for thread in last:
            thread.join()


class Peak:
    """The most memory that nvidia-smi sees in use while this is entered, in MiB; None without it."""

    def __init__(self):
        self.mebibytes: int | None = None
        self._left = threading.Event()

    def _watch(self) -> None:
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while not self._left.wait(0.5):
            try:
                printed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
            except (OSError, subprocess.CalledProcessError):
                return
            self.mebibytes = max(self.mebibytes or 0, *map(int, printed.split()))

    def __enter__(self) -> None:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def __exit__(self, *_) -> None:
        self._left.set()
        self._thread.join()


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([GpuArguments], __doc__, argv)
    Measurement(arguments).run()


if __name__ == "__main__":
    main()
