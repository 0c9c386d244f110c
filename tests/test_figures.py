"""Pictures: what is drawn is what was given, it is drawn on the file, in letters that a reader can read."""

import json
import logging
import runpy
import shlex
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
import torch
from conftest import tiny_config
from matplotlib.image import imread
from transformers.masking_utils import create_causal_mask

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
    figures,
)
from hf_vanilla_transformer.loading import load_tokenizer
from hf_vanilla_transformer.modeling_vanilla_transformer import sinusoid_table
from hf_vanilla_transformer.tokenizer import train_tokenizer


ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "figures.py"
KOREAN = ["[BOS]", "▁정말", "▁재미", "있고"]


def maps(*shape: int) -> torch.Tensor:
    return torch.rand(shape).softmax(dim=-1)


def history(epochs: int) -> list[dict]:
    return [
        {"epoch": e, "train_loss": 1 / e, "eval_loss": 1.1 / e, "eval_accuracy": 1 - 0.5 / e}
        for e in range(1, epochs + 1)
    ]


# Each picture, made from two inputs.
PICTURES = {
    "sinusoid": lambda file, i: figures.plot_sinusoid_table(40, (32, 16)[i], file),
    "masks": lambda file, i: figures.plot_masks(list("abcd"), ([1, 1, 1, 0], [1, 1, 1, 1])[i], file),
    "noam": lambda file, i: figures.plot_noam_rates({"a": [1, 2, 3], "b": [3, 2, 1 + i]}, file),
    "smoothing": lambda file, i: figures.plot_smoothed_targets(torch.eye(4 + i), file),
    "large smoothing": lambda file, i: figures.plot_smoothed_targets(torch.eye(13, 50 + i), file),
    "attention": lambda file, i: figures.plot_attention(maps(4, 3, 5), list("abc"), list("defgh"), file),
    "one head": lambda file, i: figures.plot_attention(maps(3, 3), list("abc"), list("abc"), file),
    "one query": lambda file, i: figures.plot_attention(maps(2, 1, 9), ["a"], list("abcdefghi"), file),
    "curves": lambda file, i: figures.plot_training_curves(history(3 + i), file),
}


@pytest.fixture(autouse=True)
def strict():
    """No warning, of missing glyphs or anything else, and no trace in matplotlib's settings."""
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", PICTURES)
def test_a_png_has_something_in_every_panel(name, tmp_path):
    figure = PICTURES[name](tmp_path / "a.png", 0)
    picture = imread(tmp_path / "a.png")[..., :3]
    height, width = picture.shape[:2]
    for axes in figure.axes:
        box = axes.get_position()
        panel = picture[
            round((1 - box.y1) * height) + 2 : round((1 - box.y0) * height) - 2,
            round(box.x0 * width) + 2 : round(box.x1 * width) - 2,
        ]
        assert panel.std() > 0.01
    PICTURES[name](tmp_path / "b.png", 1)
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("name", PICTURES)
def test_an_svg_is_drawn(name, tmp_path):
    PICTURES[name](tmp_path / "a.svg", 0)
    drawing = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert drawing.tag.endswith("svg")
    assert sum(element.tag.endswith(("path", "image")) for element in drawing.iter()) > 20


@pytest.mark.parametrize("name", PICTURES)
def test_axes_have_names(name, tmp_path):
    figure = PICTURES[name](tmp_path / "a.png", 0)
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    bars = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    assert panels[0].get_ylabel() or figure.get_supylabel()
    assert all(panel.get_xlabel() or figure.get_supxlabel() for panel in panels)
    assert all(bar.get_xlabel() or bar.get_ylabel() for bar in bars)


@pytest.mark.parametrize(("file", "message"), [("a.jpg", "a.jpg"), ("picture", "picture"), ("no/a.png", "no folder")])
def test_a_file_that_cannot_be_is_refused(file, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        figures.plot_sinusoid_table(4, 4, tmp_path / file)
    assert not list(tmp_path.iterdir())


# --- What is drawn ---


def images(figure) -> list[torch.Tensor]:
    return [torch.as_tensor(image.get_array().filled()) for axes in figure.axes for image in axes.get_images()]


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def test_the_sinusoid_is_the_models(tmp_path):
    (image,) = images(figures.plot_sinusoid_table(9, 6, tmp_path / "a.png"))
    assert torch.equal(image, sinusoid_table(9, 6))
    for size in ((0, 4), (4, -1)):
        with pytest.raises(ValueError, match="at least 1"):
            figures.plot_sinusoid_table(*size, tmp_path / "a.png")


@pytest.mark.parametrize("attention_mask", [[1, 1, 1, 1], [1, 1, 0, 0]])
def test_the_combined_mask_is_the_decoders(attention_mask, tmp_path):
    figure = figures.plot_masks(list("abcd"), attention_mask, tmp_path / "a.png")
    pad, causal, both = images(figure)
    config = tiny_config()
    config._attn_implementation = "eager"
    expected = create_causal_mask(
        config=config,
        inputs_embeds=torch.zeros(1, 4, 16),
        attention_mask=torch.tensor([attention_mask]),
        past_key_values=None,
    )
    assert torch.equal(both.bool(), expected[0, 0] == 0)
    assert torch.equal(both, pad * causal)
    assert pad.sum() == 4 * sum(attention_mask) and causal.sum() == 10
    assert labels(figure.axes[0].xaxis) == labels(figure.axes[0].yaxis) == list("abcd")
    with pytest.raises(ValueError, match="4 tokens"):
        figures.plot_masks(list("abcd"), [1, 1], tmp_path / "a.png")


def test_rates_begin_with_the_first_update(tmp_path):
    figure = figures.plot_noam_rates({"a": [0.1, 0.3], "b": [0.2, 0.1]}, tmp_path / "a.png")
    lines = {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].get_lines()}
    assert lines == {"a": [[1, 0.1], [2, 0.3]], "b": [[1, 0.2], [2, 0.1]]}


def test_targets_are_drawn_as_given(tmp_path):
    targets = maps(3, 4)
    figure = figures.plot_smoothed_targets(targets, tmp_path / "a.png")
    assert torch.equal(images(figure)[0], targets)
    assert [float(text.get_text()) for text in figure.axes[0].texts] == pytest.approx(
        targets.flatten().tolist(), rel=1e-2
    )
    with pytest.raises(ValueError, match=r"\(3,\)"):
        figures.plot_smoothed_targets(torch.ones(3), tmp_path / "a.png")


@pytest.mark.parametrize("heads", [1, 4, 5, 8])
def test_each_head_has_its_map(heads, tmp_path):
    probabilities = maps(heads, 3, 5)
    figure = figures.plot_attention(probabilities, list("abc"), list("defgh"), tmp_path / "a.png", "Cross")
    assert torch.equal(torch.stack(images(figure)), probabilities)
    assert [axes.get_title() for axes in figure.axes[:-1]] == [f"head {head}" for head in range(heads)]
    assert labels(figure.axes[0].yaxis) == list("abc")
    assert labels(figure.axes[heads - 1].xaxis) == list("defgh")
    assert figure.get_suptitle() == "Cross"


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 3), (1, 2, 3, 5), (0, 3, 5)])
def test_probabilities_must_fit_the_tokens(shape, tmp_path):
    with pytest.raises(ValueError, match="3 query and 5 key tokens"):
        figures.plot_attention(torch.ones(shape), list("abc"), list("defgh"), tmp_path / "a.png")


def test_tick_labels_of_many_tokens_do_not_overlap(tmp_path):
    tokens = [f"word{i}" for i in range(40)]
    figure = figures.plot_attention(maps(2, 40, 40), tokens, tokens, tmp_path / "a.png")
    for axis, ends in ((figure.axes[0].yaxis, ("y0", "y1")), (figure.axes[0].xaxis, ("x0", "x1"))):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        places = sorted(tuple(getattr(box, end) for end in ends) for box in boxes)
        assert all(before[1] <= after[0] for before, after in zip(places, places[1:], strict=False))


# --- Letters ---


def attention_labels(tokens: list[str], file: Path) -> list[str]:
    figure = figures.plot_attention(maps(len(tokens), len(tokens)), tokens, tokens, file)
    assert labels(figure.axes[0].xaxis) == labels(figure.axes[0].yaxis)
    return labels(figure.axes[0].xaxis)


def test_without_a_hangul_font_tokens_are_romanised(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(figures, "find_hangul_font", lambda characters: None)
    caplog.set_level(logging.WARNING, "hf_vanilla_transformer")
    assert attention_labels([*KOREAN, "ㅋ"], tmp_path / "a.png") == [
        "[BOS]",
        "_jeongmal",
        "_jaemi",
        "issgo",
        "khieukh",
    ]
    (record,) = caplog.records
    assert "apt install fonts-nanum" in record.getMessage() and "정" in record.getMessage()


def test_with_a_hangul_font_tokens_are_korean(tmp_path, caplog):
    if figures.find_hangul_font(set("정말")) is None:
        pytest.skip("no font with Hangul is installed")
    assert attention_labels(KOREAN, tmp_path / "a.png") == ["[BOS]", "_정말", "_재미", "있고"]
    assert not caplog.records


def test_other_tokens_need_no_other_font(tmp_path, monkeypatch, caplog):
    """Nor are dollar signs formulas."""
    monkeypatch.setattr(figures, "find_hangul_font", lambda characters: pytest.fail("looked for a font"))
    assert attention_labels(["▁ein", "größer", "$x^{$", "a b"], tmp_path / "a.png") == [
        "_ein",
        "größer",
        "$x^{$",
        "a b",
    ]
    assert not caplog.records


def test_characters_without_a_glyph_are_spelt(tmp_path, caplog):
    assert attention_labels(["\U000f0000", "a\nb", "\u200b"], tmp_path / "a.png") == ["U+F0000", "aU+000Ab", "U+200B"]
    (record,) = caplog.records
    assert "U+000A" in record.getMessage() and "fonts-nanum" not in record.getMessage()


def test_a_font_has_all_the_characters_and_a_known_name_if_possible(tmp_path, monkeypatch):
    fonts = {"/a/Brush.ttf": "가나", "/b/Latin.ttf": "ab", "/c/NanumGothic.ttf": "가나", "/c/malgun.ttf": "가"}
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: list(fonts))
    monkeypatch.setattr(figures, "_characters_of", lambda file: set(fonts[file]))
    assert figures.find_hangul_font({"가", "나"}) == "/c/NanumGothic.ttf"
    del fonts["/c/NanumGothic.ttf"]
    assert figures.find_hangul_font({"가", "나"}) == "/a/Brush.ttf"
    assert figures.find_hangul_font({"다"}) is None


def test_a_damaged_font_is_passed_over(tmp_path):
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    assert figures._characters_of(str(tmp_path / "damaged.ttf")) == set()


# --- The script ---


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """Model folders by name, with random weights."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = train_tokenizer(["가 나 다 라", "가나다라 마바사"], vocab_size=29, max_length=16)
    for name, model in {
        "classifier": VanillaTransformerForSequenceClassification(tiny_config()),
        "translator": VanillaTransformerForConditionalGeneration(tiny_config()),
        "two-vocabularies": VanillaTransformerForConditionalGeneration(tiny_config(decoder_vocab_size=23)),
        "bare": VanillaTransformerModel(tiny_config()),
        "no-tokenizer": VanillaTransformerModel(tiny_config()),
        "no-start": VanillaTransformerModel(tiny_config(decoder_start_token_id=None)),
        "encoder": VanillaTransformerModel(tiny_config()).encoder,
    }.items():
        model.save_pretrained(folder / name)
        if name != "no-tokenizer":
            tokenizer.save_pretrained(folder / name)
    target_tokenizer = train_tokenizer(["a b c d", "abcd efg"], vocab_size=23, max_length=16)
    target_tokenizer.save_pretrained(folder / "two-vocabularies" / "target_tokenizer")
    (folder / "classifier" / "metrics.json").write_text(json.dumps({"epochs": history(3)}))
    records = {"not-evaluated": '{"epochs": []}', "list": "[]", "no-json": "{", "number": '{"epochs": 3}'}
    for name, text in {**records, "no-loss": '{"epochs": [{"epoch": 1}]}'}.items():
        (folder / name).mkdir()
        (folder / name / "metrics.json").write_text(text)
    return folder


@pytest.fixture
def draw(run, models, monkeypatch):
    """Run the script in the models' folder; returns its exit status and standard error."""
    monkeypatch.chdir(models)
    # Loading and generation warn of things that are not the pictures'.
    warnings.simplefilter("default")

    def draw(*arguments: str) -> tuple[int, str]:
        status, _, err = run("figures.py", *arguments)
        return status, err

    return draw


def commands() -> list[list[str]]:
    """The commands in the script's docstring, without `python scripts/figures.py`."""
    lines = runpy.run_path(str(SCRIPT), run_name="figures")["__doc__"].splitlines()
    return [shlex.split(line)[2:] for line in lines if line.startswith("    python")]


@pytest.mark.parametrize("arguments", commands(), ids=lambda arguments: arguments[1])
def test_the_docstrings_commands_run(arguments, draw, tmp_path):
    assert arguments[arguments.index("--file") + 1].endswith(".png")
    arguments = ["classifier" if argument == "runs/quickstart" else argument for argument in arguments]
    assert draw(*arguments, "--file", tmp_path / "a.png")[0] == 0
    assert imread(tmp_path / "a.png").std() > 0.05


@pytest.fixture
def drawn(monkeypatch):
    """What the script gave to `plot_attention`."""
    calls = []

    def plot_attention(probabilities, query_tokens, key_tokens, file, title):
        calls.append((probabilities, query_tokens, key_tokens, title))

    monkeypatch.setattr(figures, "plot_attention", plot_attention)
    return calls


SOURCE, TARGET = "가나다라 마바사 다", "가 나"


@pytest.mark.parametrize("model", ["classifier", "bare", "translator", "two-vocabularies"])
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("target", [None, TARGET])
def test_attention_is_the_models(model, kind, target, draw, models, drawn):
    """Rows sum to 1, the decoder sees nothing that comes later, and tokens are in their places."""
    target = "ab c" if target and model == "two-vocabularies" else target
    arguments = ["--figure", "attention", "--model", model, "--kind", kind, "--layer", "1", "--file", "a.png"]
    status, err = draw(*arguments, "--text", SOURCE, *(["--target", target] if target else []))
    assert status == 0, err
    ((probabilities, queries, keys, title),) = drawn
    assert probabilities.shape == (tiny_config().encoder_attention_heads, len(queries), len(keys))
    torch.testing.assert_close(probabilities.sum(dim=-1), torch.ones(probabilities.shape[:-1]))
    assert "layer 1" in title and "head" not in title

    def text(tokens):
        return "".join(tokens).replace("▁", " ").strip()

    if kind != "decoder":
        assert text(keys) == SOURCE
    if kind == "encoder":
        assert queries == keys
    else:
        assert queries[0] == "[BOS]"
        if target:
            assert text(queries[1:]) == target
        elif model in ("classifier", "bare"):
            assert len(queries) == 1
    if kind == "decoder":
        assert queries == keys
        assert torch.equal(probabilities, probabilities.tril())


def test_the_layer_and_the_head_are_those_asked_for(draw, models, drawn):
    arguments = ["--figure", "attention", "--model", "classifier", "--layer", "1", "--text", SOURCE, "--file", "a.png"]
    assert draw(*arguments)[0] == draw(*arguments, "--head", "2")[0] == 0
    (all_heads, tokens, *_), (head, *_, title) = drawn
    model = VanillaTransformerForSequenceClassification.from_pretrained(
        models / "classifier", attn_implementation="eager"
    )
    input_ids = load_tokenizer(str(models / "classifier")).convert_tokens_to_ids(tokens)
    with torch.no_grad():
        attentions = model(torch.tensor([input_ids]), output_attentions=True).encoder_attentions
    torch.testing.assert_close(all_heads, attentions[1][0])
    torch.testing.assert_close(head, attentions[1][0, 2])
    assert title == "Encoder self-attention, layer 1, head 2"


def test_rates_are_the_papers():
    noam_rates = runpy.run_path(str(SCRIPT), run_name="figures")["noam_rates"]
    _, rates = noam_rates("512:2:40", 100)
    expected = [2 * 512**-0.5 * min(step**-0.5, step * 40**-1.5) for step in range(1, 101)]
    assert rates == pytest.approx(expected, rel=1e-12)


ATTENTION = ["--figure", "attention", "--model", "classifier", "--text", "가나"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--figure"),
        (["--figure", "portrait"], "portrait"),
        (["--figure", "sinusoid", "--file", "a.jpg"], ".png or .svg"),
        (["--figure", "sinusoid", "--file", "picture"], ".png or .svg"),
        (["--figure", "sinusoid", "--file", "nowhere/a.png"], "no folder nowhere"),
        (["--figure", "sinusoid", "--rows", "0"], "at least 1"),
        (["--figure", "noam", "--noam", "512:4000"], "512:4000"),
        (["--figure", "noam", "--noam", "512:1:0"], "512:1:0"),
        (["--figure", "noam", "--noam", "512:nan:4000"], "512:nan:4000"),
        (["--figure", "noam", "--noam", "512:inf:4000"], "512:inf:4000"),
        (["--figure", "noam", "--steps", "0"], "--steps"),
        (["--figure", "smoothing", "--smoothing", "1.5"], "--smoothing"),
        (["--figure", "attention", "--text", "가나"], "--model"),
        (["--figure", "attention", "--model", "classifier"], "--text"),
        ([*ATTENTION, "--text", " "], "--text"),
        ([*ATTENTION, "--model", "nowhere"], "nowhere"),
        ([*ATTENTION, "--model", "nowhere", "--file", "a.jpg"], "a.jpg"),  # before the model is looked for
        ([*ATTENTION, "--model", "no-tokenizer"], "no-tokenizer: no tokenizer"),
        ([*ATTENTION, "--model", "encoder"], "VanillaTransformerEncoder"),
        ([*ATTENTION, "--model", "no-start", "--kind", "cross"], "decoder_start_token_id"),
        ([*ATTENTION, "--layer", "2"], "--layer: 2 is not between 0 and 1"),
        ([*ATTENTION, "--layer", "-1"], "--layer: -1"),
        ([*ATTENTION, "--head", "8"], "--head: 8 is not between 0 and 3"),
        ([*ATTENTION, "--kind", "sideways"], "sideways"),
        (["--figure", "curves"], "--model"),
        (["--figure", "curves", "--model", "bare"], "metrics.json"),
        (["--figure", "curves", "--model", "not-evaluated"], "epochs"),
        (["--figure", "curves", "--model", "list"], "list/metrics.json"),
        (["--figure", "curves", "--model", "no-json"], "no-json/metrics.json"),
        (["--figure", "curves", "--model", "number"], "number/metrics.json"),
        (["--figure", "curves", "--model", "no-loss"], "no-loss/metrics.json"),
    ],
)
def test_the_script_refuses_with_one_line(arguments, message, draw, tmp_path):
    status, err = draw("--file", tmp_path / "a.png", *arguments)
    assert status == 2
    (line,) = [line for line in err.splitlines() if line.startswith("figures.py: error:")]
    assert message in line
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("measured", "title"), [("eval_accuracy", "accuracy"), ("eval_bleu", "BLEU")])
def test_the_curves_show_what_was_measured(measured, title, tmp_path):
    entries = [{"epoch": e, "train_loss": 1.0, "eval_loss": 1.1, measured: 10.0 * e} for e in (1, 2)]
    loss, other = figures.plot_training_curves(entries, tmp_path / "a.png").axes
    assert (loss.get_ylabel(), other.get_ylabel()) == ("loss", title)
    assert other.lines[0].get_ydata().tolist() == [10.0, 20.0]


def test_a_recipe_too_must_name_a_figure_that_there_is(run, tmp_path):
    (tmp_path / "recipe.yaml").write_text(f"figure: nonsense\nfile: {tmp_path}/a.png\nmodel: {tmp_path}\n")
    status, _, err = run("figures.py", tmp_path / "recipe.yaml")
    assert status == 2 and "--figure: of sinusoid, masks, noam, smoothing, attention, curves; not 'nonsense'" in err
