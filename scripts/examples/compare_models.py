"""Say whether one model is better than another, from what `evaluate` wrote of the same rows.

    python scripts/examples/compare_models.py runs/measured-before runs/measured-after

Both folders are an --output_dir of `vanilla-transformer evaluate`. Classifiers are compared by McNemar's exact test,
translators by sacreBLEU's paired bootstrap.
"""

import csv
import sys
from pathlib import Path

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy.stats import binomtest


def read(folder: str) -> list[dict[str, str]]:
    with open(Path(folder, "predictions.tsv"), encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter="\t"))


before, after = read(sys.argv[1]), read(sys.argv[2])
keys = ("source", "reference") if "reference" in before[0] else ("text", "label")
if [[row.get(key) for key in keys] for row in before] != [[row.get(key) for key in keys] for row in after]:
    sys.exit("the folders are of different rows")
if "reference" in before[0]:
    written = [[row["translation"] for row in rows] for rows in (before, after)]
    systems = list(zip(sys.argv[1:], written, strict=True))
    metrics = {"BLEU": BLEU(references=[[row["reference"] for row in before]])}
    _, scores = PairedTest(systems, metrics, None, test_type="bs", n_samples=1000)()
    one, other = scores["BLEU"]
    print(f"BLEU {one.score:.2f} -> {other.score:.2f}, p {other.p_value:.3f}")
else:
    right = [[row["label"] == row["predicted"] for row in rows] for rows in (before, after)]
    gained = sum(not one and other for one, other in zip(*right, strict=True))
    lost = sum(one and not other for one, other in zip(*right, strict=True))
    p = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    shares = [sum(one) / len(one) for one in right]
    print(f"accuracy {shares[0]:.4f} -> {shares[1]:.4f}, {gained} gained, {lost} lost, p {p:.3g}")
