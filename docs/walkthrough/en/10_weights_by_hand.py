# %% [markdown] source="e69153f7"
# # 10. Weights by hand
#
# In chapter 6, 300 steps of training gave a model that copies. Looking at its weights, it is hard to say why they are
# what they are. This short chapter goes the other way. **Without any training**, you set the weights of the
# `Transformer` that you wrote by hand, so that it copies, shifts and reverses. That also answers two questions that
# earlier chapters left open: why do positions have sines *and* cosines? Why do queries and keys have matrices of
# their own?

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %%
import copy
import math

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn


Transformer, greedy, noam, training_step = mine("Transformer", "greedy", "noam", "training_step")  # chapters 5, 6

# %%
drawings.model_map(10)

# %% [markdown] source="428f6b07"
# ## The tasks, and the plan
#
# The task is that of chapter 6: read ten symbols, and write ten. This time there are three.
#
# - **Copy**: the symbol at t is the one at t in the source.
# - **Shift**: the symbol at t is the one at t + 1 in the source; at the last position, the last one once more.
# - **Reverse**: the symbol at t is the one at 9 - t in the source.
#
# The three differ only in *where in the source to look*. The decoder's cross-attention decides that, so it is enough
# to set its weights. Queries come from the decoder's positions t, and keys from the source's positions s. The score
# $q_t \cdot k_s$ must be largest at the position s to look at.

# %%
PAD, START, SYMBOLS, LENGTH = 0, 1, 11, 10
D = 64
source = torch.randint(2, SYMBOLS, (500, LENGTH))
tasks = {
    "copy": source,
    "shift": torch.cat([source[:, 1:], source[:, -1:]], dim=1),
    "reverse": source.flip(1),
}
pd.DataFrame([source[0].tolist(), *(answer[0].tolist() for answer in tasks.values())], index=["source", *tasks])

# %% [markdown] source="afb8e15b"
# ## Turning the hands
#
# In chapter 2, a hand of speed $w$ stood at $(\sin pw, \cos pw)$ for position p, and its dot product for two
# positions s and t was $\cos((s - t)w)$. It is largest, 1, if s = t. So if positions themselves are queries and keys,
# each position looks at itself. That is copying.
#
# To look elsewhere, turn the query's hands. Which 2 × 2 matrix turns the hand of position p into that of position
# p + n? The addition theorems give the answer.
#
# $$\sin((p+n)w) = \sin pw \cos nw + \cos pw \sin nw \qquad \cos((p+n)w) = \cos pw \cos nw - \sin pw \sin nw$$
#
# ### Write it: `rotation`
#
# Return the matrix `M` that turns the hand, a column $v = (\sin pw, \cos pw)$, into $(\sin (p+n)w, \cos (p+n)w)$ by
# `M @ v`. `speed` is $w$ and `steps` is $n$, which may be 0 or negative: then the hand turns back, to an earlier
# position.


# %% tags=["blank"]
def rotation(speed, steps):  # the speed of a hand (radians), how many positions
    sin, cos = math.sin(steps * speed), math.cos(steps * speed)  # sine and cosine of the angle
    return torch.tensor([[cos, sin], [-sin, cos]])  # M (2, 2)


# %%
check(rotation)

# %% [markdown] source="54ff347a"
# <details><summary>Hint 1</summary>
#
# The first row makes the new sine. Its dot product with (sin pw, cos pw) must be sin((p+n)w), so it is [cos nw, sin
# nw].
#
# </details>
# <details><summary>Hint 2</summary>
#
# The second row makes the new cosine: [-sin nw, cos nw].
#
# </details>

# %% [markdown] source="3b7c2de0"
# Reversing leads from position p to 9 - p. As p grows, 9 - p falls, so turning is not enough: the hand is mirrored
# first, then turned. $\sin(-pw) = -\sin pw$ and $\cos(-pw) = \cos pw$, so the mirror only changes the sign of the
# sine.

# %%
MIRROR = torch.tensor([[-1.0, 0.0], [0.0, 1.0]])  # (sin pw, cos pw) -> (sin(-pw), cos(-pw))
TURNS = {
    "copy": lambda speed: rotation(speed, 0),
    "shift": lambda speed: rotation(speed, 1),
    "reverse": lambda speed: rotation(speed, LENGTH - 1) @ MIRROR,
}

# %% [markdown] source="b1e2db0b"
# ## Sharing out the columns
#
# The 64 columns of a vector are shared out as in the table. There are 32 hands, each with two columns, a sine and a
# cosine.
#
# | columns | what for |
# |---|---|
# | 16 columns of 8 fast hands | positions, as `Embedding` adds them |
# | 11 sines of slow hands | tokens: a 1 in one column for each id (one-hot) |
# | 11 more sines of slow hands | where cross-attention writes the token that it found |
# | the sine of the slowest hand | an empty column, always close to 0 |
#
# Slow hands hardly move within ten positions, so their sines are close to 0, and can be used for something else.
#
# The empty column is there because of layer normalization. It subtracts the mean of the vector, which differs a
# little from position to position. Whenever a column is read, the empty one is subtracted, and the mean is gone:
# $(x_j - m) - (0 - m) = x_j$.

# %%
NEEDLES = 8
POSITION = range(2 * NEEDLES)  # sines and cosines, alternating
TOKEN = [2 * NEEDLES + 2 * symbol for symbol in range(SYMBOLS)]  # columns of sines
FOUND = [2 * NEEDLES + 2 * SYMBOLS + 2 * symbol for symbol in range(SYMBOLS)]
EMPTY = D - 2
SPEED = [1 / 10000 ** (2 * needle / D) for needle in range(NEEDLES)]


def reader(columns):
    """The matrix that reads these columns (columns, D), less the empty one, which removes the mean of the norm."""
    matrix = torch.zeros(len(columns), D)
    matrix[torch.arange(len(columns)), list(columns)] = 1
    matrix[:, EMPTY] -= 1
    return matrix


# %% [markdown] source="28865c65"
# ## Writing the weights
#
# First set all parameters to 0, except for the factors of the normalizations, which are 1. Thanks to the residual
# connections, a sub-layer that is 0 hands on the vector that came in. The encoder's layer, and the decoder's
# self-attention and feed-forward network, stay like that. Only cross-attention, embeddings and the last linear
# layer are written.


# %%
@torch.no_grad()
def by_hand(turn, sharpness=200.0):
    """turn makes, from the speed of a hand, the 2 × 2 matrix for the queries."""
    head = nn.Linear(D, SYMBOLS)
    model = Transformer(SYMBOLS, D, heads=1, ffn_dim=1, encoder_layers=1, decoder_layers=1, head=head).eval()
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if "norm.weight" in name else 0.0)
    for stack in (model.encoder, model.decoder):
        stack.embedding.tokens.weight[torch.arange(SYMBOLS), TOKEN] = 1.0  # a column for each id
    cross = model.decoder.layers[0].cross_attention
    turns = torch.block_diag(*(turn(speed) for speed in SPEED))  # 2 × 2 for each hand (16, 16)
    cross.q_proj.weight[: len(POSITION)] = sharpness * turns @ reader(POSITION)  # turn the hands of my position
    cross.k_proj.weight[: len(POSITION)] = reader(POSITION)  # positions of the source
    cross.v_proj.weight[:SYMBOLS] = reader(TOKEN)  # tokens of the source
    cross.out_proj.weight[FOUND, torch.arange(SYMBOLS)] = 1.0  # write the token that was found
    head.weight.copy_(reader(FOUND))  # its id is the answer
    return model


def accuracy(model, answers):
    return (greedy(model, source, LENGTH)[:, 1:] == answers).all(dim=1).float().mean().item()


solved = {name: by_hand(turn) for name, turn in TURNS.items()}
for name, model in solved.items():
    print(f"{name}: {accuracy(model, tasks[name]):.1%} of 500")
    assert accuracy(model, tasks[name]) == 1


# %% [markdown] source="22354b3c"
# There was no training at all. `Transformer` of chapter 5 and `greedy` of chapter 6 are as you wrote them. The three
# models differ in a single matrix, that of the queries. Drawing the cross-attention shows what it does. Rows are
# positions of the decoder, columns positions of the source.


# %%
@torch.inference_mode()
def cross_attention(model):
    """The mean of 500 sources (head, query, key)"""
    mask, causal = torch.ones(1, 1, 1, LENGTH, dtype=torch.bool), torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    memory, layer = model.encoder(source, mask), model.decoder.layers[0]
    x = model.decoder.embedding(greedy(model, source, LENGTH)[:, :-1])
    normed = layer.self_attention_norm(x)
    x = x + layer.self_attention(normed, normed, normed, causal)[0]
    return layer.cross_attention(layer.cross_attention_norm(x), memory, memory, mask)[1].mean(dim=0)


names = [str(place) for place in range(LENGTH)]
plot_attention(
    torch.cat([cross_attention(model) for model in solved.values()]), names, names, title="copy, shift, reverse"
)


# %% [markdown] source="527ebbbc"
# ## Why sines and cosines?
#
# What if there were sines only? Remove the columns of cosines from the queries of the model that copies.

# %%
only_sine = by_hand(lambda speed: torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
print(f"copied with sines alone: {accuracy(only_sine, tasks['copy']):.1%}")

# %% [markdown] source="988e7c33"
# It copies almost nothing. The dot product of sines alone, $\sin tw \sin sw$, is not largest at s = t: positions
# with a large sine always win. Only with the cosines does it become $\cos((s - t)w)$, which depends on the distance
# alone. Compare the scores of position 3.

# %%
places = torch.arange(LENGTH)
angles = torch.tensor(SPEED)[:, None] * places  # (hand, position)
with_both = torch.cos(angles - angles[:, 3:4]).sum(dim=0)
plot_lines(
    {
        "sines and cosines": with_both.tolist(),
        "sines alone": (angles.sin() * angles[:, 3:4].sin()).sum(dim=0).tolist(),
    },
    places.tolist(),
    title="Scores of the query of position 3",
    xlabel="position of the source",
    ylabel="score",
)

# %% [markdown] source="28cfd994"
# ## Why do queries and keys have matrices of their own?
#
# With the same matrix for both, scores are symmetric: $q_t \cdot k_s = q_s \cdot k_t$. As much as t looks at s, s
# looks at t. Copying and reversing are symmetric (t looks at 9 - t, and 9 - t at t), but shifting is not: t must
# look at t + 1, while t + 1 must look at t + 2 and not at t. Above, only the matrix of the queries was changed; that
# of the keys is the same in all three.

# %%
for name, turn in TURNS.items():
    matrix = torch.block_diag(*(turn(speed) for speed in SPEED))  # a score is (position t) · matrix · (position s)
    print(f"{name}: symmetric {torch.allclose(matrix, matrix.T, atol=1e-6)}")

# %% [markdown] source="4a3f871e"
# ## What training finds
#
# The model that you trained in chapter 6 copies, too. Has it found the same way? Load the model that was saved there.
# If you have not run that chapter, the same 300 steps are trained here. It has four heads. Draw their
# cross-attention, averaged over 500 copied sources.

# %% tags=["varies"]
torch.manual_seed(0)
copier = Transformer(SYMBOLS, D, heads=4, ffn_dim=128, encoder_layers=1, decoder_layers=1, head=nn.Linear(D, SYMBOLS))
file = RUNS / "my_copier.pt"
if file.is_file():
    copier.load_state_dict(torch.load(file, weights_only=True))
else:
    optimizer = torch.optim.Adam(copier.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step + 1, D, warmup=100))
    for _ in range(300):
        copier.train()
        batch = torch.randint(2, SYMBOLS, (64, LENGTH))
        training_step(copier, optimizer, scheduler, batch, batch)
copier.eval()
learnt = cross_attention(copier)
plot_attention(learnt, names, names, title="four trained heads")

# %% [markdown] source="f8253ab6"
# Measure two things for each head. One is the mean weight on its own position, the diagonal. The other is the share
# of the tokens that the model still copies with this head silenced (its columns of `out_proj` set to 0). Compare
# with the single head of the model made by hand.


# %% tags=["varies"]
def silenced(model, head, heads):
    """The model with one head of cross-attention silenced"""
    model, width = copy.deepcopy(model), D // heads
    model.decoder.layers[0].cross_attention.out_proj.weight.data[:, width * head : width * (head + 1)] = 0
    return model


def describe(weights, head, model):
    share = accuracy(silenced(model, head, len(weights)), tasks["copy"])
    return {"weight on its own position": weights[head].diagonal().mean().item(), "copied without it": share}


by_hand_head = {"head by hand": describe(cross_attention(solved["copy"]), 0, solved["copy"])}
trained_heads = {f"trained head {head}": describe(learnt, head, copier) for head in range(4)}
pd.DataFrame(by_hand_head | trained_heads).T.round(2)

# %% [markdown] source="07054b3a"
# The diagonals are sharp even in the mean of 500 sources. So these heads look at a **position**, whatever token
# stands there, as the head made by hand does. There are two differences. Some of the weight leaks to neighbouring
# positions. And all four heads do the same work: silence any of them, and almost everything is still copied. Nobody
# told them to divide it.
#
# And for lengths that it never saw?


# %% tags=["varies"]
def copied(model, length):
    longer = torch.randint(2, SYMBOLS, (200, length))
    return (greedy(model, longer, length)[:, 1:] == longer).all(dim=1).float().mean().item()


lengths = {"by hand": solved["copy"], "trained": copier}
rows = {name: {length: copied(model, length) for length in (8, 10, 12, 20)} for name, model in lengths.items()}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown] source="70c52152"
# The rotation set by hand depends on the distance alone, so it holds for twenty positions, too. The trained model
# starts to fail beyond ten, and copies none of the rows of twenty. Its examples had ten positions. Within ten
# positions, other matrices than rotations also make the loss small enough. **Training does not look for a rule. It
# looks for weights with a small loss on the examples.**

# %% [markdown] source="2909be04"
# ## In short
#
# - Where attention looks is decided by the dot products of queries and keys. With positions, attention finds tokens
#   by their place; with embeddings, by their meaning.
# - Sines come with cosines, so hands can be turned to find another place.
# - Only with separate matrices for queries and keys can a rule look in one direction, such as "the next one".
# - You wrote `rotation`. Trained heads also find by position, but not beyond the length that they learnt.
#
# **To think about.** From which examples would a model find the rotation? Would examples of many lengths do?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Can this model copy a text of length 20?
#
# - (a) Yes, as it is
# - (b) No, it was not trained on that length
# - (c) It copies up to length 10
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. Its rule depends on the distance alone, so it holds at any position. Only in very long texts would the
#   sines of slow hands leave 0, and blur the empty column and the tokens.
# - (b) No. That was so for the trained model of chapter 6, but these weights know no length.
# - (c) No. 10 is used in reversing only.
#
# </details>
#
# **2.** Can one matrix make a model that writes, at t, the symbol at 2t of the source?
#
# - (a) Yes: turn hands that are twice as fast
# - (b) No
# - (c) Yes: multiply the queries by 2
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. No 2 × 2 matrix turns (sin tw, cos tw) into (sin 2tw, cos 2tw): that is not linear.
# - (b) Yes, this is right: within one hand, no matrix can. The only way for a matrix is to pair the key of one hand
#   with the query of another that is exactly twice as fast, if there is one.
# - (c) No. Multiplying by 2 makes scores larger, but looks at the same place.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="479dbf41"
# ### Exercise 1 ★ 5 min
#
# Make a model that shifts to the right by two: the symbol at t is the one at t - 2 of the source. The first two are
# the first symbol of the source.
#
# <details><summary>Hint 1</summary>
#
# Only the `turn` that `by_hand` gets is different.
#
# </details>
# <details><summary>Hint 2</summary>
#
# It looks back, so it is `rotation(speed, -2)`.
#
# </details>

# %% tags=["exercise"]
two_back = by_hand(lambda speed: rotation(speed, -2))  # a model

# %%
check_answer(
    lambda: greedy(two_back, source, LENGTH)[:, 1:],
    torch.cat([source[:, :1], source[:, :1], source[:, :-2]], dim=1),
    (torch.cat([source[:, 2:], source[:, -1:], source[:, -1:]], dim=1), "This shifts to the left. Change the sign."),
    (tasks["copy"], "This is the model that copies."),
)

# %% [markdown] source="3a49e36f"
# ### Exercise 2 ★★ 8 min
#
# Make a model that changes symbols while it copies: 2 becomes 3, 3 becomes 4, …, and 10 becomes 2. Only one part of
# the model that copies has to change.
#
# <details><summary>Hint 1</summary>
#
# Where to look is the same. Only the id that is written for a token changes.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The rows of `head.weight` are the ids of the answer. The row of id n must read the column of n - 1, and the row of
# 2 that of 10; `roll` moves the rows.
#
# </details>

# %% tags=["exercise"]
with torch.no_grad():
    next_symbol = by_hand(TURNS["copy"])  # a model
    next_symbol.head.weight[2:] = next_symbol.head.weight[2:].roll(1, dims=0)

# %%
check_answer(
    lambda: greedy(next_symbol, source, LENGTH)[:, 1:],
    (source - 1) % 9 + 2,
    ((source - 3) % 9 + 2, "The other way round: 3 became 2."),
    (source, "It still copies as it is."),
)

# %% [markdown] source="deca1759"
# From the vocabulary to the Hub, and down to single weights, you have built a Transformer from beginning to end.
# Now [train on your own data](../../../README.md#train-on-a-csv). If you want to read more code, the whole
# model is in [one file](../../../hf_vanilla_transformer/modeling_vanilla_transformer.py), in the order of the
# paper.
