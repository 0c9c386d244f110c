"""Learning curves draw what was measured."""

from hf_vanilla_transformer.hub.curves import plot_training_curves


def test_the_curves_show_what_was_measured(tmp_path):
    entries = [{"epoch": e, "train_loss": 1.0, "eval_loss": 1.1, "eval_bleu": 10.0 * e} for e in (1, 2)]
    loss, bleu = plot_training_curves(entries, tmp_path / "a.png").axes
    assert len(loss.lines) == 2 and bleu.lines[0].get_ydata().tolist() == [10.0, 20.0]
