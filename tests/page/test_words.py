"""The page's texts: both languages have them; code and chapters that it quotes are there."""

import gzip
import json
import re
import subprocess
from pathlib import Path

import pytest
from shared import ROOT

from .node import NODE, needs_node


PAGE = ROOT / "hf_vanilla_transformer" / "page"
SOURCES = [*PAGE.glob("*.js"), *PAGE.glob("panels/*.js")]


@pytest.fixture(scope="module")
def words() -> dict:
    program = """import * as words from "./words.js"; import { LINES } from "./lines.js";
        console.log(JSON.stringify({ ...words, LINES }));"""
    result = subprocess.run(
        [NODE, "--input-type=module", "--eval", program], cwd=PAGE, check=True, capture_output=True, encoding="utf-8"
    )
    return json.loads(result.stdout)


@needs_node
def test_every_text_of_the_page_is_there_in_both_languages(words):
    groups = words["WORDS"]
    texts = {f"{group}.{name}": both for group in groups for name, both in groups[group].items()}
    texts |= groups["page"]
    for name, both in texts.items():
        assert all(both) and len(both) in (1, 2), name
        assert len({tuple(sorted(re.findall(r"\{(\w+)\}(?!\})", text))) for text in both}) == 1 or "formula" in name, (
            name
        )
    asked = {name for file in SOURCES for name in re.findall(r'\bw\("([\w.]+)"', file.read_text(encoding="utf-8"))}
    assert asked <= texts.keys()
    assert all(len(set(texts)) == 20 for languages in words["EXAMPLES"].values() for texts in languages.values())


@needs_node
def test_quoted_lines_are_in_the_modelling_file_or_the_search(words):
    files = PAGE.parent / "modeling_vanilla_transformer.py", PAGE / "search.js"
    source = {line.strip() for file in files for line in file.read_text().splitlines()}
    assert set(words["LINES"].values()) <= source
    named = {name for file in SOURCES for name in re.findall(r"\bLINES\.(\w+)", file.read_text(encoding="utf-8"))}
    for file in PAGE.glob("panels/*.js"):
        for names in re.findall(r"\bcode: \[([^\]]*)\]", file.read_text(encoding="utf-8")):
            named |= set(re.findall(r'"(\w+)"', names))
    assert named == words["LINES"].keys()


@needs_node
def test_links_lead_to_headings_of_the_chapters(words):
    for chapter, korean, english in words["CHAPTERS"].values():
        for folder, heading in (("", korean), ("en/", english)):
            text = (ROOT / "docs" / "walkthrough" / f"{folder}{chapter}.py").read_text(encoding="utf-8")
            assert re.search(rf"^# ##+ {re.escape(heading)}$", text, re.MULTILINE), heading


def imported_with(*names: str) -> set[Path]:
    """The files that a browser loads with these: they and what their modules import at once."""
    found, waiting = set(), [PAGE / name for name in names]
    while waiting:
        file = waiting.pop()
        found.add(file)
        imports = re.findall(r'^import .* from "([^"]+)";', file.read_text(encoding="utf-8"), re.MULTILINE)
        waiting += {(file.parent / name).resolve() for name in imports} - found
    return found


def test_the_page_is_small():
    files = {file for file in PAGE.rglob("*") if file.suffix in (".js", ".css", ".html", ".json")}
    first = imported_with("index.html", "style.css", "page.json", "app.js", "worker.js")
    assert PAGE / "panels" / "map.js" in first < files
    assert size(first) < 210_000 and size(files - {PAGE / "vendor" / "tokenizers.js"}) < 240_000
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 100_000  # as most hosts send them


def size(files: set[Path]) -> int:
    return sum(file.stat().st_size for file in files)
