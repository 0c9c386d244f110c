"""Train a text classifier, and leave a folder that AutoModelForSequenceClassification loads.

    python scripts/train_classifier.py scripts/recipes/nsmc.yaml --output_dir runs/nsmc
    python scripts/train_classifier.py scripts/recipes/sample.yaml --output_dir runs/sample
    python scripts/train_classifier.py --data my.csv --text_column text --label_column label --output_dir runs/mine

Flags override the recipe; besides those below, every one of transformers' TrainingArguments is one. An interrupted
run goes on with the same command and `--resume_from_checkpoint`.
"""

import json
from dataclasses import dataclass, field

from datasets import DatasetDict
from transformers import (
    DataCollatorWithPadding,
    EarlyStoppingCallback,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.data import load_labelled_text, tokenize
from hf_vanilla_transformer.figures import plot_training_curves
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training import (
    CURVES_FILE,
    METRICS_FILE,
    checksum,
    compute_metrics,
    epochs,
    evaluate_split,
    exit_with_one_line,
    load_best_step,
    load_config,
    load_tokenizer,
    parse_arguments,
    prepare_output_dir,
    save_json,
    save_recipe,
    save_run,
)


@dataclass
class DataArguments:
    data: str = field(
        default="sample",
        metadata={"help": "`sample`, `nsmc`, a folder with NSMC's two files, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})
    validation_fraction: float = field(default=0.05, metadata={"help": "Share of train that is kept for validation."})
    split_seed: int = field(default=42, metadata={"help": "Seed of the cut between train and validation."})
    max_length: int = field(default=256, metadata={"help": "Tokens kept of a text."})


@dataclass
class ModelArguments:
    model: str | None = field(
        default=None, metadata={"help": "A model folder or Hub name to fine-tune; by default a new model."}
    )
    config: str = field(
        default="{}",
        metadata={"help": "A new model's VanillaTransformerConfig fields: JSON here, a mapping in a recipe."},
    )
    tokenizer: str | None = field(
        default=None,
        metadata={"help": "A tokenizer folder or Hub name; by default the model's, or one trained on the texts."},
    )
    vocab_size: int = field(default=8007, metadata={"help": "Size of a vocabulary that is trained here."})
    tokenizer_model: str = field(default="bpe", metadata={"help": "What is trained: `bpe` or `unigram`."})
    early_stopping_patience: int | None = field(
        default=None, metadata={"help": "Stop after this many evaluations without a better one."}
    )

    def __post_init__(self):
        if isinstance(self.config, str):
            try:
                self.config = json.loads(self.config)
            except json.JSONDecodeError as error:
                raise ValueError(f"--config: not JSON ({error})") from error
        if not isinstance(self.config, dict):
            raise ValueError("--config: not a mapping of a configuration's fields")


def make_tokenizer(arguments: ModelArguments, data: DatasetDict, max_length: int) -> PreTrainedTokenizerFast:
    """The tokenizer that the arguments name, or one trained on the training texts."""
    if source := arguments.tokenizer or arguments.model:
        return load_tokenizer(source)
    return train_tokenizer(
        data["train"]["text"][:],
        vocab_size=arguments.vocab_size,
        model=arguments.tokenizer_model,
        max_length=max_length,
    )


def make_model(
    arguments: ModelArguments, tokenizer: PreTrainedTokenizerFast, labels: list[str], max_length: int
) -> VanillaTransformerForSequenceClassification:
    """The model that the arguments name, or a new one whose vocabulary, labels and positions fit the data."""
    label_fields = {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if arguments.model:
        config = load_config(arguments.model)
        config.update(label_fields)
        return VanillaTransformerForSequenceClassification.from_pretrained(
            arguments.model, config=config, ignore_mismatched_sizes=True
        )
    config = VanillaTransformerConfig(
        **{
            "vocab_size": len(tokenizer),
            "max_position_embeddings": max_length,
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "decoder_start_token_id": tokenizer.bos_token_id,
            **label_fields,
            **arguments.config,
        }
    )
    return VanillaTransformerForSequenceClassification(config)


@exit_with_one_line
def main() -> None:
    data_arguments, model_arguments, training_arguments = parse_arguments(
        [DataArguments, ModelArguments, TrainingArguments], description=__doc__.splitlines()[0]
    )
    with training_arguments.main_process_first(desc="data and vocabulary"):
        checkpoint = prepare_output_dir(training_arguments.output_dir, training_arguments.resume_from_checkpoint)
        if model_arguments.model:
            load_config(model_arguments.model)  # a wrong model is refused before the data are read
        data = load_labelled_text(
            data_arguments.data,
            text_column=data_arguments.text_column,
            label_column=data_arguments.label_column,
            validation_fraction=data_arguments.validation_fraction,
            seed=data_arguments.split_seed,
        )
        if checkpoint is None:
            tokenizer = make_tokenizer(model_arguments, data, data_arguments.max_length)
        else:
            tokenizer = load_tokenizer(checkpoint)
        tokenized = tokenize(data, tokenizer, max_length=data_arguments.max_length)

    set_seed(training_arguments.seed)
    model = make_model(model_arguments, tokenizer, data["train"].features["label"].names, data_arguments.max_length)

    callbacks = []
    if model_arguments.early_stopping_patience is not None:
        callbacks.append(EarlyStoppingCallback(model_arguments.early_stopping_patience))
    trainer = Trainer(
        model,
        training_arguments,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=tokenized["train"],
        eval_dataset=tokenized["validation"],
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
        callbacks=callbacks,
    )
    trained = trainer.train(resume_from_checkpoint=checkpoint)

    folder = training_arguments.output_dir
    trainer.save_model(folder)
    metrics = {
        "best_step": load_best_step(trainer),
        "training_seconds": round(trained.metrics["train_runtime"], 1),
        "epochs": list(epochs(trainer.state.log_history)),
        **{split: evaluate_split(trainer, tokenized[split]) for split in ("train", "validation", "test")},
    }
    if not trainer.is_world_process_zero():
        return
    save_json(f"{folder}/{METRICS_FILE}", metrics)
    plot_training_curves(metrics["epochs"], f"{folder}/{CURVES_FILE}")
    GenerationConfig.from_model_config(model.config).save_pretrained(folder)
    save_recipe(folder, data_arguments, model_arguments, training_arguments)
    save_run(
        folder,
        model,
        seed=training_arguments.seed,
        data={
            "source": data_arguments.data,
            **{name: {"rows": len(split), "sha256": checksum(split)} for name, split in data.items()},
        },
    )
    print(f"test accuracy: {metrics['test']['accuracy']:.4f}")


if __name__ == "__main__":
    main()
