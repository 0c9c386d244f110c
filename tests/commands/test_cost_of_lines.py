"""What texts and records may cost: each attack is one line, or its first characters' answer, within bounds."""

import gzip
import json
from itertools import pairwise

import pytest
from processes import run_attacks
from shared import error_line, files_of_at_most

from hf_vanilla_transformer.characters import CHARACTERS_PER_TOKEN
from hf_vanilla_transformer.data.lines import iterate_lines
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.inference.tokenization import TransformersTokenizer
from hf_vanilla_transformer.tokenizer import MAX_PIECE_LENGTH, train_tokenizer


MEBIBYTES = 200
M = 2**20
WORDS = "가나다 라마 ".encode()
LONG = WORDS * (M // len(WORDS))


def file_of(piece: bytes, times: int, begin: bytes = b"", end: bytes = b"\n", file=None) -> None:
    file.write(begin)
    for _ in range(times):
        file.write(piece)
    file.write(end)


# By the name of the file: what it holds, and whether it is answered, after how many seconds of the processor at most.
FILES = {
    "short.txt": ({"piece": LONG[:9990], "times": 1}, True, 1),
    "10mb.txt": ({"piece": LONG, "times": 10}, True, 1),
    "156mb.txt": ({"piece": LONG, "times": 156}, True, 1),
    "bomb.txt.gz": ({"piece": b"a" * M, "times": 1100}, False, 20),
    "zeros.txt": ("/dev/zero", False, 5),
    "zeros.csv": ("/dev/zero", False, 2),
    "cell.csv": ({"piece": LONG, "times": 100, "begin": b'text\n"', "end": b'"\n'}, False, 2),
    "cell_of_lines.csv": ({"piece": LONG + b"\n", "times": 60, "begin": b'text\n"', "end": b'"\n'}, False, 2),
    "cell.tsv": ({"piece": LONG, "times": 100, "begin": b"text\n"}, False, 2),
    "cell.jsonl": ({"piece": LONG, "times": 100, "begin": b'{"text": "', "end": b'"}\n'}, False, 2),
    "nested.json": ({"piece": b"[", "times": 10**5, "end": b"]" * 10**5}, False, 2),
    "nested.jsonl": ({"piece": b"[", "times": 10**5, "begin": b'{"text":', "end": b"]" * 10**5 + b"}\n"}, False, 2),
}


@pytest.fixture
def classifier(tiny_models) -> str:
    return str(tiny_models["classification"])


@pytest.mark.slow
def test_lines_and_cells_without_end_take_bounded_seconds_and_memory(classifier, tmp_path):
    for name, (content, *_) in FILES.items():
        if isinstance(content, str):
            (tmp_path / name).symlink_to(content)
            continue
        with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wb") as file:
            file_of(**content, file=file)
    flags = {name: [] if ".txt" in name else ["--text_column", "text"] for name in FILES}
    commands = [["predict", "--model", classifier, "--file", tmp_path / name, *flags[name]] for name in FILES]
    clean, *attacks = run_attacks([commands[0], *commands], MEBIBYTES)
    for (name, (_, answered, seconds)), one in zip(FILES.items(), attacks, strict=True):
        assert one.seconds < seconds and one.mebibytes < MEBIBYTES, (name, one.seconds, one.mebibytes)
        if answered:
            assert one.status == 0 and one.out == clean.out
            assert f"1 of 1 lines are cut to {16 * CHARACTERS_PER_TOKEN:,} characters" in one.err
        else:
            assert one.status == 2 and not one.out and error_line("predict", one.err)


def test_no_piece_is_longer_than_the_characters_that_are_read_for_it():
    """NFKC composes at most so many characters to one."""
    syllables = [chr(number) for number in range(0xAC00, 0xD7A4)]
    tokenizer = train_tokenizer(["".join(syllables[:500])], vocab_size=600)
    assert MAX_PIECE_LENGTH * 4 <= CHARACTERS_PER_TOKEN
    assert max(map(len, tokenizer.get_vocab())) <= MAX_PIECE_LENGTH


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_cut_is_what_truncation_leaves_out(classifier, side):
    tokenizer = load_tokenizer(classifier)
    tokenizer.truncation_side = side
    text = "".join(f"{'가나다라마'[number % 5]}{'바사' * (number % 3)} " for number in range(2000))
    whole = tokenizer(text)["input_ids"][:-1]  # [EOS]
    (found,), _ = TransformersTokenizer(tokenizer).encode([text], 16)
    assert found == [*(whole[-15:] if side == "left" else whole[:15]), 3]
    assert len(Classifier(classifier).probabilities([text] * 300)) == 300


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16", "utf-32-le"])
def test_lines_are_cut_between_characters_and_counted(tmp_path, caplog, encoding):
    file = tmp_path / "lines.txt"
    file.write_bytes("a가나다라\n가나\r\n가나다라마바사아자차카타파하\n가나다라\n마".encode(encoding))
    assert list(iterate_lines(file, encoding, longest=4)) == ["a가나다", "가나", "가나다라", "가나다라", "마"]
    assert caplog.messages == [f"{file}: 2 of 5 lines are cut to 4 characters"]


@pytest.mark.parametrize("encoding", ["hex", "rot13", "zip", "undefined"])
def test_an_encoding_of_no_text_is_one_line(refused, classifier, tmp_path, encoding):
    (tmp_path / "a.csv").write_text("text\na\n")
    flags = ["--file", tmp_path / "a.csv", "--text_column", "text", "--encoding", encoding]
    assert "encoding" in refused("predict", "--model", classifier, *flags)


def test_nested_json_and_endless_files_to_train_on_are_one_line(refused, tmp_path):
    (tmp_path / "a.json").write_text("[" * 10**5 + "]" * 10**5)
    out = ["--output_dir", tmp_path / "out"]
    assert "100 levels" in refused("train-tokenizer", "--data", tmp_path / "a.json", *out)
    assert "a device" in refused("train-tokenizer", "--texts", "/dev/zero", *out)


def test_a_full_disk_is_one_line_under_train_tokenizer(succeed, refused, text_file, tmp_path):
    """Which tokenizers reports by an error without a class of its own."""
    flags = ["--texts", text_file, "--vocab_size", 29, "--output_dir"]
    succeed("train-tokenizer", *flags, tmp_path / "first")  # its texts are cached
    with files_of_at_most(500):
        assert "os error" in refused("train-tokenizer", *flags, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def link_files(folder, place, but: str) -> None:
    """Make a folder with links to all files of another but one."""
    place.mkdir()
    for file in folder.iterdir():
        if file.is_file() and file.name != but:
            (place / file.name).symlink_to(file)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in pairwise("abcdefghij")
)
RECIPES = {
    "aliases": BOMB,
    "a megabyte": "a: " + "x" * M,
    "levels": "a: " + "[" * 10**5,
    "lists": "[" + "a: b, " * 10**5 + "]",
    "a list of data": "data: [a]",
    "a mapping of data": "data: {a: 1}",
    "a number for data": "data: 7",
    "no data": "data: null",
    "a share that is a text": "data: sample\nvalidation_fraction: x",
    "a seed that is a text": "data: sample\nsplit_seed: x",
    "a list of columns": "data: sample\ntext_column: [a]",
    "a path elsewhere": "data: /etc/passwd",
}
HARMLESS = {
    "a translator's keys": "data: sample\nsource_column: de\ntarget_column: en",
    "one side": "data: sample\nsource_column: de",
}


@pytest.mark.slow
def test_a_stranger_s_recipe_takes_bounded_seconds_and_memory(trained, tmp_path):
    commands = [["evaluate", "--model", trained, "--output_dir", tmp_path / "clean"]]
    for number, recipe in enumerate([*RECIPES.values(), *HARMLESS.values()]):
        place = tmp_path / str(number)
        link_files(trained, place, but="recipe.yaml")
        (place / "recipe.yaml").write_text(recipe)
        commands.append(["evaluate", "--model", place, "--output_dir", tmp_path / f"out{number}"])
    for number in range(len(RECIPES)):
        recipe = tmp_path / str(number) / "recipe.yaml"
        commands.append(["train-classifier", recipe, "--output_dir", tmp_path / f"run{number}", "--dry_run"])
    clean, *attacks = run_attacks(commands, MEBIBYTES)
    assert clean.status == 0, clean.err
    evaluated, harmless, trained_on = (
        attacks[: len(RECIPES)],
        attacks[len(RECIPES) : -len(RECIPES)],
        attacks[-len(RECIPES) :],
    )
    for name, one, other in zip(RECIPES, evaluated, trained_on, strict=True):
        assert one.status == 2 and one.seconds < 5 and one.mebibytes < MEBIBYTES, (name, one)
        assert error_line("evaluate", one.err)
        assert other.status == 2 and other.seconds < 10 and other.mebibytes < MEBIBYTES, (name, other)
        assert "Traceback" not in other.err
    assert "Reading /etc/passwd, " in evaluated[-1].out
    assert [one.status for one in harmless] == [0] * len(HARMLESS), harmless


@pytest.mark.parametrize("content", ['{"data": 1}', '{"data": [1]}', '{"data": {"train": "x"}}'])
def test_what_a_stranger_s_run_says_of_its_data_may_be_anything(succeed, trained, tmp_path, content):
    place = tmp_path / "model"
    link_files(trained, place, but="run.json")
    (place / "run.json").write_text(content)
    rows = [{"document": text, "label": label} for text in "가나다라" for label in ("negative", "positive")]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    flags = ["--data", tmp_path / "rows.json", "--output_dir", tmp_path / "out"]
    succeed("evaluate", "--model", place, *flags)
