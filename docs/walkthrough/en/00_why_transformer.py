# %% [markdown] source="2b3e47ca"
# # 0. Why the Transformer
#
# In these chapters you build the Transformer of the paper ["Attention Is All You
# Need"](https://arxiv.org/abs/1706.03762) (Vaswani et al. 2017) from nothing, cell by cell. This chapter says where
# the model came from, and shows the PyTorch operations that you will need. If you know Python, you know enough.
#
# A **neural network** such as the Transformer is a large function that multiplies and adds numbers. The numbers
# inside it (its **parameters** or **weights**) are adjusted little by little to fit examples; that is **training**.
# A text is cut into pieces called **tokens**, and the network gets one **vector** for each of them (chapters 1 and
# 2). A vector is a row of numbers. How many there are is its **dimension**.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %%
import math

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines
from check import check, check_answer
from torch import nn


# %% [markdown] source="c6d72e38"
# ## Recurrent networks read in order
#
# Before the Transformer, texts were read by **recurrent neural networks** (RNNs). A recurrent network holds one
# state vector, reads the tokens one by one from the front, and changes the state with each of them.
#
# $$h_t = \tanh(W x_t + U h_{t-1} + b)$$
#
# $x_t$ is the vector of token t, $h_t$ is the state after reading it, and $W, U, b$ are parameters. In code, this
# is a loop; the code below leaves out $b$.

# %%
x = torch.randn(50, 64)  # 50 tokens, each a vector of 64 columns
w, u = torch.randn(64, 64) / 8, torch.randn(64, 64) / 8
h = torch.zeros(64)
for x_t in x:
    h = torch.tanh(x_t @ w + h @ u)
print(tuple(h.shape))

# %% [markdown] source="9d0b325d"
# This has two problems.
#
# 1. **It has to wait.** The 50th state needs the 49th. A GPU can do thousands of multiplications at once, in
#    **parallel**, and a loop makes no use of that.
# 2. **It forgets what is far away.** Information from the first token passes through 49 states before it reaches the
#    end. In each state it is mixed with another token, and the gradient that training needs gets a little smaller.
#    The end of this chapter measures how much smaller.
#
# The **attention** of the Transformer sees all tokens at once and mixes them (chapter 3). It neither waits nor takes
# the long way.

# %% [markdown] source="102d2f50"
# ## Cost, order, distance
#
# A network consists of stages called **layers**. Table 1 of the paper compares three properties of each kind of
# layer. **Self-attention** is attention of a text to itself (chapter 3); a **convolution** computes a few
# neighbouring tokens together (chapter 4). n is the number of tokens, d the dimension of the vectors, k the number
# of tokens that a convolution sees at once.
#
# | layer | computations | sequential steps | longest path between two tokens |
# |---|---|---|---|
# | self-attention | n² · d | 1 | 1 |
# | recurrent | n · d² | n | n |
# | convolution | k · n · d² | 1 | log_k(n) |
#
# Self-attention computes everything at once, and reaches any token in one step. Its price grows with the **square**
# of the length. Let us count computations, in millions, for a dimension of 512 and several lengths.

# %%
d = 512
costs = {n: {"self-attention": n * n * d / 1e6, "recurrent": n * d * d / 1e6} for n in (30, 512, 4096)}
pd.DataFrame(costs).rename(columns="length {}".format).round(1)

# %% [markdown] source="7e5579ae"
# If the sentence is shorter than the dimension, self-attention computes less than a recurrent layer. Most sentences
# that are translated are that short.
#
# ## What the paper claims and found
#
# The title is the claim: with **attention alone**, without recurrence or convolution, a model translates better after
# less training. The following is from Table 2 and §5 of the paper. BLEU scores translations; larger is better
# (chapter 8). A **step** changes the parameters once.
#
# | model | English-German BLEU | English-French BLEU | training (eight P100 GPUs) |
# |---|---|---|---|
# | the best until then (ensembles) | 26.4 | 41.3 | |
# | Transformer base | 27.3 | 38.1 | 100,000 steps, 12 hours |
# | Transformer big | **28.4** | **41.8** | 300,000 steps, 3.5 days |
#
# The Transformer has an **encoder**, which reads a text, and a **decoder**, which writes the answer. Many later
# models took one of the two, or both, and made them larger.
#
# | model | what it took | what it is trained to do | what it is good at |
# |---|---|---|---|
# | BERT (2018) | the encoder | guess hidden tokens | reading and classifying |
# | GPT (2018 on) | the decoder, without cross-attention to an encoder | guess the next token | continuing a text |
# | T5 (2019) | encoder and decoder | fill gaps | answering a text with a text |
#
# If you know the original Transformer, you can understand the others. Below is a map of the model that you will
# build; the numbers are the chapters that build each part. You **write these parts yourself**: you fill in an empty
# cell and run `check(...)`, which tells you whether it is right, and if not, what is wrong. The first blank is in this
# chapter.

# %%
drawings.model_map()

# %% [markdown] source="c95390e5"
# ## A dozen PyTorch operations
#
# Almost all code in the next chapters consists of the operations below. Skip them if you know them.
#
# A **tensor** is a rectangle of numbers. Its size is called its **shape**.
#
# ### 1. Shape, 2. Picking rows, 3. Adding a dimension

# %%
table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ids = torch.tensor([1, 0, 1])
print(table.shape)  # two rows, three columns
print(table[ids])  # rows 1, 0 and 1
print(ids.shape, ids.unsqueeze(1).shape, ids[None, :].shape)  # insert a dimension of size 1

# %% [markdown] source="c686002f"
# ### 4. Broadcasting
#
# If two tensors have different shapes, a dimension of size 1 is repeated to match the other tensor (broadcasting).

# %%
print(torch.tensor([[10.0], [20.0]]) + torch.tensor([1.0, 2.0, 3.0]))  # (2, 1) + (3,) -> (2, 3)

# %% [markdown] source="dbb37a15"
# ### 5. Matrix product, 6. Transposing
#
# Each entry of `a @ b` is the **dot product** of a row of a and a column of b: multiply them entry by entry, and
# add up. If there is a batch dimension in front, each matrix in the batch is multiplied on its own.

# %%
print(table @ table.T)  # (2, 3) @ (3, 2) -> (2, 2)
batch = torch.randn(5, 2, 3)
print((batch @ batch.transpose(1, 2)).shape)  # (5, 2, 3) @ (5, 3, 2) -> (5, 2, 2)

# %% [markdown] source="55f7086e"
# ### 7. Splitting and joining dimensions, 8. Concatenating

# %%
six = torch.arange(6)
print(six.unflatten(0, (3, 2)))  # (6,) -> (3, 2)
print(six.unflatten(0, (3, 2)).flatten())  # (6,) again
print(
    torch.cat([table, table], dim=1).shape, torch.stack([table, table]).shape
)  # side by side; stacked in a new dimension

# %% [markdown] source="a25a3411"
# ### 9. Computing along a dimension: sum, mean, softmax
#
# `dim=1` goes through the columns, so there is one result for each row. `-1` is the last dimension. With
# `keepdim=True`, the dimension stays, with size 1. `amax` gives the largest number.

# %%
print(table.sum(dim=1), table.mean(dim=1, keepdim=True).shape, table.amax(dim=1, keepdim=True))

# %% [markdown] source="9a798deb"
# ### Write it: `softmax`
#
# The **softmax** turns scores into positive numbers that sum to 1. It decides how much attention each token gets
# (chapter 3), and which token comes next (chapter 6). Take the exponential of each score, and divide by their sum.
#
# $$\mathrm{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# Computed as written, a score of 1,000 gives $e^{1000}$. For the computer that is infinite, and the result is `nan`,
# not a number. If the same number is subtracted from all scores, the result does not change (numerator and
# denominator shrink by the same factor). So **subtract the largest score first**.
#
# M is the size of the last dimension, and `...` are the dimensions before it, however many there are.
#
# In the edition with blanks, the comments of a cell are its steps: the name of a variable, a colon, what it is, and
# its shape. `return` stands before what is returned, `if` before a condition and `for` before a loop; the steps
# inside them are indented. You may change the steps and the names of variables inside a function.


# %% tags=["blank"]
def softmax(x):  # (..., M)
    x = x - x.amax(dim=-1, keepdim=True)  # scores minus the largest (..., M) - (..., 1) -> (..., M)
    powers = x.exp()  # exponentials (..., M)
    return powers / powers.sum(dim=-1, keepdim=True)  # divided by their sum (..., M) / (..., 1) -> (..., M)


# %%
check(softmax)

# %% [markdown] source="bda0cfdb"
# <details><summary>Hint 1</summary>
#
# There are three steps, one line each: subtract the largest number, take `exp()`, divide by the sum. All of them go
# along `dim=-1`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# With `keepdim=True` the shape is (..., 1), so each row has its own maximum:
# `x.amax(dim=-1, keepdim=True)`.
#
# </details>

# %%
print(softmax(table))
print(table.softmax(dim=-1))  # PyTorch's

# %% [markdown] source="c74249ef"
# ### 10. Masking
#
# `tril()` keeps the diagonal and what is below it; `~` swaps True and False.

# %%
allowed = torch.ones(3, 3, dtype=torch.bool).tril()  # True in the lower triangle
print(allowed)
print(torch.zeros(3, 3).masked_fill(~allowed, -math.inf))  # -inf where it was False

# %% [markdown] source="495ee2ae"
# ### 11. Layers and modules
#
# An `nn.Module` holds parameters and a computation (`forward`) together. `nn.Linear` multiplies by a matrix and adds
# a vector, the bias.


# %%
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)  # a 3 × 3 matrix and 3 biases

    def forward(self, x):
        return self.linear(self.linear(x))


twice = Twice()
print(tuple(twice(table).shape), [(name, tuple(p.shape)) for name, p in twice.named_parameters()])


# %% [markdown] source="f1b67cc9"
# ### 12. Gradients
#
# `backward()` goes back from the result to the parameters and computes their gradients (**backpropagation**). Moving
# a parameter a little against its gradient makes the result smaller. Training does this again and again. Where no
# gradients are needed, compute inside `torch.inference_mode()`.

# %%
number = torch.tensor(3.0, requires_grad=True)
loss = (number - 1) ** 2
loss.backward()
print(loss.item(), number.grad.item())  # (3 - 1)² and its derivative 2 × (3 - 1)
with torch.inference_mode():
    print(((number - 0.1 * number.grad - 1) ** 2).item())  # after a small move, it is smaller

# %% [markdown] source="e09db97c"
# ## How much is forgotten?
#
# Now for the measurement that the beginning of this chapter promised. A **gradient** says how much the output changes
# if the input changes a little. We compute how sensitive the last state of the recurrent network is to each token,
# and compare it with attention, whose weights come from your `softmax`.


# %%
def sensitivity(read):
    """How large the gradient of the last output is for each token (50,)"""
    tokens = x.clone().requires_grad_()
    read(tokens)[-1].sum().backward()
    return tokens.grad.norm(dim=1).tolist()


def recurrent(tokens):
    states = [torch.zeros(64)]
    for token in tokens:
        states.append(torch.tanh(token @ w + states[-1] @ u))
    return states


def attention(tokens):
    weights = softmax(tokens @ tokens.T / math.sqrt(64))  # how much each token looks at each other
    return weights @ tokens


distance = list(range(49, 0, -1))  # distance from the last token
plot_lines(
    {"recurrent network": sensitivity(recurrent)[:-1], "attention": sensitivity(attention)[:-1]},
    distance,
    title="How sensitive is the last output to each token?",
    xlabel="distance from the last token",
    ylabel="size of the gradient",
    log_scale=True,
)


# %% [markdown] source="172d7cfa"
# In the recurrent network, the gradient gets smaller with distance; note the logarithmic axis. Attention does not
# depend on distance. Improved recurrent networks such as the LSTM forget less, but they still have to wait.

# %% [markdown] source="ff5d2be6"
# ## In short
#
# - A recurrent network reads tokens in order: it cannot work in parallel, and the gradients of distant tokens
#   vanish.
# - Self-attention sees all tokens at once. In return, its cost grows with the square of the length.
# - With attention alone, the paper trained better translators in less time. BERT, GPT and T5 come from it.
# - The code of the next chapters changes shapes, multiplies matrices and computes along dimensions: a dozen
#   operations.
#
# **To think about.** People read from front to back. What does a model gain, and what does it lose, by reading
# everything at once?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** A text becomes 100 times as long. How much more does self-attention compute?
#
# - (a) 100 times
# - (b) 10,000 times
# - (c) the same
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. The recurrent layer grows with the length (n · d²).
# - (b) Yes. Self-attention costs n² · d, so it grows with the square of the length.
# - (c) No. Computing at once does not mean computing less. Only the number of *sequential steps* stays 1.
#
# </details>
#
# **2.** `table` has the shape (2, 3). What is the shape of `table.sum(dim=0)`?
#
# - (a) (2,)
# - (b) (3,)
# - (c) (1, 3)
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. (2,) is the result of `dim=1`, one sum for each row.
# - (b) Yes. Dimension 0, the rows, is summed away, and three columns remain.
# - (c) No. That is the shape with `keepdim=True`.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="6002c587"
# ### Exercise 1 ★ 3 min
#
# Use broadcasting to make the multiplication table of 1 to 9 in one line. The entry for 7 times 8 is 56.
#
# <details><summary>Hint 1</summary>
#
# Stand the numbers upright, as a column (9, 1). A column (9, 1) times a row (1, 9) gives (9, 9).
#
# </details>
# <details><summary>Hint 2</summary>
#
# `numbers[:, None]` is (9, 1), and `numbers[None, :]` is (1, 9).
#
# </details>

# %% tags=["exercise"]
numbers = torch.arange(1, 10)
products = numbers[:, None] * numbers[None, :]  # the table (9, 1) * (1, 9) -> (9, 9)

# %%
numbers = torch.arange(1, 10)
check_answer(
    products,
    torch.outer(numbers, numbers),
    (lambda it: it.shape == (9,), "Each number meets only itself. Stand one of them upright."),
    (lambda it: it.equal(numbers[:, None] + numbers[None, :]), "This is the table of sums, not of products."),
)

# %% [markdown] source="cf6f0a57"
# ### Exercise 2 ★ 5 min
#
# Without `@`, make the matrix product `table @ table.T` from broadcasting and `sum`.
#
# <details><summary>Hint 1</summary>
#
# Row i, column j of the result is the dot product of rows i and j: multiply them entry by entry, and add up. For all
# pairs of rows, let one side be (2, 1, 3) and the other (1, 2, 3).
#
# </details>
# <details><summary>Hint 2</summary>
#
# `table[:, None, :] * table[None, :, :]` is (2, 2, 3). Add along the last dimension.
#
# </details>

# %% tags=["exercise"]
by_hand = (table[:, None, :] * table[None, :, :]).sum(dim=-1)  # the product (2, 1, 3) * (1, 2, 3) -> (2, 2)

# %%
check_answer(
    by_hand,
    table @ table.T,
    (lambda it: it.equal(table.T @ table), "Columns were multiplied. With rows, the result is (2, 2)."),
    (lambda it: it.shape == (2, 2, 3), "Not added up yet: sum the last dimension."),
)

# %% [markdown] source="2be28392"
# ### Exercise 3 ★★ 8 min
#
# Write a function that starts at $x = 3$ and lowers the loss $(x - 1)^2$. `steps` times, it subtracts `rate` times
# the gradient from $x$. At the end it returns $x$.
#
# <details><summary>Hint 1</summary>
#
# One step is: compute the loss, call `loss.backward()`, move against `number.grad`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Change the value inside `with torch.no_grad():`. Gradients add up, so clear them each time with `number.grad =
# None`.
#
# </details>


# %% tags=["exercise"]
def descend(steps, rate):
    """The number that starts at 3, after so many steps"""
    number = torch.tensor(3.0, requires_grad=True)  # starts at 3
    for _ in range(steps):  # each step
        loss = (number - 1) ** 2  # the loss
        loss.backward()  # the gradient
        with torch.no_grad():
            number -= rate * number.grad  # against the gradient
        number.grad = None  # clear the gradient
    return number.item()  # a Python number


# %%
check_answer(
    lambda: (descend(1, 0.1), descend(50, 0.1)),
    lambda it: math.isclose(it[0], 2.6, abs_tol=1e-4) and abs(it[1] - 1) < 1e-3,
    (lambda it: it[0] > 3, "This moves along the gradient, and the loss grows. Move against it."),
    (
        lambda it: math.isclose(it[0], 2.6, abs_tol=1e-4),
        "The first step is right. The gradients seem to add up: clear them.",
    ),
)

# %% [markdown] source="5c9de0bf"
# The next chapter turns text into numbers. → [1. Vocabulary](01_vocabulary.ipynb)
