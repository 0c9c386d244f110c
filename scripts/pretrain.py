"""Pretrain an encoder-decoder by denoising lines of plain text, and leave a folder to fine-tune.

    python scripts/pretrain.py scripts/recipes/pretrain-reviews.yaml --texts reviews.txt.gz --output_dir runs/reviews
    python scripts/train_classifier.py --data nsmc --model runs/reviews --output_dir runs/nsmc

A model with one vocabulary that was trained before, a classifier, too, goes on with --model: on your own texts, for
longer, or deeper. `--config '{"encoder_layers": 12}'` puts new layers on top of its encoder, which change nothing
until they have learned.
The lines are tokenized once and kept in the cache of `datasets`. With `--streaming true` they are read anew all the
time, for a corpus that is too large for that: then --tokenizer, --max_steps and a number of lines for --validation
must be given, a batch has a number of lines, there is one process, and resuming reads up to where it goes on.

Flags override the recipe; besides those below, every one of transformers' Seq2SeqTrainingArguments is one. An
interrupted run goes on with the same command and `--resume_from_checkpoint`, and sees the batches that it would have
seen (but for `--train_sampling_strategy group_by_length`, whose order transformers does not keep within an epoch;
--max_tokens groups by length, too).
"""

from dataclasses import dataclass, field
from typing import Literal

from transformers import (
    GenerationConfig,
    PreTrainedTokenizerBase,
    Seq2SeqTrainingArguments,
    set_seed,
)

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.arguments import (
    StartArguments,
    become_torchrun,
    check_best_metric,
    exit_with_one_line,
    fill_in,
    given_settings,
    parse_arguments,
    read_mapping,
)
from hf_vanilla_transformer.checkpoints import (
    DROPOUT_FIELDS,
    LAYER_FIELDS,
    load_config,
    load_to_train,
    load_tokenizer,
    load_tokenizer_to_train,
    prepare_output_dir,
)
from hf_vanilla_transformer.hub import keep_token_out_of_files, upload_run
from hf_vanilla_transformer.metrics import compute_perplexity, token_losses
from hf_vanilla_transformer.model_card import save_model_card
from hf_vanilla_transformer.pretraining import (
    SpanInfilling,
    load_corpus,
    stream_corpus,
    tokenize_corpus,
)
from hf_vanilla_transformer.record import best_step, epochs, file_checksum, save_record
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training import CheckedSeq2SeqTrainer, TokenBudgetTrainer, data_seed, made_once


@dataclass
class DataArguments:
    texts: list[str] = field(metadata={"help": "Files with one text per line, UTF-8, plain or .gz."})
    validation: float = field(
        default=0.01, metadata={"help": "Held back for validation: a share of the lines, or from 1 on their number."}
    )
    split_seed: int = field(default=42, metadata={"help": "Seed of the choice of these lines."})
    streaming: bool = field(default=False, metadata={"help": "Read the lines while training, and keep none."})
    max_length: int | None = field(
        default=None,
        metadata={"help": "Tokens kept of a line, and one; by default 128, or as many as --model has positions."},
    )
    max_tokens: int | None = field(
        default=None,
        metadata={"help": "Fill training batches up to this number of tokens, in place of a number of lines."},
    )

    def __post_init__(self):
        if self.max_length is not None and self.max_length < 2:
            raise ValueError(f"--max_length: at least 2, not {self.max_length}")


@dataclass
class DenoisingArguments:
    mask_rate: float = field(default=0.3, metadata={"help": "Share of the tokens that are hidden."})
    mean_span_length: float = field(default=3.0, metadata={"help": "Mean length of the spans, Poisson's."})
    target: Literal["text", "spans"] = field(
        default="text", metadata={"help": "What the decoder writes: the whole `text` (BART), or the `spans` (T5)."}
    )


@dataclass
class ModelArguments(StartArguments):
    preset: str | None = field(
        default=None, metadata={"help": "A new model's preset of VanillaTransformerConfig, by default `base`."}
    )
    config: str = field(
        default="{}",
        metadata={
            "help": "Fields that differ from the preset, of --model the rates of dropout, or more layers: "
            "JSON here, a mapping in a recipe."
        },
    )
    attn_implementation: str = field(
        default="sdpa", metadata={"help": "`sdpa`, or `eager`: on CPUs faster to train with short texts."}
    )

    def __post_init__(self):
        super().__post_init__()
        self.config = read_mapping("--config", self.config)
        if self.model and set(self.config) - DROPOUT_FIELDS - set(LAYER_FIELDS):
            raise ValueError(
                "--config: of --model, only the rates of dropout and the numbers of layers can be changed; "
                "a recipe's `config` is for a new model"
            )
        fill_in(self, "model", preset="base")


ARGUMENTS = [DataArguments, DenoisingArguments, ModelArguments, Seq2SeqTrainingArguments]


def check_streaming(data: DataArguments, model: ModelArguments, training: Seq2SeqTrainingArguments) -> None:
    """See that nothing is asked for that needs the whole corpus.

    Raises:
        ValueError: something is.
    """
    for problem, remedy in (
        (training.max_steps <= 0, "--max_steps, for the stream has no end"),
        (not (model.tokenizer or model.model), "--tokenizer, as scripts/train_tokenizer.py makes one"),
        (
            data.validation < 1 or data.validation % 1 != 0,
            "--validation as a number of lines, for nobody knows how many there are",
        ),
        (data.max_tokens is not None, "no --max_tokens, but --per_device_train_batch_size"),
        (training.dataloader_num_workers > 1, "--dataloader_num_workers 0 or 1"),
        (training.world_size > 1, "a single process"),
    ):
        if problem:
            raise ValueError(f"--streaming: needs {remedy}")


def make_tokenizer(arguments: ModelArguments, texts: list[str] | None, max_length: int) -> PreTrainedTokenizerBase:
    """The tokenizer that the arguments name, or one trained on the training texts.

    Raises:
        ValueError: it cannot be read, lacks a special token, or is not the model's.
    """
    if arguments.tokenizer or arguments.model:
        needed = ("pad_token", "bos_token", "eos_token", "unk_token", "mask_token")
        return load_tokenizer_to_train(arguments.tokenizer, arguments.model, needed, max_length)
    return train_tokenizer(
        texts[:], vocab_size=arguments.vocab_size, model=arguments.tokenizer_model, max_length=max_length
    )


def make_config(
    arguments: ModelArguments, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> VanillaTransformerConfig:
    """The configuration of the model that the arguments name, or the preset's with what fits the tokenizer.

    Raises:
        ValueError: no such model, preset or field, or they do not fit tokenizer and length.
        huggingface_hub.errors.StrictDataclassError: the fields contradict each other.
    """
    if arguments.model:
        config = load_config(arguments.model)
        layers = {name: getattr(config, name) for name in LAYER_FIELDS}
        config.update(arguments.config)
        config.validate()
        for name, number in layers.items():
            if getattr(config, name) < number:
                raise ValueError(f"--config: {name} of --model is {number}, and cannot become less")
            if getattr(config, name) > number and not config.norm_first:
                raise ValueError(f"--config: {name} of --model cannot become more, for it has no norm_first")
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            if getattr(tokenizer, name) != getattr(config, name):
                raise ValueError(
                    f"--tokenizer: its {name} is {getattr(tokenizer, name)}, --model's is {getattr(config, name)}"
                )
    else:
        config = VanillaTransformerConfig.from_preset(
            arguments.preset,
            **{
                "vocab_size": len(tokenizer),
                "decoder_vocab_size": None,
                "share_encoder_decoder_embeddings": True,
                "tie_word_embeddings": True,
                "max_position_embeddings": max_length,
                "decoder_max_position_embeddings": None,
                "pad_token_id": tokenizer.pad_token_id,
                "bos_token_id": tokenizer.bos_token_id,
                "eos_token_id": tokenizer.eos_token_id,
                # What the classifier's decoder reads, too.
                "decoder_start_token_id": tokenizer.bos_token_id,
                **arguments.config,
            },
        )
    if config.decoder_vocab_size is not None or config.vocab_size < len(tokenizer):
        raise ValueError(
            f"{arguments.model or '--config'}: one vocabulary, of at least the tokenizer's {len(tokenizer)} tokens, "
            "is needed"
        )
    if min(config.max_position_embeddings, config.max_target_positions) < max_length:
        raise ValueError(f"--max_length: {max_length} is more than the model has positions")
    return config


@exit_with_one_line
def main() -> None:
    become_torchrun()
    data_arguments, denoising_arguments, model_arguments, training_arguments = parse_arguments(
        ARGUMENTS, description=__doc__.splitlines()[0]
    )
    if training_arguments.predict_with_generate:
        raise ValueError("--predict_with_generate: what is measured is the loss of the text, not what is generated")
    check_best_metric(training_arguments, ("loss", "token_loss", "perplexity"))
    import matplotlib  # noqa: F401  # what is missing is told before the training

    keep_token_out_of_files(training_arguments)
    folder = training_arguments.output_dir
    # The collator reads columns that the model does not.
    training_arguments.remove_unused_columns = False
    with training_arguments.main_process_first(desc="data"):
        checkpoint = prepare_output_dir(folder, training_arguments.resume_from_checkpoint)
        # A wrong model is refused before the data are read.
        before = load_config(model_arguments.model) if model_arguments.model else None
        positions = min(before.max_position_embeddings, before.max_target_positions) if before else 128
        max_length = data_arguments.max_length or positions
        if data_arguments.streaming:
            check_streaming(data_arguments, model_arguments, training_arguments)
            corpus = None
        else:
            corpus = load_corpus(
                data_arguments.texts, validation=data_arguments.validation, seed=data_arguments.split_seed
            )
    if checkpoint is None or data_arguments.streaming:
        texts = None if corpus is None else corpus["train"]["text"]
        tokenizer = made_once(lambda: make_tokenizer(model_arguments, texts, max_length))
    else:
        tokenizer = load_tokenizer(checkpoint)

    with training_arguments.main_process_first(desc="tokens"):
        if corpus is None:
            train, validation = stream_corpus(
                data_arguments.texts,
                tokenizer,
                max_length - 1,
                validation=int(data_arguments.validation),
                seed=data_arguments.split_seed,
            )
        else:
            tokenized = tokenize_corpus(corpus, tokenizer, max_length - 1)
            train, validation = tokenized["train"], tokenized["validation"]
        config = make_config(model_arguments, tokenizer, max_length)
        collator = SpanInfilling(
            tokenizer,
            config,
            mask_rate=denoising_arguments.mask_rate,
            mean_span_length=denoising_arguments.mean_span_length,
            target=denoising_arguments.target,
            seed=data_seed(training_arguments),
        )
        validation = collator.corrupted(validation.sort("length"))

    set_seed(training_arguments.seed)
    if model_arguments.model:
        model = load_to_train(
            VanillaTransformerForConditionalGeneration,
            model_arguments.model,
            config,
            attn_implementation=model_arguments.attn_implementation,
        )
    else:
        model = VanillaTransformerForConditionalGeneration._from_config(
            config, attn_implementation=model_arguments.attn_implementation
        )
    model.generation_config = GenerationConfig.from_model_config(config)
    model.generation_config.use_cache = True  # whatever Trainer wrote into the configuration of the model before
    model.generation_config.max_length = config.max_target_positions
    options = {
        "model": model,
        "args": training_arguments,
        "data_collator": collator,
        "train_dataset": train,
        "eval_dataset": validation,
        "processing_class": tokenizer,
        "compute_metrics": compute_perplexity,
        "preprocess_logits_for_metrics": token_losses,
        "callbacks": [collator.callback],
    }
    if data_arguments.max_tokens is None:
        trainer = CheckedSeq2SeqTrainer(**options)
    else:
        trainer = TokenBudgetTrainer(max_tokens=data_arguments.max_tokens, **options)
    trained = trainer.train(resume_from_checkpoint=checkpoint)

    trainer.save_model(folder, _internal_call=True)  # pushed at the end, with the record
    evaluations = epochs(trainer.state.log_history)
    measured = trainer.evaluate()
    if not trainer.is_world_process_zero():
        return
    metrics = {
        "best_step": best_step(trainer.args, trainer.state),
        "training_seconds": round(trained.metrics["train_runtime"], 1),
        "epochs": evaluations,
        "validation": {
            "loss": measured["eval_token_loss"],
            "perplexity": measured["eval_perplexity"],
            "rows": len(validation),
        },
    }
    save_record(
        folder,
        model,
        metrics=metrics,
        settings=given_settings(ARGUMENTS),
        seed=training_arguments.seed,
        resumed_from=checkpoint,
        began_as=model_arguments.model,
        data={
            "source": {file: file_checksum(file) for file in data_arguments.texts},
            "train": {"rows": None if data_arguments.streaming else len(train)},
            "validation": {"rows": len(validation)},
        },
    )
    save_model_card(folder)
    print(f"validation perplexity: {metrics['validation']['perplexity']:.3f}")
    upload_run(trainer)


if __name__ == "__main__":
    main()
