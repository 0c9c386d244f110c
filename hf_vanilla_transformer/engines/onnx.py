# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The engine of models in ONNX files: onnxruntime computes, transformers searches."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import GenerationConfig, GenerationMixin, PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..modeling_vanilla_transformer import CACHE, accept_past_key_values
from .batches import BatchEngine
from .engine import end_tokens, import_extra, special_settings


# The files of an exported folder, as transformers.js and optimum name them.
FOLDER = "onnx"
FILES = {"classification": ["model"], "translation": ["encoder_model", "decoder_model_merged"]}


def file_names(task: str, quantize: str | None) -> list[str]:
    """The files of a model in an exported folder.

    Args:
        task: `"classification"` or `"translation"`.
        quantize: The precision of the weights, None for float32.

    Returns:
        Paths from the folder, in the order in which they are needed.
    """
    return [f"{FOLDER}/{name}{'_quantized' if quantize else ''}.onnx" for name in FILES[task]]


def past_names(config: VanillaTransformerConfig, prefix: str = "past_key_values") -> list[str]:
    """The names of a decoder's keys and values, those of a layer one after the other, as optimum gives them."""
    parts = [f"{side}.{part}" for side in ("decoder", "encoder") for part in ("key", "value")]
    return [f"{prefix}.{layer}.{part}" for layer in range(config.decoder_layers) for part in parts]


class OnnxEngine(BatchEngine):
    """Computes on the CPU with onnxruntime, with as many threads as torch would use.

    Args:
        folder: The exported folder.
        export: Its record.

    Raises:
        ValueError: onnxruntime cannot read the files.
        ImportError: onnxruntime is not installed.
    """

    def __init__(self, folder: str, export: dict[str, Any]):
        onnxruntime = import_extra("onnxruntime", "onnxruntime", "onnx")
        self.config = VanillaTransformerConfig.from_dict(export["config"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3  # errors only
        if export["task"] == "translation":
            # Between two steps torch computes. Waiting threads that spin would slow it: five beams took twice as long.
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.sessions = []
        for name in file_names(export["task"], export["quantize"]):
            try:
                session = onnxruntime.InferenceSession(
                    str(Path(folder, name)), options, providers=["CPUExecutionProvider"]
                )
            except Exception as error:  # onnxruntime's own classes have no other base
                raise ValueError(f"{folder}: {name}: {error}") from error
            self.sessions.append(session)
        if export["task"] == "translation":
            encoder, decoder = self.sessions
            self.generator: Any = _Generator(self.config, encoder, decoder, GenerationConfig(**export["generation"]))

    @classmethod
    def load(cls, folder: str, export: dict[str, Any] | None, dtype: str) -> "OnnxEngine":
        return cls(folder, export)

    def batch_logits(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> np.ndarray:
        (session,) = self.sessions
        return session.run(None, {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()})[0]

    @torch.inference_mode()
    def generate(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, num_beams: int, max_length: int
    ) -> torch.Tensor | np.ndarray:
        if num_beams == 1 and not special_settings(self.generator.generation_config):
            return self.generator.greedy_search(input_ids, attention_mask, max_length - 1)
        return self.generator.generate(
            input_ids, attention_mask=attention_mask, num_beams=num_beams, do_sample=False, max_length=max_length
        )

    @torch.inference_mode()
    def target_logits(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor
    ) -> torch.Tensor:
        encoded = self.generator.encoder(input_ids, attention_mask)
        return self.generator(decoder_input_ids, encoder_outputs=encoded, attention_mask=attention_mask).logits


class _Encoder(nn.Module):
    main_input_name = "input_ids"

    def __init__(self, session):
        super().__init__()
        self.session = session

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_) -> BaseModelOutput:
        feed = {"input_ids": input_ids.numpy(), "attention_mask": attention_mask.numpy()}
        return BaseModelOutput(last_hidden_state=torch.from_numpy(self.session.run(None, feed)[0]))


class _Generator(PreTrainedModel, GenerationMixin):
    """A translator for transformers' search that has no weights: its parts are sessions of onnxruntime."""

    config: VanillaTransformerConfig
    main_input_name = "input_ids"
    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, config: VanillaTransformerConfig, encoder, decoder, generation_config: GenerationConfig):
        super().__init__(config)
        self.encoder = _Encoder(encoder)
        self.decoder_session = decoder
        self.generation_config = generation_config

    def get_encoder(self) -> _Encoder:  # type: ignore[override]  # there is one
        return self.encoder

    def decode(
        self, input_ids: np.ndarray, states: np.ndarray, mask: np.ndarray, past: dict[str, np.ndarray] | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Decode T tokens; shapes as in `export.graphs.save_decoder_with_past`.

        Args:
            input_ids: (B, T).
            states: (B, S, D), the encoder's output.
            mask: (B, S), the source's.
            past: What the call before returned; None for the first tokens.

        Returns:
            The logits (B, T, V), and the keys and values by the names of `past_names`.
        """
        names = asked = past_names(self.config)
        if past is None:
            heads = self.config.decoder_attention_heads
            shape = len(input_ids), heads, 0, self.config.head_dim or self.config.d_model // heads
            past = dict.fromkeys(names, np.empty(shape, np.float32))
        else:
            asked = [name for name in names if ".decoder." in name]  # the source's stay the same
        feed = {"input_ids": input_ids, "encoder_hidden_states": states, "encoder_attention_mask": mask, **past}
        outputs = ["logits", *(name.replace("past_key_values", "present") for name in asked)]
        logits, *present = self.decoder_session.run(outputs, feed)
        return logits, past | dict(zip(asked, present, strict=True))

    def greedy_search(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, max_new_tokens: int) -> np.ndarray:
        """`generate` without beams and special settings; a step of a small model costs less than half.

        Returns:
            (B, T), each row filled up with padding after its end token.
        """
        states, mask = self.encoder(input_ids, attention_mask).last_hidden_state.numpy(), attention_mask.numpy()
        tokens = np.full(len(mask), self.config.decoder_start_token_id)
        ended = np.zeros(len(mask), dtype=bool)
        past = None
        steps: list[np.ndarray] = []
        while len(steps) < max_new_tokens and not ended.all():
            logits, past = self.decode(tokens[:, None], states, mask, past)
            tokens = np.where(ended, self.config.pad_token_id or 0, logits[:, -1].argmax(axis=-1))
            ended |= np.isin(tokens, end_tokens(self.config))
            steps.append(tokens)
        return np.stack(steps, axis=1)

    @accept_past_key_values
    def forward(
        self,
        decoder_input_ids: torch.Tensor,
        encoder_outputs: BaseModelOutput,
        attention_mask: torch.Tensor,
        cache: EncoderDecoderCache | None = None,
        **_,
    ) -> Seq2SeqLMOutput:
        """`decode`, as transformers' search calls it."""
        past, cross = None, None
        if cache is not None and cache.get_seq_length() > 0:
            cross = cache.cross_attention_cache
            layers: Any = zip(cache.self_attention_cache.layers, cross.layers, strict=True)
            tensors = [part for pair in layers for layer in pair for part in (layer.keys, layer.values)]
            past = {name: part.numpy() for name, part in zip(past_names(self.config), tensors, strict=True)}
        states = encoder_outputs.last_hidden_state.numpy()
        logits, past = self.decode(decoder_input_ids.numpy(), states, attention_mask.numpy(), past)
        tensors = list(map(torch.from_numpy, past.values()))
        own = DynamicCache(list(zip(tensors[0::4], tensors[1::4], strict=True)))
        if cross is None:
            cross = DynamicCache(list(zip(tensors[2::4], tensors[3::4], strict=True)))
        returned: dict[str, Any] = {CACHE: EncoderDecoderCache(own, cross)}
        return Seq2SeqLMOutput(logits=torch.from_numpy(logits), **returned)
