"""The walk-through's English chapters are the Korean ones: a change in one without the other fails."""

import ast
import hashlib
import re
from pathlib import Path

import jupytext
import pytest
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
KOREAN = sorted(FOLDER.glob("[0-9]*.py"))
ENGLISH = sorted((FOLDER / "en").glob("[0-9]*.py"))
# Chapters that have no English yet.
MISSING: set[str] = set()
# Where a link of a Korean page leads in the English one.
TRANSLATED = {
    "README.ko.md": "README.md",
    "tutorials.ko.md": "tutorials.md",
    "glossary.ko.md": "glossary.md",
    "translate.ko.md": "translate.md",
}
PAGES = {"README.md": "README.md", "glossary.ko.md": "glossary.md"}


class Words(ast.NodeTransformer):
    """Blanks strings; of formatted ones, what is formatted stays, in any order."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        values = [self.generic_visit(value) for value in node.values if isinstance(value, ast.FormattedValue)]
        return ast.JoinedStr(sorted(values, key=ast.dump)) if values else ast.Constant("")


def structure(source: str) -> str:
    """A cell's code without comments, docstrings and words."""
    code = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
    return ast.dump(Words().visit(ast.parse(code)))


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def links(text: str) -> list[str]:
    """Where links lead, whichever the language and the folder."""
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not link.startswith(("https://colab", "#")):
            name, _, section = link.partition("#")
            found.append(TRANSLATED.get(Path(name).name, Path(name).name) + ("#" if section else ""))
    return sorted(found)


@pytest.mark.parametrize("english", ENGLISH, ids=lambda chapter: chapter.stem)
def test_an_english_chapter_is_its_korean_one(english):
    """Cell by cell: kinds, tags, heading levels, links, and code but for its words.

    A cell with the tag "english" has data of its own; one with the tag "korean" keeps Korean data. A text cell has the
    hash of the Korean one that it translates: where that has changed, translate anew and write the new hash.
    """
    korean = FOLDER / english.name
    pairs = list(zip(jupytext.read(korean).cells, jupytext.read(english).cells, strict=True))
    for number, (original, translation) in enumerate(pairs):
        assert original.cell_type == translation.cell_type, number
        assert tags(original) == tags(translation) - {"english", "korean"}, number
        if original.cell_type == "markdown":
            texts = original.source, translation.source
            hash_of_it = hashlib.sha256(original.source.encode()).hexdigest()[:8]
            assert translation.metadata.get("source") == hash_of_it, f"translate anew: {texts[1][:60]}: {hash_of_it}"
            levels = [re.findall(r"^#+(?= )", text, re.MULTILINE) for text in texts]
            assert levels[0] == levels[1], texts[1][:60]
            assert links(texts[0]) == links(texts[1]), texts[1][:60]
        elif "english" not in tags(translation):
            assert structure(original.source) == structure(translation.source), translation.source
    assert sum("english" in tags(translation) for _, translation in pairs) <= len(pairs) / 4


@pytest.mark.parametrize("english", ENGLISH, ids=lambda chapter: chapter.stem)
def test_an_english_chapter_has_korean_as_data_only(english):
    """Where it speaks of Korean, in the text or as data of its own."""
    for cell in jupytext.read(english).cells:
        if cell.cell_type == "code" and not tags(cell) & {"english", "korean"}:
            assert not re.search("[가-힣]", cell.source), cell.source


def test_each_chapter_is_in_both_languages():
    assert {chapter.name for chapter in KOREAN} - {chapter.name for chapter in ENGLISH} == MISSING


@pytest.mark.parametrize("page", PAGES)
def test_the_other_pages_have_the_same_tables(page):
    """As many rows and columns, with the same links; the order of sections may differ."""
    texts = [path.read_text(encoding="utf-8") for path in (FOLDER / page, FOLDER / "en" / PAGES[page])]
    rows = [[line for line in text.splitlines() if line.startswith("|")] for text in texts]
    assert len(rows[0]) == len(rows[1])
    leads = [sorted(Path(one).name for one in re.findall(r"\]\(([^)#]+\.ipynb)", text)) for text in texts]
    assert leads[0] == leads[1]
