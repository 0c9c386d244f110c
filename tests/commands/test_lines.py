"""Texts of any number, one per line: streamed, resumed, interrupted, typed."""

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

import pytest
from export.models import random_model, save
from shared import tiny_config
from tqdm import tqdm

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands import lines, predict
from hf_vanilla_transformer.inference import WINDOW
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


@pytest.mark.parametrize(
    ("kept", "half"),
    [(0, b""), (0, b"LABEL"), (WINDOW, "LABEL_0\t0.9\t가".encode()[:-1]), (2 * WINDOW + 5, b""), (len(TEXTS), b"L")],
)
def test_resuming_goes_on_after_the_last_whole_line(run, classifier, texts, tmp_path, kept, half):
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1"]
    _, out, _ = run("predict", *arguments)
    output = tmp_path / "answers.tsv"
    output.write_bytes("".join(out.splitlines(keepends=True)[:kept]).encode() + half)
    assert run("predict", *arguments, "--output", output, "--resume")[:2] == (0, "")
    assert output.read_bytes() == out.encode()


def test_windows_before_a_fault_are_answered(succeed, refused, classifier, texts, tmp_path):
    whole, output = texts.read_bytes(), tmp_path / "answers.tsv"
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1", "--output", output]
    rows = whole.splitlines(keepends=True)
    rows[WINDOW + 3] = b"\xff\n"
    texts.write_bytes(b"".join(rows))
    assert f"texts.txt, line {WINDOW + 4}: byte 1 is not UTF-8" in refused("predict", *arguments)
    assert len(output.read_text().splitlines()) == WINDOW
    texts.write_bytes(whole)
    succeed("predict", *arguments, "--resume")
    assert [line.split("\t")[2] for line in output.read_text().splitlines()] == TEXTS


def test_texts_are_numbered_from_the_first_after_resuming(succeed, texts, tmp_path, caplog):
    save(random_model(tiny_config()), tmp_path / "translator")
    (tmp_path / "long.txt").write_text("가\n나\n다\n" + "가 " * 40 + "\n가\n")
    (tmp_path / "out.txt").write_text("\n\n")
    arguments = ["--file", tmp_path / "long.txt", "--output", tmp_path / "out.txt", "--max_new_tokens", "2"]
    succeed("translate", "--model", tmp_path / "translator", *arguments, "--resume")
    assert re.search(r"text 4 has \d+ tokens, the model reads 16; cut: 1 of 3 texts", caplog.text)
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "--resume: needs --output"),
        (["--output", "./there.tsv"], "--output: ./there.tsv is there, and nothing is overwritten"),
        (["--output", "./nowhere/answers.tsv"], "./nowhere/answers.tsv: No such file"),
        (["--output", "."], "Is a directory"),
        (["--file", "./texts.txt", "--output", "./texts.txt", "--resume"], "is --file itself"),
        (["--file", "./texts.txt", "--output", "./there.tsv", "--resume"], "there.tsv has 999 lines, but there are"),
        (["--file", "."], "Is a directory"),
        (["--file", "./no.txt"], "./no.txt: No such file"),
        (["--file", "./texts.csv"], "texts.csv is a table: name the column with the texts by --text_column"),
        (["--file", "./texts.csv", "--text_column", "document"], "no column 'document'; the columns are id, text"),
        (["--file", "./texts.csv", "--text_column", "text"], "the answers need the name 'predicted'"),
        (["--file", "./texts.csv", "--resume", "--output", "./a.csv"], "--resume: is for texts that come one per"),
        (["--text_column", "text"], "--text_column: needs --file, a table"),
        (["--file", "./broken.gz"], "broken.gz: "),
        (["--batch_size", "0"], "--batch_size: at least 1"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_one_line(refused, classifier, texts, here, arguments, message):
    (here / "there.tsv").write_text("a\n" * 999)
    (here / "texts.csv").write_text("id,text,predicted\n1,가,나\n")
    (here / "broken.gz").write_bytes(gzip.compress(texts.read_bytes())[:-20])
    before = texts.read_bytes(), (here / "there.tsv").read_bytes()
    assert message in refused("predict", "--model", classifier, *arguments)
    assert before == (texts.read_bytes(), (here / "there.tsv").read_bytes())


TABLE = [["1", "하나,\n둘", 'a "b"'], ["2", "", ""], *([str(number), f"셋 {number}", "c"] for number in range(3, 80))]


@pytest.mark.parametrize(("ending", "delimiter", "encoding"), [("csv", ",", "cp949"), ("tsv", "\t", "utf-8")])
def test_a_table_is_written_with_the_answers_added(run, succeed, classifier, tmp_path, ending, delimiter, encoding):
    """More than a window of rows; the column is that of the model's recipe, or given."""
    rows = TABLE if ending == "csv" else [[cell.replace("\n", " ") for cell in row] for row in TABLE]
    file, output = tmp_path / f"texts.{ending}", tmp_path / f"answers.{ending}"
    with open(file, "w", encoding=encoding, newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows([["id", "text", "note"], *rows])
    model = shutil.copytree(classifier, tmp_path / "model")
    (model / "recipe.yaml").write_text("text_column: text\n")
    arguments = ["--file", file, "--encoding", encoding, "--batch_size", "1", "--output", output]
    succeed("predict", "--model", model, *arguments)
    with open(output, encoding="utf-8", newline="") as opened:
        header, *answered = csv.reader(opened, delimiter=delimiter)
    assert header == ["id", "text", "note", "predicted", "probability"] and [row[:3] for row in answered] == rows
    _, out, _ = run("predict", "--model", classifier, stdin="".join(" ".join(row[1].split()) + "\n" for row in rows))
    assert [row[3:] for row in answered] == [line.split("\t")[:2] for line in out.splitlines()]

    (tmp_path / "texts.jsonl").write_text("".join(f'{{"text": "{row[1]}"}}\n' for row in rows[2:]))
    arguments = ["--file", tmp_path / "texts.jsonl", "--text_column", "text"]
    _, out, _ = run("predict", "--model", classifier, *arguments)
    expected = [dict(zip(header[1:2] + header[3:], [row[1], *row[3:]], strict=True)) for row in answered[2:]]
    assert [json.loads(line) for line in out.splitlines()] == expected


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

    monkeypatch.setattr(lines, "tqdm", Noting)
    arguments = ["--model", classifier, "--file", texts, "--batch_size", "1", "--output", tmp_path / "answers.tsv"]
    succeed("predict", *arguments)
    (total, shown) = bars.pop()
    ends = [sum(len(f"{text}\n".encode()) for text in TEXTS[:number]) for number in range(0, len(TEXTS), WINDOW)]
    assert shown == [*ends, total] and total == texts.stat().st_size

    answers = (tmp_path / "answers.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "answers.tsv").write_text("".join(answers[:WINDOW]))
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
