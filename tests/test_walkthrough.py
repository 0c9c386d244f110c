"""The walk-through: the chapters run in order, answers included, and the notebooks show what that gives."""

import ast
import contextlib
import functools
import importlib
import io
import itertools
import linecache
import multiprocessing
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jupytext
import pandas as pd
import pytest
import torch
from processes import SERVER
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
KOREAN, ENGLISH = sorted(FOLDER.glob("[0-9]*.py")), sorted((FOLDER / "en").glob("[0-9]*.py"))
CHAPTERS = [*KOREAN, *ENGLISH]
QUICK = ("00", "01", "02", "03", "04", "05", "10")
COLAB = "https://colab.research.google.com/github/somebody/repository/blob/main"
# By the folder of a chapter.
NOT_WRITTEN = {"walkthrough": "아직 쓰지 않았습니다", "en": "[Nn]ot written yet"}
EXERCISES = {"walkthrough": "직접 해 보기", "en": "Exercises"}
DECIMAL = re.compile(r"-?\d[\d,]*\.\d*(?:e[-+]\d+)?")


def chapters() -> list:
    """The sources as a test's parameters."""
    return [pytest.param(chapter, id=f"{chapter.parent.name[:2]}-{chapter.stem}") for chapter in CHAPTERS]


@functools.cache
def code_cells(file) -> list:
    return [cell for cell in jupytext.read(file).cells if cell.cell_type == "code"]


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def is_filled_in(cell) -> bool:
    """Whether the reader's edition has a stub instead."""
    return "blank" in tags(cell) or "exercise" in tags(cell)


def output_of(source: str, names: dict) -> str:
    """Run a cell, as IPython does: what it prints, and its last expression's value."""
    code = "\n".join("" if line.startswith("%") else line for line in source.splitlines())
    name = f"<ipykernel {hash(code)}>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names["In"].append(code)
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)
    return printed.getvalue() + ("" if value is None else repr(value))


def words_and_numbers(text: str) -> tuple[str, list[float]]:
    """The text without numbers that have decimals, and those. Whose answers are used is left out."""
    text = re.sub(r"(?m)^(내가 만든 것|저장소의 것|Mine|The repository's): .*\n", "", text)
    words = re.sub(r"[\s\[\]]+", " ", DECIMAL.sub("#", text))
    return words.strip(), [float(number.replace(",", "")) for number in DECIMAL.findall(text)]


@pytest.fixture
def import_beside(monkeypatch):
    """Import a module that lies beside the chapters."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    importlib.import_module("words").use("ko")


def run(chapter: Path, folder: Path) -> None:
    """Run a chapter in a folder, as a reader does it: what is empty is told so, then its answer is run.

    Cells that measure time, or have the tag "varies", are run only, with few steps. Where nothing is trained, decimals
    agree with the notebook, too; elsewhere another CPU trains to others.
    """
    os.chdir(folder)
    sys.path.insert(0, str(FOLDER))
    stub, not_right = (importlib.import_module(name) for name in ("make_notebooks", "check"))
    pd.set_option("display.max_columns", 20)  # as in a notebook
    names = {"__name__": "__main__", "In": [""]}
    cells, saved = code_cells(chapter), code_cells(chapter.with_suffix(".ipynb"))
    for number, (cell, before) in enumerate(zip(cells, saved, strict=True)):
        if is_filled_in(cell):
            with torch.random.fork_rng():
                output_of(stub.stub(cell.source), names)
                with pytest.raises(not_right.NotRight, match=NOT_WRITTEN[chapter.parent.name]):
                    output_of(cells[number + 1].source, names)
        if "perf_counter" in cell.source or "varies" in tags(cell):
            output_of(re.sub(r"\bsteps=\d+", "steps=2", cell.source), names)
            continue
        output = output_of(cell.source, names)
        shown = (one.text if one.output_type == "stream" else one.data["text/plain"] for one in before.outputs)
        (words, numbers), (old_words, old_numbers) = map(words_and_numbers, (output, "".join(shown)))
        assert words == old_words, f"{chapter.stem}, cell {number} is stale: make docs"
        if chapter.stem[:2] in QUICK:
            assert numbers == pytest.approx(old_numbers, rel=0.02, abs=2e-3, nan_ok=True), f"cell {number}"


def run_one_by_one(chapters: list[Path], folder: Path) -> None:
    """Run each chapter in a process of its own, which finds imported what takes three seconds to import."""
    for module in ("datasets", "matplotlib", "hf_vanilla_transformer.training.classifier"):
        importlib.import_module(module)
    context = multiprocessing.get_context("fork") if sys.platform == "linux" else SERVER
    for chapter in chapters:
        process = context.Process(target=run, args=(chapter, folder))
        process.start()
        process.join()
        assert process.exitcode == 0, chapter


@pytest.mark.slow
def test_the_chapters_run_in_order_in_one_folder(tmp_path):
    """A chapter has what earlier ones kept, and no more.

    Of the English edition, the quick ones with cells of their own. The others' code is the Korean edition's:
    test_walkthrough_languages.py compares it.
    """
    for name in ("model_cards", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    has_own = [any("english" in tags(cell) for cell in code_cells(chapter)) for chapter in ENGLISH]
    english = [chapter for chapter in itertools.compress(ENGLISH, has_own) if chapter.stem[:2] in QUICK]
    in_order = sorted([*KOREAN, *english], key=lambda chapter: chapter.stem)
    process = SERVER.Process(target=run_one_by_one, args=(in_order, tmp_path))
    process.start()
    process.join()
    assert process.exitcode == 0
    kept = {file.name for file in (tmp_path / "runs").iterdir()}
    assert kept >= {"my_classes.py", "my_copier.pt", "my_classifier.pt", "my_translator.pt", "my-model"}


@pytest.mark.parametrize("chapter", chapters())
def test_a_notebook_has_its_sources_cells_outputs_and_nothing_of_the_machine(chapter, import_beside):
    """`make docs` makes it anew."""
    file = chapter.with_suffix(".ipynb")
    notebook, code = jupytext.read(file), code_cells(file)
    cells, sources = (
        [(cell.cell_type, cell.source, cell.metadata) for cell in made.cells]
        for made in (notebook, import_beside("make_notebooks").notebook(chapter))
    )
    assert cells == sources
    outputs = [output for cell in code for output in cell.outputs]
    assert outputs and [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert set(notebook.metadata) == {"kernelspec", "language_info"} and notebook.metadata.kernelspec.name == "python3"
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|home|root|work|Users|var)/|0x[0-9a-f]{8}", text)
    assert len(text) < 400_000


@pytest.mark.parametrize("chapter", chapters())
def test_the_readers_edition_is_of_today_and_has_no_outputs(chapter, import_beside):
    made = import_beside("make_notebooks").blanks(chapter)
    saved = jupytext.read(chapter.parent / "blanks" / f"{chapter.stem}.ipynb")
    cells, expected = ([(c.cell_type, c.source, c.metadata) for c in one.cells] for one in (saved, made))
    assert cells == expected, "stale: make docs"
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in saved.cells)


@pytest.mark.parametrize("chapter", chapters())
def test_a_blank_has_its_check_and_an_exercise_hints_an_answer_and_a_check(chapter):
    """All chapters begin with the same set-up."""
    cells = jupytext.read(chapter).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert cells[1].source == code_cells(chapter.parent / f"{KOREAN[0].stem}.py")[0].source
    answers = [place for place, cell in enumerate(code) if "exercise" in tags(cell)]
    assert len(answers) >= 2 and all("check_answer(" in code[place + 1].source for place in answers)
    exercises = "\n".join(cell.source for cell in cells).partition(f"\n## {EXERCISES[chapter.parent.name]}\n")[2]
    assert exercises.count("<details>") == 2 * len(answers)
    for place, cell in enumerate(cells):
        if "blank" in tags(cell):
            assert re.fullmatch(r"check\(\w+\)", cells[place + 1].source)
            assert cells[place + 2].source.count("<details>") == 2


def test_what_is_made_of_the_chapters_is_of_today(import_beside):
    for name, text in import_beside("make_notebooks").made_files().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name} is stale: make docs"


def test_a_notebook_outside_the_clone_says_what_to_do(tmp_path):
    (tmp_path / "cell.py").write_text(code_cells(KOREAN[0])[0].source.replace("%matplotlib", "#"), encoding="utf-8")
    program = subprocess.run([sys.executable, "cell.py"], cwd=tmp_path, capture_output=True, encoding="utf-8")
    assert program.returncode == 1
    assert "저장소를 받아 그 안에서 여세요" in program.stderr


@pytest.mark.parametrize("chapter", chapters())
def test_colab_opens_the_readers_edition_once_the_repository_has_an_owner(chapter, import_beside, monkeypatch):
    made = import_beside("make_notebooks")
    monkeypatch.setattr(made, "REPOSITORY", "https://github.com/somebody/repository")
    address = f"({COLAB}/{chapter.parent.relative_to(ROOT).as_posix()}/blanks/{chapter.stem}.ipynb)"
    for title, set_up, *_ in (made.notebook(chapter).cells, made.blanks(chapter).cells):
        assert title.source.splitlines()[2].endswith(address)
        assert "    !git clone -q https://github.com/somebody/repository\n" in set_up.source


@pytest.mark.parametrize("language", ["ko", "en"])
def test_drawings_fit_on_a_phone_and_say_what_they_show(language, import_beside):
    """Every drawing that a chapter shows is an SVG of a phone's width, with a title, in the chapter's language."""
    names = {"drawings": import_beside("drawings")}
    import_beside("words").use(language)
    shown = {
        node
        for chapter in (KOREAN if language == "ko" else ENGLISH)
        for node in re.findall(r"^drawings\.\w+\(.*\)$", chapter.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(shown) > 10
    for call in shown:
        root = ElementTree.fromstring(eval(call, names).svg())
        assert float(root.get("width")) <= 420 and root[0].tag.endswith("title") and len(root[0].text) > 10
        words = [part.text or "" for part in root if part.tag.endswith(("text", "title"))]
        assert language == "ko" or not re.search("[가-힣]", " ".join(words)), call


@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "en"], ids=["ko", "en"])
def test_the_index_names_every_chapter(folder):
    index = re.findall(r"\]\(([\w./]+)\.ipynb\)", (folder / "README.md").read_text(encoding="utf-8"))
    assert index == [f"{edition}{chapter.stem}" for chapter in KOREAN for edition in ("blanks/", "")]
