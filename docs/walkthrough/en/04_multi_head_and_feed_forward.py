# %% [markdown] source="32a937a1"
# # 4. Multi-head attention and feed-forward
#
# The attention of chapter 3 looks at a sentence in a single way. But there is much to look at in a sentence: who
# did it, what a word describes, whether there is a *not*. So the Transformer computes several attentions side by
# side. Each of them is called a **head**.

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
from copy import deepcopy

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.inference.folder import load_model


Embedding, ScaledDotProductAttention = mine("Embedding", "ScaledDotProductAttention")  # from chapters 2 and 3

# %%
drawings.model_map(4)

# %% [markdown] source="8edc5c63"
# ## Splitting into heads is a reshape
#
# Splitting into heads computes nothing new. It only divides the columns of the vectors. Let us split two tokens
# with vectors of six columns into three heads of two columns. The hundreds digit is the token, the last digit the
# column.

# %%
x = torch.tensor([[100, 101, 102, 103, 104, 105], [200, 201, 202, 203, 204, 205]])
print(x)

# %%
print(x.unflatten(-1, (3, 2)))  # (token 2, head 3, column 2)

# %%
heads = x.unflatten(-1, (3, 2)).transpose(0, 1)  # (head 3, token 2, column 2)
print(heads)

# %% [markdown] source="b78ad270"
# Now heads come first. Each has two tokens with two columns, so the attention of chapter 3 can be computed for each
# head on its own. Afterwards, we go back the same way and join the six columns (concat).

# %%
print(heads.transpose(0, 1).flatten(-2))

# %% [markdown] source="52c4811d"
# ## Multi-head attention
#
# The equations of the paper:
#
# $$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\,W^O$$
#
# $$\mathrm{head}_i = \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)$$
#
# Here $Q, K, V$ are the inputs before they are multiplied by the matrices; in self-attention, all three are the same.
# Each head has matrices of its own and computes attention; the results are joined, and multiplied by one more matrix.
# Side by side, the matrices of all heads form one large matrix. So the code multiplies once, then splits into heads.
# The last matrix, $W^O$, mixes what the heads found.

# %%
drawings.heads()

# %% [markdown] source="12235f01"
# ### Write it: `MultiHeadAttention`
#
# A **linear layer**, `nn.Linear`, multiplies by a matrix and adds a bias. H is the number of heads, and K = D/H the
# number of columns of each head. Chapter 5 shows why `forward` takes queries and keys as separate arguments.
#
# As in chapter 3, the mask is True where something may be seen; it is broadcast to the scores (B, H, L, M). A mask
# that hides padding is (B, 1, 1, M), a causal mask is (L, M). Keep the names that begin with `self.`, and the name
# `split`: trained weights are loaded into `q_proj` and the others below, and chapter 6 calls `split` and
# `self.attention`.


# %% tags=["blank"]
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} cannot be divided among {heads} heads")
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model)  # W^Q of all heads, side by side
        self.k_proj = nn.Linear(d_model, d_model)  # W^K
        self.v_proj = nn.Linear(d_model, d_model)  # W^V
        self.out_proj = nn.Linear(d_model, d_model)  # W^O
        self.attention = ScaledDotProductAttention()

    def split(self, x):  # (B, L, D)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # split into heads (B, L, H, K) -> (B, H, L, K)

    def forward(self, query, key, value, mask=None):  # (B, L, D), (B, M, D), (B, M, D), (B, 1, 1, M) or (L, M)
        query = self.split(self.q_proj(query))  # times W^Q, split (B, L, D) -> (B, H, L, K)
        key = self.split(self.k_proj(key))  # times W^K, split (B, M, D) -> (B, H, M, K)
        value = self.split(self.v_proj(value))  # times W^V, split (B, M, D) -> (B, H, M, K)
        heads, weights = self.attention(query, key, value, mask)  # sums (B, H, L, K), weights (B, H, L, M)
        joined = heads.transpose(1, 2).flatten(-2)  # heads side by side (B, L, H, K) -> (B, L, D)
        return self.out_proj(joined), weights  # times W^O (B, L, D), weights (B, H, L, M)


# %%
check(MultiHeadAttention)

# %% [markdown] source="e6b9171e"
# <details><summary>Hint 1</summary>
#
# `split` is what you did with numbers at the start of this chapter. Here, a batch comes first, so the dimensions to
# swap are 1 and 2. `forward` follows the drawing from bottom to top.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `split` is `x.unflatten(-1, (self.heads, -1)).transpose(1, 2)`. To join, go back with `transpose(1, 2)`, then
# `flatten(-2)`; `out_proj` comes last. The mask is passed to `self.attention` as it is.
#
# </details>

# %% [markdown] source="69895787"
# Load the weights of the trained translator's first decoder layer, and put in two sentences at once. It has four
# heads. As in chapter 3, the inputs are normalized embeddings plus positions, and the mask is causal.

# %% tags=["english"]
tokenizer = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
model = load_model(str(MODELS / "multi30k-de-en"), attn_implementation="eager").eval()
layer = model.model.decoder.layers[0]


def as_decoder_input(text):
    """[BOS] and the tokens of the text, without [EOS]"""
    return torch.tensor([tokenizer.bos_token_id, *tokenizer(text)["input_ids"][:-1]])


texts = ["A dog runs.", "Two women sit on a bench."]
input_ids = nn.utils.rnn.pad_sequence([as_decoder_input(text) for text in texts], batch_first=True)  # [PAD] is 0
is_token = input_ids != tokenizer.pad_token_id  # (B, L)
mask = is_token[:, None, None, :] & torch.ones(8, 8, dtype=torch.bool).tril()  # (B, 1, L, L)

embedding = Embedding(len(tokenizer), 128)
embedding.tokens.load_state_dict(model.model.decoder.embed_tokens.state_dict())
my_attention = MultiHeadAttention(128, heads=4)
print(my_attention.load_state_dict(layer.self_attn.state_dict()))

with torch.inference_mode():
    states = layer.self_attn_residual.pre_norm(embedding(input_ids))
    output, weights = my_attention(states, states, states, mask)
    steps = {"input": states, "q_proj": my_attention.q_proj(states)}
    steps |= {"split": my_attention.split(steps["q_proj"]), "weights": weights, "output": output}
for name, tensor in steps.items():
    print(f"{name}: {tuple(tensor.shape)}")


# %% [markdown] source="74c09c8e"
# The output has the shape of the input, so any number of layers can be stacked. Compare it with the package's
# module. Masks are written differently there (chapter 3), so we compare without one.

# %%
with torch.inference_mode():
    by_package, _ = layer.self_attn(states)
    print(torch.allclose(my_attention(states, states, states)[0], by_package, atol=1e-6))

# %% [markdown] source="9a2a34ea"
# ### More heads are not more parameters
#
# The heads divide the same columns among them, so the matrices have the same size, however many heads there are.

# %% tags=["english"]
for number in (1, 4, 8):
    count = sum(p.numel() for p in MultiHeadAttention(128, number).parameters())
    print(f"heads {number}, columns of each {128 // number}: {count:,}")

# %% [markdown] source="77a6bbb0"
# > *pytorch-transformer* has no biases in the four matrices. Here that is `attention_bias=False`.
#
# **In this package** (`VanillaTransformerAttention`), the same computation has four additions: dropout on the
# weights in training; a cache, so that keys and values are not computed again when generating (chapter 6);
# `attn_implementation`, which chooses faster implementations; and settings for biases and the size of heads.
#
# ## Heads look at different places
#
# The first layer of the translator's decoder has four heads. Let us see how they look at the same sentence.

# %% tags=["english"]
source = tokenizer(
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.", return_tensors="pt"
)  # a man in a blue shirt stands on a ladder and cleans a window
ids = as_decoder_input("A man in a blue shirt is standing on a ladder and cleaning a window.")[None]
tokens = tokenizer.convert_ids_to_tokens(ids[0])
with torch.inference_mode():
    attentions = model(**source, decoder_input_ids=ids, output_attentions=True).decoder_attentions
plot_attention(attentions[0][0], tokens, tokens, title="decoder, layer 0")

# %% [markdown] source="2397ab77"
# Do not trust your eyes alone; measure. For each token, how far away is the token that it looks at most? 0 is the
# token itself, -1 the one before it. There is nothing above 0, because the mask is causal.

# %% tags=["english"]
offset = attentions[0][0].argmax(dim=-1) - torch.arange(len(tokens))
pd.DataFrame(offset, index=[f"head {head}" for head in range(4)], columns=tokens)

# %% [markdown] source="1db61e04"
# Each head has habits of its own. Head 0 often looks back to the start, `[BOS]`; head 1 mostly at the token itself
# or back to the start; heads 2 and 3 more often at the last few tokens. Nobody told them to. A large weight does not
# mean that the token decided the answer, though: several layers follow.
#
# Try sentences of your own: `vanilla-transformer page --model model_cards/multi30k-de-en --output_dir
# runs/translator-page` makes a page that shows the same picture for any layer and head (chapter 9).
#
# ## The feed-forward network
#
# Attention moves information between tokens. Then comes a step that each token takes **alone**: the **feed-forward
# network** (FFN). It widens the vector (to four times as many columns, usually), and narrows it again. This is
# equation (2) of the paper, with a function $f$ in place of its max(0, ·). $f$ is explained below.
#
# $$\mathrm{FFN}(x) = f(xW_1 + b_1)W_2 + b_2$$
#
# ### Write it: `FeedForward`
#
# F is the number of columns in between. As in the paper, $f$ is ReLU. Name the two linear layers `self.fc1` and
# `self.fc2`.


# %% tags=["blank"]
class FeedForward(nn.Module):
    def __init__(self, d_model, ffn_dim):
        super().__init__()
        self.fc1 = nn.Linear(d_model, ffn_dim)  # W_1, b_1
        self.fc2 = nn.Linear(ffn_dim, d_model)  # W_2, b_2

    def forward(self, x):  # (B, L, D)
        x = self.fc1(x)  # widened (B, L, F)
        x = torch.relu(x)  # through f (B, L, F)
        return self.fc2(x)  # narrowed again (B, L, D)


# %%
check(FeedForward)

# %% [markdown] source="cb884c84"
# <details><summary>Hint 1</summary>
#
# It is two `nn.Linear(columns in, columns out)`. Call them `fc1` and `fc2`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Write `self.fc2(torch.relu(self.fc1(x)))` in three lines.
#
# </details>

# %% [markdown] source="0e7b61c7"
# Load trained weights, and compare with the package's module.

# %% tags=["english"]
feed_forward = FeedForward(128, 1024)
print(feed_forward.load_state_dict(layer.feed_forward.state_dict()))
with torch.inference_mode():
    print(tuple(states.shape), "->", tuple(feed_forward.fc1(states).shape), "->", tuple(feed_forward(states).shape))
    print("equal to the package:", torch.allclose(feed_forward(states), layer.feed_forward(states), atol=1e-6))

# %% [markdown] source="20eb5fb3"
# Each token is computed alone, so changing one token leaves the results of the others as they were. Change the
# third.

# %%
changed = states.clone()
changed[:, 2] = 0
with torch.inference_mode():
    is_same = (feed_forward(states) == feed_forward(changed)).all(dim=-1)
    before, after = (my_attention(one, one, one)[0] for one in (states, changed))
print("feed-forward:", is_same[0].tolist())
print("attention:   ", (before == after).all(dim=-1)[0].tolist())

# %% [markdown] source="d73e072d"
# ### It is a convolution of kernel size 1
#
# A convolution computes a few neighbouring positions together; their number is the size of its kernel. With size 1 it
# sees no neighbours, and multiplies each position by the same matrix, as a linear layer does. Copy the weights to see
# it.

# %% tags=["english"]
conv1, conv2 = nn.Conv1d(128, 1024, kernel_size=1).double(), nn.Conv1d(1024, 128, kernel_size=1).double()
with torch.inference_mode():
    for conv, linear in ((conv1, feed_forward.fc1), (conv2, feed_forward.fc2)):
        conv.weight.copy_(linear.weight.unsqueeze(-1))
        conv.bias.copy_(linear.bias)
    # Conv1d expects (sentence, column, token), so the last two dimensions are swapped.
    # In float64: sums that are added up in another order differ in the last digits of float32.
    by_convolution = conv2(torch.relu(conv1(states.double().transpose(1, 2)))).transpose(1, 2)
    print(torch.allclose(by_convolution, deepcopy(feed_forward).double()(states.double()), atol=1e-6))

# %% [markdown] source="22ecb905"
# > *transformer-evolution* writes its feed-forward network as convolutions of kernel size 1, `conv1` and `conv2`. As
# > you just saw, they compute the same as the linear layers `fc1` and `fc2`.
#
# ## ReLU and GELU
#
# Two linear layers in a row can compute no more than one. Between them, there must be a **non-linear** function
# $f$, the **activation function**. The paper's ReLU cuts negative numbers to 0. GELU rounds off its corner.

# %%
line = torch.linspace(-4, 4, 161)
plot_lines(
    {"ReLU": torch.relu(line).tolist(), "GELU": nn.functional.gelu(line).tolist()},
    line.tolist(),
    title="Activation functions",
    xlabel="x",
    ylabel="f(x)",
)

# %% [markdown] source="5bb4df59"
# Tutorials differ. **In this package**, `activation_function` chooses.

# %%
presets = ["base", "annotated-transformer", "pytorch-seq2seq", "pytorch-transformer", "transformer-evolution"]
print({name: VanillaTransformerConfig.from_preset(name).activation_function for name in presets})

# %% [markdown] source="1cc414c2"
# How much does ReLU really cut? For each layer of the trained decoder, count the columns that became 0. For that, we
# must look at a value in the middle of a layer. A **hook** in PyTorch is a function that is called whenever a module
# has computed; it gets the module, its inputs and its output. First, hook a single layer.


# %% tags=["english"]
def show(module, inputs, output):
    print(type(module).__name__, tuple(output.shape), f"zeros: {(output == 0).float().mean():.0%}")


hook = model.model.decoder.layers[0].feed_forward.activation.register_forward_hook(show)
with torch.inference_mode():
    model(**source, decoder_input_ids=ids)
hook.remove()  # we have seen it


# %% [markdown] source="69c99251"
# Put the same hook into all four layers; they report in turn.

# %% tags=["english"]
hooks = [layer.feed_forward.activation.register_forward_hook(show) for layer in model.model.decoder.layers]
with torch.inference_mode():
    model(**source, decoder_input_ids=ids)
for hook in hooks:
    hook.remove()

# %% [markdown] source="f6650392"
# In the first layer, only 3 % of the 1,024 columns are not 0; in the last, 15 %.
#
# ## In short
#
# - Heads divide the columns of the vectors. Each computes attention on its own; the results are joined, and mixed by
#   $W^O$.
# - The number of parameters does not depend on the number of heads. Training decides what each head looks at.
# - The feed-forward network is computed for each token alone: it widens the vector, applies a non-linear function,
#   and narrows it again.
# - You wrote `MultiHeadAttention` and `FeedForward`. Both turn (B, L, D) into (B, L, D).
#
# **To think about.** A model with one head has as many parameters as one with four. What would be bad about 128
# heads of one column each?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** What happens to the number of parameters with 8 heads in place of 4?
#
# - (a) It doubles
# - (b) It stays the same
# - (c) It halves
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. The matrices are the same; only their columns are divided further.
# - (b) Yes. Each head just has half as many columns.
# - (c) No. Each head has half as many columns, but all together have the same.
#
# </details>
#
# **2.** The third token of a sentence is changed. Which outputs of the feed-forward network change?
#
# - (a) Only that of the third token
# - (b) All
# - (c) The third and those after it
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. Each token is computed alone.
# - (b) No. That would be self-attention.
# - (c) No. That would be self-attention with a causal mask.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="cf0350f8"
# ### Exercise 1 ★★ 8 min
#
# `x.view(3, 2, 2)` has the shape of a split into heads (head 3, token 2, column 2), but the numbers are in the
# wrong places. What is in the second row of its first head, and what should be there? Write down both, each as a
# list of two numbers.
#
# <details><summary>Hint 1</summary>
#
# Print `x.view(3, 2, 2)`. The hundreds are the token.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The wrong one is `x.view(3, 2, 2)[0, 1].tolist()`, the right one `x.unflatten(-1, (3, 2)).transpose(0, 1)[0,
# 1].tolist()`.
#
# </details>

# %% tags=["exercise"]
wrong = x.view(3, 2, 2)[0, 1].tolist()  # if split by view
right = x.unflatten(-1, (3, 2)).transpose(0, 1)[0, 1].tolist()  # what should be there

# %%
check_answer(
    (wrong, right),
    ([102, 103], [200, 201]),  # columns of the first token, in the place of the second
    (([200, 201], [102, 103]), "The two are swapped."),
    (lambda it: it[0] == it[1], "Both are the same. Look at row 1 of head 0."),
)

# %% [markdown] source="6fae3670"
# ### Exercise 2 ★★ 8 min
#
# GELU is $x\,\Phi(x)$, where $\Phi$ is the cumulative distribution function of the normal distribution, $\Phi(x) =
# \frac{1}{2}(1 + \mathrm{erf}(x/\sqrt{2}))$. Compute the GELU of `line` with `torch.erf`.
#
# <details><summary>Hint 1</summary>
#
# Write down $\Phi(x)$ first, as it stands.
#
# </details>
# <details><summary>Hint 2</summary>
#
# It is `line * 0.5 * (1 + torch.erf(...))`, with `line / math.sqrt(2)` inside.
#
# </details>

# %% tags=["exercise"]
gelu = line * 0.5 * (1 + torch.erf(line / math.sqrt(2)))  # (161,)

# %%
check_answer(
    gelu,
    nn.functional.gelu(line),
    (lambda it: torch.allclose(it, 0.5 * (1 + torch.erf(line / math.sqrt(2)))), "This is Φ(x). Multiply it by x."),
    (lambda it: torch.allclose(it, line * 0.5 * (1 + torch.erf(line))), "Inside erf, divide by √2."),
)

# %% [markdown] source="8541e0b3"
# ### Exercise 3 ★★★ 12 min
#
# Without $f$, the feed-forward network equals a single linear layer. Make the matrix and the bias of that layer from
# `fc1` and `fc2`.
#
# <details><summary>Hint 1</summary>
#
# Multiply out: $(xW_1 + b_1)W_2 + b_2$ is $x(W_1 W_2) + (b_1 W_2 + b_2)$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The `weight` of `nn.Linear` is (columns out, columns in), so the order is the other way round: `fc2.weight @
# fc1.weight`.
#
# </details>

# %% tags=["exercise", "english"]
fc1, fc2 = feed_forward.fc1, feed_forward.fc2
weight = fc2.weight @ fc1.weight  # (128, 1024) @ (1024, 128) -> (128, 128)
bias = fc2.weight @ fc1.bias + fc2.bias  # (128,)

# %%
with torch.inference_mode():
    without_activation = feed_forward.fc2(feed_forward.fc1(states))
    check_answer(
        (weight, bias),
        lambda it: torch.allclose(nn.functional.linear(states, *it), without_activation, atol=1e-4),
        (
            lambda it: torch.allclose(it[0], feed_forward.fc2.weight @ feed_forward.fc1.weight, atol=1e-5),
            "The matrix is right. Into the bias also goes the bias of fc1, through the matrix of fc2.",
        ),
    )

# %% [markdown] source="e7a8ec66"
# All large parts are ready. The next chapter puts the model together. → [5. Encoder and
# decoder](05_encoder_and_decoder.ipynb)
