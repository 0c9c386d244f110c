"""The tutorials' checkpoints: the same numbers here, back again bit for bit, and refusals that say what is wrong."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from huggingface_hub.errors import StrictDataclassError
from shared import ROOT, tiny_config
from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
    convert_checkpoint,
    to_source_state_dict,
)
from hf_vanilla_transformer.exports.conversion import load_source_state_dict
from hf_vanilla_transformer.modeling_vanilla_transformer import sinusoid_table


TOLERANCE = {"rtol": 0, "atol": 1e-5}

BARE, TRANSLATOR = VanillaTransformerModel, VanillaTransformerForConditionalGeneration
CLASSIFIER = VanillaTransformerForSequenceClassification
AUTO_CLASSES = {
    BARE: AutoModel,
    TRANSLATOR: AutoModelForSeq2SeqLM,
    CLASSIFIER: AutoModelForSequenceClassification,
}
FOUR_HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
THREE_HEADS = {"encoder_attention_heads": 3, "decoder_attention_heads": 3}
NORM_LAST = {"norm_first": False, "activation_function": "relu", "layer_norm_eps": 1e-5}
NORM_FIRST = {"norm_first": True, "activation_function": "gelu", "layer_norm_eps": 1e-5}
# Each file with the tutorial's name, the fields that its tensors do not show, and the class that they make.
FILES = {
    "transformer-evolution": ("transformer-evolution", THREE_HEADS, BARE),
    "transformer-evolution-classification": ("transformer-evolution", THREE_HEADS, CLASSIFIER),
    "annotated-transformer": ("annotated-transformer", FOUR_HEADS, TRANSLATOR),
    "pytorch-seq2seq": ("pytorch-seq2seq", FOUR_HEADS | {"decoder_attention_heads": 2}, TRANSLATOR),
    "pytorch-transformer": ("pytorch-transformer", FOUR_HEADS, TRANSLATOR),
    "pytorch-transformer-scalar-norm": ("pytorch-transformer", FOUR_HEADS, TRANSLATOR),
    "torch-nn-transformer-norm-last": ("torch-nn-transformer", FOUR_HEADS | NORM_LAST, BARE),
    "torch-nn-transformer-norm-first": ("torch-nn-transformer", FOUR_HEADS | NORM_FIRST, BARE),
}
WITH_SINUSOIDS = {
    "transformer-evolution": ("encoder.pos_emb.weight", "decoder.pos_emb.weight"),
    "annotated-transformer": ("src_embed.1.pe", "tgt_embed.1.pe"),
    "pytorch-transformer": ("src_pos.pe", "tgt_pos.pe"),
}


def read(file: str) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(ROOT / "tests/reference_outputs" / f"{file}.safetensors")


def checkpoint(file: str) -> dict[str, torch.Tensor]:
    prefix = "state_dict."
    return {name.removeprefix(prefix): tensor for name, tensor in read(file).items() if name.startswith(prefix)}


def convert(file: str, state_dict: dict | None = None, **fields):
    source, fields_to_give, _ = FILES[file]
    return convert_checkpoint(
        checkpoint(file) if state_dict is None else state_dict, source, **{**fields_to_give, **fields}
    )


def model_inputs(tensors: dict[str, torch.Tensor], pad_token_id: int) -> dict[str, torch.Tensor]:
    """The reference's inputs, with the masks that its own code makes of them."""
    if "input.src_embeds" in tensors:
        return {
            "inputs_embeds": tensors["input.src_embeds"],
            "attention_mask": ~tensors["input.src_padding"],
            "decoder_inputs_embeds": tensors["input.tgt_embeds"],
            "decoder_attention_mask": ~tensors["input.tgt_padding"],
        }
    return {
        "input_ids": tensors["input.src"],
        "attention_mask": tensors["input.src"] != pad_token_id,
        "decoder_input_ids": tensors["input.tgt"],
        "decoder_attention_mask": tensors["input.tgt"] != pad_token_id,
    }


def assert_identical(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]):
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert actual[name].dtype == tensor.dtype and torch.equal(actual[name], tensor), name


@pytest.mark.parametrize("attn", ["eager", "sdpa"])
@pytest.mark.parametrize("file", FILES)
def test_a_tutorials_outputs_are_reproduced(file, attn):
    tensors = read(file)
    model = convert(file)
    assert type(model) is FILES[file][2] and not model.training
    model.set_attn_implementation(attn)
    inputs = model_inputs(tensors, model.config.pad_token_id)
    source, target = inputs["attention_mask"], inputs["decoder_attention_mask"]
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=attn == "eager", output_hidden_states=True)
        base = model.base_model(**inputs)
        if "input.bos" in tensors:
            from_bos = model(tensors["input.src"], source, decoder_input_ids=tensors["input.bos"])
    compared = set()
    for name, expected in tensors.items():
        kind, _, output = name.partition(".")
        if kind != "output" or ("attention" in output and attn != "eager"):
            continue
        compared.add(output)
        # Rows of pads mean nothing; a row of attention probabilities belongs to its query.
        real = source if output.startswith("encoder") else target
        if output.endswith("_last_hidden_state"):
            actual = base[output.removeprefix("decoder_")]
        elif output == "log_probs":
            actual = outputs.logits.log_softmax(dim=-1)
        elif output == "logits" and "input.bos" in tensors:
            actual, real = from_bos.logits, slice(None)
        elif output == "logits":
            actual = outputs.logits
        elif output == "logits_tgt":  # the tutorial lets pads into its maximum
            actual, real = outputs.logits, target.all(dim=1)
        else:
            stack, _, layer = output.replace("attention_last", "attentions.-1").rpartition(".")
            actual, expected = outputs[stack][int(layer)].transpose(1, 2), expected.transpose(1, 2)
        assert expected[real].numel()
        torch.testing.assert_close(
            actual[real], expected[real], **TOLERANCE, msg=lambda text, at=name: f"{at}: {text}"
        )
    assert len(compared) >= 2


def test_greedy_decoding_is_the_tutorials():
    source = read("annotated-transformer")["input.src"]
    row = source[(source != 0).all(dim=1)][:1]
    settings = {"max_length": 12, "do_sample": False, "num_beams": 1, "eos_token_id": None}
    ids = convert("annotated-transformer").generate(row, attention_mask=torch.ones_like(row), **settings)
    assert ids.tolist() == read("annotated-transformer-training")["output.greedy"].tolist()


@pytest.mark.parametrize(("name", "rows", "width"), [("33x7", 33, 7), ("64x128", 64, 128)])
def test_the_sinusoid_is_the_reference_table(name, rows, width):
    expected = read("sinusoid-tables")[f"output.{name}"]
    torch.testing.assert_close(sinusoid_table(rows, width), expected, rtol=0, atol=1e-12)


def test_other_fields_are_the_presets_or_the_callers():
    model = convert("annotated-transformer", dropout=0.3, eos_token_id=9, num_hidden_layers=2)
    config = model.config
    assert (config.dropout, config.eos_token_id, config.activation_dropout) == (0.3, 9, 0.1)
    assert model.generation_config.eos_token_id == 9
    labels = {0: "negative", 1: "positive"}
    assert convert("transformer-evolution-classification", id2label=labels).config.id2label == labels


def test_attention_biases_are_optional():
    state_dict = checkpoint("pytorch-transformer")
    weights = [name for name in state_dict if "attention_block" in name and name.endswith("weight")]
    biases = {name.replace("weight", "bias"): torch.randn(32) for name in weights}
    model = convert("pytorch-transformer", {**state_dict, **biases})
    assert model.config.attention_bias
    assert_identical(to_source_state_dict(model, "pytorch-transformer"), {**state_dict, **biases})
    del biases["encoder.layers.0.self_attention_block.w_q.bias"]
    with pytest.raises(ValueError, match="missing: encoder.layers.0.self_attention_block.w_q.bias"):
        convert("pytorch-transformer", {**state_dict, **biases})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("file", FILES)
def test_back_again_bit_for_bit(file, dtype, tmp_path):
    state_dict = {name: tensor.to(dtype) for name, tensor in checkpoint(file).items()}
    source, _, model_class = FILES[file]
    model = convert(file, state_dict)
    assert {tensor.dtype for tensor in [*model.parameters(), *model.buffers()]} == {dtype}
    assert_identical(to_source_state_dict(model, source), state_dict)
    model.save_pretrained(tmp_path)
    loaded = AUTO_CLASSES[model_class].from_pretrained(tmp_path)
    assert type(loaded) is model_class
    assert_identical(to_source_state_dict(loaded, source), state_dict)
    if dtype == torch.float32:
        inputs = model_inputs(read(file), model.config.pad_token_id)
        assert torch.equal(loaded(**inputs)[0], model(**inputs)[0])


PUBLISHED = ("dropout", "attention_dropout", "activation_dropout", "embedding_dropout", "init_scheme")
# §5.4, Table 3; §3.4: embeddings times sqrt(d_model); Eq. 2: relu.
PAPER = {"scale_embedding": True, "activation_function": "relu", "norm_first": False}


@pytest.mark.parametrize(
    ("name", "values", "others"),
    [
        ("transformer-evolution", (0.1, 0.1, 0.0, 0.0, "torch"), {}),
        ("annotated-transformer", (0.1, 0.1, 0.1, 0.1, "xavier_uniform"), {"norm_first": True, "final_norm": True}),
        ("pytorch-transformer", (0.1, 0.1, 0.1, 0.1, "xavier_uniform"), {}),
        ("pytorch-seq2seq", (0.1, 0.1, 0.1, 0.1, "xavier_uniform"), {"position_embedding_type": "learned"}),
        ("torch-nn-transformer", (0.1, 0.1, 0.1, 0.0, "xavier_uniform"), {}),
        ("base", (0.1, 0.0, 0.0, 0.1, "tensor2tensor"), PAPER),
        ("big", (0.3, 0.0, 0.0, 0.3, "tensor2tensor"), PAPER),
    ],
)
def test_a_preset_is_as_published(name, values, others):
    """No tensor and no output shows the rates of dropout and the initialisation; only training does."""
    published = {**dict(zip(PUBLISHED, values, strict=True)), **others}
    config = VanillaTransformerConfig.from_preset(name)
    assert {field: getattr(config, field) for field in published} == published


PRESETS = {
    "transformer-evolution-half": {"head_dim": 5, "layer_norm_eps": 1e-9},
    "transformer-evolution-full": {"head_dim": 4},
    "annotated-transformer": {},
    "pytorch-seq2seq": {"decoder_layers": 1, "decoder_ffn_dim": 20, "decoder_max_position_embeddings": 9},
    "pytorch-transformer": {},
    "pytorch-transformer-scalar-norm": {"decoder_max_position_embeddings": 9},
    "torch-nn-transformer": {
        **{"vocab_size": 1, "decoder_layers": 1},
        **{"bos_token_id": None, "eos_token_id": None, "decoder_start_token_id": None},
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_model_made_here_goes_there_and_comes_back(preset):
    """With more than ten layers, whose numbers sort otherwise as text."""
    sizes = {
        **{"vocab_size": 29, "decoder_vocab_size": None, "d_model": 16, "encoder_layers": 12, "decoder_layers": 12},
        **{"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 16, **FOUR_HEADS},
        **{"decoder_max_position_embeddings": None, **PRESETS[preset]},
    }
    config = VanillaTransformerConfig.from_preset(preset, **sizes)
    model = VanillaTransformerModel(config).eval()
    if preset == "torch-nn-transformer":
        with torch.no_grad():
            model.encoder.embed_tokens.weight.zero_()
            model.decoder.embed_tokens.weight.zero_()
    asked_for = ("encoder_attention_heads", "decoder_attention_heads", "norm_first", "layer_norm_eps")
    fields = {name: getattr(config, name) for name in (*asked_for, "activation_function")}
    back = convert_checkpoint(to_source_state_dict(model, preset), preset, **fields)
    assert_identical(back.state_dict(), model.state_dict())
    assert back.config.max_target_positions == config.max_target_positions or preset == "torch-nn-transformer"


@pytest.mark.parametrize(
    ("model_class", "overrides", "source", "message"),
    [
        (BARE, {"norm_first": True}, "transformer-evolution", "norm_first is True"),
        (BARE, {"decoder_attention_heads": 2}, "transformer-evolution", "decoder_attention_heads is 2"),
        (BARE, {"layer_norm_eps": 1e-3}, "pytorch-seq2seq", "layer_norm_eps is 0.001"),
        (BARE, {}, "annotated-transformer", "norm_first.*final_norm.*layer_norm_type"),
        (TRANSLATOR, {}, "transformer-evolution", "ForConditionalGeneration"),
        (torch.nn.Identity, None, "annotated-transformer", "no counterpart of Identity"),
        (BARE, {}, "bert", "no source 'bert'; there are transformer-evolution"),
    ],
)
def test_a_model_that_the_tutorial_does_not_have_is_refused(model_class, overrides, source, message):
    with pytest.raises(ValueError, match=message):
        to_source_state_dict(model_class(overrides is not None and tiny_config(**overrides)), source)


@pytest.mark.parametrize(("file", "side"), [(file, side) for side, file in enumerate(WITH_SINUSOIDS, -1)])
def test_another_position_table_is_kept_exactly(file, side, caplog, tmp_path):
    state_dict, names = checkpoint(file), WITH_SINUSOIDS[file]
    assert convert(file) and not caplog.records
    changed = state_dict[names[side]].clone()
    changed[..., 3, 5] = torch.nextafter(changed[..., 3, 5], torch.tensor(2.0))
    state_dict[names[side]] = changed
    model = convert(file, state_dict)
    assert "not the tutorial's sinusoid" in caplog.text
    assert model.config.position_embedding_type == "learned"
    for table, stack in zip(names, (model.base_model.encoder, model.base_model.decoder), strict=True):
        assert torch.equal(stack.embed_positions.weight, state_dict[table].squeeze(0))

    model.save_pretrained(tmp_path)
    loaded = AUTO_CLASSES[type(model)].from_pretrained(tmp_path)
    assert_identical(to_source_state_dict(loaded, FILES[file][0]), state_dict)


@pytest.mark.parametrize("file", WITH_SINUSOIDS)
def test_the_tutorials_own_table_is_kept_on_request(file, caplog):
    model = convert(file, position_embedding_type="learned")
    assert model.config.position_embedding_type == "learned" and not caplog.records
    assert_identical(to_source_state_dict(model, FILES[file][0]), checkpoint(file))


@pytest.mark.parametrize("file", FILES)
def test_a_tensor_under_another_name_or_of_another_shape_is_refused(file):
    state_dict = checkpoint(file)
    name = next(name for name in state_dict if ".layers.0." in name)
    tensor = state_dict.pop(name)
    with pytest.raises(ValueError, match=f"missing: {name}; extra: {name}_$"):
        convert(file, {**state_dict, f"{name}_": tensor})
    norm = next(name for name, tensor in state_dict.items() if tensor.dim() == 1 and "norm" in name)
    with pytest.raises(RuntimeError, match="size mismatch"):
        convert(file, {**checkpoint(file), norm: torch.ones(7)})


# Fields of a file, with values that its tensors contradict.
CONTRADICTIONS = [
    ("annotated-transformer", {"hidden_size": 64}),
    ("annotated-transformer", {"encoder_layers": 6}),
    ("annotated-transformer", {"position_embedding_type": "none"}),
    ("pytorch-seq2seq", {"position_embedding_type": "sinusoidal"}),
    ("transformer-evolution", {"head_dim": None}),
    ("transformer-evolution-classification", {"num_labels": 3}),
    # Wrong by itself.
    ("annotated-transformer", {"encoder_attention_heads": None}),
    ("annotated-transformer", {"decoder_attention_heads": 5}),
    ("annotated-transformer", {"encoder_attention_heads": 0}),
    ("annotated-transformer", {"d_modle": 32}),
    ("torch-nn-transformer-norm-last", {"layer_norm_eps": None}),
]


@pytest.mark.parametrize(("file", "fields"), CONTRADICTIONS, ids=str)
def test_a_field_that_contradicts_the_tensors_is_refused(file, fields):
    (name,) = fields
    name = VanillaTransformerConfig.attribute_map.get(name, name)
    with pytest.raises((ValueError, StrictDataclassError), match=name):
        convert(file, **fields)


WRAPPERS = {
    "bare": lambda state_dict: state_dict,
    "transformer-evolution": lambda state_dict: {
        **{"epoch": 3, "loss": np.mean([0.5, 0.25]), "score": np.sum([True, False]) / 2},
        **{"other numbers": [np.float32(0.2), np.int64(1)], "state_dict": state_dict},
    },
    "DistributedDataParallel": lambda state_dict: {f"module.{name}": tensor for name, tensor in state_dict.items()},
    "model_state_dict": lambda state_dict: {"model_state_dict": state_dict, "optimizer_state_dict": {"state": {}}},
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_checkpoints_are_read_wrapped_and_bare(wrapper, tmp_path):
    state_dict = checkpoint("pytorch-seq2seq")
    torch.save(WRAPPERS[wrapper](state_dict), tmp_path / "model.pt")
    assert_identical(load_source_state_dict(str(tmp_path / "model.pt")), state_dict)


class Code:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_file_is_refused_and_not_run(zipped, tmp_path):
    content = {"state_dict": checkpoint("pytorch-seq2seq"), "log": Code(tmp_path / "ran")}
    torch.save(content, tmp_path / "model.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load_source_state_dict(str(tmp_path / "model.pt"))
    assert not (tmp_path / "ran").exists()
    pickle.loads(pickle.dumps(Code(tmp_path / "ran")))
    assert (tmp_path / "ran").exists()
