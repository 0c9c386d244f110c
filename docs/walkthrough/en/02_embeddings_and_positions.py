# %% [markdown] source="fded089a"
# # 2. Embeddings and positions
#
# In chapter 1, a text became a list of ids. In this chapter each id becomes a vector, to which we add a vector for
# its position.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %% tags=["english"]
import math

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines, plot_matrix, plot_sinusoid_table
from check import check, check_answer
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference.folder import load_model


# %%
drawings.model_map(2)

# %% [markdown] source="9e8dc05f"
# Turn the two sentences of chapter 1 into ids again.

# %% tags=["english"]
lines = (MODELS.parent / "docs" / "walkthrough" / "en" / "lines.txt").read_text(encoding="utf-8").splitlines()
tokenizer = train_tokenizer(lines[:200], vocab_size=600)
sentences = ["What a warm film!", "Winter is cold."]
batch = tokenizer(sentences, padding=True, pad_to_multiple_of=8, return_tensors="pt")
input_ids, attention_mask = batch["input_ids"], batch["attention_mask"]
print(input_ids)

# %% [markdown] source="94f84a2a"
# ## From ids to vectors
#
# An id is only a name. That 131 is larger than 130 means nothing. So each token gets several numbers, a vector: its
# **embedding**. PyTorch's `nn.Embedding` does something simple: from a large table, it picks the row whose number is
# the id.

# %% tags=["english"]
embedding = nn.Embedding(600, 128)  # for 600 tokens, a vector of 128 columns each
vectors = embedding(input_ids)
print("table:", tuple(embedding.weight.shape), " two sentences:", tuple(input_ids.shape), "->", tuple(vectors.shape))
first = input_ids[0, 0].item()
print(f"Is the first token's vector row {first} of the table?", vectors[0, 0].equal(embedding.weight[first]))

# %% [markdown] source="ee7ec7ed"
# The shape is two sentences × eight places × 128 columns (dimensions). At first the numbers in the table are random;
# training changes them. Afterwards, tokens that are used alike point in similar directions. Let us look at the table
# of the trained translator multi30k-de-en. For two vectors of length 1, the **dot product** (multiply entry by entry,
# and add up) is larger the more they point the same way.

# %% tags=["english"]
folder = MODELS / "multi30k-de-en"
trained, pieces = load_model(str(folder)), AutoTokenizer.from_pretrained(folder)
table = torch.nn.functional.normalize(trained.get_input_embeddings().weight.detach(), dim=1)
for token in ("▁red", "▁dog", "▁three"):
    similarity = table @ table[pieces.convert_tokens_to_ids(token)]
    print(token, "->", pieces.convert_ids_to_tokens(similarity.topk(6).indices.tolist())[1:])

# %% [markdown] source="a75737d1"
# ## Why multiply by √d?
#
# §3.4 of the paper multiplies the embeddings by $\sqrt{d}$. $d$ is the dimension of the vectors, `d_model` in the
# code.
#
# The reason is size. In the paper's code (tensor2tensor), embeddings start as small numbers with a standard
# deviation of $1/\sqrt{d}$. `nn.Embedding` on its own starts with a standard deviation of 1, so in your model you
# will have to set it. In a moment we add positions, which are sines and cosines between -1 and 1. Compare the sizes.

# %% tags=["english"]
small = torch.randn(2000, 128) * 128**-0.5
sizes = {"embedding": small, "embedding × √d": small * math.sqrt(128), "position": modeling.sinusoid_table(100, 128)}
pd.DataFrame({name: [numbers.square().mean().sqrt().item()] for name, numbers in sizes.items()}, ["size"]).round(2)

# %% [markdown] source="3684aa24"
# Without the factor, the positions drown out the embeddings. With it, the embeddings are a little larger. The other
# way round, with a standard deviation of 1 *and* the factor √d, the embeddings drown out the positions, and the
# model hardly learns (chapter 6).
#
# Tutorials choose differently, so in this package it is a setting. `base` is the paper; `init_scheme` says how
# parameters start. The two columns about positions are explained below.

# %%
presets = ["base", "annotated-transformer", "pytorch-seq2seq", "pytorch-transformer", "transformer-evolution"]
fields = ["scale_embedding", "init_scheme", "position_embedding_type", "position_offset"]
configs = [VanillaTransformerConfig.from_preset(name) for name in presets]
pd.DataFrame([[getattr(one, field) for field in fields] for one in configs], index=presets, columns=fields)

# %% [markdown] source="0c4506d1"
# > *transformer-evolution* does not multiply by √d. Its embeddings start with a standard deviation of 1 instead
# > (`torch` in `init_scheme`), so their size is similar to that of the positions.
#
# ## Where is the order?
#
# The attention that you will write in chapter 3 mixes the vectors of the other tokens into each token. How much of
# each it takes depends on the dot product of the two vectors; the place of a token plays no part. Let us change the
# order of the tokens. If each token gets the same result as before, attention does not know the order. `attend` below
# is the attention of chapter 0 in one line.


# %%
def attend(x):  # (L, D)
    return (x @ x.T / math.sqrt(x.shape[-1])).softmax(dim=-1) @ x  # (L, L) @ (L, D) -> (L, D)


vectors = nn.functional.normalize(embedding.weight[input_ids[1]].detach(), dim=-1)  # the second sentence (8, 128)
order = torch.randperm(8)
print("without positions:", torch.allclose(attend(vectors)[order], attend(vectors[order]), atol=1e-6))


# %% [markdown] source="75575db1"
# It is the same. The results are in another order, as the tokens are, but each token gets the same vector. Yet "the
# dog bit the man" and "the man bit the dog" mean different things. So we add a vector to each position that tells
# where it is: the **positional encoding**. Even random vectors make a difference.

# %%
places = torch.randn(8, 128) / 8  # a vector for each position
print("with positions:", torch.allclose(attend(vectors + places)[order], attend(vectors[order] + places), atol=1e-6))

# %% [markdown] source="956670cb"
# Now the same token gets different results in different places. Which vectors are good ones to add?
#
# ## Sines and cosines
#
# If we added the position itself, 0, 1, 2, …, the numbers would grow with the text. We need vectors of similar size
# that differ from position to position.
#
# Think of a clock. The second hand turns fast, the hour hand slowly. Each only goes round and round, but together
# they tell the hour, the minute and the second. A positional encoding is $d/2$ hands of different speeds. From one
# position to the next, hand $i$ (counting from 0) turns by $1/10000^{2i/d}$ radians. The two coordinates of its tip,
# a sine and a cosine, go into an even and an odd column.
#
# $$PE_{(pos,\,2i)} = \sin\frac{pos}{10000^{2i/d}} \qquad PE_{(pos,\,2i+1)} = \cos\frac{pos}{10000^{2i/d}}$$

# %%
d = 128
speed = 1 / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)  # the speeds of 64 hands
angle = torch.arange(100).unsqueeze(1) * speed  # 100 positions × 64 hands
positions = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)  # sines and cosines, alternating

print(tuple(positions.shape), torch.allclose(positions, modeling.sinusoid_table(100, d)))

# %% [markdown] source="dacb5a94"
# It equals the package's `sinusoid_table`. Here is the whole table; each row is the vector of a position.

# %%
plot_sinusoid_table(100, 128)

# %% [markdown] source="f9ca5456"
# The columns on the left are fast hands: their colours change from row to row. Those on the right are so slow that
# they hardly change from top to bottom. The stripes are sines near 0 beside cosines near 1. Here are four columns on
# their own:

# %%
plot_lines(
    {f"column {column}": positions[:, column].tolist() for column in (0, 10, 20, 40)},
    list(range(100)),
    title="Four columns of the positional encoding",
    xlabel="position",
    ylabel="value",
)

# %% [markdown] source="0a6f0c6f"
# ## Distances are easy to find
#
# There is a reason to pair sines with cosines. Five positions later, each hand has turned a little further. How far
# depends on the hand, but not on the position where it started. So the same rotation leads from the vector of any
# position to the one five positions later. The addition theorems of sine and cosine compute it.

# %%
cos, sin = (5 * speed).cos(), (5 * speed).sin()
turned = torch.stack(
    [positions[:, 0::2] * cos + positions[:, 1::2] * sin, positions[:, 1::2] * cos - positions[:, 0::2] * sin], dim=2
).flatten(1)
print(torch.allclose(turned[:95], positions[5:]))

# %% [markdown] source="8a6fa49b"
# The dot product of two positions depends on their distance alone, because for each hand $\sin a \sin b + \cos a
# \cos b = \cos(a - b)$. In the picture, the colour does not change along lines parallel to the diagonal.

# %%
plot_matrix(
    positions[:60] @ positions[:60].T, title="Dot products of two positions", xlabel="position", ylabel="position"
)

# %% [markdown] source="9f294a6e"
# > *The Annotated Transformer* computes this table in float32. This package computes it in float64 and then converts
# > it. For an input of 350 tokens, the encoder's outputs differ by about 2e-5 ([table](../../tutorials.md)). *The
# > document that came with pytorch-transformer* takes the exponential once too often, so that its speeds are not the
# > paper's.
#
# ## Write it: `Embedding`
#
# Now for your first class. It picks rows from the table of tokens, multiplies them by √d, and adds the vectors of
# the positions. The numbers in the table start with a standard deviation of $1/\sqrt{d}$ (`nn.init.normal_`). The
# table of positions is not trained, so it is a buffer and not a parameter. It can be computed at any time, so it
# need not be saved (`persistent=False`).
#
# B is the number of sentences, L their length, D is `d_model`, P the number of positions, V the size of the vocabulary.
# Keep the names `self.tokens` and `self.positions`: chapter 5 loads trained weights into `tokens`, and chapter 6
# switches `positions` off.


# %% tags=["blank"]
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_length=128):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model must be even, for sines and cosines come in pairs: {d_model}")
        self.tokens = nn.Embedding(vocab_size, d_model)  # the table (V, D)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)  # its numbers start with the standard deviation 1/√D
        speed = 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # speeds of hands (D/2,)
        angle = torch.arange(max_length).unsqueeze(1) * speed  # the angles (P, 1) × (D/2,) -> (P, D/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)  # sine, cosine, … (P, D/2, 2) -> (P, D)
        self.register_buffer("positions", table.float(), persistent=False)  # the buffer self.positions (P, D)

    def forward(self, ids):  # (B, L)
        if ids.shape[1] > len(self.positions):
            raise ValueError(f"a text of {ids.shape[1]} tokens is longer than the {len(self.positions)} positions")
        x = self.tokens(ids)  # rows of the table (B, L, D)
        x = x * math.sqrt(x.shape[-1])  # times √D (B, L, D)
        return x + self.positions[: ids.shape[1]]  # plus positions (B, L, D) + (L, D) -> (B, L, D)


# %%
check(Embedding)

# %% [markdown] source="4885c332"
# <details><summary>Hint 1</summary>
#
# The table is `nn.Embedding(vocab_size, d_model)`. You have already run the four lines that make the table of
# positions: they are in "Sines and cosines" above.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Make the buffer with `self.register_buffer("positions", table.float(), persistent=False)`. In `forward`, multiply
# `self.tokens(ids)` by `math.sqrt(x.shape[-1])` and add `self.positions[: ids.shape[1]]`.
#
# </details>

# %% [markdown] source="be20f85c"
# A class that passes is kept in `runs/my_classes.py` of the repository, and the next chapters take it from there.

# %% [markdown] source="971fdab1"
# Give it both sentences at once.

# %% tags=["english"]
my_embedding = Embedding(600, 128)
with torch.inference_mode():
    inputs = my_embedding(input_ids)
print(tuple(input_ids.shape), "->", tuple(inputs.shape))

# %% [markdown] source="4e8e1127"
# Here are the first 40 columns of the first sentence. In pictures, the `▁` of a token is written as an underscore,
# `_`. The two `[PAD]` tokens have the same embedding, but different positions were added, so their rows differ a
# little.

# %%
plot_matrix(
    inputs[0, :, :40],
    tokenizer.convert_ids_to_tokens(input_ids[0]),
    title="Embeddings plus positions",
    xlabel="column of the vector",
    ylabel="token",
)

# %% [markdown] source="510ebc53"
# The model's computation starts from this sum.
#
# ## In this package
#
# The package does the same with two modules: one multiplies embeddings by √d (`VanillaTransformerEmbedding`), the
# other adds positions (`VanillaTransformerSinusoidalPositions`). There is one difference. Your `Embedding` counts
# padding as positions, too; the package counts **real tokens only** and gives padding the position -1.

# %%
left = tokenizer(sentences, padding=True, pad_to_multiple_of=8, padding_side="left", return_tensors="pt")
for side, mask in (("right", attention_mask[:1]), ("left", left["attention_mask"][:1])):
    print(f"padding on the {side}: mask {mask.tolist()}, positions {modeling.position_ids_from_mask(mask).tolist()}")

# %% [markdown] source="8164fe04"
# The positions are running sums of the mask. So with padding on the left, the real tokens still have the positions
# 0 to 5. A decoder that continues several texts at once needs its padding on the left, and positions should not
# depend on how much padding there is.
#
# Are the results really the same? Give the trained encoder the same sentences with padding on either side, and
# compare its outputs for the real tokens.

# %%
states = {}
for side in ("right", "left"):
    padded = pieces(sentences, padding=True, padding_side=side, return_tensors="pt")
    with torch.inference_mode():
        states[side] = trained.model.encoder(**padded).last_hidden_state[padded["attention_mask"].bool()]
    print(side, states[side][0, :4])
print(torch.allclose(states["right"], states["left"], atol=1e-5))

# %% [markdown] source="aeb2f8a5"
# > *transformer-evolution* counts from 1 and gives padding 0; here, that is `position_offset` 1. *pytorch-seq2seq*
# > counts padding as well, from 0. With padding on the right, the positions of the real tokens are the same either
# > way.
#
# ## Learnt positions
#
# Positions can also be learnt, as embeddings are. The paper found almost the same results with both (Table 3, row E).
# Learnt positions add parameters. The table of sines and cosines can be computed for any length. But the model has
# not seen positions beyond the lengths of its training, so neither kind works well there (in chapter 6, you will try
# sines and cosines). So for both kinds, the package raises an error if a text is longer than its setting
# `max_position_embeddings`.

# %%
for kind in ("sinusoidal", "learned"):
    config = VanillaTransformerConfig(
        vocab_size=2000, d_model=128, encoder_layers=1, decoder_layers=1, position_embedding_type=kind
    )
    encoder = modeling.VanillaTransformerEncoder(config)
    print(f"{kind}: {sum(p.numel() for p in encoder.embed_positions.parameters()):,} parameters of positions")
    try:
        encoder(input_ids=torch.full((1, config.max_position_embeddings + 1), 7))
    except ValueError as error:
        print("  ", error)

# %% [markdown] source="fb0f3258"
# `position_embedding_type` chooses the kind. In the table above, only `pytorch-seq2seq` has learnt positions.
#
# ## In short
#
# - An embedding picks the row of an id from a table. After training, tokens that are used alike point in similar
#   directions.
# - Embeddings start small; the factor √d makes them about as large as the positions.
# - Positional encodings are sines and cosines of hands with different speeds. Moving on by some positions turns the
#   hands.
# - You wrote `Embedding`: ids (B, L) become vectors (B, L, D).
#
# **To think about.** What would be better, and what worse, if positions were appended to the vectors instead of
# added?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Why are there cosines beside the sines?
#
# - (a) To make the values larger
# - (b) So that one and the same rotation moves any position on by a few places
# - (c) To save parameters
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. Both lie between -1 and 1.
# - (b) Yes. A hand can only be turned if both coordinates of its tip are known. In chapter 10, this rotation makes a
#   model that copies without any training.
# - (c) No. Positional encodings have no parameters.
#
# </details>
#
# **2.** What if `nn.Embedding` starts as it is (standard deviation 1) and is multiplied by √d?
#
# - (a) It is far larger than the positions, so that the order is hard to see
# - (b) It is as large as the positions
# - (c) It does not matter: training will adjust it
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. For d = 128, the embeddings are about sixteen times as large. On the task of chapter 6, such a model
#   copies nothing after 100 steps.
# - (b) No. That is so with a standard deviation of 1/√d.
# - (c) No. Long training makes up for it, but the bad start costs many steps.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="3e2f7c5c"
# ### Exercise 1 ★ 5 min
#
# For a `d_model` of 4, compute the vector of position 3 with `math.sin` and `math.cos` alone: a list of four
# numbers.
#
# <details><summary>Hint 1</summary>
#
# There are two hands. The speed of the first is 1, that of the second $1/10000^{2/4}$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# $10000^{2/4} = 100$, so the angle of the second hand is 3 / 100.
#
# </details>

# %% tags=["exercise"]
by_hand = [math.sin(3), math.cos(3), math.sin(3 / 100), math.cos(3 / 100)]  # four numbers

# %%
check_answer(
    by_hand,
    modeling.sinusoid_table(4, 4)[3].tolist(),
    (
        [math.sin(3), math.sin(3 / 100), math.cos(3), math.cos(3 / 100)],
        "These are two sines, then two cosines. They alternate.",
    ),
    ([math.cos(3), math.sin(3), math.cos(3 / 100), math.sin(3 / 100)], "Sine and cosine are swapped."),
    (lambda it: math.isclose(it[2], math.sin(3 / 10)), "The exponent of the second hand is i/d. It should be 2i/d."),
)

# %% [markdown] source="c6cfb5ff"
# ### Exercise 2 ★★ 5 min
#
# From the mask `[0, 0, 1, 1, 1]`, make the positions `[0, 0, 1, 2, 3]` with `cumsum`. They count from 1; padding
# is 0.
#
# <details><summary>Hint 1</summary>
#
# Print `mask.cumsum(dim=0)` first.
#
# </details>
# <details><summary>Hint 2</summary>
#
# If the zeros are on the right (`[1, 1, 0]`), the running sum is `[1, 2, 2]`. Multiply by the mask to make
# padding 0.
#
# </details>


# %% tags=["exercise"]
def positions_from_mask(mask):  # (L,)
    return mask.cumsum(dim=0) * mask  # positions (L,)


# %%
masks = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]])
check_answer(
    lambda: [positions_from_mask(mask).tolist() for mask in masks],
    [[0, 0, 1, 2, 3], [1, 2, 3, 0, 0]],
    ([[0, 0, 1, 2, 3], [1, 2, 3, 3, 3]], "Padding on the right is not 0."),
)

# %% [markdown] source="ef764434"
# ### Exercise 3 ★ 3 min
#
# How many positions does the slowest hand need for one full turn? Compute it from `speed`.
#
# <details><summary>Hint 1</summary>
#
# A full turn is $2\pi$ radians.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The speed is the angle from one position to the next. Divide the full turn by it. The slowest hand is `speed[-1]`.
#
# </details>

# %% tags=["exercise"]
turn = 2 * math.pi / speed[-1].item()  # a number of positions

# %%
check_answer(
    turn,
    lambda it: 50_000 < it < 2 * math.pi * 10_000,  # the larger d, the closer to 2π × 10000
    (lambda it: it < 7, "This is the fastest hand. The slowest is speed[-1]."),
    (lambda it: it < 10_000, "Did you multiply by 2π?"),
)

# %% [markdown] source="f21562ca"
# In the next chapter, these vectors look at each other. → [3. Attention](03_attention.ipynb)
