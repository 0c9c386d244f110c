"""Folders of models: where a run goes on, what is refused, averages of weights, new layers."""

import json
from pathlib import Path

import pytest
import torch
from conftest import tiny_config
from safetensors.torch import load_file, save_file

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.checkpoints import load_alike
from hf_vanilla_transformer.loading import load_config, load_to_train, load_tokenizer, load_tokenizer_to_train
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.checkpoints import (
    LAST_CHECKPOINT,
    average_checkpoints,
    last_checkpoints,
    prepare_output_dir,
)


# --- Where a run goes on, what is loaded ---


def test_a_run_neither_overwrites_nor_starts_where_there_is_nothing(tmp_path):
    new = tmp_path / "a" / "b"
    assert prepare_output_dir(str(new), None) is None
    assert new.is_dir() and not any(new.iterdir())
    # As a recipe and a flag say it: `resume_from_checkpoint: true`, `--resume_from_checkpoint True`.
    for last in (LAST_CHECKPOINT, True, "True"):
        with pytest.raises(ValueError, match="b: no checkpoint"):
            prepare_output_dir(str(new), last)
    assert prepare_output_dir(str(new), False) is None
    (new / "checkpoint-5").mkdir()
    with pytest.raises(ValueError, match="not empty"):
        prepare_output_dir(str(new), None)
    with pytest.raises(ValueError, match="no checkpoint to go on from"):  # it is empty
        prepare_output_dir(str(new), LAST_CHECKPOINT)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        prepare_output_dir(str(tmp_path / "file"), None)


def test_another_models_folder_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bart"}')
    with pytest.raises(ValueError, match="'bart', not 'vanilla_transformer'"):
        load_config(str(tmp_path))
    with pytest.raises(ValueError, match="nowhere"):
        load_config(str(tmp_path / "nowhere"))


def test_a_tokenizer_without_a_token_that_is_needed_is_refused(tmp_path):
    tokenizer = train_tokenizer(["가나다"], vocab_size=29)
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the tokenizer has no mask_token"):
        load_tokenizer_to_train(str(tmp_path), None, ["pad_token", "mask_token"], 8)
    assert load_tokenizer_to_train(str(tmp_path), None, ["pad_token"], 8).model_max_length == 8


# --- Weights ---


def test_the_average_is_the_mean_of_every_weight(tmp_path):
    config = tiny_config(share_encoder_decoder_embeddings=True, tie_word_embeddings=True)
    models = [VanillaTransformerForConditionalGeneration(config) for _ in range(3)]
    for step, model in zip((10, 9, 200), models, strict=True):
        model.save_pretrained(tmp_path / f"checkpoint-{step}")
    folders = last_checkpoints(str(tmp_path), 2)
    assert [Path(folder).name for folder in folders] == ["checkpoint-10", "checkpoint-200"]

    average = average_checkpoints(folders)
    assert type(average) is VanillaTransformerForConditionalGeneration
    assert average.lm_head.weight is average.model.encoder.embed_tokens.weight
    for value, first, last in zip(average.parameters(), models[0].parameters(), models[2].parameters(), strict=True):
        torch.testing.assert_close(value, (first + last) / 2)


def test_half_precision_checkpoints_are_averaged_in_full_precision(tmp_path):
    models = [VanillaTransformerModel(tiny_config()).to(torch.bfloat16) for _ in range(5)]
    for step, model in enumerate(models):
        model.save_pretrained(tmp_path / f"checkpoint-{step}")
    average = average_checkpoints(last_checkpoints(str(tmp_path), 5))
    assert average.dtype == torch.bfloat16
    for value, *parts in zip(average.parameters(), *(model.parameters() for model in models), strict=True):
        mean = torch.stack(parts).double().mean(dim=0)
        torch.testing.assert_close(value.double(), mean, rtol=2**-8, atol=1e-6)  # rounded once


def test_what_cannot_be_averaged_is_refused(tmp_path):
    VanillaTransformerForConditionalGeneration(tiny_config()).save_pretrained(tmp_path / "checkpoint-1")
    VanillaTransformerForConditionalGeneration(tiny_config(d_model=8)).save_pretrained(tmp_path / "checkpoint-2")
    with pytest.raises(ValueError, match="checkpoint-2: another model than .*checkpoint-1"):
        average_checkpoints(last_checkpoints(str(tmp_path), 2))
    with pytest.raises(ValueError, match="2 checkpoints, fewer than 3"):
        last_checkpoints(str(tmp_path), 3)
    with pytest.raises(ValueError, match="at least 1"):
        last_checkpoints(str(tmp_path), 0)
    with pytest.raises(ValueError, match="no checkpoints"):
        average_checkpoints([])


def test_a_run_is_alike_to_one_that_went_on_from_the_same_denoiser(tmp_path):
    """Of the configuration, only what changes the meaning of the weights counts."""
    VanillaTransformerForConditionalGeneration(tiny_config()).save_pretrained(tmp_path / "denoiser")
    begun = VanillaTransformerForSequenceClassification.from_pretrained(tmp_path / "denoiser")
    ended = VanillaTransformerForSequenceClassification.from_pretrained(tmp_path / "denoiser", dropout=0.3)
    ended.config.update({"use_cache": False, "problem_type": "single_label_classification"})
    ended.save_pretrained(tmp_path / "ended")
    [other] = load_alike(begun, [str(tmp_path / "ended")])
    assert torch.equal(other.classifier.weight, ended.classifier.weight)
    new = VanillaTransformerForSequenceClassification(tiny_config())
    assert len(list(load_alike(new, [str(tmp_path / "ended")]))) == 1
    wider = VanillaTransformerForSequenceClassification(tiny_config(encoder_ffn_dim=48))
    with pytest.raises(ValueError, match="ended: another model than"):
        list(load_alike(wider, [str(tmp_path / "ended")]))


@pytest.mark.parametrize("attention_bias", [True, False])
def test_new_layers_change_nothing_and_learn(tmp_path, attention_bias):
    shallow = VanillaTransformerForConditionalGeneration(tiny_config(norm_first=True, attention_bias=attention_bias))
    shallow.save_pretrained(tmp_path)
    config = load_config(str(tmp_path))
    config.update({"encoder_layers": 4, "decoder_layers": 3})
    deep = load_to_train(VanillaTransformerForConditionalGeneration, str(tmp_path), config)
    ids, labels = torch.randint(7, 29, (3, 8)), torch.randint(7, 29, (3, 9))
    expected = shallow.eval()(input_ids=ids, labels=labels)
    before = {name: weight.detach().clone() for name, weight in deep.named_parameters()}
    optimizer = torch.optim.SGD(deep.parameters(), lr=0.1)
    for step in range(2):
        outputs = deep.eval()(input_ids=ids, labels=labels)
        if step == 0:
            torch.testing.assert_close(outputs.logits, expected.logits, rtol=0, atol=0)
        outputs.loss.backward()
        optimizer.step()
    # The outputs' projections from the first update on, all other weights from the second; a key's bias has no effect.
    moved = {name for name, weight in deep.named_parameters() if not torch.equal(weight, before[name])}
    new = before.keys() - dict(shallow.named_parameters()).keys()
    assert len(new) > 40 and {name for name in new if not name.endswith("k_proj.bias")} <= moved


def test_only_heads_and_new_layers_may_be_missing(tmp_path):
    translator = VanillaTransformerForConditionalGeneration(tiny_config(norm_first=True)).half()
    translator.save_pretrained(tmp_path)
    model = load_to_train(VanillaTransformerForSequenceClassification, str(tmp_path), translator.config)
    assert model.dtype == torch.float32
    assert torch.equal(
        model.model.decoder.layers[0].feed_forward.fc1.weight,
        translator.model.decoder.layers[0].feed_forward.fc1.weight.float(),
    )
    weights = load_file(tmp_path / "model.safetensors")
    whole = {name: weight for name, weight in weights.items() if ".encoder.layers.1." not in name}
    save_file(whole, tmp_path / "model.safetensors", metadata={"format": "pt"})
    deeper = load_config(str(tmp_path))
    deeper.encoder_layers = 3
    for config in (translator.config, deeper):
        with pytest.raises(ValueError, match=r"lacks model\.encoder\.layers\.1\.feed_forward\.fc1\.bias, .*v_proj"):
            load_to_train(VanillaTransformerForConditionalGeneration, str(tmp_path), config)
    save_file(
        {**weights, "model.encoder.layers.0.feed_forward.fc1.bias": torch.zeros(3)},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    with pytest.raises(ValueError, match="lacks model.encoder.layers.0.feed_forward.fc1.bias$"):
        load_to_train(
            VanillaTransformerForSequenceClassification, str(tmp_path), translator.config, ignore_mismatched_sizes=True
        )


def test_a_tokenizer_of_an_unknown_kind_is_refused(tmp_path):
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["type"] = "Foo"
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="no tokenizer can be read here"):
        load_tokenizer(str(tmp_path))
