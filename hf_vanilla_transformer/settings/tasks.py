# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The tasks of models, the formats of exports, and texts to try: each stands here alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What a model was trained for."""

    name: str
    noun: str  # what such a model is called
    model_class: str
    pipeline_tag: str  # on the Hub
    command: str  # that trains such a model
    uses: tuple[str, ...] = ()  # the commands for such a model alone; the one that answers comes first


@dataclass(frozen=True)
class Format:
    """What a model can be exported to.

    `writer` is a module of `exports` whose function `write(model, tokenizers, folder, quantize)` writes the files of a
    model in float32, on the CPU. The tokenizers are those of source and target, the same one twice if there is one
    vocabulary. `engine` is a module and class of `inference`. The export's card shows the program
    `exports/programs/NAME-TASK.py.jinja`, which runs the export without this package.
    """

    name: str
    title: str
    tasks: tuple[str, ...]  # those whose models run here
    writer: str
    engine: str
    # Packages besides torch and transformers, of the extra with the format's name. The record has their versions.
    packages: tuple[str, ...]
    files: tuple[str, ...]  # that are sent to the Hub besides card, record and tokenizers


CLASSIFICATION = Task(
    "classification",
    "classifier",
    "VanillaTransformerForSequenceClassification",
    "text-classification",
    "train-classifier",
    ("predict", "evaluate", "page"),
)
_GENERATOR = "VanillaTransformerForConditionalGeneration"
TRANSLATION = Task(
    "translation",
    "translator",
    _GENERATOR,
    "translation",
    "train-translation",
    ("translate", "evaluate", "page"),
)
TASKS = {task.name: task for task in (CLASSIFICATION, TRANSLATION)}
# Cards have a third task: a pretrained model's.
DENOISING = Task("denoising", "denoiser", _GENERATOR, "text2text-generation", "pretrain")

# Torch is not listed: it runs a model's own folder.
FORMATS = {
    form.name: form
    for form in (
        Format(
            "ctranslate2",
            "CTranslate2",
            ("classification", "translation"),
            "ctranslate2_writer",
            "ctranslate2_engine.CTranslate2Engine",
            ("ctranslate2",),
            ("config.json", "model.bin", "*_vocabulary.json"),
        ),
        Format(
            "onnx",
            "onnxruntime",
            ("classification",),
            "onnx_writer",
            "onnx_engine.OnnxEngine",
            ("onnx", "onnxruntime"),
            ("config.json", "onnx/*.onnx"),
        ),
    )
}
# Texts to try, by task and language.
EXAMPLES = {
    CLASSIFICATION.name: {"ko": ["정말 재미있고 감동적인 영화", "지루하고 유치했다"]},
    TRANSLATION.name: {
        "de": ["Zwei Hunde spielen im Schnee."],
        "en": ["Two dogs play in the snow."],
        "ko": ["강아지 두 마리가 눈밭에서 논다."],
    },
}
