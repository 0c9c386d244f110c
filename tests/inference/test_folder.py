"""Models and tokenizers from folders: what is refused, and by which line."""

import json

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file
from shared import tiny_config

from hf_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.data.network import hub_answers
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.inference import load_engine
from hf_vanilla_transformer.inference.folder import (
    load_config,
    load_model,
    load_to_train,
    load_tokenizer,
    load_tokenizer_to_train,
)
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.mark.parametrize("load", [load_config, load_tokenizer])
@pytest.mark.parametrize("name", ["runs/nowhere", "nowhere", "./nowhere", "/no/where", "no where"])
def test_a_folder_that_is_not_here_is_said_to_be_missing(load, name):
    """Not that the network is: a name that could be a repository's is looked for on the Hub once (here: never)."""
    could_be_a_repository = name in ("runs/nowhere", "nowhere")
    reason = f"no folder {name} here, and no network to look" if could_be_a_repository else f"no folder '{name}' here$"
    with pytest.raises(ValueError, match=reason):
        load(name)


def test_the_hub_is_asked_once(monkeypatch):
    asked = []

    def refuse(method, **kwargs):
        asked.append(method)
        raise huggingface_hub.errors.HTTPError("no route")

    monkeypatch.setattr(huggingface_hub.utils.get_session(), "request", refuse)
    assert not hub_answers("runs/nowhere") and not hub_answers("runs/nowhere", "dataset")
    assert asked == ["HEAD", "HEAD"]


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
    whole = {name: weight for name, weight in weights.items() if ".encoder.layers.1." not in name}
    save_file(whole, tmp_path / "model.safetensors", metadata={"format": "pt"})
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


def test_a_tokenizer_of_an_unknown_kind_is_refused(tmp_path):
    train_tokenizer(["가나다"], vocab_size=29).save_pretrained(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["type"] = "Foo"
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="no tokenizer can be read here"):
        load_tokenizer(str(tmp_path))


@pytest.mark.parametrize("name", ["good\nreally", "a\tb", "\x1b[2J", "a\u2028b", "\x85"])
def test_a_label_that_no_line_can_hold_is_refused(name, tmp_path):
    config = tiny_config(id2label={0: "bad", 1: name}, label2id={"bad": 0, name: 1})
    VanillaTransformerForSequenceClassification(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="id2label: the name .* has a line break"):
        load_engine(str(tmp_path), task="classification")


def test_weights_that_hold_code_are_one_line(tmp_path):
    """Which is not run."""
    model = VanillaTransformerForSequenceClassification(tiny_config())
    model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()

    class Code:
        def __reduce__(self):
            return (tmp_path / "was_here").touch, ()

    torch.save(Code(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=f"^{tmp_path}: no model can be read here .a file of torch that holds code.$"):
        load_engine(str(tmp_path))
    assert not (tmp_path / "was_here").exists()


@pytest.fixture
def sharded(tmp_path):
    """A model's folder with its weights in several files and an index of them, in a folder of its own."""
    model = VanillaTransformerForSequenceClassification(tiny_config())
    model.save_pretrained(tmp_path / "place" / "model", max_shard_size="8KB")
    return tmp_path / "place" / "model"


def rename_first_shard(folder, name: str) -> None:
    """Move the first shard to a name relative to the folder, and write that name into the index."""
    index = folder / "model.safetensors.index.json"
    first = min(folder.glob("model-*.safetensors"))
    index.write_text(index.read_text().replace(f'"{first.name}"', json.dumps(name)))
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    first.rename(folder / name)


@pytest.mark.parametrize("name", ["../x.safetensors", "{place}/x.safetensors", "a/../../x.safetensors"])
@pytest.mark.parametrize("index", ["model.safetensors.index.json", "other.safetensors.index.json"])
def test_an_index_that_leads_out_of_the_folder_is_refused(sharded, name, index):
    rename_first_shard(sharded, name.format(place=sharded.parent))
    (sharded / "model.safetensors.index.json").rename(sharded / index)
    if index.startswith("other"):
        config = json.loads((sharded / "config.json").read_text())
        (sharded / "config.json").write_text(json.dumps({**config, "transformers_weights": index}))
    for load in (load_engine, load_config, load_model):
        with pytest.raises(DataError, match="outside of the folder"):
            load(str(sharded))


@pytest.mark.parametrize("name", ["pytorch_model.bin.index.json", "adapter_model.safetensors.index.json"])
def test_so_is_any_other_kind_of_index(sharded, name):
    (sharded / name).write_text(json.dumps({"metadata": {}, "weight_map": {"a": "../x.bin", "b": "x.bin"}}))
    with pytest.raises(DataError, match="outside of the folder"):
        load_engine(str(sharded))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_an_index_that_is_none_is_one_line(sharded, content):
    (sharded / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match="no weights index can be read here"):
        load_engine(str(sharded))


def test_a_shard_that_is_a_link_out_of_the_folder_is_refused(sharded):
    shard = min(sharded.glob("model-*.safetensors"))
    shard.symlink_to(shard.rename(sharded.parent / "x.safetensors"))
    with pytest.raises(DataError, match="outside of the folder"):
        load_engine(str(sharded))


def test_shards_elsewhere_in_the_folder_load(sharded):
    """Also by a link, where the folder itself is one."""
    rename_first_shard(sharded, "parts/x.safetensors")
    last = max(sharded.glob("model-*.safetensors"))
    last.symlink_to(last.rename(sharded / "parts" / "last.safetensors"))
    (sharded.parent / "link").symlink_to(sharded)
    load_engine(str(sharded.parent / "link"))


@pytest.mark.parametrize("by", ["name", "folder"])
def test_the_hubs_cache_loads_whose_files_are_links(sharded, monkeypatch, by):
    cache = sharded.parent / "models--kim--x"
    snapshot = cache / "snapshots" / ("a" * 40)
    for folder in (snapshot, cache / "blobs", cache / "refs"):
        folder.mkdir(parents=True)
    (cache / "refs" / "main").write_text(snapshot.name)
    for number, file in enumerate(sorted(sharded.iterdir())):
        file.rename(cache / "blobs" / str(number))
        (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache.parent))
    load_engine("kim/x" if by == "name" else str(snapshot))
    if by == "folder":  # of somebody's archive, and its blob leads on
        blob = min(snapshot.glob("model-*.safetensors")).resolve()
        blob.symlink_to(blob.rename(cache.parent / "x"))
        with pytest.raises(DataError, match="outside of the folder"):
            load_engine(str(snapshot))
