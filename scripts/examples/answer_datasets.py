"""Classify a folder of Parquet files with `datasets`, in two processes.

    OMP_NUM_THREADS=1 python scripts/examples/answer_datasets.py

Reads the column `text` of reviews/*.parquet, and writes answers/answers.parquet.
"""

from datasets import load_dataset

from hf_vanilla_transformer import Classifier


classify = Classifier("model_cards/nsmc-small")


def answer(batch):
    answers = classify(batch["text"])  # None for a blank text
    labels, scores = ([one and one[key] for one in answers] for key in ("label", "score"))
    return {"predicted": labels, "probability": scores}


rows = load_dataset("parquet", data_files="reviews/*.parquet", split="train")
rows = rows.map(answer, batched=True, batch_size=4096, num_proc=2)
rows.to_parquet("answers/answers.parquet")
