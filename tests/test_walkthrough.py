"""The walk-through: each chapter runs, its exercises' solutions included, and its notebook is what it gives."""

import re
import runpy
import sys

import jupytext
import matplotlib
import pytest
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
CHAPTERS = sorted(FOLDER.glob("[0-9]*.py"))
QUICK = ("01", "02", "03", "04", "05")
BADGE = "https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/{}.ipynb"


def chapters(slow: bool = False) -> list:
    """The sources as a test's parameters; with `slow`, those that take more than a few seconds are marked."""
    marks = {chapter: [pytest.mark.slow] if slow and chapter.stem[:2] not in QUICK else [] for chapter in CHAPTERS}
    return [pytest.param(chapter, id=chapter.stem, marks=marks[chapter]) for chapter in CHAPTERS]


@pytest.mark.parametrize("chapter", chapters(slow=True))
def test_a_chapter_runs(chapter, tmp_path, monkeypatch, capsys):
    """Where it may write, with `model_cards` and `docs` as in a clone."""
    for name in ("model_cards", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with matplotlib.rc_context():
        runpy.run_path(str(chapter))
    assert capsys.readouterr().out


@pytest.mark.parametrize("chapter", chapters())
def test_a_notebook_has_its_sources_cells(chapter):
    """`make docs` makes it anew."""
    source, notebook = jupytext.read(chapter), jupytext.read(chapter.with_suffix(".ipynb"))
    assert [(cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells] == [
        (cell.cell_type, cell.source, cell.metadata) for cell in source.cells
    ]


@pytest.mark.parametrize("chapter", chapters())
def test_a_notebook_has_outputs_and_nothing_of_the_machine(chapter):
    file = chapter.with_suffix(".ipynb")
    notebook = jupytext.read(file)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    assert outputs
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert set(notebook.metadata) == {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|Users|var)/|0x[0-9a-f]{8}", text)
    assert len(text) < 400_000


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_keeps_the_form(chapter):
    """A number and title, the badge and an English summary of three lines on top; exercises; folded solutions."""
    cells = jupytext.read(chapter).cells
    title, badge, *summary = [line for line in cells[0].source.splitlines() if line]
    assert title.startswith(f"# {int(chapter.stem[:2])}. ")
    assert f"({BADGE.format(chapter.stem)})" in badge
    assert summary[0].startswith("> **English summary.**") and all(line.startswith(">") for line in summary[:3])
    assert "google.colab" in cells[1].source
    headings = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    assert headings.index("## 직접 해 보기") < headings.index("## 풀이")
    solutions = cells[next(number for number, cell in enumerate(cells) if cell.source.startswith("## 풀이")) + 1 :]
    solutions = [cell for cell in solutions if cell.cell_type == "code"]
    assert len(solutions) >= 2
    for cell in solutions:
        assert cell.source.startswith("# @title 풀이") and "assert" in cell.source
        assert cell.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}


def test_the_index_names_every_chapter():
    index = re.findall(r"\]\((\w+)\.ipynb\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert index == sorted(index) and {chapter.stem for chapter in CHAPTERS} <= set(index)
