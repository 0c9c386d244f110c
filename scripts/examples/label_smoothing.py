"""The Annotated Transformer's label smoothing (§5.4), a `compute_loss_func` for transformers' Trainer.

    loss = partial(label_smoothing_loss, smoothing=0.1, pad_token_id=tokenizer.pad_token_id)
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)  # `model` makes `decoder_input_ids`
    Seq2SeqTrainer(model, arguments, data_collator=collator, compute_loss_func=loss, ...)

transformers' own `label_smoothing_factor` spreads the probability over all tokens and takes the cross-entropy.
"""

import torch
from torch.nn.functional import kl_div


def smoothed_targets(targets: torch.Tensor, vocab_size: int, smoothing: float, pad_token_id: int) -> torch.Tensor:
    """Return the distributions in place of one-hot targets: (N,), token ids, to (N, V), float32.

    All other tokens share `smoothing`; the padding token gets none, so they are V - 2. Rows of padding are zero.
    """
    distribution = torch.full((len(targets), vocab_size), smoothing / (vocab_size - 2), device=targets.device)
    distribution.scatter_(1, targets.unsqueeze(1), 1 - smoothing)
    distribution[:, pad_token_id] = 0
    return distribution.masked_fill((targets == pad_token_id).unsqueeze(1), 0)


def label_smoothing_loss(outputs, labels, num_items_in_batch=None, *, smoothing: float, pad_token_id: int):
    """Return the KL divergence from the smoothed targets, summed over the tokens and divided by their number.

    `outputs.logits` are (B, T, V); `labels`, (B, T), are -100 where nothing is predicted.
    """
    if (labels == pad_token_id).any():  # Trainer would count it
        raise ValueError(f"a label is the padding token, {pad_token_id}: where nothing is predicted it must be -100")
    targets = labels.flatten()
    targets = targets.masked_fill(targets == -100, pad_token_id)
    log_probabilities = outputs.logits.flatten(0, 1).float().log_softmax(dim=-1)
    expected = smoothed_targets(targets, log_probabilities.shape[-1], smoothing, pad_token_id)
    number = num_items_in_batch or (targets != pad_token_id).sum().clamp(min=1)
    return kl_div(log_probabilities, expected, reduction="sum") / number
