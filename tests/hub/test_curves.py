"""Pictures draw the values that they get, with fonts that have the letters."""

import sys
import warnings
from pathlib import Path

import matplotlib
import pytest
import torch
from shared import ROOT

from hf_vanilla_transformer.hub.curves import plot_training_curves


sys.path.insert(0, str(ROOT / "docs" / "walkthrough"))

import paper_plots


KOREAN = ["[BOS]", "▁정말", "▁재미", "있고"]


@pytest.fixture(autouse=True)
def strict():
    """Turn warnings into errors, except for missing glyphs if no font has Hangul; compare matplotlib's settings."""
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if len(paper_plots._families()) == 1:
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield
    assert dict(matplotlib.rcParams) == before


def test_korean_is_drawn_with_a_font_that_matplotlib_has_not_listed_yet(tmp_path, monkeypatch, recwarn):
    from matplotlib import font_manager

    if len(paper_plots._families()) == 1:
        pytest.skip("no font with Hangul is installed")
    latin = [
        entry for entry in font_manager.fontManager.ttflist if Path(entry.fname).stem not in paper_plots._HANGUL_FONTS
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", latin)
    paper_plots._families.cache_clear()
    paper_plots.plot_attention(torch.eye(4), KOREAN, KOREAN, tmp_path / "a.png")
    paper_plots.plot_noam_rates({"학습률": [1, 2]}, tmp_path / "b.png")
    assert not [str(warning.message) for warning in recwarn if "Glyph" in str(warning.message)]


def test_the_curves_show_what_was_measured(tmp_path):
    entries = [{"epoch": e, "train_loss": 1.0, "eval_loss": 1.1, "eval_bleu": 10.0 * e} for e in (1, 2)]
    loss, bleu = plot_training_curves(entries, tmp_path / "a.png").axes
    assert (loss.get_ylabel(), bleu.get_ylabel()) == ("loss", "BLEU")
    assert len(loss.lines) == 2 and bleu.lines[0].get_ydata().tolist() == [10.0, 20.0]
