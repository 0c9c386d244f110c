"""Folders of models: where a run goes on, what is refused, averages of weights, new layers."""

from pathlib import Path

import pytest
import torch
from conftest import tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.arguments import LAST_CHECKPOINT
from hf_vanilla_transformer.checkpoints import (
    average_checkpoints,
    last_checkpoints,
    load_alike,
    load_config,
    prepare_output_dir,
    silence_new_layers,
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
    deep, loading = VanillaTransformerForConditionalGeneration.from_pretrained(
        tmp_path, encoder_layers=4, decoder_layers=3, output_loading_info=True
    )
    silence_new_layers(deep, loading["missing_keys"])
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
    # The output's projections in the first update, all other weights from the second on; keys have no use for a bias.
    moved = {name for name, weight in deep.named_parameters() if not torch.equal(weight, before[name])}
    assert {name for name in loading["missing_keys"] if not name.endswith("k_proj.bias")} <= moved
