"""Texts of any number, in lines and in tables: in a stream, and the same out with the answers added."""

import codecs
import csv
import gzip
import io
import json
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from shared import LINES
from transformers import pipeline

from hf_vanilla_transformer.commands import predict
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.inference.loaded import WINDOW


# With --batch_size 1, more than three windows; no two neighbours have the same length.
TEXTS = [f"{LINES[number * 7 % 16]} {number}" for number in range(3 * WINDOW + 9)]


@pytest.fixture
def classifier(tiny_models):
    return tiny_models["classification"]


@pytest.fixture
def texts(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return file


def test_windows_are_answered_in_the_order_of_the_texts(succeed, classifier, texts, tmp_path):
    out = succeed("predict", "--model", classifier, "--file", texts, "--batch_size", "1")
    assert [line.split("\t")[2] for line in out.splitlines()] == TEXTS
    assert len({line.split("\t")[1] for line in out.splitlines()}) > 10
    compressed = tmp_path / "texts.txt.gz"
    compressed.write_bytes(gzip.compress(texts.read_bytes()))
    assert succeed("predict", "--model", classifier, "--file", compressed, "--batch_size", "1") == out


def test_a_line_of_standard_input_that_cannot_be_read_is_named(run, classifier, texts):
    lines = texts.read_bytes().splitlines(keepends=True)
    lines[WINDOW + 3] = b"\xff\n"
    status, _, err = run("predict", "--model", classifier, stdin=b"".join(lines))
    assert status == 2 and f"standard input, line {WINDOW + 4}: not UTF-8" in err


ROW = '{"text": "%s", "label": 1}\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x\n" * 9999 + "가".encode("cp949"), "line 10000: not UTF-8 (invalid start byte): name the"),
        ("a.csv", b"text,n\n" + b"x,1\n" * 500 + b"x\n", "row 502: 1 columns instead of 2"),
        ("a.jsonl", (ROW % "x" * 300).encode() + b"{", "line 301: not JSON"),
        ("a.jsonl", b"\n \n", "a.jsonl: the file is empty"),
        ("no.txt", None, "no.txt"),
        ("a.csv", b"id,review\n1,x\n", "no column 'text'; the columns are id, review: name one by text_column"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_before_a_model_is_loaded(refused, here, name, content, message):
    if content is not None:
        (here / name).write_bytes(content)
    assert message in refused("predict", "--model", "user/nowhere", "--file", name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--file", "./texts.csv"], "the answers need the name 'predicted'"),
        (["--text_column", "text"], "--text_column: needs --file, a table"),
        (["--batch_size", "0"], "batch_size: a whole number, at least 1"),
        (["--file", "./int.jsonl", "--text_column", "text"], "line 2: not a JSON mapping with a text as 'text'"),
        (["--file", "./taken.jsonl", "--text_column", "text"], "need the name 'predicted'"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_one_line(run, classifier, texts, here, arguments, message):
    (here / "texts.csv").write_text("id,text,predicted\n1,가,나\n")
    (here / "int.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
    (here / "taken.jsonl").write_text('{"text": "a", "predicted": 1}\n')
    status, out, err = run("predict", "--model", classifier, *arguments, stdin="가\n")
    assert status == 2 and not out and message in err.splitlines()[-1]


# Cells that a file must quote, or that look as if.
CELLS = ["a\nb", "a\r\nb", "\n", 'a "b"', '"', 'a"\n"b', "a,b", "a\tb", "", "  a", "x\u2028y", "\ttab\nbreak"]


def rotated(columns: int, rows: int) -> list[list[str]]:
    """Every cell in every column, more than a window of rows."""
    return [[CELLS[(row + 5 * column) % len(CELLS)] for column in range(columns)] for row in range(rows)]


@pytest.mark.parametrize(
    ("ending", "delimiter", "encoding", "columns"),
    [("csv", ",", "utf-8", 1), ("csv", ",", "utf-8-sig", 3), ("csv", ",", "cp949", 3), ("tsv", "\t", "utf-8", 3)],
)
def test_a_table_comes_back_with_the_answers_added(
    succeed, classifier, tmp_path, ending, delimiter, encoding, columns
):
    # cp949 has no line separator, and a row of a file with tabs is a line.
    missing = {"cp949": "\u2028", "csv": "", "tsv": "\n\r\t"}
    spaces = str.maketrans(dict.fromkeys(missing[ending] + missing.get(encoding, ""), " "))
    table = [["te\nxt", 'no"te', "i,d\te"][:columns], *rotated(columns, 90)]
    header, *rows = [[cell.translate(spaces) for cell in row] for row in table]
    rows = [row for row in rows if row != [""]]  # an empty line
    file, output = tmp_path / f"texts.{ending}", tmp_path / f"answers.{ending}"
    with open(file, "w", encoding=encoding, newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows([header, *rows])
    arguments = ["--model", classifier, "--file", file, "--text_column", header[0], "--batch_size", "1"]
    out = succeed("predict", *arguments, *(["--encoding", "cp949"] if encoding == "cp949" else []))
    output.write_bytes(out.encode())
    back = encoding if encoding == "utf-8-sig" else "utf-8"
    assert output.read_bytes().startswith(codecs.BOM_UTF8) == (back == "utf-8-sig")
    with open(output, encoding=back, newline="") as opened:
        names, *answered = csv.reader(opened, delimiter=delimiter)
    assert names == [*header, "predicted", "probability"]
    assert [row[:columns] for row in answered] == rows
    by_pandas = pd.read_csv(output, sep=delimiter, encoding=back, dtype=str, keep_default_na=False)
    assert [*by_pandas.columns] == names and by_pandas.values.tolist() == answered
    labels = Classifier(str(classifier))(row[0] for row in rows)
    expected = [[one["label"], f"{one['score']:.4f}"] if one else ["", ""] for one in labels]
    assert [row[columns:] for row in answered] == expected and ["", ""] in expected


@pytest.mark.parametrize(
    "row",
    [
        '{"n": 0.12345678901234567890, "text": "나", "m": 1e999}',
        '{"text":"다","a":{"x":[1.0,1.00,null]}}',
        '  {"text": "\\uac00", "e": "\\ud83d\\ude00 \\/"  }  ',
        '{"a": NaN, "a": -Infinity, "text": ""}',
        '\t{"text": null, "u": "caf\u00e9\u2028"}',
    ],
)
def test_the_other_columns_of_json_come_back_as_they_were_written(succeed, classifier, tmp_path, row):
    file = tmp_path / "texts.jsonl"
    file.write_text(f"{row}\r\n{row}", encoding="utf-8")
    out = succeed("predict", "--model", classifier, "--file", file)
    (one,) = Classifier(str(classifier))([json.loads(row)["text"]])
    label, score = (one["label"], pytest.approx(one["score"], abs=5e-5)) if one else (None, None)
    for line in out.split("\n")[:-1]:
        begin, answered = row.strip().removesuffix("}").rstrip(), json.loads(line)
        assert line.startswith(f'{begin}, "predicted": ')
        assert answered.keys() == {*json.loads(row), "predicted", "probability"}
        assert (answered["predicted"], answered["probability"]) == (label, score)


@pytest.mark.parametrize(
    ("is_console", "encoding", "last"), [(False, "utf-8", "둘 😀"), (True, "cp949", "둘 \\U0001f600")]
)
def test_answers_for_a_file_are_utf_8_with_line_feeds(classifier, monkeypatch, is_console, encoding, last):
    """Where Python's standard output is cp949 with CRLF: Korean Windows. A console keeps its encoding."""
    buffer = io.BytesIO()
    monkeypatch.setattr(buffer, "isatty", lambda: is_console, raising=False)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, "cp949", newline="\r\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("하나\n둘 😀\n".encode())))
    predict.main(["--model", str(classifier)])
    lines = buffer.getvalue().decode(encoding).split("\n")
    assert [line.split("\t")[2:] for line in lines] == [["하나"], [last], []]


def test_at_a_terminal_each_line_is_answered_as_it_is_typed(classifier, monkeypatch, capsys):
    typed, answered = iter(["하나\n", "둘\n", "\n"]), []

    class Terminal(io.RawIOBase):
        def readable(self):
            return True

        def read(self, size):
            answered.append(capsys.readouterr().out)
            return next(typed, "").encode()

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Terminal(), isatty=lambda: True))
    predict.main(["--model", str(classifier)])
    assert [out.split("\t")[2:] for out in answered] == [[], ["하나\n"], ["둘\n"], ["\n"]]


REVIEWS = ["정말 재미있고 감동적인 영화", "", "지루하고 유치했다", "​", "최고 " * 400, "그저 그런 영화"]


def test_answers_are_those_of_transformers(succeed, trained):
    out = succeed("predict", "--model", trained, "--batch_size", 4, stdin="\n".join(REVIEWS) + "\n")
    answers = [line.split("\t") for line in out.split("\n")[:-1]]
    assert [text for _, _, text in answers] == REVIEWS
    classify = pipeline("text-classification", model=str(trained))
    assert answers.pop(1) == ["", "", ""]
    for label, probability, text in answers:
        assert label in ("negative", "positive")
        assert 0.5 <= float(probability) <= 1
        expected = classify(text, truncation=True)[0]
        assert (label, float(probability)) == (expected["label"], pytest.approx(expected["score"], abs=1e-4))


def test_answers_in_half_precision_are_nearly_the_same(succeed, trained):
    answers = []
    for dtype in ("float32", "bfloat16"):
        out = succeed("predict", "--model", trained, "--dtype", dtype, stdin="\n".join(REVIEWS))
        answers.append([line.split("\t")[:2] for line in out.splitlines() if line.strip()])
    for (label, probability), (nearly_label, nearly) in zip(*answers, strict=True):
        assert label == nearly_label and float(nearly) == pytest.approx(float(probability), abs=0.02)
    assert answers[0] != answers[1]


def test_standard_input_may_be_empty_or_have_a_byte_order_mark(succeed, trained):
    assert succeed("predict", "--model", trained, stdin="") == ""
    out = succeed("predict", "--model", trained, stdin="\ufeff재미있다".encode())
    assert out.split("\t")[2] == "재미있다\n"


def test_ranked_labels_are_columns(succeed, refused, trained, here):
    flags = ["--model", trained, "--top_k", "2"]
    ranked = succeed("predict", *flags, stdin="\n".join(REVIEWS)).splitlines()
    answers = succeed("predict", "--model", trained, stdin="\n".join(REVIEWS)).splitlines()
    for line, answer in zip(ranked, answers, strict=True):
        label, probability, other, rest, text = line.split("\t")
        assert [label, probability, text] == answer.split("\t")
        if label:
            assert {label, other} == {"negative", "positive"}
            assert float(probability) + float(rest) == pytest.approx(1, abs=2e-4)
    (here / "a.csv").write_text("text\n\n가\n")
    header = succeed("predict", *flags, "--file", "a.csv").splitlines()[0]
    assert header == "text,predicted,probability,predicted 2,probability 2"
    said = refused("predict", *flags, "--threshold", "0.9")
    assert "--threshold" in said and "--top_k" in said
    assert "top_k: a whole number" in refused("predict", "--model", trained, "--top_k", "-1")
