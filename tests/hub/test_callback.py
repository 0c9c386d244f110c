"""`RecordCallback`: record and card of a user's own Trainer."""

import re
import sys

import pytest
from shared import tiny_config
from transformers import TrainerControl, TrainerState, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.hub.callback import RecordCallback
from hf_vanilla_transformer.hub.model_card import load_model_card


def test_a_missing_extra_is_reported_before_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="matplotlib"):
        RecordCallback("pairs.tsv")


@pytest.mark.parametrize("last_evaluation", [3, 6])
def test_an_own_trainers_card_is_its_log(last_evaluation, tmp_path):
    """A translator's, with a metric of its author. Only an evaluation at the last step is of the final model."""
    tokens = {f"{name}_token_id": id for id, name in enumerate(("pad", "bos", "eos", "decoder_start"))}
    model = VanillaTransformerForConditionalGeneration(tiny_config(**tokens))
    arguments = TrainingArguments(str(tmp_path), use_cpu=True, num_train_epochs=2)
    measured = {"eval_loss": 2.25, "eval_chrf": 41.5, "eval_runtime": 1.0}
    log = [
        {"epoch": 1.0, "step": 3, "loss": 2.5},
        {"epoch": 1.0, "step": last_evaluation, **measured},
        {"epoch": 2.0, "step": 6, "train_runtime": 60.0, "train_loss": 2.5},
    ]
    callback = RecordCallback("pairs.tsv")
    callback.on_train_begin(arguments, TrainerState(global_step=2), TrainerControl(), model=model)
    callback.on_train_end(arguments, TrainerState(global_step=6, log_history=log), TrainerControl(), model=model)
    card = load_model_card(tmp_path)
    assert card.data.pipeline_tag == "text2text-generation" and "AutoModelForSeq2SeqLM" in card.text
    assert re.search("Training took 1.0 minutes .* from checkpoint-2 on,", card.text)
    assert "num_train_epochs: 2" in card.text
    rows = re.findall(r"^\| (\w+) \| ([\w ]+) \| ([\d.]+) \|$", card.text, re.MULTILINE)
    validation = [("validation", "Chrf", "41.5000"), ("validation", "Loss", "2.2500")]
    assert rows == (validation if last_evaluation == 6 else [("train", "Training loss", "2.5000")])
