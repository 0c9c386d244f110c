"""`scripts/prepare_reviews.py` and `scripts/train_copy.py`: NSMC's raw reviews without its test split; copying."""

import gzip
import json

import pytest
from shared import ROOT, read_json
from transformers import AutoModelForSeq2SeqLM

from hf_vanilla_transformer.data.labelled_text import load_labelled_text
from hf_vanilla_transformer.data.lines import iterate_lines


@pytest.fixture
def checkout(tmp_path):
    """What NSMC's repository looks like."""
    folder = tmp_path / "nsmc"
    (folder / "raw").mkdir(parents=True)
    header = "id\tdocument\tlabel\n"
    (folder / "ratings_train.txt").write_text(header + "1\t좋다  정말\t1\n2\t별로\t0\n3\t최고\t1\n4\t최악\t0\n")
    # The second document is quoted as NSMC's files are: twice.
    twice = '"""그는 """"최고""""라 했다"""'
    (folder / "ratings_test.txt").write_text(header + f"11\t시험 글\t1\n12\t{twice}\t0\n13\t\t0\n")
    movies = {
        "100": [("5", "백 번 영화"), ("11", "고쳐 쓴 시험 글"), ("6", " 시험\t글 ")],
        "20": [("1", "좋다  정말\n봐라\u2028꼭"), ("7", '그는 "최고"라 했다'), ("1", "같은 번호")],
        "3": [("8", " "), ("9", "최고"), ("2", "최고"), ("13", "빈 글의 번호")],
    }
    for movie, reviews in movies.items():
        content = [{"review_id": number, "movie_id": movie, "review": text, "rating": "9"} for number, text in reviews]
        (folder / "raw" / f"{movie}.json").write_text(json.dumps(content, ensure_ascii=False))
    return folder


def test_reviews_become_a_corpus_without_the_test_split(succeed, checkout, tmp_path):
    out = succeed("prepare_reviews.py", "--nsmc", checkout, "--file", tmp_path / "reviews.txt.gz")
    # Without the time of writing, so that the same reviews give the same bytes.
    expected = gzip.compress("최고\n최고\n좋다 정말 봐라 꼭\n백 번 영화\n".encode(), mtime=0)
    assert (tmp_path / "reviews.txt.gz").read_bytes() == expected
    counts = dict(line.strip().split(" ", 1)[::-1] for line in out.splitlines())
    assert counts == {
        "written": "4",
        "dropped, no text": "1",
        "dropped, in the test split by id": "2",
        "dropped, in the test split by text": "2",
        "dropped, repeated id": "1",
    }

    # A corpus that is there already is cleaned in the same way.
    (tmp_path / "lines.txt").write_text("하나\n시험 글\n\n둘  셋\n하나\n")
    arguments = ["--raw", tmp_path / "lines.txt", "--file", tmp_path / "cleaned.txt"]
    succeed("prepare_reviews.py", "--nsmc", checkout, *arguments)
    assert (tmp_path / "cleaned.txt").read_text() == "하나\n둘 셋\n하나\n"


def test_validation_reviews_are_left_out(succeed, checkout, tmp_path):
    cut = load_labelled_text(checkout, validation_fraction=0.5, seed=3)
    kept, held_back = ([" ".join(text.split()) for text in cut[split]["text"]] for split in ("train", "validation"))
    flags = ["--validation_fraction", "0.5", "--split_seed", "3"]

    arguments = ["--labelled", "true", *flags, "--file", tmp_path / "labelled.txt"]
    succeed("prepare_reviews.py", "--nsmc", checkout, *arguments)
    assert [*iterate_lines(tmp_path / "labelled.txt")] == kept

    (tmp_path / "raw.txt").write_text("\n".join([*kept, *held_back, "새 글"]) + "\n")
    arguments = ["--raw", tmp_path / "raw.txt", *flags, "--file", tmp_path / "reviews.txt"]
    out = succeed("prepare_reviews.py", "--nsmc", checkout, *arguments)
    assert f"{len(held_back)} dropped, in validation by text" in out
    assert [*iterate_lines(tmp_path / "reviews.txt")] == [*kept, "새 글"]


@pytest.mark.slow
def test_the_copy_task_is_learned(succeed, refused, tmp_path):
    """By a smaller model than the recipe's, in a quarter of its updates."""
    sizes = '{"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}'
    few = ["--config", sizes, "--train_sequences", "14400", "--test_sequences", "250", "--max_steps", "450"]
    few += ["--per_device_train_batch_size", "32", "--disable_tqdm", "true"]
    few += ["--learning_rate", "5e-3", "--warmup_steps", "100", "--lr_scheduler_type", "linear"]
    succeed("train_copy.py", ROOT / "scripts/recipes/copy.yaml", "--output_dir", tmp_path, *few)
    assert read_json(tmp_path / "metrics.json")["test"]["copied"] >= 0.99
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.vocab_size == 11
    assert "vocab_size" in refused("train_copy.py", "--output_dir", tmp_path / "new", "--config", '{"vocab_size": 5}')
