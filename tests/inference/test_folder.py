"""Models and tokenizers from folders: what is refused, and by which line."""

import json

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file, save_file
from shared import LINES, tiny_config
from transformers import BertTokenizer, pipeline

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
    evaluate,
    train_classifier,
)
from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference import folder as folder_module
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.folder import (
    load_config,
    load_model,
    load_to_train,
    load_tokenizer,
    load_tokenizer_to_train,
    task_of_folder,
)
from hf_vanilla_transformer.settings.tasks import TASKS, Task


def test_a_tokenizer_without_a_token_that_is_needed_is_refused(tmp_path):
    tokenizer = train_tokenizer(["가나다"], vocab_size=29)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the tokenizer has no mask_token"):
        load_tokenizer_to_train(str(tmp_path), None, ["pad_token", "mask_token"], 8)
    assert load_tokenizer_to_train(str(tmp_path), None, ["pad_token"], 8).model_max_length == 8


def test_only_heads_may_be_missing(tmp_path):
    translator = VanillaTransformerForConditionalGeneration(tiny_config(norm_first=True)).half()
    translator.save_pretrained(tmp_path)
    model = load_to_train(VanillaTransformerForSequenceClassification, str(tmp_path), translator.config)
    assert model.dtype == torch.float32
    assert torch.equal(
        model.model.decoder.layers[0].feed_forward.fc1.weight,
        translator.model.decoder.layers[0].feed_forward.fc1.weight.float(),
    )
    weights = load_file(tmp_path / "model.safetensors")
    incomplete = {name: weight for name, weight in weights.items() if ".encoder.layers.1." not in name}
    save_file(incomplete, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"lacks model\.encoder\.layers\.1\.feed_forward\.fc1\.bias, .*v_proj"):
        load_to_train(VanillaTransformerForConditionalGeneration, str(tmp_path), translator.config)
    save_file(
        {**weights, "model.encoder.layers.0.feed_forward.fc1.bias": torch.zeros(3)},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(ValueError, match="lacks model.encoder.layers.0.feed_forward.fc1.bias$"):
        load_to_train(
            VanillaTransformerForSequenceClassification, str(tmp_path), translator.config, ignore_mismatched_sizes=True
        )


BERT_NAMES = ["input_ids", "token_type_ids", "attention_mask"]
BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "가", "나", "다"]


@pytest.mark.parametrize("is_bert", [False, True])
def test_a_pipeline_takes_a_run_with_the_vocabulary_of_a_bert(is_bert, tmp_path):
    """Given as `tokenizer`, or of a model that is trained further."""
    tokenizer = train_tokenizer(LINES, vocab_size=29)
    tokenizer.model_input_names = BERT_NAMES
    if is_bert:  # the names are its class's, and none are saved
        tokenizer = BertTokenizer(vocab={token: number for number, token in enumerate(BERT_TOKENS)}, bos_token="[BOS]")
    assert "token_type_ids" in tokenizer("가")
    tokenizer.save_pretrained(tmp_path / "bert")
    rows = Dataset.from_dict({"text": LINES, "label": ["a", "b"] * 30})
    config = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    options = {"data": rows, "text_column": "text", "max_steps": 1, "report_to": "none", "use_cpu": True}
    run = train_classifier(tokenizer=tmp_path / "bert", config=config, output_dir=tmp_path / "run", **options)
    classifiers = [pipeline("text-classification", model=run.folder)]
    tokenizer.save_pretrained(run.folder)
    further = train_classifier(model=run, output_dir=tmp_path / "further", **options)
    classifiers.append(pipeline("text-classification", model=further.folder))
    for classify in classifiers:
        assert classify("가 나 다")[0]["label"] in ("a", "b")


@pytest.mark.parametrize("name", ["nowhere", "./nowhere", "../a/b/nowhere", "/nowhere/else", "~/nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_is_refused_at_once(name, monkeypatch):
    """The Hub would be asked, and asked again."""
    monkeypatch.setattr(folder_module, "load_from", None)
    for load in (load_config, load_model, task_of_folder, load_engine, evaluate):
        with pytest.raises(DataError, match="no such folder"):
            load(name)


@pytest.mark.parametrize("use", ["evaluate", "page", "export"])
def test_a_task_is_offered_to_no_command_that_its_row_does_not_name(use, tmp_path, refused, monkeypatch):
    """Not because it is no classifier."""
    task = Task("tagging", "tagger", "VanillaTransformerModel", "token-classification", "Tagging", "train-tagger")
    monkeypatch.setitem(TASKS, "tagging", task)
    VanillaTransformerModel(tiny_config()).save_pretrained(tmp_path / "tagger")
    train_tokenizer(LINES, vocab_size=29).save_pretrained(tmp_path / "tagger")
    flags = ["--model", tmp_path / "tagger", "--output_dir", tmp_path / "new"]
    flags += ["--format", "ctranslate2"] if use == "export" else []
    assert "a tagger" in refused(use, *flags) or use != "export"
    assert use == "export" or f"tagger: {use} takes no tagger" in refused(use, *flags)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("auto_map", ["code.Tokenizer", {"AutoTokenizer": "x"}, [], ["x"]])
def test_a_tokenizer_whose_auto_map_is_no_mapping_of_pairs_is_one_line(auto_map, tmp_path):
    train_tokenizer(LINES, vocab_size=29).save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "auto_map": auto_map}))
    with pytest.raises(DataError, match=f"^{tmp_path}: no tokenizer can be read here "):
        load_tokenizer(str(tmp_path))
