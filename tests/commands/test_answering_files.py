"""Tables of all kinds, compressed, in parts and in shards: killed, resumed, put together, all with the same bytes."""

import csv
import gzip
import io
import itertools
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exports.models import random_model, save
from shared import tiny_config

from hf_vanilla_transformer.commands import answering, answers, parquet_texts
from hf_vanilla_transformer.inference.loaded import WINDOW


# With --batch_size 1, three windows and some. No two neighbours have the same length.
NUMBER = 3 * WINDOW + 9
TEXTS = ["가 나 다 라 마"[: 2 * (number * 7 % 5) + 1] + f' {number}\n"' for number in range(NUMBER)]
TEXTS[5] = " "
KINDS = ["txt", "txt.gz", "csv", "csv.gz", "tsv.gz", "jsonl", "jsonl.gz", "parquet"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return Path(save(random_model(tiny_config(), "classification"), tmp_path_factory.mktemp("model")))


def write(file: Path, texts: list[str] = TEXTS) -> Path:
    """The texts as a file of the kind that its name says."""
    name = file.name.removesuffix(".gz")
    rows = [{"id": number, "text": text, "tags": ["a", "b"][: number % 3]} for number, text in enumerate(texts)]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), file, row_group_size=50)
        return file
    if name.endswith(".txt"):
        content = "".join(f"{text.split()[0] if text.strip() else ''}\n" for text in texts)
    elif name.endswith(".jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        lines = io.StringIO()
        writer = csv.writer(lines, delimiter="," if name.endswith(".csv") else "\t")
        writer.writerows([["id", "text"], *([row["id"], row["text"]] for row in rows)])
        content = lines.getvalue()
    file.write_bytes(gzip.compress(content.encode()) if file.suffix == ".gz" else content.encode())
    return file


def flags(model: Path, file: Path, output: Path) -> list:
    words = ["--model", model, "--file", file, "--output", output, "--batch_size", "1"]
    return words if ".txt" in file.name else [*words, "--text_column", "text"]


def read(file: Path) -> list:
    """What is in a file, in lines or rows."""
    if file.suffix == ".parquet":
        return pq.read_table(file).to_pylist()
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    if file.name.split(".")[1] in ("csv", "tsv"):
        return [*csv.reader(io.StringIO(content.decode(), newline=""), delimiter="\t" if ".tsv" in file.name else ",")]
    return content.decode().splitlines()


@pytest.fixture
def whole(succeed, model, tmp_path):
    """Answers a file of a kind, without disturbance."""

    def whole(kind: str) -> tuple[Path, Path]:
        file, output = write(tmp_path / f"texts.{kind}"), tmp_path / f"whole.{kind}"
        assert succeed("predict", *flags(model, file, output)) == ""
        return file, output

    return whole


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_answered_as_the_lines_of_a_text_are(whole, kind):
    file, output = whole(kind)
    assert not [other for other in file.parent.iterdir() if other not in (file, output)]
    rows = read(output)
    if kind.startswith("txt"):
        assert [row.split("\t")[2] for row in rows] == read(file)
        return
    if kind.startswith(("csv", "tsv")):
        assert rows[0] == ["id", "text", "predicted", "probability"] and [row[1] for row in rows[1:]] == TEXTS
        answers = [row[2:] for row in rows[1:]]
    else:
        rows = [row if isinstance(row, dict) else json.loads(row) for row in rows]
        assert [(row["id"], row["text"]) for row in rows] == [*enumerate(TEXTS)]
        assert rows[2]["tags"] == ["a", "b"]
        answers = [[row["predicted"] or "", f"{row['probability']:.4f}" if row["probability"] else ""] for row in rows]
    assert answers[5] == ["", ""] and re.fullmatch(r"0\.\d{4}", answers[6][1])
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet, "jsonl": lambda name: pd.read_json(name, lines=True)}
    if reader := readers.get(kind.removesuffix(".gz")):
        assert len(reader(output)) == NUMBER


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_command_is_gone_on_with_to_the_same_bytes(run, model, whole, kind, tmp_path, monkeypatch):
    """Wherever it was cut off; and where it was killed before Parquet was made."""
    file, output = whole(kind)
    expected, killed = output.read_bytes(), tmp_path / f"killed.{kind}"
    written, journal = killed, expected
    if kind == "parquet":
        written = tmp_path / ".killed.parquet.answers"
        monkeypatch.setattr(parquet_texts.ParquetTable, "write", interrupted)
        assert run("predict", *flags(model, file, killed))[0] == 130
        monkeypatch.undo()
        journal = written.read_bytes()
    size = len(journal)
    for length in (0, 5, 60, size // 3, size // 2, size - 1, size):
        killed.unlink(missing_ok=True)
        written.write_bytes(journal[:length])
        status, out, err = run("predict", *flags(model, file, killed), "--resume")
        assert (status, out) == (0, ""), err
        assert killed.read_bytes() == expected and (written == killed or not written.exists())
    assert run("predict", *flags(model, file, killed), "--resume")[:2] == (0, "")  # there is nothing left to do
    assert killed.read_bytes() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_shards_together_are_the_whole(succeed, model, whole, kind, tmp_path):
    """The blocks are whole windows; a shard may have none."""
    file, output = whole(kind)
    for number in (1, 2, 3, 5):
        for place in range(1, number + 1):
            succeed("predict", *flags(model, file, tmp_path / f"part.{kind}"), "--shard", f"{place}/{number}")
        shards = sorted(tmp_path.glob(f"part-*-of-0000{number}.{kind}"))
        assert [int(shard.name[5:10]) for shard in shards] == [*range(1, number + 1)]
        header = 1 if kind.startswith(("csv", "tsv")) else 0
        rows = [read(shard)[header:] for shard in shards]
        assert read(output)[header:] == [*itertools.chain.from_iterable(rows)]
        assert all(len(part) % WINDOW == 0 for part in rows[:-1])


def test_each_part_of_a_folder_has_its_answers(succeed, refused, model, tmp_path, monkeypatch):
    folder, output = tmp_path / "reviews", tmp_path / "answers"
    folder.mkdir()
    names = [f"part-{number}.{kind}" for number, kind in enumerate(["csv.gz", "parquet", "jsonl", "txt", "tsv.gz"])]
    for place, name in enumerate(names):
        write(folder / name, TEXTS[10 * place : 10 * place + 70])
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.crc").touch()
    words = ["--model", model, "--file", folder, "--output", output, "--text_column", "text", "--batch_size", "1"]
    succeed("predict", *words)
    assert sorted(file.name for file in output.iterdir()) == names
    for name in names:
        single = tmp_path / f"single-{name}"
        succeed("predict", *flags(model, folder / name, single))
        assert read(output / name) == read(single)
        assert (output / name).read_bytes() == single.read_bytes()
    assert "is there, and nothing is overwritten" in refused("predict", *words)
    expected = {name: (output / name).read_bytes() for name in names}
    (output / names[0]).write_bytes(expected[names[0]][:99])
    (output / names[1]).unlink()
    succeed("predict", *words, "--resume")
    assert {name: (output / name).read_bytes() for name in names} == expected
    shutil.rmtree(output)
    for place in (1, 2):
        succeed("predict", *words, "--shard", f"{place}/2")
    assert {name: (output / name).read_bytes() for name in names} == expected

    shutil.rmtree(output)
    open_texts = answering.open_texts
    opened = []

    def vanishing(part, *names):
        opened.append(part.file)
        if opened.count(str(folder / "part-2.jsonl")) == 2:
            Path(part.file).unlink(missing_ok=True)
        return open_texts(part, *names)

    monkeypatch.setattr(answering, "open_texts", vanishing)
    assert "part-2.jsonl: No such file" in refused("predict", *words)
    assert {file.name: file.read_bytes() for file in output.iterdir()} == {name: expected[name] for name in names[:2]}


def test_what_a_folder_has_no_answers_to_is_said(run, model, tmp_path):
    """Parts without rows have answers without rows; folders in it, and shards without a file, are named."""
    folder, output = tmp_path / "reviews", tmp_path / "answers"
    (folder / "day=1").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    kinds = ["csv", "tsv.gz", "parquet", "jsonl", "txt"]
    for kind in kinds:
        write(folder / f"part.{kind}", TEXTS[:0])
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), folder / "part.parquet")
    words = ["--model", model, "--file", folder, "--output", output, "--text_column", "text"]
    status, _, err = run("predict", *words)
    assert status == 0 and f"{folder}: not read: the folders in it: day=1\n" in err
    assert [len(read(output / f"part.{kind}")) for kind in kinds] == [1, 1, 0, 0, 0]
    assert read(output / "part.csv") == [["id", "text", "predicted", "probability"]]
    status, _, err = run("predict", *words, "--resume", "--shard", "6/7")
    assert status == 0 and "--shard: 5 files leave none for 6/7\n" in err


def test_translations_of_parquet(succeed, tmp_path):
    save(random_model(tiny_config()), tmp_path / "translator")
    file, output = write(tmp_path / "texts.parquet", TEXTS[:20]), tmp_path / "out.parquet"
    arguments = ["--file", file, "--text_column", "text", "--max_new_tokens", "2", "--output", output]
    succeed("translate", "--model", tmp_path / "translator", *arguments)
    assert pq.read_schema(output).names == ["id", "text", "tags", "translation"]
    assert pq.read_table(output)["text"].to_pylist() == TEXTS[:20]


def test_parquet_that_cannot_be_answered_is_one_line(refused, model, tmp_path):
    table = pa.table({"text": ["a"] * 9, "nested": [["a"]] * 9, "struct": [{"text": "a"}] * 9, "number": [1] * 9})
    pq.write_table(table, tmp_path / "t.parquet")
    words = ["--model", model, "--file", tmp_path / "t.parquet", "--output", tmp_path / "a.parquet", "--text_column"]
    for column, message in {
        "nowhere": "no column 'nowhere'; the columns are text, nested, struct, number",
        "nested": "the column 'nested' holds no texts but list<",
        "struct": "the column 'struct' holds no texts but struct<text",
        "number": "the column 'number' holds no texts but int64",
    }.items():
        assert message in refused("predict", *words, column)
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:20] + b"\xff" * 200 + whole[220:])
    assert "t.parquet: no Parquet that can be read" in refused("predict", *words, "text")
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_other_columns_are_not_mixed_into_one_table(run, refused, model, tmp_path, kind, monkeypatch):
    file, output = write(tmp_path / f"texts.{kind}"), tmp_path / f"answers.{kind}"
    monkeypatch.setattr(parquet_texts.ParquetTable, "write", interrupted)
    run("predict", *flags(model, file, output))
    written = output if kind == "csv" else tmp_path / ".answers.parquet.answers"
    before, words = written.read_bytes(), [*flags(model, file, output), "--resume"]
    # The settings of answers that are all there, as these to CSV, are not kept.
    refusal = "has other columns" if kind == "csv" else "was begun with other settings: all_probabilities was false"
    assert f"--resume: {output} {refusal}" in refused("predict", *words, "--all_probabilities")
    assert written.read_bytes() == before
    with answers.locked(written):
        assert f"error: {output}: another command writes there" in refused("predict", *words)


@pytest.mark.parametrize("kind", ["txt.gz", "csv", "parquet"])
def test_answers_made_with_other_settings_are_not_mixed(run, refused, model, whole, kind, tmp_path, monkeypatch):
    file, output = whole(kind)
    expected, killed, write_lines = output.read_bytes(), tmp_path / f"killed.{kind}", answering._write

    def interrupt_after(*arguments):
        write_lines(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(answering, "_write", interrupt_after)
    assert run("predict", *flags(model, file, killed))[0] == 130
    monkeypatch.undo()
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    words = [*flags(model, file, killed), "--resume"]
    assert "was begun with other settings: threshold was null" in refused("predict", *words, "--threshold", "0.9")
    (tmp_path / "elsewhere").mkdir()
    other = Path(shutil.copy(file, tmp_path / "elsewhere"))
    assert f'file was "{file}"' in refused("predict", *flags(model, other, killed), "--resume")
    assert left == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    words[words.index(file)] = Path(file.parent, ".", file.name)  # the same one
    assert run("predict", *words)[:2] == (0, "") and killed.read_bytes() == expected
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {file.name, output.name, killed.name}


def test_two_shards_do_not_write_into_one_file(succeed, refused, model, whole, tmp_path):
    file, _ = whole("txt")
    words = [*flags(model, file, tmp_path / "part.txt"), "--shard"]
    succeed("predict", *words, "1/2")
    before = (tmp_path / "part-00001-of-00002.txt").read_bytes()
    assert "nothing is overwritten" in refused("predict", *words, "1/2")
    succeed("predict", *words, "2/2")
    assert (tmp_path / "part-00001-of-00002.txt").read_bytes() == before


@pytest.mark.parametrize("kind", ["txt", "csv.gz", "parquet"])
def test_a_log_says_now_and_then_how_far_a_command_is(run, model, whole, kind, tmp_path, monkeypatch):
    file, _ = whole(kind)
    monkeypatch.setattr(answering, "SECONDS", 0.0)
    status, _, err = run("predict", *flags(model, file, tmp_path / f"again.{kind}"))
    said = re.findall(
        r"^vanilla-transformer predict: ([\d,]+) rows, [\d,]+ a second, \d\d:\d\d left$", err, re.MULTILINE
    )
    assert status == 0 and said == [str(min(NUMBER, WINDOW * window)) for window in range(1, 5)]


def test_other_columns_are_not_mixed_into_one_file_of_lines(run, refused, succeed, model, tmp_path):
    """Also of texts with tabs."""
    (tmp_path / "t.txt").write_text("가\t나\n다\n라 마\n")
    words = ["--model", model, "--file", tmp_path / "t.txt", "--output", tmp_path / "o.tsv"]
    succeed("predict", *words)
    whole = (tmp_path / "o.tsv").read_bytes()
    (tmp_path / "o.tsv").write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    assert "has other columns" in refused("predict", *words, "--resume", "--all_probabilities")
    succeed("predict", *words, "--resume")
    assert (tmp_path / "o.tsv").read_bytes() == whole


def test_a_table_without_a_column_and_without_a_model_names_both(refused, tmp_path):
    file = write(tmp_path / "texts.csv")
    assert "there is no folder" in refused("predict", "--model", tmp_path / "nowhere", "--file", file)
