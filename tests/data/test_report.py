"""The facts about the data that stand at the top of a run."""

import pytest
from datasets import Dataset, DatasetDict

from data.files import write_table
from hf_vanilla_transformer.data.labels import MULTI, REGRESSION
from hf_vanilla_transformer.data.report import describe_data
from hf_vanilla_transformer.tokenizer import train_tokenizer


@pytest.mark.parametrize(
    ("labels", "options", "lines"),
    [
        (["good", "bad"], {}, ["rows: train 32, validation 4, test 4", "of train: bad 16 (50%), good 16 (50%)"]),
        (["a|b", "b"], {"problem_type": MULTI}, ["labels of train: b ", " (100%), a "]),
        ([1, 2, 3, 5], {"problem_type": REGRESSION}, ["labels: numbers from 1 to 5, mean 2."]),
        ([f"label {number}" for number in range(25)], {}, ["label 4 1 (4%), 5 more"]),
    ],
)
def test_labels(load, tmp_path, labels, options, lines):
    repeats = 40 // len(labels) if len(labels) < 25 else 3
    rows = [{"document": f"감상 {number}", "label": label} for number, label in enumerate(labels * repeats)]
    data = load(write_table(tmp_path / "t.csv", rows), validation_fraction=0.1, **options)
    described = "\n".join(describe_data(data, {"text": train_tokenizer(["감상"], vocab_size=29)}))
    assert all(line in described for line in lines)


def test_lengths():
    train = [text for text in ("가 나 다", "가", "가", "가 나") for _ in range(500)]
    splits = {"train": train, "validation": ["가 나", "나"], "test": ["다"]}
    pairs = DatasetDict(
        {split: Dataset.from_dict(dict.fromkeys(("source", "target"), splits[split])) for split in splits}
    )
    tokenizer = train_tokenizer(["가 나 다"], model="word", vocab_size=29, max_length=3, add_eos=True)
    before = tokenizer.backend_tokenizer.to_str()
    assert describe_data(pairs, {"source": tokenizer, "target": tokenizer}) == [
        "rows: train 2,000, validation 2, test 1",
        "length of source: median 2 tokens, longest 4; 25.0% are cut to 3 (of 1,000 rows)",
        "length of target: median 2 tokens, longest 4; 25.0% are cut to 3 (of 1,000 rows)",
    ]
    assert tokenizer.backend_tokenizer.to_str() == before
