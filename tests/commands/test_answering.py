"""Texts of any number, one per line: streamed, resumed, interrupted, typed."""

import codecs
import csv
import functools
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from exports.models import random_model, save
from shared import tiny_config
from tqdm import tqdm

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands import answering, answers, predict
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.inference.loaded import WINDOW
from hf_vanilla_transformer.tokenizer import train_tokenizer


# With --batch_size 1, more than three windows; no two neighbours have the same length.
TEXTS = ["가 나 다 라 마"[: 2 * (number * 7 % 5) + 1] + f" {number}" for number in range(3 * WINDOW + 9)]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A classifier's folder, with random weights."""
    folder = tmp_path_factory.mktemp("classifier")
    tokenizer = train_tokenizer(TEXTS, vocab_size=60)
    tokenizer.save_pretrained(folder)
    config = tiny_config(vocab_size=len(tokenizer))
    VanillaTransformerForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture
def texts(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return file


def test_windows_are_answered_in_the_order_of_the_texts(run, succeed, classifier, texts, tmp_path):
    out = succeed("predict", "--model", classifier, "--file", texts, "--batch_size", "1")
    assert [line.split("\t")[2] for line in out.splitlines()] == TEXTS
    assert len({line.split("\t")[1] for line in out.splitlines()}) > 10
    (tmp_path / "texts.txt.gz").write_bytes(gzip.compress(texts.read_bytes()))
    for file, resume in ((texts, []), (tmp_path / "texts.txt.gz", ["--resume"])):
        output = tmp_path / f"{file.name}.tsv"  # not there, also if it is resumed
        arguments = ["--model", classifier, "--file", file, "--batch_size", "1", "--output", output, *resume]
        assert run("predict", *arguments)[:2] == (0, "")
        assert output.read_bytes() == out.encode()


@pytest.mark.parametrize("encoding", ["cp949", "utf-16"])
def test_lines_are_read_in_their_encoding(run, succeed, classifier, tmp_path, encoding):
    file, lines = tmp_path / "texts.txt", ["가 나 다", "", "나 다 라"] * 30
    file.write_text("".join(f"{line}\n" for line in lines), encoding=encoding)
    arguments = ["predict", "--model", classifier, "--file", file, "--batch_size", "1"]
    out = succeed(*arguments, "--encoding", encoding)
    assert [line.split("\t")[2] for line in out.splitlines()] == lines
    for place in ("1/2", "2/2"):
        succeed(*arguments, "--encoding", encoding, "--output", tmp_path / "part.tsv", "--shard", place)
    shards = sorted(tmp_path.glob("part-*.tsv"))
    assert len(shards) == 2 and "".join(shard.read_text(encoding="utf-8") for shard in shards) == out
    assert f"give the encoding {encoding}" in run(*arguments)[2]


@pytest.mark.parametrize(
    ("kept", "half"),
    [(0, b""), (0, b"LABEL"), (WINDOW, "LABEL_0\t0.9\t가".encode()[:-1]), (2 * WINDOW + 5, b""), (len(TEXTS), b"L")],
)
def test_resuming_goes_on_after_the_last_whole_line(run, classifier, texts, tmp_path, kept, half):
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1"]
    _, out, _ = run("predict", *arguments)
    output = tmp_path / "answers.tsv"
    output.write_bytes("".join(out.splitlines(keepends=True)[:kept]).encode() + half)
    resumed = ["predict", *arguments, "--output", output, "--resume"]
    for finished in (False, True):
        code, printed, said = run(*resumed)
        assert (code, printed, "had their answers already" in said) == (0, "", finished or kept == len(TEXTS))
        assert output.read_bytes() == out.encode()


def test_windows_before_a_fault_are_answered(succeed, refused, classifier, texts, tmp_path):
    whole, output = texts.read_bytes(), tmp_path / "answers.tsv"
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1", "--output", output]
    rows = whole.splitlines(keepends=True)
    rows[WINDOW + 3] = b"\xff\n"
    texts.write_bytes(b"".join(rows))
    said = refused("predict", *arguments)
    assert f"texts.txt, line {WINDOW + 4}: byte 1 is not UTF-8" in said
    assert f"the answers to {WINDOW} texts are kept: once the file is whole, --resume goes on" in said
    assert len(output.read_text().splitlines()) == WINDOW
    texts.write_bytes(whole)
    succeed("predict", *arguments, "--resume")
    assert [line.split("\t")[2] for line in output.read_text().splitlines()] == TEXTS


def test_the_folder_of_the_answers_is_made(succeed, classifier, texts, here):
    succeed("predict", "--model", classifier, "--file", texts, "--output", "./new/folder/answers.tsv")
    assert len((here / "new" / "folder" / "answers.tsv").read_text().splitlines()) == len(TEXTS)


def test_texts_are_numbered_from_the_first_after_resuming(succeed, texts, tmp_path, caplog):
    save(random_model(tiny_config()), tmp_path / "translator")
    (tmp_path / "long.txt").write_text("가\n" * (WINDOW + 1) + "가 " * 40 + "\n가\n")
    (tmp_path / "out.txt").write_text("\n" * WINDOW)
    arguments = ["--file", tmp_path / "long.txt", "--output", tmp_path / "out.txt", "--max_new_tokens", "2"]
    arguments += ["--batch_size", "1"]
    succeed("translate", "--model", tmp_path / "translator", *arguments, "--resume")
    assert re.search(rf"text {WINDOW + 2} has \d+ tokens or more, the model reads 16; cut: 1 of 3 texts", caplog.text)
    assert len((tmp_path / "out.txt").read_text().splitlines()) == WINDOW + 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "--resume: needs --output"),
        (["--output", "./there.tsv"], "--output: ./there.tsv is there, and nothing is overwritten"),
        (["--output", "./texts.txt/answers.tsv"], "texts.txt: File exists"),
        (["--output", "."], "Is a directory"),
        (["--file", "./texts.txt", "--output", "./texts.txt", "--resume"], "is --file itself"),
        (["--file", "./texts.txt", "--output", "./there.tsv", "--resume"], "there.tsv has 999 lines, but there are"),
        (["--file", "."], "--file: needs --output, a folder"),
        (["--file", "./no.txt"], "./no.txt: No such file"),
        (["--file", "./texts.csv"], "texts.csv is a table: name the column with the texts by --text_column"),
        (["--file", "./texts.csv", "--text_column", "document"], "no column 'document'; the columns are id, text"),
        (["--file", "./texts.csv", "--text_column", "text"], "the answers need the name 'predicted'"),
        (["--file", "./texts.txt", "--output", "./a.txt", "--shard", "0/0"], "--shard: from 1/N to N/N, not 0/0"),
        (["--file", "./texts.txt", "--output", "./a.txt", "--shard", "5/4"], "--shard: from 1/N to N/N, not 5/4"),
        (["--output", "./a.txt", "--shard", "1/4"], "--shard: needs --file"),
        (["--file", "./texts.txt", "--shard", "1/4"], "--shard: needs --output"),
        (
            ["--file", "./texts.txt", "--output", "./a.parquet"],
            "are written as .tsv or .txt, not to ./a.parquet",
        ),
        (["--output", "./a.csv.gz"], "answers to lines are written as .tsv or .txt, not to ./a.csv.gz"),
        (["--file", "./texts.csv", "--text_column", "text", "--output", "./a.jsonl"], "are written as .csv, not to"),
        (
            ["--file", "./t.parquet", "--text_column", "text"],
            "as .parquet, not to standard output",
        ),
        (["--file", "./texts.txt", "--output", "./a.csv.zst"], "must not end in .zst"),
        (["--file", "./texts.parquet.gz"], "texts.parquet.gz is no text"),
        (["--file", "./texts.csv.gz.gz"], "texts.csv.gz.gz is no text"),
        (["--text_column", "text"], "--text_column: needs --file, a table"),
        (["--file", "./broken.gz"], "broken.gz: "),
        (["--batch_size", "0"], "--batch_size: at least 1"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_one_line(refused, classifier, texts, here, arguments, message):
    (here / "there.tsv").write_text("positive\t0.9\ta\n" * 999)
    (here / "texts.csv").write_text("id,text,predicted\n1,가,나\n")
    (here / "broken.gz").write_bytes(gzip.compress(texts.read_bytes())[:-20])
    before = texts.read_bytes(), (here / "there.tsv").read_bytes()
    assert message in refused("predict", "--model", classifier, *arguments)
    assert before == (texts.read_bytes(), (here / "there.tsv").read_bytes())


# Cells that a file must quote, or that look as if.
CELLS = [
    *(
        "a\nb",
        "a\rb",
        "a\r\nb",
        "a\n\nb",
        "\n",
        'a "b"',
        '"',
        '"a"',
        'a"\n"b',
        "a,b",
        "a\tb",
        "",
        "  a",
        "a  ",
        "'",
        "#",
        "x\u2028y",
    ),
    "\ttab\nbreak",
]


def rotated(columns: int, rows: int) -> list[list[str]]:
    """Every cell in every column, more than a window of rows."""
    return [[CELLS[(row + 5 * column) % len(CELLS)] for column in range(columns)] for row in range(rows)]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    ("ending", "delimiter", "encoding"),
    [("csv", ",", "utf-8"), ("csv", ",", "utf-8-sig"), ("csv", ",", "cp949"), ("tsv", "\t", "utf-8")],
)
def test_a_table_comes_back_with_the_answers_added(
    succeed, classifier, tmp_path, ending, delimiter, encoding, columns
):
    header = ["te\nxt", 'no"te', "i,d\te"][:columns]
    rows = [
        [cell.replace("\u2028", " ") for cell in row] if encoding == "cp949" else row for row in rotated(columns, 90)
    ]
    rows = [row for row in rows if row != [""]]  # an empty line
    file, output = tmp_path / f"texts.{ending}", tmp_path / f"answers.{ending}"
    with open(file, "w", encoding=encoding, newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows([header, *rows])
    model = shutil.copytree(classifier, tmp_path / "model")
    (model / "recipe.yaml").write_text(yaml.safe_dump({"text_column": header[0]}))
    arguments = ["--file", file, "--batch_size", "1", "--output", output]
    succeed("predict", "--model", model, *arguments, *(["--encoding", "cp949"] if encoding == "cp949" else []))
    back = encoding if encoding == "utf-8-sig" else "utf-8"
    assert output.read_bytes().startswith(codecs.BOM_UTF8) == (back == "utf-8-sig")
    with open(output, encoding=back, newline="") as opened:
        names, *answered = csv.reader(opened, delimiter=delimiter)
    assert names == [*header, "predicted", "probability"]
    assert [row[:columns] for row in answered] == rows
    by_pandas = pd.read_csv(output, sep=delimiter, encoding=back, dtype=str, keep_default_na=False)
    assert [*by_pandas.columns] == names and by_pandas.values.tolist() == answered
    labels = Classifier(str(classifier))(row[0] for row in rows)
    expected = [[one["label"], f"{one['score']:.4f}"] for one in labels]
    expected = [each if row[0].strip() else ["", ""] for row, each in zip(rows, expected, strict=True)]
    assert [row[columns:] for row in answered] == expected and ["", ""] in expected


def test_a_table_of_translations_comes_back(succeed, tmp_path):
    save(random_model(tiny_config()), tmp_path / "translator")
    with open(tmp_path / "texts.csv", "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([["id", "text"], *(row for row in rotated(2, 20))])
    arguments = ["--file", tmp_path / "texts.csv", "--text_column", "text", "--max_new_tokens", "2"]
    succeed("translate", "--model", tmp_path / "translator", *arguments, "--output", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as opened:
        names, *answered = csv.reader(opened)
    assert names == ["id", "text", "translation"] and [row[:2] for row in answered] == rotated(2, 20)


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_json_keeps_its_columns_and_types(succeed, classifier, tmp_path, ending):
    rows = [
        {"id": number, "nested": {"text": cell}, "score": 0.5, "tags": ["a", None], "ok": True}
        for number, cell in enumerate([*CELLS, "😀"] * 5)
    ]
    file = tmp_path / f"texts.{ending}"
    text = json.dumps(rows, indent=1) if ending == "json" else "".join(f"{json.dumps(row)}\n" for row in rows)
    file.write_text(text, encoding="utf-8")
    out = succeed("predict", "--model", classifier, "--file", file, "--text_column", "nested.text")
    answered = [json.loads(line) for line in out.split("\n")[:-1]]
    assert [{name: row[name] for name in rows[0]} for row in answered] == rows
    for row, one in zip(answered, Classifier(str(classifier))(row["nested"]["text"] for row in rows), strict=True):
        if row["nested"]["text"].strip():
            assert (row["predicted"], row["probability"]) == (one["label"], pytest.approx(one["score"], abs=5e-5))
        else:
            assert (row["predicted"], row["probability"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1", "t.parquet: no Parquet that can be read"),
        ("t.xlsx", b"PK", "is no text: take"),
        ("t.csv.gz", gzip.compress(b"text\n" + b"a\n" * 99, mtime=0)[:-9], "t.csv.gz: Compressed file ended"),
        ("t.jsonl", b'{"text": "a"}\n{"text": 1}\n', "'text' holds no texts but 1"),
        ("t.jsonl", b'{"text": "a"}\n[1]\n', "line 2: [1] is no mapping"),
        ("t.jsonl", b'{"text": "a"}\n{"text"', "line 2: no JSON"),
        ("t.jsonl", b'{"text": "a", "predicted": 1}\n', "need the name 'predicted'"),
        ("t.jsonl", b'{"other": "a"}\n', "no column 'text'; the columns are other"),
        ("t.csv", b"\n", "the file ends here"),
        ("t.csv.gz", b"text\n", "t.csv.gz: Not a gzipped file"),
    ],
)
def test_a_table_that_cannot_be_answered_leaves_no_empty_output(refused, classifier, here, name, content, message):
    (here / name).write_bytes(content)
    output = here / f"answers.{name.split('.')[1]}"
    arguments = ["--file", name, "--output", output, *([] if "is no text" in message else ["--text_column", "text"])]
    assert message in refused("predict", "--model", classifier, *arguments)
    assert not output.exists() or output.stat().st_size


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_two_commands_do_not_write_into_one_file(refused, classifier, texts, tmp_path, resume):
    output = tmp_path / "answers.tsv"
    with answers.locked(output):
        assert "another command writes there" in refused(
            "predict", "--model", classifier, "--file", texts, "--output", output, *resume
        )
    assert not output.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["texts.txt"]


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_file_of_two_names_is_one_file(refused, succeed, classifier, texts, tmp_path, kind):
    output, other = tmp_path / "answers.tsv", tmp_path / "elsewhere" / "other.tsv"
    other.parent.mkdir()
    if kind != "dangling":
        output.write_text("half a li")
    os.link(output, other) if kind == "hard" else other.symlink_to(output)
    arguments = ["--model", classifier, "--file", texts, "--resume", "--output"]
    for first, second in ((output, other), (other, output)):
        with answers.open_answers(str(first), resume=True) as (file, _):
            print("x", file=file, flush=True)
            assert "another command writes there" in refused("predict", *arguments, second)
        assert output.read_text() == "x\n" * (1 if first is output else 2)
    output.write_text("half a li")
    succeed("predict", *arguments, other)
    assert len(output.read_text().splitlines()) == len(TEXTS) and other.samefile(output)
    assert {file.name for file in tmp_path.rglob("*")} == {"texts.txt", output.name, "elsewhere", other.name}


def test_answers_that_standard_output_cannot_hold_are_escaped(classifier, monkeypatch, caplog):
    """cp949 has no emoji; the line is named."""
    for encoding, isatty, text, expected in (
        ("cp949", False, "둘 😀", "둘 \\U0001f600"),
        ("utf-8", True, "둘 \x1b[2J", "둘 \\x1b[2J"),
        ("utf-8", False, "둘 \x1b[2J", "둘 \x1b[2J"),
    ):
        buffer = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", output := io.TextIOWrapper(buffer, encoding))
            patch.setattr(output, "isatty", lambda isatty=isatty: isatty, raising=False)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"하나\n{text}\n".encode())))
            predict.main(["--model", str(classifier)])
        assert [line.split("\t")[2] for line in buffer.getvalue().decode(encoding).splitlines()] == ["하나", expected]
    assert [record.getMessage() for record in caplog.records] == [
        "line 2: no text in cp949, written with escapes; --output FILE writes UTF-8"
    ]


@pytest.mark.parametrize(("name", "remedy"), [("stdin", "--file"), ("stdout", "--output")])
def test_a_closed_stream_is_told(classifier, monkeypatch, capsys, name, remedy):
    """As with `<&-`."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("하나\n".encode())))
    monkeypatch.setattr(sys, name, None)
    with pytest.raises(SystemExit) as stop:
        predict.main(["--model", str(classifier)])
    assert stop.value.code == 2 and f" is closed: give {remedy}\n" in capsys.readouterr().err


def test_at_a_terminal_each_line_is_answered_as_it_is_typed(classifier, monkeypatch, capsys):
    answered = []

    def typed(prompt):
        answered.append(capsys.readouterr().out)
        return ["하나", "둘", ""][len(answered) - 1]

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", typed)
    predict.main(["--model", str(classifier)])
    assert [out.split("\t")[2:] for out in answered] == [[], ["하나\n"], ["둘\n"]]


def test_the_bar_shows_the_share_of_the_file_that_is_answered(succeed, classifier, texts, tmp_path, monkeypatch):
    bars = []

    class Noting(tqdm):
        def __init__(self, **options):
            super().__init__(**{**options, "disable": False})
            bars.append((self.total, [self.n]))

        def update(self, n):
            super().update(n)
            bars[-1][1].append(self.n)

    monkeypatch.setattr(answering, "tqdm", Noting)
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1", "--output", tmp_path / "answers.tsv"]
    succeed("predict", *arguments)
    (total, shown) = bars.pop()
    ends = [sum(len(f"{text}\n".encode()) for text in TEXTS[:number]) for number in range(0, len(TEXTS), WINDOW)]
    assert shown == [*ends, total] and total == texts.stat().st_size

    written = (tmp_path / "answers.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "answers.tsv").write_text("".join(written[:WINDOW]))
    succeed("predict", *arguments, "--resume")
    assert bars.pop() == (total, shown[1:])  # time left is that of the rest


@pytest.mark.slow
def test_an_interrupted_command_leaves_whole_lines_and_goes_on(classifier, tmp_path):
    (tmp_path / "many.txt").write_text("".join(f"가 나 {number}\n" for number in range(200_000)), encoding="utf-8")
    output = tmp_path / "answers.tsv"
    command = [sys.executable, "-m", "hf_vanilla_transformer", "predict", "--model", classifier]
    command += ["--file", tmp_path / "many.txt", "--output", output, "--resume"]
    # A shell has its background jobs, and all that they start, ignore Ctrl-C.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
    while not output.exists() or not output.stat().st_size:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate()
    written = output.read_text()
    assert process.returncode == 130 and written.endswith("\n")
    number = len(written.splitlines())
    assert number < 200_000 and err.splitlines()[-1] == f"interrupted after {number:,} texts; --resume goes on"
