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


def exports_of(file: str) -> dict:
    """What a module of the page exports."""
    program = f'import * as all from "./{file}"; console.log(JSON.stringify(all));'
    result = subprocess.run(
        [NODE, "--input-type=module", "--eval", program], cwd=PAGE, check=True, capture_output=True, encoding="utf-8"
    )
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def words() -> dict[str, dict[str, dict[str, str]]]:
    start = exports_of("words/start.js")
    return {language: {**exports_of(f"words/{language}.js"), "start": start[language]} for language in ("ko", "en")}


@needs_node
def test_every_text_of_the_page_is_there_in_both_languages(words):
    texts = {
        language: {f"{group}.{name}": text for group, texts in groups.items() for name, text in texts.items()}
        for language, groups in words.items()
    }
    assert texts["ko"].keys() == texts["en"].keys()
    for name, korean in texts["ko"].items():
        english = texts["en"][name]
        assert korean and english, name
        if not name.endswith(".formula"):
            assert values_in(korean) == values_in(english), name
    asked = {name for file in SOURCES for name in re.findall(r'\bw\("([\w.]+)"', file.read_text(encoding="utf-8"))}
    assert {name if "." in name else f"page.{name}" for name in asked} <= texts["en"].keys()


def values_in(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


@needs_node
@pytest.mark.parametrize("task", ["classification", "translation"])
def test_twenty_sentences_are_kept_of_each_language(task):
    languages = exports_of(f"examples/{task}.js")
    assert all(len(set(sentences)) == 20 for sentences in languages.values())


@needs_node
def test_quoted_lines_are_in_the_modelling_file_or_the_search():
    lines = exports_of("lines.js")["LINES"]
    files = PAGE.parent / "modeling_vanilla_transformer.py", PAGE / "search.js"
    source = {line.strip() for file in files for line in file.read_text().splitlines()}
    assert set(lines.values()) <= source
    named = {name for file in SOURCES for name in re.findall(r"\bLINES\.(\w+)", file.read_text(encoding="utf-8"))}
    for file in PAGE.glob("panels/*.js"):
        for names in re.findall(r"\bcode = \[([^\]]*)\]", file.read_text(encoding="utf-8")):
            named |= set(re.findall(r'"(\w+)"', names))
    assert named == lines.keys()


@needs_node
def test_links_lead_to_headings_of_the_chapters(words):
    for panel, chapter in exports_of("frame.js")["CHAPTERS"].items():
        for folder, language in (("", "ko"), ("en/", "en")):
            heading = words[language][panel]["chapter"]
            text = (ROOT / "docs" / "walkthrough" / f"{folder}{chapter}.py").read_text(encoding="utf-8")
            assert re.search(rf"^# ##+ {re.escape(heading)}$", text.replace("`", ""), re.MULTILINE), heading


@needs_node
def test_each_failure_has_its_sentence(words):
    codes = {code for file in SOURCES for code in re.findall(r'\bfailure\("(\w+)"', file.read_text(encoding="utf-8"))}
    assert words["en"]["start"].keys() - codes == {"title", "drop", "hub"}
    assert codes <= words["en"]["start"].keys()


def imported_with(*names: str) -> set[Path]:
    """The files that a browser loads with these: they and what their modules import at once."""
    found, waiting = set(), [PAGE / name for name in names]
    while waiting:
        file = waiting.pop()
        found.add(file)
        imports = re.findall(r'^import .* from "([^"]+)";', file.read_text(encoding="utf-8"), re.MULTILINE)
        waiting += {(file.parent / name).resolve() for name in imports} - found
    return found


@pytest.mark.parametrize("task", ["classification", "translation"])
@pytest.mark.parametrize("language", ["ko", "en"])
def test_what_a_browser_downloads_is_small(language, task):
    """Without the weights: less than 185,000 bytes for the first panel, less than 250,000 for all ten."""
    start = ["index.html", "style.css", "page.json", "app.js", "worker.js"]
    files = imported_with(*start, f"words/{language}.js", f"examples/{task}.js")
    assert PAGE / "panels" / "map.js" in files
    assert size(files) < 185_000
    files |= imported_with(*(f"panels/{file.name}" for file in PAGE.glob("panels/*.js")), "copy_task.js")
    assert size(files) < 250_000
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 90_000  # as most hosts send them


def size(files: set[Path]) -> int:
    return sum(file.stat().st_size for file in files)
