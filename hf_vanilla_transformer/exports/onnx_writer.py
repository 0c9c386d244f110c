# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a classifier as an ONNX file: onnxruntime, transformers.js, OpenVINO, text-embeddings-inference run it."""

import tempfile
from pathlib import Path

from transformers.utils import CONFIG_NAME

from ..hub.record import save_json
from ..inference.engine import import_extra
from ..inference.folder import Tokenizers
from ..inference.onnx_engine import onnx_file
from ..modeling_vanilla_transformer import VanillaTransformerPreTrainedModel
from .graphs import quiet, save_classifier


quantizer = import_extra("onnxruntime.quantization", "onnxruntime", "onnx")


def write(
    model: VanillaTransformerPreTrainedModel, tokenizers: Tokenizers, folder: Path, quantize: str | None
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    # With the names that other libraries look for.
    fields = model.config.to_dict() | {name: getattr(model.config, name) for name in model.config.attribute_map}
    fields.pop("auto_map", None)
    target = folder / onnx_file(quantize)
    target.parent.mkdir()
    if quantize is None:
        save_classifier(model, target)
    else:
        fields["transformers.js_config"] = {"dtype": "q8"}  # or it looks for the float32 file
        with tempfile.TemporaryDirectory() as scratch, quiet():
            file = Path(scratch, "float32.onnx")
            save_classifier(model, file)
            # onnxruntime quantizes the activations while it runs. One scale a column keeps the logits nearest;
            # `reduce_range` makes weights of seven bits (`quantization`).
            quantizer.quantize_dynamic(
                file, target, weight_type=quantizer.QuantType.QInt8, per_channel=True, reduce_range=True
            )
    save_json(folder / CONFIG_NAME, fields)
