# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Let binary classifiers and a linear model label texts together, for distil.py to learn from.

    python scripts/experiments/teachers.py --data nsmc --models model_cards/nsmc-small --texts reviews.txt.gz \\
        --output_dir runs/labels

The linear model is a logistic regression on the n-grams of one to four characters, without spaces. The teachers label
the lines of --texts that are no text of the data: the probability is the sigmoid of the mean of their logits times
`SHARPNESS`. They also label the training texts. A teacher that has seen a text is too sure of it, so the linear model
is cross-fitted and the classifiers' logits are weakened; the label is the mean of that probability and the true label.

Leaves `soft_labels.parquet` (`text`; `label`, the probability of each label), `recipe.yaml`, and `metrics.json` with
the accuracy of the teachers together on validation.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from soft_labels import TextArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.changes import no_spaces
from hf_vanilla_transformer.inference import Classifier


FOLDS = 5
# The mean of the logits of models that know different things is too weak. Chosen by the log loss on validation for one
# classifier and the linear model; of three and the linear model, the best is 1.07.
SHARPNESS = 1.1
# What a classifier's logits count on texts that it has seen.
SEEN = 0.85


@dataclass
class TeacherArguments(TextArguments):
    models: list[str] = HfArg(kw_only=True, help="The classifiers' folders.")
    dtype: str = HfArg(default="bfloat16", help="Precision of the classifiers.")


def linear_logits(train: list[str], labels: np.ndarray, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return a linear model's logits for other texts, and cross-fitted ones for the training texts."""
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(1, 4), min_df=2, sublinear_tf=True, dtype=np.float32, preprocessor=no_spaces
    )
    features, others = vectorizer.fit_transform(train), vectorizer.transform(texts)

    def fit(rows: np.ndarray) -> LogisticRegression:
        return LogisticRegression(C=8, solver="liblinear", dual=True).fit(features[rows], labels[rows])

    fold = np.random.RandomState(0).randint(0, FOLDS, len(labels))
    cross_fitted = np.zeros(len(labels))
    for number in range(FOLDS):
        cross_fitted[fold == number] = fit(fold != number).decision_function(features[fold == number])
    return fit(fold >= 0).decision_function(others), cross_fitted


ARGUMENTS = [TeacherArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    data, _, lines = arguments.load_with_lines()
    train, validation = data["train"]["text"][:], data["validation"]["text"][:]
    labels = np.array(data["train"]["label"][:])
    of_linear, cross_fitted = linear_logits(train, labels, [*validation, *lines])
    number = len(of_linear)
    logits = np.concatenate([of_linear, cross_fitted])
    for model in arguments.models:
        classify = Classifier(model, dtype=arguments.dtype, batch_size=128)
        probabilities = classify.probabilities([*validation, *lines, *train]).astype(np.float64)
        of_model = np.log(probabilities[:, 1]) - np.log(probabilities[:, 0])
        logits += np.concatenate([of_model[:number], SEEN * of_model[number:]])
    teachers = expit(SHARPNESS / (1 + len(arguments.models)) * logits)
    together, of_train = teachers[:number], (labels + teachers[number:]) / 2
    positive = np.concatenate([together[len(validation) :], of_train])
    right = (together[: len(validation)] > 0.5) == np.array(data["validation"]["label"][:])

    rows = {"text": [*lines, *train], "label": np.stack([1 - positive, positive], axis=1)}
    arguments.save(settings, data, rows, {"accuracy": float(right.mean())})
    print(f"validation accuracy {right.mean():.4f}; {len(lines):,} texts and {len(train):,} training texts labelled")


if __name__ == "__main__":
    main()
