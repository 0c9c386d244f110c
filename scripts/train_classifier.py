"""Train a text classifier, and leave a folder that AutoModelForSequenceClassification loads.

    python scripts/train_classifier.py scripts/recipes/nsmc.yaml --output_dir runs/nsmc
    python scripts/train_classifier.py scripts/recipes/sample.yaml --output_dir runs/sample
    python scripts/train_classifier.py --data my.csv --text_column text --label_column label --output_dir runs/mine

Flags override the recipe; besides those below, every one of transformers' TrainingArguments is one. An interrupted
run goes on with the same command and `--resume_from_checkpoint`.
"""

import logging
from dataclasses import dataclass, field, fields
from typing import Literal

import torch
from datasets import DatasetDict
from transformers import (
    DataCollatorWithPadding,
    EarlyStoppingCallback,
    PreTrainedTokenizerBase,
    TrainingArguments,
    set_seed,
)

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.arguments import (
    ONLY_DROPOUT,
    LabelledTextArguments,
    RegularizationArguments,
    StartArguments,
    become_torchrun,
    check_best_metric,
    exit_with_one_line,
    given_settings,
    parse_arguments,
    read_mapping,
)
from hf_vanilla_transformer.bpe_dropout import draw_segmentations
from hf_vanilla_transformer.checkpoints import (
    DROPOUT_FIELDS,
    average_with,
    load_alike,
    load_config,
    load_to_train,
    load_tokenizer,
    load_tokenizer_to_train,
    prepare_output_dir,
    round_weights,
    save_weights_in,
)
from hf_vanilla_transformer.data import tokenize
from hf_vanilla_transformer.distillation import (
    SoftLabelLoss,
    add_soft_labels,
    describe_soft_labels,
    load_soft_labels,
)
from hf_vanilla_transformer.hub import keep_token_out_of_files, upload_run
from hf_vanilla_transformer.metrics import compute_metrics, evaluate_split
from hf_vanilla_transformer.model_card import save_model_card
from hf_vanilla_transformer.record import best_step, describe_splits, epochs, save_record
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training import CheckedTrainer, data_seed, made_once


logger = logging.getLogger("train_classifier.py")


@dataclass
class DataArguments(LabelledTextArguments):
    soft_labels: str | None = field(
        default=None,
        metadata={"help": "Further training texts, with a probability of each label: a folder of soft_labels.py."},
    )
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens kept of a text; by default 256, or as many as --model has positions."}
    )


LABEL_FIELDS = {"id2label", "label2id", "problem_type"}


@dataclass
class ModelArguments(RegularizationArguments, StartArguments):
    config: str = field(
        default="{}",
        metadata={
            "help": "A new model's VanillaTransformerConfig fields, of --model the rates of dropout: "
            "JSON here, a mapping in a recipe."
        },
    )
    attn_implementation: str = field(
        default="sdpa", metadata={"help": "`sdpa`, or `eager`: on CPUs faster to train with short texts."}
    )
    early_stopping_patience: int | None = field(
        default=None, metadata={"help": "Stop after this many evaluations without a better one."}
    )
    average_with: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Models to average the trained weights with: runs that went on from where this did. Where that "
            "was no classifier, give these the same --seed, for the new head, and another --data_seed."
        },
    )
    weights_dtype: Literal["float32", "float16", "bfloat16"] = field(
        default="float32",
        metadata={
            "help": "What the trained weights are rounded to, before they are measured and saved: `float32`, or for a "
            "file of half the size `float16` or `bfloat16`. The model computes in float32 all the same."
        },
    )

    def __post_init__(self):
        RegularizationArguments.__post_init__(self)
        StartArguments.__post_init__(self)
        self.config = read_mapping("--config", self.config)
        known = {field.name for field in fields(VanillaTransformerConfig)}
        if unknown := sorted(set(self.config) - known):
            raise ValueError(f"--config: no such field: {', '.join(unknown)}")
        if LABEL_FIELDS & set(self.config):
            raise ValueError(f"--config: the labels are the data's, so none of {', '.join(sorted(LABEL_FIELDS))}")
        if self.early_stopping_patience is not None and self.early_stopping_patience < 1:
            raise ValueError(f"--early_stopping_patience: at least 1, not {self.early_stopping_patience}")
        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise ValueError(ONLY_DROPOUT)


ARGUMENTS = [DataArguments, ModelArguments, TrainingArguments]


def make_tokenizer(arguments: ModelArguments, data: DatasetDict, max_length: int) -> PreTrainedTokenizerBase:
    """The tokenizer that the arguments name, or one trained on the training texts.

    Raises:
        ValueError: it cannot be read, lacks the special tokens that the model needs, or is not the model's.
    """
    if arguments.tokenizer or arguments.model:
        needed = ("pad_token", "bos_token", "unk_token")
        return load_tokenizer_to_train(arguments.tokenizer, arguments.model, needed, max_length)
    return train_tokenizer(
        data["train"]["text"][:],
        vocab_size=arguments.vocab_size,
        model=arguments.tokenizer_model,
        max_length=max_length,
    )


def make_config(
    arguments: ModelArguments, tokenizer: PreTrainedTokenizerBase, labels: list[str], max_length: int
) -> VanillaTransformerConfig:
    """The configuration of the model that the arguments name, or of a new one whose sizes fit the data.

    Raises:
        ValueError: the model has no room for the tokenizer's ids, or for texts of `max_length` tokens.
        huggingface_hub.errors.StrictDataclassError: the fields contradict each other.
    """
    label_fields = {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if arguments.model:
        config = load_config(arguments.model)
        # Whatever it learned before, here each text has one label.
        config.update({**label_fields, "problem_type": None, **arguments.config})
        config.validate()
    else:
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
    if config.vocab_size < len(tokenizer):
        raise ValueError(f"vocab_size: {config.vocab_size} is less than the tokenizer's {len(tokenizer)} tokens")
    limit = config.max_position_embeddings
    if limit < max_length:
        raise ValueError(f"--max_length: {max_length} is more than the model's {limit} positions")
    return config


def fit_head(model: VanillaTransformerForSequenceClassification, known: list[str], labels: list[str]) -> None:
    """Have a loaded head that knows these labels in another order take this one; replace one that knows other labels.

    Args:
        model: A model with a head for `labels`.
        known: The labels of the model that was loaded; those without names are taken for `labels`.
        labels: The labels of the data.
    """
    # A head for another number of labels is a new one already.
    if known == labels or len(known) != len(labels) or known == [f"LABEL_{i}" for i in range(len(known))]:
        return
    head = model.classifier.weight
    if sorted(known) == sorted(labels):
        rows = head[[known.index(label) for label in labels]]
    else:
        rows = type(model)(model.config).classifier.weight
        logger.warning(f"--model: knows {', '.join(known)}; for {', '.join(labels)} it gets a new head")
    with torch.no_grad():
        head.copy_(rows)


@exit_with_one_line
def main() -> None:
    become_torchrun()
    data_arguments, model_arguments, training_arguments = parse_arguments(
        ARGUMENTS, description=__doc__.splitlines()[0]
    )
    check_best_metric(training_arguments, ("loss", "accuracy", "f1"))
    if data_arguments.soft_labels:
        if model_arguments.rdrop_alpha or training_arguments.label_smoothing_factor:
            raise ValueError("--soft_labels: neither with --rdrop_alpha nor with --label_smoothing_factor")
        if training_arguments.n_gpu > 1:
            # Trainer would multiply the loss by their number, as with every loss that is not the model's own.
            raise ValueError("--soft_labels: several devices need a process each, so start the script with torchrun")
    # What is missing is told before the training. scikit-learn draws a random number when it is imported, too: at the
    # first evaluation, a resumed run would draw it twice.
    import matplotlib  # noqa: F401
    import sklearn.metrics  # noqa: F401

    keep_token_out_of_files(training_arguments)
    with training_arguments.main_process_first(desc="data"):
        checkpoint = prepare_output_dir(training_arguments.output_dir, training_arguments.resume_from_checkpoint)
        # A wrong model is refused before the data are read.
        configs = [load_config(folder) for folder in (model_arguments.model, checkpoint) if folder]
        max_length = data_arguments.max_length
        if max_length is None:
            max_length = configs[0].max_position_embeddings if configs else 256
        data = data_arguments.load()
        labels = data["train"].features["label"].names
        described = {"source": data_arguments.data, **describe_splits(data)}
        soft_labels = None
        if data_arguments.soft_labels:
            soft_labels = load_soft_labels(data_arguments.soft_labels, len(labels))
            described["soft_labels"] = describe_soft_labels(data_arguments.soft_labels, data)
    if checkpoint is None:
        tokenizer = made_once(lambda: make_tokenizer(model_arguments, data, max_length))
    else:
        tokenizer = load_tokenizer(checkpoint)
    with training_arguments.main_process_first(desc="tokens"):
        tokenized = tokenize(data, tokenizer, max_length=max_length)
        train_dataset = tokenized["train"]
        if soft_labels is not None:
            soft = tokenize(soft_labels, tokenizer, max_length=max_length)
            train_dataset = add_soft_labels(train_dataset, soft, len(labels))
        if model_arguments.bpe_dropout:
            train_dataset = draw_segmentations(
                train_dataset,
                {"input_ids": tokenizer},
                rate=model_arguments.bpe_dropout,
                copies=model_arguments.segmentations or 10,
                max_length=max_length,
                seed=data_seed(training_arguments),
            )

    set_seed(training_arguments.seed)
    config = make_config(model_arguments, tokenizer, labels, max_length)
    if model_arguments.model:
        model = load_to_train(
            VanillaTransformerForSequenceClassification,
            model_arguments.model,
            config,
            attn_implementation=model_arguments.attn_implementation,
            ignore_mismatched_sizes=True,  # a head for another number of labels
        )
        fit_head(model, list(load_config(model_arguments.model).id2label.values()), labels)
    else:
        model = VanillaTransformerForSequenceClassification._from_config(
            config, attn_implementation=model_arguments.attn_implementation
        )

    others = list(load_alike(model, model_arguments.average_with))  # what does not fit is told before the training

    callbacks = []
    if model_arguments.early_stopping_patience is not None:
        if not training_arguments.load_best_model_at_end:
            raise ValueError("--early_stopping_patience: needs --load_best_model_at_end true, to know what is best")
        callbacks.append(EarlyStoppingCallback(model_arguments.early_stopping_patience))
        training_arguments.restore_callback_states_from_checkpoint = True  # a resumed run goes on counting
    trainer = CheckedTrainer(
        model,
        training_arguments,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=train_dataset,
        eval_dataset=tokenized["validation"],
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
        compute_loss_func=None if soft_labels is None else SoftLabelLoss(),
        callbacks=callbacks,
        rdrop_alpha=model_arguments.rdrop_alpha,
    )
    trained = trainer.train(resume_from_checkpoint=checkpoint)

    folder = training_arguments.output_dir
    if others:
        average_with(model, others)
    weights_dtype = getattr(torch, model_arguments.weights_dtype)
    round_weights(model, weights_dtype)
    trainer.save_model(folder, _internal_call=True)  # pushed at the end, with the record
    if weights_dtype != torch.float32 and trainer.is_world_process_zero():
        save_weights_in(model, folder, weights_dtype)
    metrics = {
        "best_step": best_step(trainer.args, trainer.state),
        "training_seconds": round(trained.metrics["train_runtime"], 1),
        "epochs": epochs(trainer.state.log_history),
        **{split: evaluate_split(trainer, tokenized[split]) for split in ("train", "validation", "test")},
    }
    if not trainer.is_world_process_zero():
        return
    save_record(
        folder,
        model,
        metrics=metrics,
        settings=given_settings(ARGUMENTS),
        seed=training_arguments.seed,
        resumed_from=checkpoint,
        began_as=model_arguments.model,
        averaged_with=model_arguments.average_with,
        data=described,
    )
    save_model_card(folder)
    print(f"test accuracy: {metrics['test']['accuracy']:.4f}")
    upload_run(trainer)


if __name__ == "__main__":
    main()
