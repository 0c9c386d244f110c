"""What a stranger's folder may cost: each attack is one line, after bounded seconds and memory."""

import json
import shutil
from pathlib import Path

import pytest
from processes import Attack, run_attacks
from shared import error_line

from hf_vanilla_transformer.inference.search import search_settings


SECONDS, MEBIBYTES = 3, 150


def attack(folder: Path, place: Path, changes: dict) -> Path:
    """A copy of a folder; `changes` are by file, and each is by the path to a value in it."""
    copy = shutil.copytree(folder, place)
    for name, values in changes.items():
        file = copy / name
        content = json.loads(file.read_text(encoding="utf-8"))
        for path, value in values.items():
            *parents, last = path.split(".")
            inside = content
            for parent in parents:
                inside = inside[parent]
            inside[last] = value
        file.write_text(json.dumps(content), encoding="utf-8")
    return copy


def tokenizer(**values) -> dict:
    return {"tokenizer.json": {path.replace("__", "."): value for path, value in values.items()}}


def replace(old: str, new: str) -> dict:
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


ADDED = [
    {"id": number, "content": f"<{number}>", "special": True}
    | dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False)
    for number in (28, 29)
]
TEN_TO_THE_TWELFTH = [replace("가", "가" * 10)] * 12
EVIL_REGEX = {"type": "Split", "pattern": {"Regex": "(가|가|가가)+$"}, "behavior": "Isolated", "invert": False}
A, EOS = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[EOS]", "type_id": 0}}
EOS_BEYOND = {"[EOS]": {"id": "[EOS]", "ids": [2**31], "tokens": ["[EOS]"]}}
TOKENIZERS = {
    "an added token beyond the embedding": tokenizer(added_tokens=ADDED),
    "a template beyond the embedding": tokenizer(post_processor__special_tokens=EOS_BEYOND),
    "a vocabulary beyond the embedding": tokenizer(model__vocab__가=10**6),
    "a normalizer of 10^12": tokenizer(normalizer={"type": "Sequence", "normalizers": TEN_TO_THE_TWELFTH}),
    "a decoder of 10^12": tokenizer(decoder={"type": "Sequence", "decoders": TEN_TO_THE_TWELFTH}),
    "a normalizer that puts in much": tokenizer(normalizer=replace("가", "가" * 10**6)),
    "a normalizer that begins with much": tokenizer(normalizer={"type": "Prepend", "prepend": "가" * 10**6}),
    "a pattern that backtracks": tokenizer(pre_tokenizer=EVIL_REGEX),
    "a template of 1,000 tokens": tokenizer(post_processor__single=[A, *[EOS] * 1000]),
    "a length that is no number": {"tokenizer_config.json": {"model_max_length": float("nan")}},
    "a length below zero": {"tokenizer_config.json": {"model_max_length": -5}},
    "a length that is a text": {"tokenizer_config.json": {"model_max_length": "x"}},
    "a length of half a token": {"tokenizer_config.json": {"model_max_length": 1.5}},
    "a length that is none": {"tokenizer_config.json": {"model_max_length": [8]}},
}


def model(**values) -> dict:
    return {"config.json": values}


SIZES = {
    "a vocabulary of 2^28": model(vocab_size=2**28),
    "positions of 2^25": model(max_position_embeddings=2**25),
    "target positions of 2^25": model(decoder_max_position_embeddings=2**25),
    "an inner width of 2^28": model(encoder_ffn_dim=2**28),
    "2^20 layers": model(encoder_layers=2**20),
    "2^20 layers by their other name": model(num_hidden_layers=2**20),
    "2^20 layers of the decoder": model(decoder_layers=2**20),
    "2^20 heads": model(decoder_attention_heads=2**20, head_dim=16),
    "2^24 labels": model(num_labels=2**24),
    "2^17 labels": model(num_labels=2**17),
    "architectures that are a text": model(architectures="x"),
    "architectures that are a mapping": model(architectures={"a": 1}),
    "architectures that are a number": model(architectures=7),
    "architectures of lists": model(architectures=[["x"]]),
    "answers without names": model(return_dict=False),
}


def generation(**values) -> dict:
    return {"generation_config.json": values}


SEARCHES = {
    "10^9 beams": generation(num_beams=10**9),
    "101 beams": generation(num_beams=101),
    "beams below zero": generation(num_beams=-1),
    "beams and a half": generation(num_beams=1.5),
    "beams that are a text": generation(num_beams="x"),
    "beams that are a list": generation(num_beams=[5]),
    "a penalty that is a text": generation(length_penalty="x"),
    "an infinite penalty": generation(length_penalty=float("inf")),
    "10^9 tokens at least": generation(min_length=10**9),
    "a start beyond the vocabulary": generation(decoder_start_token_id=29),
    "a start below zero": generation(decoder_start_token_id=-1),
    "a start that is a text": generation(decoder_start_token_id="x"),
    "a forced start beyond the vocabulary": generation(forced_bos_token_id=10**6),
    "forced ends beyond the vocabulary": generation(forced_eos_token_id=[3, 10**6]),
}
IGNORED = {
    "three answers": generation(num_beams=5, num_return_sequences=3),
    "answers with names": generation(return_dict_in_generate=True),
    "groups of beams": generation(num_beams=4, num_beam_groups=2, diversity_penalty=1.0),
    "tokens beyond the vocabulary": generation(bad_words_ids=[[10**6]]),
    "a limit of time": generation(max_time=1e-9),
    "strings that end it": generation(stop_strings=["가"]),
}

# By place. Each attack is tried with both commands, or with `translate`.
TABLES = {"tokenizer": TOKENIZERS, "sizes": SIZES, "search": SEARCHES, "ignored": IGNORED}
TRANSLATORS = {"search", "ignored"}


@pytest.fixture(scope="module")
def found(tiny_models, tmp_path_factory) -> dict[tuple[str, str, str], Attack]:
    """What each attack led to, by table, name and command; the folders themselves are answered."""
    place = tmp_path_factory.mktemp("models")
    (place / "text.txt").write_text("가" * 60 + "나\n")
    folders = {"predict": tiny_models["classification"], "translate": tiny_models["translation"]}
    attacks = {
        (table, name, command): attack(folders[command], place / table / name / command, changes)
        for table, rows in TABLES.items()
        for name, changes in rows.items()
        for command in folders
        if command == "translate" or table not in TRANSLATORS
    }
    commands = [[name, "--model", folder] for name, folder in folders.items()]
    commands += [[name, "--model", folder] for (*_, name), folder in attacks.items()]
    attacked = run_attacks([[*words, "--file", place / "text.txt"] for words in commands], MEBIBYTES)
    assert [one.status for one in attacked[:2]] == [0, 0], attacked[:2]
    return dict(zip(attacks, attacked[2:], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_an_attack_is_one_line_after_bounded_seconds_and_memory(found, table):
    for (place, name, command), one in found.items():
        if place == table:
            assert one.seconds < SECONDS and one.mebibytes < MEBIBYTES, (name, one)
            assert one.status == (0 if table == "ignored" else 2), (name, one)
            if table != "ignored":
                error_line(command, one.err)


def test_a_translator_says_what_it_ignores(caplog):
    kept = search_settings("x", {"num_beams": 5, "top_k": 50, "max_time": 1e-9, "return_dict_in_generate": True}, 29)
    assert kept == {"num_beams": 5}
    assert caplog.messages == ["x: ignored of the generation: max_time, return_dict_in_generate"]
