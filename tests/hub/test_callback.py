"""`RecordCallback`: record and card of a user's own Trainer."""

import re
import sys

import pytest
from shared import tiny_config
from transformers import TrainerControl, TrainerState, TrainingArguments

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.hub.callback import RecordCallback
from hf_vanilla_transformer.hub.model_card import load_model_card


def test_what_the_record_needs_is_missed_before_the_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="matplotlib"):
        RecordCallback("pairs.tsv")


def test_an_own_trainers_card_is_its_log(tmp_path):
    """Also of a translator, which was measured by what nobody here knows, or not at all."""
    tokens = {f"{name}_token_id": id for id, name in enumerate(("pad", "bos", "eos", "decoder_start"))}
    model = VanillaTransformerForConditionalGeneration(tiny_config(**tokens))
    arguments = TrainingArguments(str(tmp_path), use_cpu=True, num_train_epochs=2, hub_model_id="kim/pairs")
    log = [
        {"epoch": 1.0, "step": 3, "loss": 2.5},
        {"epoch": 1.0, "step": 3, "eval_loss": 2.25, "eval_chrf": 41.5, "eval_runtime": 1.0},
        {"epoch": 2.0, "step": 6, "loss": 2.0},
        {"epoch": 2.0, "step": 6, "train_runtime": 60.0, "train_loss": 2.25},
    ]
    state = TrainerState(global_step=6, log_history=log)
    callback = RecordCallback("pairs.tsv")
    callback.on_train_begin(arguments, TrainerState(global_step=2), TrainerControl(), model=model)
    callback.on_push_begin(arguments, TrainerState(global_step=3, log_history=log[:2]), TrainerControl(), model=model)
    assert not any(tmp_path.iterdir())  # in mid-training there is no record yet
    callback.on_train_end(arguments, state, TrainerControl(), model=model)
    card = load_model_card(tmp_path)
    assert card.data.pipeline_tag == "text2text-generation" and "AutoModelForSeq2SeqLM" in card.text
    assert (
        re.search("Training took 1.0 minutes .* from checkpoint-2 on,", card.text)
        and "num_train_epochs: 2" in card.text
    )
    # The model that the Trainer holds is that of step 6, which was not evaluated.
    assert [(r.dataset_split, r.metric_type, r.metric_value) for r in card.data.eval_results] == [
        ("train", "training_loss", 2.25)
    ]
    log.append({"epoch": 2.0, "step": 6, "eval_loss": 1.75, "eval_chrf": 43.25, "eval_runtime": 1.0})
    callback.on_push_begin(arguments, state, TrainerControl(), model=model)
    rows = re.findall(r"^\| (\w+) \| (\w+) \| ([\d.]+) \|$", load_model_card(tmp_path).text, re.MULTILINE)
    assert rows == [("validation", "Chrf", "43.2500"), ("validation", "Loss", "1.7500")]
    assert load_model_card(tmp_path).data.model_name == "kim/pairs"
