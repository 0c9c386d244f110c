"""The walk-through: each chapter runs, its exercises' solutions included, and its notebook shows what that gives."""

import ast
import contextlib
import importlib
import io
import re
import subprocess
import sys
from xml.etree import ElementTree

import jupytext
import matplotlib
import pandas as pd
import pytest
import torch
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
CHAPTERS = sorted(FOLDER.glob("[0-9]*.py"))
QUICK = ("00", "01", "02", "03", "04", "05")
BADGE = "https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/{}.ipynb"
DECIMAL = re.compile(r"-?\d[\d,]*\.\d*(?:e[-+]\d+)?")


def chapters(slow: bool = False) -> list:
    """The sources as a test's parameters; with `slow`, those that take more than a few seconds are marked."""
    marks = {chapter: [pytest.mark.slow] if slow and chapter.stem[:2] not in QUICK else [] for chapter in CHAPTERS}
    return [pytest.param(chapter, id=chapter.stem, marks=marks[chapter]) for chapter in CHAPTERS]


def code_cells(file) -> list:
    return [cell for cell in jupytext.read(file).cells if cell.cell_type == "code"]


def is_solution(cell) -> bool:
    return cell.source.startswith("# @title 풀이")


def output_of(cell, names: dict) -> str:
    """Run a cell: what it prints, and its last expression's value."""
    tree = ast.parse("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return printed.getvalue() + ("" if value is None else repr(value))


def words_and_numbers(text: str) -> tuple[str, list[float]]:
    """The text without numbers that have decimals, and those."""
    words = re.sub(r"[\s\[\]]+", " ", DECIMAL.sub("#", text))
    return words.strip(), [float(number.replace(",", "")) for number in DECIMAL.findall(text)]


@pytest.mark.parametrize("chapter", chapters(slow=True))
def test_a_chapter_runs_and_its_notebook_shows_that(chapter, tmp_path, monkeypatch):
    """Where it may write, with `model_cards` and `docs` as in a clone.

    Cells that measure time, or have the tag "varies", are run only. Where nothing is trained, decimals agree, too;
    elsewhere another CPU trains to others.
    """
    for name in ("model_cards", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = {"__name__": "__main__"}
    saved = code_cells(chapter.with_suffix(".ipynb"))
    with matplotlib.rc_context(), pd.option_context("display.max_columns", 20):
        for number, (cell, before) in enumerate(zip(code_cells(chapter), saved, strict=True)):
            output = output_of(cell, names)
            if is_solution(cell) or "perf_counter" in cell.source or "varies" in cell.metadata.get("tags", []):
                continue
            shown = (one.text if one.output_type == "stream" else one.data["text/plain"] for one in before.outputs)
            (words, numbers), (old_words, old_numbers) = map(words_and_numbers, (output, "".join(shown)))
            assert words == old_words, f"cell {number} is stale: make docs"
            if chapter.stem[:2] in QUICK:
                assert numbers == pytest.approx(old_numbers, rel=0.02, abs=2e-3, nan_ok=True), f"cell {number}"


@pytest.mark.parametrize("chapter", chapters())
def test_a_notebook_has_its_sources_cells_outputs_and_nothing_of_the_machine(chapter):
    """`make docs` makes it anew. A solution's output would tell the answer: it is cleared."""
    file = chapter.with_suffix(".ipynb")
    notebook, code = jupytext.read(file), code_cells(file)
    cells, sources = (
        [(cell.cell_type, cell.source, cell.metadata) for cell in made.cells]
        for made in (notebook, jupytext.read(chapter))
    )
    assert cells == sources
    outputs = [output for cell in code for output in cell.outputs]
    assert outputs and not any(cell.outputs for cell in code if is_solution(cell))
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert set(notebook.metadata) == {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|Users|var)/|0x[0-9a-f]{8}", text)
    assert len(text) < 400_000


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_keeps_the_form(chapter):
    """Title, badge, English summary; set-up, map; four lines of summary, a question, exercises; folded solutions."""
    cells = jupytext.read(chapter).cells
    number = int(chapter.stem[:2])
    title, badge, *summary = [line for line in cells[0].source.splitlines() if line]
    assert title.startswith(f"# {number}. ")
    assert f"({BADGE.format(chapter.stem)})" in badge
    assert summary[0].startswith("> **English summary.**") and all(line.startswith(">") for line in summary[:3])
    first = code_cells(CHAPTERS[0])[0].source.partition("# 학습된 모델")[0]
    assert cells[1].source.startswith(first) and "google.colab" in first
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    end = text[text.index("\n## 정리\n") :]
    assert len(re.findall(r"^- ", end, re.MULTILINE)) == 4
    assert end.index("**더 생각해 보기.**") < end.index("\n## 직접 해 보기\n") < end.index("## 풀이")
    assert f"drawings.model_map({number or ''})" in [cell.source for cell in cells]
    solutions = cells[next(number for number, cell in enumerate(cells) if cell.source.startswith("## 풀이")) + 1 :]
    assert len(solutions) >= 2
    for cell in solutions:
        assert is_solution(cell) and "assert" in cell.source
        assert cell.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}


@pytest.fixture
def import_beside(monkeypatch):
    """Import a module that lies beside the chapters."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def test_what_is_made_of_the_chapters_is_of_today(import_beside):
    for name, text in import_beside("make_notebooks").made_files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name} is stale: make docs"


def test_a_notebook_outside_the_clone_says_what_to_do(tmp_path):
    setup = code_cells(CHAPTERS[0])[0].source.partition("import math")[0]
    program = subprocess.run([sys.executable, "-c", setup], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert program.returncode == 1
    assert program.stderr.splitlines() == [
        "저장소를 받아 그 안에서 노트북을 여세요: git clone https://github.com/OWNER/hf_vanilla_transformer"
    ]


def test_drawings_stay_on_their_card_and_say_what_they_show(import_beside):
    """Every drawing that a chapter shows is an SVG of a phone's width, with a title; nothing lies outside."""
    names = {"drawings": import_beside("drawings")}
    shown = {
        node
        for chapter in CHAPTERS
        for node in re.findall(r"^drawings\.\w+\(.*\)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(shown) > 10
    for call in shown:
        root = ElementTree.fromstring(eval(call, names).svg())
        width, height = float(root.get("width")), float(root.get("height"))
        assert width <= 420 and root[0].tag.endswith("title") and len(root[0].text) > 10
        for part in root[2:]:
            points = [tuple(map(float, point.split(","))) for point in part.get("points", "").split()]
            if part.get("x"):
                x, y = float(part.get("x")), float(part.get("y"))
                points += [(x, y), (x + float(part.get("width", 0)), y + float(part.get("height", 0)))]
            assert all(0 <= x <= width and 0 <= y <= height for x, y in points), call


def test_the_packages_plots_are_in_korean(import_beside):
    plots, ab = import_beside("chapter_plots"), list("ab")
    attention = plots.plot_attention(torch.eye(2).expand(2, 2, 2), ab, ab)
    figures = [plots.plot_masks(ab, [1, 0]), attention, plots.plot_sinusoid_table(4, 4)]
    texts = {text.get_text() for figure in figures for text in figure.findobj(matplotlib.text.Text)}
    assert {*plots.KOREAN.values(), "헤드 1"} <= texts


def test_the_index_names_every_chapter():
    index = re.findall(r"\]\((\w+)\.ipynb\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert index == sorted(index) and {chapter.stem for chapter in CHAPTERS} <= set(index)
