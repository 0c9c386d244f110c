"""model.js computes what the modelling file computes: every tensor, every search."""

import copy
import math

import numpy as np
import pytest
import torch
from exports.models import CONFIGS, random_model, save
from shared import LINES, ROOT, tiny_config
from torch.nn.utils.rnn import pad_sequence

from hf_vanilla_transformer import modeling_vanilla_transformer
from hf_vanilla_transformer.data.problem_types import PROBLEM_TYPES
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.inference.classifier import to_probabilities
from hf_vanilla_transformer.inference.folder import load_model, load_tokenizer

from .node import ask_page, needs_node
from .texts import ENGLISH, GERMAN, REVIEWS
from .torch_trace import expected_trace


pytestmark = needs_node
TEXTS = {
    "nsmc-small": [*REVIEWS[:20], "\u200b"],
    "multi30k-de-en": [*GERMAN, "\u200b"],
    "multi30k-en-de": ENGLISH,
}
# Ids of a source; the second has padding on both sides and inside.
SOURCES = [([5, 9, 4, 11, 3], None), ([0, 7, 5, 0, 12, 9, 0], [0, 1, 1, 0, 1, 1, 0])]


def largest_difference(answer: dict, expected: dict[str, np.ndarray]) -> float:
    """Of all tensors, relative to the largest number of each if that is above 1."""
    trace = {name: tensor["data"] for name, tensor in answer["trace"].items()}
    assert trace.keys() == expected.keys()
    differences = []
    for name, tensor in expected.items():
        assert trace[name].shape == tensor.shape, name
        differences.append(np.abs(trace[name] - tensor).max() / max(1, np.abs(tensor).max()))
    return max(differences)


def compare(models: dict, sources, scratch) -> None:
    """Compare all tensors of classifications or greedy translations; `models` by their folders."""
    jobs = []
    for folder, model in models.items():
        call = "classify" if hasattr(model, "classifier") else "translate"
        asks = [{"call": call, "values": [ids, {"mask": mask, "trace": True}]} for ids, mask in sources]
        jobs.append({"folder": folder, "asks": asks})
    for model, result in zip(models.values(), ask_page(jobs, scratch), strict=True):
        for (ids, mask), answer in zip(sources, result["answers"], strict=True):
            target = [model.config.decoder_start_token_id, *answer.get("ids", [])[:-1]]
            expected = expected_trace(copy.deepcopy(model), ids, mask, target)
            assert largest_difference(answer, expected) < 1e-5


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_every_tensor_of_every_preset_and_variant(task, tmp_path):
    models = {}
    for number, make_config in enumerate(CONFIGS.values()):
        model = random_model(make_config(), task)
        model.set_attn_implementation("eager")
        models[save(model, tmp_path / str(number))] = model
    compare(models, SOURCES, tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_in_several_files(dtype, tmp_path):
    folder = save(random_model(CONFIGS["preset base"]()).to(dtype), tmp_path / "one")
    (tmp_path / "one" / "model.safetensors").unlink()
    random_model(CONFIGS["preset base"]()).to(dtype).save_pretrained(folder, max_shard_size="10KB")
    assert len([*(tmp_path / "one").glob("*.safetensors")]) > 2
    compare({folder: load_model(folder, dtype=torch.float32, attn_implementation="eager").eval()}, SOURCES, tmp_path)


@pytest.mark.parametrize("name", ["nsmc-small", "multi30k-de-en", "multi30k-en-de"])
def test_every_tensor_of_the_published_models(name, tmp_path):
    folder = str(ROOT / "model_cards" / name)
    model = load_model(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = load_tokenizer(folder)(TEXTS[name][0])["input_ids"]
    compare({folder: model}, [(ids, None)], tmp_path)


# Of each: the fields of the configuration that are not the default, and the ids that end a target.
SEARCHED = [({}, 3), ({"norm_first": True, "scale_embedding": True}, [3, 9]), ({"decoder_vocab_size": 31}, None)]
SETTINGS = [
    {"num_beams": beams, "length_penalty": penalty, "early_stopping": early, "max_length": length}
    for beams in (1, 2, 5)
    for penalty in (0.6, 2.0, 0.0, -1.0)
    for early in (False, True, "never")
    for length in (5, 12)
    if beams > 1 or (penalty == 0.6 and early is False)
]


@pytest.mark.parametrize(("fields", "ends"), SEARCHED)
def test_greedy_and_beam_search(fields, ends, tmp_path):
    torch.manual_seed(0)
    model = random_model(tiny_config(**fields, eos_token_id=ends))
    with torch.no_grad():
        model.lm_head.bias[torch.tensor(ends or 3)] += 1.5  # so that targets end at various lengths
    sources = [torch.randint(4, 29, (length,)) for length in (1, 4, 9)]
    asked, expected = [], []
    for settings in SETTINGS:
        options = {"beams": "num_beams", "lengthPenalty": "length_penalty", "earlyStopping": "early_stopping"}
        options = {name: settings[field] for name, field in options.items()} | {"maxLength": settings["max_length"]}
        asked += [{"call": "translate", "values": [ids.tolist(), options]} for ids in sources]
        expected += generate(model, sources, **settings)
    (result,) = ask_page([{"folder": save(model, tmp_path / "model"), "asks": asked}], tmp_path)
    for answer, (ids, score) in zip(result["answers"], expected, strict=True):
        assert answer["ids"] == ids
        # transformers adds up in float32.
        assert score is None or answer["score"] == pytest.approx(score, rel=1e-6, abs=1e-5)
        assert answer["steps"][-1]["token"] == ids[-1] and len(answer["steps"]) == len(ids)
        assert not answer["tree"] or ids_of_best(answer["tree"]) == ids
    assert len({len(ids) for ids, _ in expected}) > 3 or ends is None


def generate(model, sources: list[torch.Tensor], **settings) -> list[tuple[list[int], float | None]]:
    """For each source the ids that transformers writes after the start, to the first end, and the beams' score."""
    ids, mask = (pad_sequence(rows, batch_first=True) for rows in (sources, [torch.ones_like(one) for one in sources]))
    options = {"do_sample": False, "return_dict_in_generate": True, "output_scores": True}
    found = model.generate(ids, attention_mask=mask, **options, **settings)
    end = model.generation_config.eos_token_id
    ends = torch.tensor(-1 if end is None else end)
    written = []
    for row in found.sequences[:, 1:]:
        (places,) = torch.isin(row, ends).nonzero(as_tuple=True)
        written.append(row[: places[0] + 1 if len(places) else None].tolist())
    scores = getattr(found, "sequences_scores", None)
    return list(zip(written, [None] * len(written) if scores is None else scores.tolist(), strict=True))


def ids_of_best(tree: list[dict]) -> list[int]:
    node = max((node for node in tree if node["finished"]), key=lambda node: node["final"])
    ids = [node["id"]]
    while node["parent"] >= 0:
        node = tree[node["parent"]]
        assert node["kept"]
        ids.append(node["id"])
    return ids[::-1]


@pytest.mark.parametrize(
    "generation",
    [
        {"eos_token_id": [9, 11], "decoder_start_token_id": 5, "max_length": 9, "num_beams": 3, "length_penalty": 0.2},
        {"eos_token_id": None, "max_new_tokens": 4, "num_beams": 2, "early_stopping": True},
    ],
)
def test_what_generation_config_sets(generation, tmp_path):
    model = random_model(tiny_config())
    model.generation_config.update(**generation)
    folder = save(model, tmp_path / "model")
    asks = [{"call": "translate", "values": [text]} for text in LINES]
    (result,) = ask_page([{"folder": folder, "asks": asks}], tmp_path)
    assert [answer["text"] for answer in result["answers"]] == Translator(folder)(LINES)


@pytest.mark.parametrize("name", ["multi30k-de-en", "multi30k-en-de"])
def test_translations_of_the_published_models(name, tmp_path):
    folder = str(ROOT / "model_cards" / name)
    texts = {1: TEXTS[name], 5: TEXTS[name][::3]}
    asks = [{"call": "translate", "values": [text, {"beams": beams}]} for beams in texts for text in texts[beams]]
    (result,) = ask_page([{"folder": folder, "asks": asks}], tmp_path)
    expected = [written for beams in texts for written in Translator(folder, num_beams=beams)(texts[beams])]
    assert [answer["text"] for answer in result["answers"]] == expected


def test_classifications_of_the_published_model(tmp_path):
    folder = str(ROOT / "model_cards" / "nsmc-small")
    asks = [{"call": "classify", "values": [text]} for text in TEXTS["nsmc-small"]]
    (result,) = ask_page([{"folder": folder, "asks": asks}], tmp_path)
    assert result["opened"]["task"] == "classification" and result["opened"]["labels"] == ["negative", "positive"]
    expected = Classifier(folder).probabilities(TEXTS["nsmc-small"])
    np.testing.assert_allclose([answer["probabilities"] for answer in result["answers"]], expected, atol=1e-5)


@pytest.mark.parametrize("kind", PROBLEM_TYPES)
def test_probabilities_of_every_kind_of_labels(kind, tmp_path):
    model = random_model(tiny_config(num_labels=3, problem_type=kind), "classification")
    ids = [[5, 9, 4], []]
    with torch.inference_mode():
        logits = [model(torch.tensor([one], dtype=torch.long)).logits[0].numpy() for one in ids]
    asks = [{"call": "classify", "values": [one]} for one in ids]
    (result,) = ask_page([{"folder": save(model, tmp_path / "model"), "asks": asks}], tmp_path)
    for answer, expected in zip(result["answers"], logits, strict=True):
        np.testing.assert_allclose(answer["logits"], expected, atol=1e-5)
        np.testing.assert_allclose(answer["probabilities"], to_probabilities(expected, kind), atol=1e-5)


def test_the_reader_overrules_a_token_and_the_lens(tmp_path):
    model = random_model(tiny_config(eos_token_id=None))
    folder = save(model, tmp_path / "model")
    asks = [
        {"call": "translate", "values": [[5, 9, 4], {"maxLength": 8, "trace": True, **options}]}
        for options in ({}, {"forced": {"2": 7}}, {"forced": {"2": 7}, "beams": 3})
    ]
    (result,) = ask_page([{"folder": folder, "asks": asks}], tmp_path)
    plain, forced, beams = result["answers"]
    assert plain["ids"][2] != 7 and forced["ids"][:3] == [*plain["ids"][:2], 7] and beams["ids"][2] == 7
    target = torch.tensor([[model.config.decoder_start_token_id, *forced["ids"][:-1]]])
    with torch.inference_mode():
        states = model(torch.tensor([[5, 9, 4]]), decoder_input_ids=target, output_hidden_states=True)
        probabilities = states.logits.softmax(-1)[0]
        after_first = model.lm_head(states.decoder_hidden_states[1]).softmax(-1)[0]
    assert forced["score"] == pytest.approx(
        sum(math.log(row[token]) for row, token in zip(probabilities, forced["ids"], strict=True)), abs=1e-5
    )
    for step, row, first in zip(forced["steps"], probabilities, after_first, strict=True):
        for found, expected in ((step["best"], row), (step["lens"][0], first), (step["lens"][1], row)):
            values, places = expected.topk(10)
            assert [one["id"] for one in found] == places.tolist()
            np.testing.assert_allclose([one["p"] for one in found], values, atol=1e-6)


def without_head(model, monkeypatch):
    attention = model.model.decoder.layers[1].encoder_attn
    attention.out_proj.weight.data[:, attention.head_dim : 2 * attention.head_dim] = 0


def without_residual(model, monkeypatch):
    residual = model.model.encoder.layers[0].feed_forward_residual
    residual.after = lambda stream, output: residual.post_norm(output)


def without_positions(model, monkeypatch):
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions = modeling_vanilla_transformer.VanillaTransformerNoPositions(16, model.config)


def without_mask(name: str):
    return lambda model, monkeypatch: monkeypatch.setattr(modeling_vanilla_transformer, name, lambda **_: None)


HEAD = {"stack": "decoder", "layer": 1, "sublayer": "cross_attention", "head": 1}
RESIDUAL = {"stack": "encoder", "layer": 0, "sublayer": "feed_forward"}


@pytest.mark.parametrize(
    ("changes", "change"),
    [
        ({"heads": [HEAD]}, without_head),
        ({"residuals": [RESIDUAL]}, without_residual),
        ({"positions": False}, without_positions),
        ({"causalMask": False}, without_mask("create_causal_mask")),
        ({"paddingMask": False}, without_mask("create_bidirectional_mask")),
    ],
)
def test_what_is_switched_off(changes, change, tmp_path, monkeypatch):
    model = random_model(tiny_config(eos_token_id=None))
    model.set_attn_implementation("eager")  # SDPA is causal without a mask
    ids, mask = SOURCES[1]
    options = {"mask": mask, "maxLength": 7, "trace": True}
    asks = [{"call": "translate", "values": [ids, {**options, **more}]} for more in ({}, {"changes": changes})]
    (result,) = ask_page([{"folder": save(model, tmp_path / "model"), "asks": asks}], tmp_path)
    names = [f"decoder.steps.{step}.logits" for step in range(6)]
    plain, changed = ([answer["trace"][name]["data"] for name in names] for answer in result["answers"])
    assert np.abs(np.array(plain) - changed).max() > 0.01
    change(model, monkeypatch)
    target = [model.config.decoder_start_token_id, *result["answers"][1]["ids"]]
    for step, logits in enumerate(changed):
        with torch.inference_mode():
            inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.tensor([mask])}
            written = torch.tensor([target[: step + 1]])
            expected = model(**inputs, decoder_input_ids=written, use_cache=False).logits[0, -1]
        np.testing.assert_allclose(logits, expected, atol=1e-5)
