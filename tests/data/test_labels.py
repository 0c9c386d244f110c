"""Labels: one of several, any number of several, numbers; and which kind is asked for."""

import unicodedata

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value

from data.files import data_error, write_table
from hf_vanilla_transformer.data.labelled_text import tokenize
from hf_vanilla_transformer.data.labels import MULTI, REGRESSION, SINGLE, label_names, problem_type_of
from hf_vanilla_transformer.data.tokenizer import train_tokenizer


def table(path, labels):
    return write_table(path, [{"document": f"감상 {number}", "label": label} for number, label in enumerate(labels)])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json"])
def test_several_labels_a_text(load, tmp_path, suffix):
    sets = [["b"], [], ["b", "a"], ["c", "a"]] * 5
    labels = sets if suffix == ".json" else [" | ".join(labels) for labels in sets]
    loaded = load(table(tmp_path / f"t{suffix}", labels), problem_type=MULTI)
    split = loaded["train"]
    assert split.features == {"text": Value("string"), "label": List(ClassLabel(names=["a", "b", "c"]))}
    assert (problem_type_of(split), label_names(split)) == (MULTI, ["a", "b", "c"])
    rows = [row for part in loaded.values() for row in part]
    names = {row["text"]: [label_names(split)[label] for label in row["label"]] for row in rows}
    assert names == {f"감상 {number}": sorted(labels) for number, labels in enumerate(sets)}
    tokens = tokenize(loaded, train_tokenizer(["감상"], vocab_size=29))["train"]
    assert tokens.features["labels"].feature == Value("float64")
    assert tokens["labels"][:] == [[float(label in row) for label in range(3)] for row in split["label"][:]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_numbers(load, tmp_path, suffix):
    numbers = [0.5, 1, -2.25, 1e3] * 5
    loaded = load(table(tmp_path / f"t{suffix}", numbers), problem_type=REGRESSION)
    assert (problem_type_of(loaded["train"]), label_names(loaded["train"])) == (REGRESSION, [])
    assert sorted(label for part in loaded.values() for label in part["label"]) == sorted(numbers)
    tokens = tokenize(loaded["test"], train_tokenizer(["감상"], vocab_size=29))
    assert tokens["labels"][:] == loaded["test"]["label"][:]


@pytest.mark.parametrize(
    ("labels", "problem_type", "parts"),
    [
        ([1.5, 2.5, 1.5], SINGLE, ["neither integers nor strings", REGRESSION]),
        ([["a"], ["b"], ["a"]], SINGLE, ["neither integers nor strings", MULTI]),
        ([1.5, 2.5, 3.5], MULTI, ["no lists of labels"]),
        ([[1.0, 0.0], [0.0, 1.0]], MULTI, ["no lists of labels, each with its name"]),
        (["1", "nan", "3"], REGRESSION, ["1 of 3 rows have no number in the column label"]),
        ([1.5], REGRESSION, ["cannot be cut from train, where there is one row alone"]),
        (["a", "b"], "ranking", ["problem_type must be one of"]),
        ([[1, 0, 1], [0, 1, 0]], MULTI, ["vectors of 0 and 1"]),
        (["1|0|1", "0|1|0"], MULTI, ["vectors of 0 and 1"]),
        (["[0, 1, 0]", "['a', 'b']"], MULTI, ["lists as text"]),
        (["(1, 0, 1)", "(0, 1, 0)"], MULTI, ["vectors of 0 and 1"]),
        (["1.0|0.0|1.0", "0.0|1.0|0.0"], MULTI, ["vectors of 0 and 1"]),
        (["true|false", "false|true"], MULTI, ["vectors of 0 and 1"]),
        (["('a',)", "('a', 'b')"], MULTI, ["lists as text"]),
        (["[0, 1, 0]", "[1, 0, 0]"], SINGLE, ["lists as text: for multi_label_classification"]),
        (["1|0|1", "0|1|0"], SINGLE, ["vectors of 0 and 1"]),
        (["['a']", "[]", "['a' 'b']"], SINGLE, ["lists as text"]),
        (["a|b", "b|a"], MULTI, ["each text has all labels"]),
        ([["a", "b", "a"], ["b"]], MULTI, ["has a label twice: a, b, a"]),
    ],
)
def test_labels_of_another_kind_are_refused(load, tmp_path, labels, problem_type, parts):
    with data_error(*parts):
        load(table(tmp_path / "t.json", labels), problem_type=problem_type)


@pytest.mark.parametrize("labels", [["[0, 10)", "[10, 20)"], ["[NEG]", "[POS]"], [True, False], ["1.0", "0.0"]])
def test_names_that_resemble_lists_and_vectors_are_names(load, tmp_path, labels):
    assert {*label_names(load(table(tmp_path / "t.csv", labels * 4))["train"])} == {*map(str, labels)}


@pytest.mark.parametrize(
    "labels",
    [("긍정", unicodedata.normalize("NFD", "긍정")), ("가", "가\u200b"), ("01", "1"), ("+1", "1.00"), ("1.0", "1")],
)
def test_labels_that_look_the_same_are_refused(load, tmp_path, labels):
    with data_error("is written in two ways", *map(ascii, labels)):
        load(table(tmp_path / "t.csv", [*labels, "other" if labels[0][0] > "9" else "7"] * 3))


@pytest.mark.parametrize("labels", [["a;b", "a"], [["a"], ["b"]], ["a, b", "b"]])
def test_texts_with_one_label_each_are_named_where_several_are_asked_for(load, tmp_path, caplog, labels):
    load(table(tmp_path / "t.json", labels * 10), problem_type=MULTI)
    assert "no text of train has two labels; a string has | between them" in caplog.text


def class_labels(names, labels):
    several = isinstance(labels[0], list)
    one = ClassLabel(names=names)
    features = Features({"document": Value("string"), "label": List(one) if several else one})
    return Dataset.from_dict({"document": [f"글 {n}" for n in range(len(labels))], "label": labels}, features=features)


def test_class_labels_mean_their_names(load):
    """Of numbers, too; vectors of two names would give each text both."""
    loaded = load(class_labels(["1", "2", "5"], [0, 1, 2] * 6), problem_type=REGRESSION)
    assert {label for part in loaded.values() for label in part["label"]} == {1.0, 2.0, 5.0}
    several = load(class_labels(["x", "y"], [[0], [1], [0, 1], []] * 6), problem_type=MULTI)["train"]
    assert label_names(several) == ["x", "y"] and [0, 1] in several["label"][:] and [] in several["label"][:]
    with data_error("have no number"):
        load(class_labels(["bad", "good"], [0, 1] * 6), problem_type=REGRESSION)
    with data_error("each text has all labels"):
        load(class_labels(["x", "y"], [[1, 0], [0, 1]] * 6), problem_type=MULTI)


@pytest.mark.parametrize("column", ["text", "label"])
def test_a_column_of_a_frame_that_has_several_types_is_one_line(load, column):
    pandas = pytest.importorskip("pandas")
    for values in ([1, "x"], ["x", 1], [["x"], "x"]):
        with data_error("DataFrame: ", f"column {column} "):
            load(pandas.DataFrame({"text": list("ab"), "label": list("ab"), column: values}))


def test_labels_that_train_lacks_are_named(load, tmp_path, caplog):
    for split, labels in {"train": ["긍정", "부정"], "valid": ["긍정", "부정"], "test": ["긍정", "중립"]}.items():
        table(tmp_path / f"{split}.csv", labels)
    assert load(tmp_path)["test"].features["label"].names == ["긍정", "부정", "중립"]
    assert f"{tmp_path}, split test: no row of train has the label 중립" in caplog.text


@pytest.mark.parametrize(
    ("labels", "problem_type"),
    [
        ([-1, -1], None),
        (["", " "], MULTI),
        ([None, None], REGRESSION),
        ([-1.0, -1.0], REGRESSION),
        ([float("nan")], REGRESSION),
        (["", " "], None),
        ([], None),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_split_without_labels_is_not_read(load, tmp_path, caplog, labels, problem_type, suffix):
    """As the test split of a competition, which may have no column for them."""
    table(tmp_path / f"train{suffix}", ["1", "2"] * 10)
    if labels:
        table(tmp_path / f"test{suffix}", labels * 4)
    else:
        write_table(tmp_path / f"test{suffix}", [{"document": "글"}])
    loaded = load(tmp_path, problem_type=problem_type)
    assert sum(map(len, loaded.values())) == 20
    assert "not read: the split test, which has no labels" in caplog.text


@pytest.mark.parametrize("problem_type", [None, REGRESSION])
def test_a_split_is_without_labels_beside_any_other_that_has_some(load, problem_type):
    """But -1 is a label where it stands beside others, or alone."""
    rows = [
        Dataset.from_dict({"text": list("abcd"), "label": labels}) for labels in ([1, 2] * 2, [-1] * 4, [-1, 0] * 2)
    ]
    options = {"problem_type": problem_type, "cut": False}
    assert [*load(DatasetDict(validation=rows[0], test=rows[1]), **options)] == ["validation"]
    assert [*load(DatasetDict(validation=rows[2], test=rows[1]), **options)] == ["validation", "test"]
    assert problem_type is None or [*load(DatasetDict(test=rows[1]), **options)] == ["test"]
