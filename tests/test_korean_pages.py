"""Pages in Korean are their English ones, and a learner's checkpoint comes over."""

import re

import pytest
import torch
from shared import ROOT, tiny_config
from test_conversion import assert_identical
from test_documentation import command, lines, run_programs
from test_tokenizer import TUTORIAL_FLAGS, train_sentencepiece
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification, to_source_state_dict


TUTORIALS = sorted(page for page in (ROOT / "docs" / "tutorials").glob("*.md") if not page.name.endswith(".ko.md"))
TRANSLATED = ["README.md", "docs/start.md", "docs/tutorials.md"]
TRANSLATED += [f"docs/guides/{name}.md" for name in ("classify", "train", "translate")]
TRANSLATED += [page.relative_to(ROOT).as_posix() for page in TUTORIALS]


def blocks(text: str) -> list[str]:
    """The code blocks, with their fences."""
    return re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)


def tables(text: str) -> list[list[list[str]]]:
    """Of each cell of each table row the numbers and whether it is bold; words stand in another order."""
    rows = [row.split("|") for row in text.splitlines() if row.startswith("|")]
    return [[sorted(re.findall(r"\*\*|\d[\d.,]*\d|\d", cell)) for cell in row] for row in rows]


def sections(text: str) -> list[str]:
    """The level of each heading."""
    return re.findall(r"^#+(?= )", text, re.MULTILINE)


def links(text: str) -> set[str]:
    """Where links lead, whichever the language: a page in Korean has Korean headings."""
    found = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)|<(https?://[^>]+)>", text)
    addresses = {address or url for address, url in found}
    return {one.replace("walkthrough/en/", "walkthrough/").replace(".ko.md", ".md") for one in addresses}


@pytest.mark.parametrize("part", [blocks, tables, sections, links])
@pytest.mark.parametrize("page", TRANSLATED)
def test_a_translation_has_the_same_code_tables_sections_and_links(page, part):
    """On top, each leads to the other."""
    pages = [ROOT / page, (ROOT / page).with_suffix(".ko.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    assert all(f"]({page.name})" in text.splitlines()[0] for page, text in zip(pages, texts[::-1], strict=True))
    english, korean = map(part, texts)
    assert (english or part is tables) and english == korean  # not every guide has a table


def test_a_tutorials_checkpoint_and_vocabulary_come_over(succeed, tmp_path, monkeypatch):
    """The programs and the command of docs/tutorials/transformer-evolution.md, and the way back."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.txt").write_text("재미있다\n", encoding="utf-8")
    train_sentencepiece(tmp_path / "kowiki.model", **TUTORIAL_FLAGS)
    model = VanillaTransformerForSequenceClassification(tiny_config(vocab_size=1500, position_offset=1)).eval()
    theirs = to_source_state_dict(model, "transformer-evolution")
    torch.save({"epoch": 1, "loss": 0.5, "score": 0.5, "state_dict": theirs}, "save_best.pth")

    page = "docs/tutorials/transformer-evolution.md"
    run_programs(page)
    (answer,) = (command(words) for words in lines(page))
    assert succeed(*answer).split()[0] in ("negative", "positive")
    ids = AutoTokenizer.from_pretrained("runs/converted")("정말 재미있다", return_tensors="pt")
    with torch.no_grad():
        ours = AutoModelForSequenceClassification.from_pretrained("runs/converted").eval()(**ids).logits
        torch.testing.assert_close(ours, model(**ids).logits)
    back = torch.load("back.pth", weights_only=True)
    assert_identical(back, theirs)
