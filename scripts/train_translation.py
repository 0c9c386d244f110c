"""Train a translator on parallel text, and leave a folder that AutoModelForSeq2SeqLM loads.

    python scripts/train_translation.py scripts/recipes/multi30k-en-de.yaml --data FOLDER --output_dir runs/en-de
    python scripts/train_translation.py --data pairs.tsv --source_column ko --target_column en --output_dir runs/ko-en
    python scripts/train_translation.py --data mine.tsv --source_column en --target_column de --model runs/en-de \
        --output_dir runs/mine

Flags override the recipe; besides those below, every one of transformers' Seq2SeqTrainingArguments is one. An
interrupted run goes on with the same command and `--resume_from_checkpoint`.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from datasets import Dataset, DatasetDict
from tokenizers.models import WordLevel
from transformers import (
    DataCollatorForSeq2Seq,
    EvalPrediction,
    GenerationConfig,
    PreTrainedTokenizerBase,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    set_seed,
)
from transformers.trainer_utils import SaveStrategy

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.arguments import (
    ONLY_DROPOUT,
    RegularizationArguments,
    become_torchrun,
    check_best_metric,
    exit_with_one_line,
    fill_in,
    given_settings,
    parse_arguments,
    read_mapping,
)
from hf_vanilla_transformer.bpe_dropout import draw_segmentations
from hf_vanilla_transformer.checkpoints import (
    DROPOUT_FIELDS,
    average_checkpoints,
    last_checkpoints,
    load_config,
    load_target_tokenizer,
    load_to_train,
    load_tokenizer,
    prepare_output_dir,
    round_weights,
    save_weights_in,
)
from hf_vanilla_transformer.hub import keep_token_out_of_files, upload_run
from hf_vanilla_transformer.metrics import compute_perplexity, token_losses, translation_report, word_report
from hf_vanilla_transformer.model_card import save_model_card
from hf_vanilla_transformer.parallel_text import load_parallel_text, tokenize_pairs
from hf_vanilla_transformer.record import TARGET_TOKENIZER, best_step, describe_splits, epochs, save_record
from hf_vanilla_transformer.tokenizer import has_capitals, train_tokenizer
from hf_vanilla_transformer.training import CheckedSeq2SeqTrainer, TokenBudgetTrainer, data_seed, made_once


@dataclass
class DataArguments:
    source_column: str = field(metadata={"help": "Column, or ending of the files, with the texts to translate."})
    target_column: str = field(metadata={"help": "Column, or ending of the files, with the translations."})
    data: str = field(metadata={"help": "A folder of aligned files, a TSV/CSV/JSON file, or a Hub data set."})
    train_prefix: str | None = field(default=None, metadata={"help": "How the training files' names begin."})
    validation_prefix: str | None = field(default=None, metadata={"help": "How the validation files' names begin."})
    test_prefix: str | None = field(default=None, metadata={"help": "How the test files' names begin."})
    validation_fraction: float = field(default=0.05, metadata={"help": "Share of train that is kept for validation."})
    split_seed: int = field(default=42, metadata={"help": "Seed of the cut between train and validation."})

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that were given, by split."""
        given = {"train": self.train_prefix, "validation": self.validation_prefix, "test": self.test_prefix}
        return {split: prefix for split, prefix in given.items() if prefix is not None}


@dataclass
class ModelArguments(RegularizationArguments):
    model: str | None = field(
        default=None,
        metadata={
            "help": "A translator's folder or Hub name to train further, vocabularies and all; by default a new model."
        },
    )
    preset: str | None = field(
        default=None, metadata={"help": "A new model's preset of VanillaTransformerConfig, by default `base`."}
    )
    config: str = field(
        default="{}",
        metadata={
            "help": "Fields that differ from the preset, of --model the rates of dropout: "
            "JSON here, a mapping in a recipe."
        },
    )
    vocabularies: Literal["joint", "separate"] | None = field(
        default=None,
        metadata={
            "help": "`joint`, by default: one for both languages, with shared and tied embeddings; `separate`: two."
        },
    )
    tokenizer_model: Literal["bpe", "unigram", "word"] | None = field(
        default=None, metadata={"help": "`bpe`, by default, `unigram` or `word`."}
    )
    vocab_size: int | None = field(
        default=None, metadata={"help": "Size of the joint or the source vocabulary, by default 8000."}
    )
    target_vocab_size: int | None = field(
        default=None,
        metadata={"help": "Size of a separate vocabulary of the target, by default as the source's."},
    )
    lowercase: bool = field(default=False, metadata={"help": "Make upper and lower case one."})
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens kept of a sentence; by default 256, or as many as --model keeps."}
    )
    max_tokens: int | None = field(
        default=None,
        metadata={"help": "Fill training batches up to this number of tokens, in place of a number of sentences."},
    )
    max_sentences: int | None = field(
        default=None, metadata={"help": "With --max_tokens, the greatest number of sentences in a training batch."}
    )
    attn_implementation: str = field(
        default="sdpa", metadata={"help": "`sdpa`, or `eager`: on CPUs faster to train with short sentences."}
    )
    average_last: int = field(
        default=1, metadata={"help": "Give the mean of the last checkpoints' weights, this many; 1 is the last alone."}
    )
    length_penalty: float = field(
        default=1.0, metadata={"help": "Exponent of the length that a beam's score is divided by; more is longer."}
    )
    weights_dtype: Literal["float32", "float16", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Precision the trained weights are rounded to before they are measured and saved."},
    )

    def __post_init__(self):
        super().__post_init__()
        self.config = read_mapping("--config", self.config)
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"--max_length: at least 1, not {self.max_length}")
        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise ValueError(ONLY_DROPOUT)
        new = {"preset": "base", "vocabularies": "joint", "tokenizer_model": "bpe", "vocab_size": 8000}
        fill_in(self, "model", **new, target_vocab_size=None)
        if self.target_vocab_size is not None and self.vocabularies == "joint":
            raise ValueError("--target_vocab_size: needs --vocabularies separate")
        if self.average_last < 1:
            raise ValueError(f"--average_last: at least 1, not {self.average_last}")
        if self.max_sentences is not None and (self.max_tokens is None or self.max_sentences < 1):
            raise ValueError("--max_sentences: at least 1, and with --max_tokens")


ARGUMENTS = [DataArguments, ModelArguments, Seq2SeqTrainingArguments]


def check_averaging(number: int, arguments: Seq2SeqTrainingArguments) -> None:
    """See that the last checkpoints, this many, will be there.

    Raises:
        ValueError: the arguments say otherwise.
    """
    if arguments.load_best_model_at_end:
        raise ValueError("--average_last: takes the last checkpoints, --load_best_model_at_end the best one: choose")
    if arguments.save_strategy == SaveStrategy.NO:
        raise ValueError("--average_last: takes checkpoints, which --save_strategy no does not leave")
    if number > (arguments.save_total_limit or number):
        raise ValueError(
            f"--average_last: {number} checkpoints, but --save_total_limit is {arguments.save_total_limit}"
        )


def load_parts(
    arguments: ModelArguments,
) -> tuple[VanillaTransformerConfig, PreTrainedTokenizerBase, PreTrainedTokenizerBase]:
    """Configuration and tokenizers of the translator that the arguments name, with what they change.

    Raises:
        ValueError: it cannot be read, is no translator, or reads fewer tokens than are to be kept.
        huggingface_hub.errors.StrictDataclassError: a rate of dropout is none.
    """
    config = load_config(arguments.model)
    config.update(arguments.config)
    config.validate()
    tokenizer = load_tokenizer(arguments.model)
    target_tokenizer = load_target_tokenizer(arguments.model, config, tokenizer)
    limit = min(config.max_position_embeddings, config.max_target_positions)
    if (arguments.max_length or limit) > limit:
        raise ValueError(f"--max_length: {arguments.max_length} is more than the model's {limit} positions")
    for one in (tokenizer, target_tokenizer):
        if not one.is_fast or one("")["input_ids"] != [config.eos_token_id]:
            raise ValueError(
                f"{arguments.model}: no translator, a fast tokenizer that ends texts with [EOS] is needed"
            )
        one.model_max_length = arguments.max_length or limit
    return config, tokenizer, target_tokenizer


def make_tokenizers(
    arguments: ModelArguments, train: Dataset
) -> tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase]:
    """The tokenizers of source and target, trained on the training pairs; the same one where they are joint."""
    options = {
        "model": arguments.tokenizer_model,
        "lowercase": arguments.lowercase,
        "max_length": arguments.max_length or 256,
        "add_eos": True,
    }
    sources, targets = train["source"][:], train["target"][:]
    if arguments.vocabularies == "joint":
        tokenizer = train_tokenizer(sources + targets, vocab_size=arguments.vocab_size, **options)
        return tokenizer, tokenizer
    target_vocab_size = arguments.vocab_size if arguments.target_vocab_size is None else arguments.target_vocab_size
    return (
        train_tokenizer(sources, vocab_size=arguments.vocab_size, **options),
        train_tokenizer(targets, vocab_size=target_vocab_size, **options),
    )


def make_config(
    arguments: ModelArguments, tokenizer: PreTrainedTokenizerBase, target_tokenizer: PreTrainedTokenizerBase
) -> VanillaTransformerConfig:
    """The preset's configuration with sizes and ids that fit the vocabularies.

    Raises:
        ValueError: the fields of `arguments.config` leave no room for them.
        huggingface_hub.errors.StrictDataclassError: the fields contradict each other.
    """
    joint = arguments.vocabularies == "joint"
    config = VanillaTransformerConfig.from_preset(
        arguments.preset,
        **{
            "vocab_size": len(tokenizer),
            "decoder_vocab_size": None if joint else len(target_tokenizer),
            "share_encoder_decoder_embeddings": joint,
            "tie_word_embeddings": joint,
            "max_position_embeddings": tokenizer.model_max_length,
            "decoder_max_position_embeddings": None,
            "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "decoder_start_token_id": tokenizer.bos_token_id,
            **arguments.config,
        },
    )
    if config.vocab_size < len(tokenizer) or config.target_vocab_size < len(target_tokenizer):
        raise ValueError("--config: the vocabularies do not fit the sizes that it gives (--vocab_size sets both)")
    return config


def make_trainer(
    model: VanillaTransformerForConditionalGeneration,
    arguments: ModelArguments,
    training_arguments: Seq2SeqTrainingArguments,
    tokenized: DatasetDict,
    tokenizer: PreTrainedTokenizerBase,
    target_tokenizer: PreTrainedTokenizerBase,
) -> Seq2SeqTrainer:
    """The trainer that fills its batches as the arguments say, and measures BLEU where it is to generate."""

    def compute_metrics(prediction: EvalPrediction) -> dict[str, float]:
        report = translation_report(
            decode(target_tokenizer, prediction.predictions), decode(target_tokenizer, prediction.label_ids)
        )
        return {name: report[name] for name in ("bleu", "bleu_lowercased")}

    options = {
        "model": model,
        "args": training_arguments,
        "data_collator": DataCollatorForSeq2Seq(tokenizer, model=model),
        "train_dataset": tokenized["train"],
        "eval_dataset": tokenized["validation"].sort("length"),
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics if training_arguments.predict_with_generate else None,
        "rdrop_alpha": arguments.rdrop_alpha,
    }
    if arguments.max_tokens is None:
        return CheckedSeq2SeqTrainer(**options)
    return TokenBudgetTrainer(max_tokens=arguments.max_tokens, max_rows=arguments.max_sentences, **options)


def decode(tokenizer: PreTrainedTokenizerBase, ids) -> list[str]:
    """Texts of padded rows of ids, (B, T); pads may be -100."""
    ids = [[token if token >= 0 else tokenizer.pad_token_id for token in row] for row in ids.tolist()]
    return tokenizer.batch_decode(ids, skip_special_tokens=True)


def measure(
    trainer: Seq2SeqTrainer, data: Dataset, split: Dataset, tokenizer: PreTrainedTokenizerBase, beams: set[int]
) -> dict[str, Any]:
    """Perplexity of one split, and BLEU of each search against the references as they were written.

    Models that write as the tutorials' do, in words or without capitals, are measured as the tutorials do, too.
    """
    order = sorted(range(len(split)), key=split["length"][:].__getitem__)
    by_length = split.select(order)
    trainer.args.train_sampling_strategy = "sequential"  # any grouping reorders what is evaluated, too
    trainer.args.predict_with_generate = False
    trainer.compute_metrics, trainer.preprocess_logits_for_metrics = compute_perplexity, token_losses
    measured = trainer.predict(by_length).metrics
    report = {"loss": measured["test_token_loss"], "perplexity": measured["test_perplexity"]}

    trainer.args.predict_with_generate = True
    trainer.compute_metrics, trainer.preprocess_logits_for_metrics = None, None
    references = data.select(order)["target"][:]
    for num_beams in sorted(beams):
        ids = trainer.predict(by_length, num_beams=num_beams).predictions
        report[f"beams_{num_beams}"] = translation_report(decode(tokenizer, ids), references)
        if isinstance(tokenizer.backend_tokenizer.model, WordLevel) or not has_capitals(tokenizer):
            report[f"beams_{num_beams}"] |= word_report(ids.tolist(), references, tokenizer)
    return report


@exit_with_one_line
def main() -> None:
    become_torchrun()
    data_arguments, model_arguments, training_arguments = parse_arguments(
        ARGUMENTS, description=__doc__.splitlines()[0]
    )
    bleu = ("bleu", "bleu_lowercased") if training_arguments.predict_with_generate else ()
    check_best_metric(training_arguments, ("loss", *bleu))
    # What is missing is told before the training.
    import matplotlib  # noqa: F401
    import sacrebleu  # noqa: F401

    keep_token_out_of_files(training_arguments)
    folder = training_arguments.output_dir
    beams = training_arguments.generation_num_beams or 1
    if beams == 1 and model_arguments.length_penalty != 1:
        raise ValueError("--length_penalty: needs --generation_num_beams above 1")
    if model_arguments.average_last > 1:
        check_averaging(model_arguments.average_last, training_arguments)
    with training_arguments.main_process_first(desc="data"):
        checkpoint = prepare_output_dir(folder, training_arguments.resume_from_checkpoint)
        # A wrong model is refused before the data are read.
        if model_arguments.model:
            config, tokenizer, target_tokenizer = load_parts(model_arguments)
        data = load_parallel_text(
            data_arguments.data,
            data_arguments.source_column,
            data_arguments.target_column,
            prefixes=data_arguments.prefixes,
            validation_fraction=data_arguments.validation_fraction,
            seed=data_arguments.split_seed,
        )
    if not model_arguments.model:
        tokenizer, target_tokenizer = made_once(lambda: make_tokenizers(model_arguments, data["train"]))
        config = make_config(model_arguments, tokenizer, target_tokenizer)
    tokenized = tokenize_pairs(data, tokenizer, target_tokenizer)
    if model_arguments.bpe_dropout:
        tokenized["train"] = draw_segmentations(
            tokenized["train"],
            {"input_ids": tokenizer, "labels": target_tokenizer},
            rate=model_arguments.bpe_dropout,
            copies=model_arguments.segmentations or 10,
            max_length=tokenizer.model_max_length,
            seed=data_seed(training_arguments),
        )

    set_seed(training_arguments.seed)
    options = {"config": config, "attn_implementation": model_arguments.attn_implementation}
    if model_arguments.model:
        model = load_to_train(VanillaTransformerForConditionalGeneration, model_arguments.model, **options)
    else:
        model = VanillaTransformerForConditionalGeneration._from_config(**options)
    model.generation_config = GenerationConfig.from_model_config(config)
    model.generation_config.use_cache = True  # whatever Trainer wrote into the configuration of the model before
    model.generation_config.max_length = config.max_target_positions
    if beams > 1:
        model.generation_config.num_beams = beams
        model.generation_config.length_penalty = model_arguments.length_penalty
    trainer = make_trainer(model, model_arguments, training_arguments, tokenized, tokenizer, target_tokenizer)
    trained = trainer.train(resume_from_checkpoint=checkpoint)

    averaged = []
    if model_arguments.average_last > 1:
        trainer.accelerator.wait_for_everyone()  # the last checkpoint is written by one process
        averaged = last_checkpoints(folder, model_arguments.average_last)
        model.load_state_dict(average_checkpoints(averaged).state_dict())
    weights_dtype = getattr(torch, model_arguments.weights_dtype)
    round_weights(model, weights_dtype)
    trainer.save_model(folder, _internal_call=True)  # pushed at the end, with the record
    if weights_dtype != torch.float32 and trainer.is_world_process_zero():
        save_weights_in(model, folder, weights_dtype)
    if target_tokenizer is not tokenizer and trainer.is_world_process_zero():
        target_tokenizer.save_pretrained(f"{folder}/{TARGET_TOKENIZER}")
    metrics = {
        "best_step": best_step(trainer.args, trainer.state),
        "averaged_steps": [int(checkpoint.rsplit("-", 1)[1]) for checkpoint in averaged],
        "training_seconds": round(trained.metrics["train_runtime"], 1),
        "epochs": epochs(trainer.state.log_history),
    }
    for split in ("validation", "test"):
        metrics[split] = measure(trainer, data[split], tokenized[split], target_tokenizer, {1, beams})
    if not trainer.is_world_process_zero():
        return
    settings = given_settings(ARGUMENTS)
    if model_arguments.model:
        settings["lowercase"] = not has_capitals(target_tokenizer)  # its own, whatever a flag says
    save_record(
        folder,
        model,
        metrics=metrics,
        settings=settings,
        seed=training_arguments.seed,
        resumed_from=checkpoint,
        began_as=model_arguments.model,
        data={"source": data_arguments.data, **describe_splits(data)},
    )
    save_model_card(folder)
    report = metrics["test"][f"beams_{beams}"]
    if not has_capitals(target_tokenizer):
        print(f"test BLEU, lower-cased: {report['bleu_lowercased']:.2f}")
    else:
        print(f"test BLEU: {report['bleu']:.2f}")
    upload_run(trainer)


if __name__ == "__main__":
    main()
