# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The words of a model card, a function for each section; `model_card` gathers what they tell."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from huggingface_hub import EvalResult

from ..tasks import CLASSIFICATION, DENOISING, MULTI, REGRESSION, SINGLE, TRANSLATION, Task


Record = dict[str, Any]  # or a part of one
KOREAN = {
    **{"de": "독일어", "en": "영어", "ko": "한국어"},
    **{"test": "테스트", "validation": "검증", "train": "학습", "Accuracy": "정확도"},
}


class DataSource(NamedTuple):
    """The data of a run, for its card: what people call them, and their identifier in the metadata."""

    name: str
    identifier: str
    korean: str
    about: str | None = None  # what else says which data these are
    terms: str = "under the licence of its source, which this card does not know"
    language: str | None = None  # ISO code
    is_on_hub: bool = False  # under its identifier
    has_reviews: bool = False  # Korean, of films


class Origin(NamedTuple):
    """What a card says of a model that a run's model was trained from; None: not known."""

    name: str | None
    data: DataSource | None
    minutes: float | None
    machine: str | None
    is_pretrained: bool  # without labels


@dataclass(frozen=True)
class Facts:
    """What a card tells. Texts from a record are escaped, but for those of `recipe` and `recipe_text`."""

    name: str
    task: Task
    data: DataSource
    sources: list[DataSource]  # these and what the models before had seen
    config: Record
    metrics: Record
    recipe: Record
    recipe_text: str
    run: Record
    labels: list[str]
    sides: list[str]  # the languages of a translator
    examples: list[str]  # texts, as literals of Python
    results: list[EvalResult]  # the headline first
    splits: list[str]
    further_data: Record
    origins: list[Origin]
    base_model: str | None  # on the Hub
    script: str | None  # of a checkout
    machine: str
    longest: int  # in tokens
    has_weights: bool
    curves_file: str | None
    target_tokenizer: str | None

    @property
    def problem_type(self) -> str:
        return self.config.get("problem_type") or SINGLE

    @property
    def is_own_trainers(self) -> bool:
        """Whether a Trainer of the user's trained it, with a `RecordCallback`."""
        return bool(self.run.get("own_trainer"))


def markdown(text: str) -> str:
    """Escape a name or text from data for Markdown, in one line, also in a table's cell."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    # An invisible U+2060, or addresses would be links: for GitHub and remark, escapes and entities are, too.
    plain = re.sub(r"((?<=:)(?=//)|(?<=www)(?=\.)|(?<=@))", "\u2060", plain, flags=re.IGNORECASE)
    return re.sub(r"([\\`*\[\]|<>&#]|(?<!\w)_|_(?!\w))", r"\\\1", plain)


def code(text: Any) -> str:
    """A value from data for a code span or block of Markdown, in one line."""
    return " ".join("".join(c if c.isprintable() and c != "`" else " " for c in str(text)).split())


# What prints none of its texts: Python's notation doubles backslashes, and they would be Markdown again.
_Mapping, _List = (type(kind.__name__, (kind,), {"__repr__": lambda self: "..."}) for kind in (dict, list))


def escaped(value: Any) -> Any:
    """A part of a record with all of its texts and names escaped: it may come from a stranger's folder."""
    if isinstance(value, dict):
        return _Mapping({markdown(str(name)): escaped(part) for name, part in value.items()})
    if isinstance(value, list):
        return _List(escaped(part) for part in value)
    return markdown(value) if isinstance(value, str) else value


def make_text(card: Facts) -> str:
    """The card without its metadata."""
    sections = {
        f"# {markdown(card.name.split('/')[-1])}": korean_summary(card),
        "## Results": results(card),
        "## How to use it": usage(card),
        "## The model": model(card),
        "## Training": training(card),
        "## Limits and risks": limits(card),
        "## Licence": licence(card),
    }
    return "\n\n".join(f"{title}\n\n{text}" for title, text in sections.items())


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    return "\n".join([_row(header), f"|{'---|' * len(header)}", *map(_row, rows)])


def _row(cells: list[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _value(card: Facts, result: EvalResult) -> str:
    return f"{result.metric_value:.{2 if card.task in (TRANSLATION, DENOISING) else 4}f}"


def _in_korean(name: str) -> str:
    return KOREAN.get(name, name)


def korean_summary(card: Facts) -> str:
    data, labels, headline = markdown(card.data.korean), " / ".join(card.labels), card.results[0]
    what = f"{data} 데이터로 학습한 모델입니다."
    if card.task is CLASSIFICATION and labels:
        kinds = {
            SINGLE: f"를 {labels} 가운데 하나로 분류하는",
            MULTI: f"에 {labels} 가운데 해당하는 것을 모두 붙이는",
            REGRESSION: f"에 수치({labels})를 매기는",
        }
        what = f"{data} 데이터의 텍스트{kinds[card.problem_type]} 모델입니다."
    elif card.task is TRANSLATION:
        source, target = map(_in_korean, card.sides)
        what = f"{data} 데이터로 {source} 문장을 {target} 문장으로 번역하도록 학습한 모델입니다."
    elif card.task is DENOISING:
        what = "레이블 없는 텍스트에서 가려진 부분을 복원하도록 사전학습한 모델입니다. "
        what += "그대로 쓰기보다 미세조정의 출발점으로 삼으세요."
    measured = f"{markdown(_in_korean(headline.metric_name))} {_value(card, headline)}"
    return (
        f"**한국어 요약.** {what}\n"
        f'"Attention Is All You Need"의 인코더-디코더 Transformer이고 파라미터는 {card.run["parameters"]:,}개입니다.\n'
        f"{_in_korean(headline.dataset_split)} 데이터에서 잰 값: {measured}."
        + (" 아래 코드로 바로 쓸 수 있습니다." if card.has_weights else "")
    )


def results(card: Facts) -> str:
    headline = card.results[0]
    rows = [[one.dataset_split, markdown(one.metric_name), _value(card, one)] for one in card.results]
    parts = [table(["split", "measure", "value"], rows)]
    if headline.metric_args:
        parts.append(f"sacreBLEU's signature: `{code(headline.metric_args['signature'])}`.")
    test = card.metrics.get("test", {})
    if robustness := test.get("robustness"):
        rows = [
            [one["change"].replace("_", " "), f"{one['changed']:,}", f"{one[headline.metric_type]:.4f}"]
            for one in robustness["changes"]
        ]
        if mean := robustness.get("mean_of_spacings"):
            rows.append(["mean of as written, no spaces, all spaced, random spaces", "", f"{mean:.4f}"])
        parts += [
            "The test split with changed texts "
            "(`vanilla-transformer evaluate --robustness all` says what each change is):",
            table(["change", "texts changed", markdown(headline.metric_name)], rows),
        ]
    if card.task is CLASSIFICATION:
        parts += trust(test)
    if card.curves_file:
        parts.append(f"![loss and metrics during training]({card.curves_file})")
    return "\n\n".join([*parts, "`metrics.json` and `run.json` are the run's record."])


def trust(test: Record) -> list[str]:
    """What the test split says about a classifier's answers: how sure its accuracy and its probabilities are."""
    if "brier" not in test:
        return []
    names = {
        "expected_calibration_error": "expected calibration error",
        "log_loss": "log loss",
        "brier": "Brier score",
    }
    parts = []
    if "accuracy_interval" in test:
        low, high = test["accuracy_interval"]
        most = f"{test['majority']['label']}: {test['majority']['share']:.3f}"
        parts.append(f"Accuracy on test with 95 % confidence: {low:.3f} to {high:.3f}. Always {most}.")
    reports = [report for report in (test.get("uncalibrated"), test) if report]
    titles = ["without the temperature", "with it"] if len(reports) > 1 else ["value"]
    rows = [[names[key], *(f"{report[key]:.4f}" for report in reports)] for key in names]
    parts += ["How far its probabilities can be believed (test, smaller is better):", table(["", *titles], rows)]
    if selective := test.get("selective"):
        rows = [
            [
                f"{one['threshold']:g}",
                f"{one['answered']:.1%}",
                "" if one["accuracy"] is None else f"{one['accuracy']:.1%}",
            ]
            for one in selective
        ]
        parts += ["With a threshold (`predict --threshold`), it leaves texts unanswered:"]
        parts.append(table(["probability of at least", "answered", "right"], rows))
    return parts


CLASSIFY = """\
```python
from transformers import pipeline

# The path of this folder, or its name on the Hub.
classify = pipeline("text-classification", model="{name}", trust_remote_code=True)
for answer in classify([{examples}], truncation=True):
    print(answer["label"], answer["score"])
```"""
GENERATE = """\
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

# The path of this folder, or its name on the Hub, here and below.
model = AutoModelForSeq2SeqLM.from_pretrained("{name}", trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained("{name}", trust_remote_code=True)
{target}text = {text}
ids = model.generate(**tokenizer(text, return_tensors="pt"))
print({decodes}.decode(ids[0], skip_special_tokens=True))
```"""
MASKED = 'f"정말 재미있고 {tokenizer.mask_token} 영화"'


def usage(card: Facts) -> str:
    if not card.has_weights:
        return "The weights are not in this folder: the recipe below makes them."
    if card.task is CLASSIFICATION:
        return CLASSIFY.format(name=card.name, examples=", ".join(card.examples))
    folder, target, decodes = card.target_tokenizer, "", "tokenizer"
    if folder:
        decodes = "target_tokenizer"
        where = f'"{card.name}", subfolder="{folder}", trust_remote_code=True'
        target = f"target_tokenizer = AutoTokenizer.from_pretrained({where})\n"
    is_denoising = card.task is DENOISING
    text = MASKED if is_denoising else card.examples[0]
    use = GENERATE.format(name=card.name, target=target, text=text, decodes=decodes)
    if not is_denoising:
        return use
    fine_tuned = "Fine-tune it as a classifier with `vanilla-transformer train-classifier --model FOLDER`. "
    return f"{fine_tuned}As it is, it fills in what is hidden:\n\n{use}"


def model(card: Facts) -> str:
    config = card.config
    loads = (
        "; its code is in this repository, so `trust_remote_code=True` loads it without the package"
        if card.has_weights
        else ""
    )
    text = (
        'The encoder-decoder Transformer of "Attention Is All You Need" '
        "(Vaswani et al. 2017, <https://arxiv.org/abs/1706.03762>), by\n"
        f"`hf_vanilla_transformer`{loads}."
    )
    if card.task is CLASSIFICATION:
        turns = "a number" if card.problem_type == REGRESSION else "one score per label"
        text += (
            "\nThe encoder reads the text. The decoder gets one start token and attends to the encoder's output. "
            f"A linear layer turns\nthe decoder's output into {turns}."
        )
    target = f"; target {config['decoder_vocab_size']:,}" if card.target_tokenizer else ""
    norm = "pre" if config["norm_first"] else "post"
    rows = [
        ["parameters", f"{card.run['parameters']:,}"],
        ["layers, encoder + decoder", f"{config['encoder_layers']} + {config['decoder_layers']}"],
        [
            "d_model, d_ff (encoder, decoder)",
            f"{config['d_model']}, {config['encoder_ffn_dim']}, {config['decoder_ffn_dim']}",
        ],
        ["heads (encoder, decoder)", f"{config['encoder_attention_heads']}, {config['decoder_attention_heads']}"],
        ["vocabulary", f"{config['vocab_size']:,}{target}"],
        ["longest text, in tokens", str(card.longest)],
        [
            "positions, norm, activation",
            f"{config['position_embedding_type']}, {norm}-norm, {config['activation_function']}",
        ],
    ]
    if card.task is CLASSIFICATION and card.labels:
        rows.append(["labels", ", ".join(card.labels)])
    elif card.sides:
        rows.append(["languages", " to ".join(card.sides)])
    return f"{text}\n\n{table(['', ''], rows)}"


def training(card: Facts) -> str:
    run, data = card.run, card.data
    about = f" ({data.about})" if data.about else ""
    dropped = "" if card.is_own_trainers else ", rows without text dropped"
    parts = [f"Data: {markdown(data.name)}{about}{dropped}."]
    if card.splits:
        rows = []
        for split in card.splits:
            part = run["data"][split]
            checksum = f"`{code(part['sha256'])}`" if part.get("sha256") else ""
            rows.append([split, f"{part['rows']:,}" if part.get("rows") else "not counted", checksum])
        parts.append(table(["split", "rows", "SHA-256 of its rows"], rows))
    arguments = ", arguments of transformers' `Trainer`" if card.is_own_trainers else ""
    # A longer fence than any in the recipe.
    fence = "`" * max(3, *(len(found) + 1 for found in re.findall("`+", card.recipe_text) or [""]))
    parts += [
        f"`recipe.yaml`{arguments} (all other settings have their defaults):",
        f"{fence}yaml\n{card.recipe_text}\n{fence}",
    ]
    if not card.is_own_trainers:
        where = "In a checkout of the package" if card.script else "Where the package is installed"
        parts += [f"{where}, with the path of this folder's `recipe.yaml`:", f"```sh\n{again(card)}\n```"]
    for name, part in card.further_data.items():
        rows_of = f": {part['rows']:,} rows" if part.get("rows") else ""
        checksum = f" (SHA-256 `{code(part['sha256'])}`)" if part.get("sha256") else ""
        recipe = "; `run.json` has their recipe" if part.get("recipe") else ""
        parts.append(f"It was trained on further data, `{code(name)}`{rows_of}{checksum}{recipe}.")
    if card.base_model:
        link = f"[{card.base_model}](https://huggingface.co/{card.base_model})"
        parts.append(f"It began as {link}, whose card says what that was trained on.")
    elif card.origins:
        parts.append(began_as(card.origins))
    return "\n\n".join([*parts, how_it_ended(card)])


def again(card: Facts) -> str:
    """The command that trains the model again."""
    processes = card.run.get("processes", 1)
    command = f"python {card.script}" if card.script else f"vanilla-transformer {card.task.command}"
    if processes > 1:
        program = card.script or f"-m hf_vanilla_transformer {card.task.command}"
        command = f"torchrun --nproc_per_node {processes} {program}"
    command += " recipe.yaml"
    if card.data.identifier == "e9t/nsmc" and card.recipe.get("data") != "nsmc":
        command += " --data nsmc"
    command += " --output_dir runs/again"
    return f"{command} --use_cpu true" if processes > 1 and card.run.get("device") == "cpu" else command


def began_as(origins: list[Origin]) -> str:
    first, *before = origins
    name = f"`{code(first.name)}`" if first.name else "another run's model"
    text = f"It began as {name}"
    if first.data and first.minutes is not None:
        text += f", trained on {markdown(first.data.name)} in {first.minutes:.1f} minutes on {first.machine}"
        text += " by `vanilla-transformer pretrain`, without labels" if first.is_pretrained else ""
    text += "."
    if known := [one for one in before if one.data and one.minutes]:
        minutes = sum(one.minutes or 0 for one in known)
        names = ", ".join(dict.fromkeys(one.data.name for one in known if one.data))
        runs = f"{len(known)} run{'s' if len(known) > 1 else ''}"
        text += f" Before that: {runs}, {minutes:.1f} minutes in all, on {markdown(names)}."
    which = "it" if len(origins) == 1 else "them"
    return f"{text}\n`run.json` has what is known of {which}: recipes, data, metrics."


def how_it_ended(card: Facts) -> str:
    run, metrics = card.run, card.metrics
    resumed = f" from {run['resumed_from']} on" if run.get("resumed_from") else ""
    minutes = f"{metrics['training_seconds'] / 60:.1f}"
    weights = f"The weights are those of the last step, {metrics['best_step']}."
    if card.recipe.get("load_best_model_at_end"):
        weights = f"The weights are those of step {metrics['best_step']}, chosen on the validation split."
    elif averaged := metrics.get("averaged_steps"):
        weights = f"The weights are the mean of those of steps {', '.join(map(str, averaged))}."
    commit = f"commit {run['git_commit']}" if run.get("git_commit") else "not from a checkout"
    versions = ", ".join(f"{package} {version}" for package, version in run["versions"].items())
    return (
        f"Training took {minutes} minutes on {card.machine}{resumed}, seed {run['seed']}. {weights} "
        f"Code: {commit}. Versions:\n{versions}."
    )


REVIEWS = """\
- **Sarcasm.** Irony, faint praise and reviews that change their tone in the last words are often misclassified.
- **Profanity and bias.** The model has learned which words go with which label, insults, names and groups of people
  among them: do not use it to judge people, nor alone to moderate what they write.
- **Spoilers.** Reviews may tell how a film ends; it does not recognise that."""
TEXTS = "- **Sarcasm, profanity, spoilers, bias.** The model has learned those of the training texts."
TRANSLATIONS = """\
- **Fluent mistakes.** It may leave out, add or invert what the source says, without a sign. Sarcasm is translated
  literally, and so is profanity.
- **Bias.** Where the source does not say who is meant, it chooses what was most frequent in training."""
WRITTEN = """\
- **Made-up text.** What it writes may be fluent and wrong, and repeat insults and opinions of its training texts."""


def limits(card: Facts) -> str:
    seen = "short Korean film reviews" if card.data.has_reviews else markdown(card.data.name)
    seen += "".join(f", `{code(name)}`" for name in card.further_data)
    seen += ", what the model that it began as had seen," if card.origins else ""
    domain = f"- **Domain.** It has seen {seen} and nothing else: expect\n  little of it on any other texts."
    risks = TRANSLATIONS if card.task is TRANSLATION else WRITTEN
    if card.task is CLASSIFICATION:
        risks = REVIEWS if card.data.has_reviews else TEXTS
        if "temperature" not in card.metrics.get("calibration", {}):
            domain += " Its probabilities are not calibrated."
    return f"{domain}\n{risks}\n- **Length.** Only the first {card.longest} tokens of a text are read."


def licence(card: Facts) -> str:
    weights = "The weights' licence is their author's to say; this card names none."
    if card.run.get("license"):
        weights = f"Weights: {card.run['license']}."
    sources = "; ".join(f"{markdown(source.name)}, {source.terms}" for source in card.sources)
    return f"{weights} Code: Apache-2.0. Data, which are not part of this repository: {sources}."
