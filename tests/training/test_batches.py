"""Batches that are filled up to a number of tokens."""

import numpy as np
import pytest
from accelerate.data_loader import SeedableRandomSampler

from hf_vanilla_transformer.training.batches import TokenBudgetBatchSampler


LENGTHS = np.random.default_rng(0).integers(1, 40, size=500).tolist()


@pytest.mark.parametrize("max_rows", [None, 4])
def test_batches_hold_as_many_tokens_as_fit(max_rows):
    batches = list(TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7, max_rows=max_rows))
    assert sorted(place for batch in batches for place in batch) == list(range(500))
    longest = [max(LENGTHS[place] for place in batch) for batch in batches]
    sizes = [len(batch) * length for batch, length in zip(batches, longest, strict=True)]
    assert max(sizes) <= 100
    assert sum(LENGTHS) / sum(sizes) > 0.9  # few pads
    if max_rows is None:
        assert np.mean(sizes) > 80  # and few small batches
    else:
        assert max(map(len, batches)) == max_rows
    assert sorted(longest) != longest != sorted(longest, reverse=True)  # in random order


def test_batches_depend_on_seed_and_epoch_alone():
    def batches(seed, epoch):
        sampler = TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=seed)
        sampler.sampler.set_epoch(epoch)
        return list(sampler)

    assert batches(7, 1) == batches(7, 1)
    assert batches(7, 1) != batches(7, 2)
    assert batches(7, 1) != batches(8, 1)
    in_turn = TokenBudgetBatchSampler(LENGTHS, max_tokens=100, seed=7)
    assert [list(in_turn), list(in_turn)] == [batches(7, 0), batches(7, 1)]
    assert len(in_turn) == len(batches(7, 0)) == len(batches(7, 1))


def test_epochs_are_those_of_accelerates_sampler():
    """The order before it is sorted by length."""
    same_length = TokenBudgetBatchSampler([1] * 50, max_tokens=50, seed=7)
    assert [list(same_length) for _ in range(2)] == [
        [list(SeedableRandomSampler(range(50), data_seed=7 + epoch))] for epoch in range(2)
    ]


def test_a_sequence_that_fits_in_no_batch_is_refused():
    with pytest.raises(ValueError, match="41 tokens does not fit in a batch of 40"):
        TokenBudgetBatchSampler([3, 41], max_tokens=40, seed=0)
