"""R-Drop and BPE-dropout as flags of both training scripts."""

import pytest
from bpe_dropout import draw_segmentations
from shared import QUIET, TINY_TRANSLATOR, read_json


QUICK = [*TINY_TRANSLATOR, "--max_steps", "2", "--logging_steps", "1", *QUIET]
CLASSIFY = ["experiments/train_classifier.py", "--data", "sample", "--vocab_size", "1500", *QUICK]


@pytest.fixture
def translate(corpus) -> list:
    words = ["experiments/train_translation.py", "--data", corpus, "--source_column", "num", "--target_column", "de"]
    return [*words, "--validation_prefix", "val", "--max_length", "12", "--vocab_size", "60", *QUICK]


@pytest.mark.parametrize("classifier", [True, False])
def test_the_flags_are_at_work_and_in_the_record(succeed, classifier, translate, tmp_path, monkeypatch):
    """Which says, too, which script takes the recipe; the rows that are drawn are trained on."""
    train = CLASSIFY if classifier else translate
    drawn, epochs = [], []

    def draw(rows, *given, **settings):
        drawn.append(settings)
        return draw_segmentations(rows.select(range(4)), *given, **settings)

    monkeypatch.setattr("regularization.draw_segmentations", draw)
    for number, flags in enumerate(([], ["--rdrop_alpha", "50", "--bpe_dropout", "0.1", "--data_seed", "7"])):
        succeed(*train, "--output_dir", tmp_path / str(number), *flags)
        epochs.append(read_json(tmp_path / str(number) / "metrics.json")["epochs"][0])
    assert epochs[1]["train_loss"] > epochs[0]["train_loss"] + 0.01
    assert (epochs[1]["step"], epochs[1]["epoch"]) == (1, 0.2)  # 40 texts are five batches
    assert [(one["rate"], one["copies"], one["seed"]) for one in drawn] == [(0.1, 10, 7)]
    assert "\nrdrop_alpha: 50.0\n" in (tmp_path / "1" / "recipe.yaml").read_text()
    card = (tmp_path / "1" / "README.md").read_text()
    assert "In a checkout of the package" in card and f"```sh\npython scripts/{train[0]} recipe.yaml" in card


def test_two_vocabularies_and_generation_go_with_rdrop(succeed, translate, tmp_path):
    settings = ["--vocabularies", "separate", "--tokenizer_model", "word", "--lowercase", "--max_tokens", "50"]
    settings += ["--predict_with_generate", "true", "--eval_strategy", "steps", "--eval_steps", "1"]
    succeed(*translate, *settings, "--rdrop_alpha", "5", "--output_dir", tmp_path / "run")
    assert read_json(tmp_path / "run" / "metrics.json")["epochs"][0].keys() >= {"eval_bleu", "eval_loss"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rdrop_alpha", "-1"], "--rdrop_alpha"),
        (["--bpe_dropout", "1"], "--bpe_dropout"),
        (["--bpe_dropout", "0.1", "--tokenizer_model", "word"], "a BPE vocabulary"),
        (["--bpe_dropout", "0.1", "--segmentations", "0"], "--segmentations"),
        (["--segmentations", "2"], "--segmentations"),
        (["--bpe_dropout", "0.1", "--augment", "spacing"], "--augment"),
        (["--soft_labels", "x", "--rdrop_alpha", "1"], "--soft_labels"),
    ],
)
def test_training_is_refused_with_one_line(refused, tmp_path, arguments, message):
    assert message in refused(*CLASSIFY, *arguments, "--output_dir", tmp_path / "run")
