# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The benchmarks' pictures, drawn with matplotlib."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


LABELS = {"length": "tokens in a text", "batch_size": "texts in a batch", "depth": "layers in each stack"}


def plot_benchmark(curves: dict[str, list[dict[str, Any]]], file: Path) -> Figure:
    """Draw the speed of training against length, batch size and depth, as `measures.measure_curves` returns it."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True)
    for axes, (axis, points) in zip(panels, curves.items(), strict=True):
        for name in dict.fromkeys(point["name"] for point in points):
            own = [point for point in points if point["name"] == name]
            values = [point["value"] for point in own]
            axes.plot(values, [point["tokens_per_second"] for point in own], marker="o", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(values, [str(value) for value in values])
        axes.set_yscale("log")
        axes.set_xlabel(LABELS[axis])
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("tokens per second, training")
    panels[0].legend(fontsize=8)
    figure.savefig(file, dpi=150)
    return figure


def plot_sizes(points: list[dict[str, Any]], file: Path) -> None:
    """Draw memory, and time until the first batch, against the number of rows, as `size.measure_size` returns them."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    memory, times = figure.subplots(1, 2)
    for kind in dict.fromkeys(point["kind"] for point in points):
        own = [point for point in points if point["kind"] == kind]
        rows = [point["rows"] for point in own]
        peaks = [max(stage["peak_bytes"] for stage in point["first"].values()) / 1e6 for point in own]
        memory.plot(rows, peaks, marker="o", label=f"{kind} text")
        for start, style in (("first", "-"), ("second", "--")):
            seconds = [
                sum(stage["seconds"] for name, stage in point[start].items() if name != "checksums") for point in own
            ]
            times.plot(rows, seconds, style, marker="o", label=f"{kind} text, {start} start")
    memory.set_ylabel("peak memory of the main process, MB")
    memory.set_ylim(bottom=0)
    times.set_ylabel("seconds to the first batch")
    times.set_yscale("log")
    for axes in (memory, times):
        axes.set_xscale("log")
        axes.set_xlabel("rows")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(file, dpi=150)
