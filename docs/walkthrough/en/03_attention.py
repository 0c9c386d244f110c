# %% [markdown] source="bfd88020"
# # 3. Attention
#
# After chapter 2, each token has a vector, but tokens know nothing of each other. The *swing* in "children swing in
# the park" and the one in "a girl on a swing" have the same embedding, and only the words beside them tell which is
# meant. **Attention** is how a token looks at other tokens and takes from them what it needs.

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
from chapter_plots import plot_attention, plot_masks
from check import check, check_answer, mine
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoTokenizer

from hf_vanilla_transformer import modeling_vanilla_transformer as modeling
from hf_vanilla_transformer.inference.folder import load_model


Embedding = mine("Embedding")  # from chapter 2

# %%
drawings.model_map(3)

# %% [markdown] source="60df803b"
# ## Query, key, value
#
# It is like finding a book in a library. What you look for is the **query**, the titles on the spines are the
# **keys**, and what is in the books are the **values**. A `dict` in Python returns a value only if a key is equal.
# Attention returns a mixture of all values: *the more similar the key, the more of its value*.
#
# Let us try three fruits. Read the first column as "sour" and the second as "soft". Queries, keys and values are all
# the same vectors here.

# %%
fruits = ["apple", "banana", "kiwi"]
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
query = key = value = x
pd.DataFrame(x, index=fruits, columns=["sour", "soft"])

# %% [markdown] source="186ba91a"
# ### Scores
#
# The dot product of chapter 2 measures how similar a query and a key are. Rows are queries, columns are keys.

# %%
scores = query @ key.T
pd.DataFrame(scores, index=fruits, columns=fruits)

# %% [markdown] source="43b8c2a0"
# ### Softmax
#
# The scores become **attention weights**, which sum to 1: take the exponential, which makes them positive, and
# divide by the sum.

# %%
pd.DataFrame(scores.softmax(dim=1), index=fruits, columns=fruits).round(3)

# %% [markdown] source="668a07f3"
# Look at the row of the apple: 0.422 for apple and kiwi each, 0.155 for the banana.
#
# ### Scale
#
# The paper has one more step. Before the softmax, the scores are divided by $\sqrt{d_k}$. $d_k$ is the dimension of
# the keys, which is 2 here.

# %%
weights = (scores / math.sqrt(2)).softmax(dim=1)
pd.DataFrame(weights, index=fruits, columns=fruits).round(3)

# %% [markdown] source="599da317"
# The same row is now 0.401, 0.198, 0.401. The weights are a little more even.
#
# > *This example is in many posts.* Some of them give 0.422, 0.156, 0.422 as the result of dividing by √2. As the
# > two tables show, 0.422 is the value *before* dividing (and the middle one rounds to 0.155). After dividing, it is
# > 0.401, 0.198, 0.401.
#
# ### Weighted sum
#
# Finally, the values are multiplied by the weights and added up. The apple's result is 0.401 of the apple, 0.401 of
# the kiwi and 0.198 of the banana.

# %%
pd.DataFrame(weights @ value, index=fruits, columns=["sour", "soft"]).round(3)

# %% [markdown] source="cfdec78b"
# That is all there is to attention. It is equation (1) of the paper.
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# Here it is as a drawing. A later section explains the linear layers at the bottom, and the one after it the mask.

# %%
drawings.attention()

# %% [markdown] source="03955306"
# ### Write it: `ScaledDotProductAttention`
#
# Turn the equation into a class. L is the number of queries, M that of keys and values, K the dimension of the
# vectors; `...` stands for dimensions in front, such as a batch. `mask` is True where something may be seen. Its
# shape is that of the scores, or (..., 1, M) if it is the same for all queries. Where nothing may be seen, set the
# score to $-\infty$ (`-math.inf`): the softmax makes it 0. A large negative number such as `-1e9` works, too. The
# result differs only where a whole row is hidden; such rows come later in this chapter. Without a mask (`None`),
# everything is seen.


# %% tags=["blank"]
class ScaledDotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):  # (..., L, K), (..., M, K), (..., M, K), (..., L or 1, M)
        scores = query @ key.transpose(-2, -1)  # dot products (..., L, K) @ (..., K, M) -> (..., L, M)
        scores = scores / math.sqrt(key.shape[-1])  # divided by √K (..., L, M)
        if mask is not None:  # there is a mask
            scores = scores.masked_fill(~mask, -math.inf)  # -∞ where nothing may be seen (..., L, M)
        weights = scores.softmax(dim=-1)  # attention weights; each row sums to 1 (..., L, M)
        return weights @ value, weights  # weighted sum (..., L, M) @ (..., M, K) -> (..., L, K), and weights


# %%
check(ScaledDotProductAttention)

# %% [markdown] source="8dfa5bf7"
# <details><summary>Hint 1</summary>
#
# Write down the steps of the fruits: scores, scale, mask, softmax, weighted sum. There may be a batch in front, so
# use `key.transpose(-2, -1)`, which swaps the last two dimensions, in place of `key.T`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Mask with `scores.masked_fill(~mask, -math.inf)`, then `scores.softmax(dim=-1)`. The last line is `return weights @
# value, weights`.
#
# </details>

# %% [markdown] source="ab6d617d"
# Your class gives the same results that we computed step by step for the fruits.

# %%
my_attention = ScaledDotProductAttention()
mixed, same_weights = my_attention(query, key, value)
print(tuple(mixed.shape), torch.allclose(same_weights, weights), torch.allclose(mixed, weights @ value))

# %% [markdown] source="fc90b085"
# ## Why divide by √d_k?
#
# The more dimensions, the larger the dot products. For random vectors, their size grows with $\sqrt{d_k}$. If scores
# differ a lot, the softmax gives almost everything to one key. Then the gradients, which tell in which direction and
# how far to change the parameters, come close to 0, and learning slows down. Let us measure the largest weight, and the
# size of the gradient that comes back through the softmax to the scores.


# %%
def gradient(scores):
    """How large the gradient is that comes back through the softmax"""
    scores = scores.clone().requires_grad_()
    (scores.softmax(dim=1) * torch.randn_like(scores)).sum().backward()
    return scores.grad.norm(dim=1).mean().item()


rows = {}
for d in (4, 64, 1024):
    dots = (torch.randn(1000, 1, d) * torch.randn(1000, 10, d)).sum(dim=2)  # 1000 queries with 10 keys each
    measured = [[one.softmax(dim=1).amax(dim=1).mean().item(), gradient(one)] for one in (dots, dots / math.sqrt(d))]
    rows[f"d_k = {d}"] = [dots.std().item(), math.sqrt(d), *measured[0], *measured[1]]
columns = ["deviation of dot products", "√d_k", "largest weight", "gradient", "divided: weight", "divided: gradient"]
pd.DataFrame.from_dict(rows, orient="index", columns=columns).round(2)

# %% [markdown] source="bab02c22"
# Without the division, one weight comes close to 1 as the dimension grows, and the gradient vanishes. With it, both
# hardly change.
#
# ## A real model, real sentences
#
# A decoder is a stack of layers of the same kind. Let us follow two sentences through the first decoder layer of
# the trained translator, multi30k-de-en, as if the decoder had written them. They start with `[BOS]`; the shorter
# one gets padding. `eager` is the implementation that also returns the weights.

# %% tags=["english"]
tokenizer = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
model = load_model(str(MODELS / "multi30k-de-en"), attn_implementation="eager").eval()


def as_decoder_input(text):
    """[BOS] and the tokens of the text, without [EOS]"""
    return torch.tensor([tokenizer.bos_token_id, *tokenizer(text)["input_ids"][:-1]])


texts = ["A dog runs.", "Two women sit on a bench."]
input_ids = nn.utils.rnn.pad_sequence([as_decoder_input(text) for text in texts], batch_first=True)  # [PAD] is 0
is_token = input_ids != tokenizer.pad_token_id
tokens = [tokenizer.convert_ids_to_tokens(ids) for ids in input_ids]
print(*tokens, sep="\n")
print(is_token.long())


# %% [markdown] source="fcd1e3c9"
# Where do queries, keys and values come from? Three different matrices are multiplied with the same input (the
# linear layers at the bottom of the drawing). Training sets the matrices. So each token has three vectors: one to
# search with, one to be found by, and one to hand over. Attention of a sentence to itself is called
# **self-attention**. `pre_norm` evens out the size of the vectors, and is explained in chapter 5; heads are
# explained in chapter 4. Here we use only the 32 columns of the first head. Embeddings and positions come from the
# `Embedding` of chapter 2, with the trained table in it. The cell of imports at the top of this chapter prints
# which `Embedding` that is: yours, if it passed its `check`, else the one in the repository's
# [my_transformer.py](my_transformer.py).

# %% tags=["english"]
decoder, layer = model.model.decoder, model.model.decoder.layers[0]
embedding = Embedding(len(tokenizer), 128)
embedding.tokens.load_state_dict(decoder.embed_tokens.state_dict())
with torch.inference_mode():
    hidden = layer.self_attn_residual.pre_norm(embedding(input_ids))
    q = layer.self_attn.q_proj(hidden)[..., :32]
    k = layer.self_attn.k_proj(hidden)[..., :32]
    v = layer.self_attn.v_proj(hidden)[..., :32]
print(tuple(hidden.shape), "->", tuple(q.shape))
pd.concat([pd.DataFrame(one[0, :, :4], tokens[0]) for one in (q, k, v)], axis=1, keys=["Q", "K", "V"]).round(2)

# %% [markdown] source="45bc28a5"
# These are the first four columns of Q, K and V for the first sentence. Next, the scores, divided by $\sqrt{32}$.

# %% tags=["english"]
scores = q @ k.transpose(1, 2) / math.sqrt(32)
pd.DataFrame(scores[0], index=tokens[0], columns=tokens[0]).round(2)

# %% [markdown] source="d6f321fd"
# The second sentence:

# %%
pd.DataFrame(scores[1], index=tokens[1], columns=tokens[1]).round(2)

# %% [markdown] source="0f0d1457"
# ### The mask
#
# The last columns of the first sentence are `[PAD]`. And the decoder writes from left to right: no token may see
# those that follow it. Where nothing may be seen, the score becomes $-\infty$.

# %% tags=["english"]
mask = is_token[:, None, :] & torch.ones(8, 8, dtype=torch.bool).tril()  # (2, 1, 8) & (8, 8) -> (2, 8, 8)
masked = scores.masked_fill(~mask, -math.inf)
pd.DataFrame(masked[0], index=tokens[0], columns=tokens[0]).round(2)

# %%
probabilities = masked.softmax(dim=-1)
pd.DataFrame(probabilities[0], index=tokens[0], columns=tokens[0]).round(2)

# %% [markdown] source="08d20541"
# In the last *rows*, `[PAD]` is the query. These rows have weights, but nothing uses their outputs, so they may stay.
# The weights of the second sentence, and four columns of the weighted sum:

# %%
pd.DataFrame(probabilities[1], index=tokens[1], columns=tokens[1]).round(2)

# %%
output = probabilities @ v
pd.DataFrame(output[1, :, :4], index=tokens[1]).round(2)

# %% [markdown] source="39eb4da4"
# Now compute both sentences at once with your class. The weights should also equal those that the model itself
# computes. The model returns the shape (sentence, head, query, key). We leave out the rows in which `[PAD]` is the
# query: the package does not count padding as positions (chapter 2), so these rows differ.

# %% tags=["english"]
result, my_weights = my_attention(q, k, v, mask)
source = tokenizer(["Ein Hund läuft."] * 2, return_tensors="pt")  # a dog runs; self-attention does not look at it
with torch.inference_mode():
    inputs = {"decoder_input_ids": input_ids, "decoder_attention_mask": is_token.long()}
    attentions = model(**source, **inputs, output_attentions=True).decoder_attentions[0]
print("q, k, v:", tuple(q.shape), " output:", tuple(result.shape), torch.allclose(result, output, atol=1e-6))
same = torch.allclose(my_weights[is_token], attentions[:, 0][is_token], atol=1e-6)
print("weights:", tuple(my_weights.shape), " the model's weights:", tuple(attentions.shape), same)

# %% [markdown] source="1f7c4c92"
# Here are the weights of the first head. Pictures write the `▁` of a token as an underscore, `_`.

# %%
plot_attention(attentions[0, 0], tokens[0], tokens[0], title="layer 0, head 0")

# %%
plot_attention(attentions[1, 0], tokens[1], tokens[1], title="layer 0, head 0")

# %% [markdown] source="a529b3dc"
# To see this picture for other sentences, run the command below in a terminal. It opens a page in the browser in
# which the same model translates what you type, and shows where it looks (chapter 9).
#
# ```sh
# vanilla-transformer page --model model_cards/multi30k-de-en --output_dir runs/translator-page
# python -m http.server --bind 127.0.0.1 --directory runs/translator-page
# ```
#
# ## Are the two swings different now?
#
# At the start of this chapter, two *swings* had the same embedding. After looking at the words beside them, they
# should differ. Take the vectors of both `▁swing` from each layer of the decoder, and measure their cosine
# similarity. 1 means that they point the same way. Both stand at the same position.

# %% tags=["english"]
states = []
for text in ("Two children swing in the park.", "Girl on a swing in the park."):
    ids = as_decoder_input(text)[None]
    with torch.inference_mode():
        outputs = model(input_ids=source["input_ids"][:1], decoder_input_ids=ids, output_hidden_states=True)
    place = ids[0].tolist().index(tokenizer.convert_tokens_to_ids("▁swing"))
    states.append([layer[0, place] for layer in outputs.decoder_hidden_states])
similarity = [torch.cosine_similarity(first, second, dim=0).item() for first, second in zip(*states, strict=True)]
names = ["embedding", *(f"layer {number}" for number in range(len(similarity) - 1))]
pd.DataFrame([similarity], index=["similarity of both ▁swing"], columns=names).round(2)

# %% [markdown] source="5d81ba86"
# On entering the decoder, both are the same vector: 1. The layers move them apart, because they mix in *children* and
# *on a*. One swing is what the children do, the other is a thing to sit on.
#
# ## Three kinds of masks
#
# An encoder only has to hide padding. A decoder writes a text from left to right, so it **must not look ahead**. In
# training it gets the whole correct answer at once, and without a mask it would see what it is about to predict. The
# mask that hides what follows is called the **causal mask**. A decoder uses the causal mask and the mask of the
# padding together.

# %% tags=["english"]
plot_masks(tokens[0], is_token[0].long().tolist())

# %% [markdown] source="d252686c"
# Blue is what may be seen. One line makes each of the two masks; `&` combines them.

# %%
pad = torch.tensor([1, 1, 1, 0]).bool()  # (M,)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (L, M)
print(pad & causal)

# %% [markdown] source="cabcd9bf"
# > In *transformer-evolution*, `get_attn_pad_mask` and `get_attn_decoder_mask` are True where something is
# > **hidden**. The `attention_mask` of this package is the opposite: 1 where there is something to **see**; the
# > decoder makes its causal mask itself. `src_key_padding_mask` of *torch.nn.Transformer* is True for padding, too.
#
# ## What if there is nothing to see?
#
# What happens to a row whose keys are all hidden? It does occur: with padding on the left and a causal mask, the
# first `[PAD]` can only see itself, and that is padding. Let us compute it in three ways.

# %%
q1, k1, v1 = torch.randn(3, 1, 1, 2, 4)  # two tokens, four columns
hide_all = torch.full((1, 1, 2, 2), torch.finfo(torch.float32).min)
scores = q1 @ k1.transpose(2, 3) / math.sqrt(4)
print("adding -inf:            ", (scores - math.inf).softmax(dim=-1)[0, 0, 0])
print("adding the least number:", (scores + hide_all).softmax(dim=-1)[0, 0, 0])
_, by_package = modeling.eager_attention_forward(torch.nn.Module().eval(), q1, k1, v1, hide_all, scaling=0.5)
print("the package:            ", by_package[0, 0, 0])

# %% [markdown] source="b081a451"
# Masking with `-inf` divides 0 by 0, which is `nan`, and a single `nan` spreads through the whole model. Your class
# does that, too, if it masks with −∞. As long as padding is on the right, there are no such rows, so these chapters
# do not handle them. Adding the most negative number gives no `nan`, but the query then looks at all hidden places
# equally.
#
# **This package** (`eager_attention_forward`) sets the weights of hidden places to 0 once more after the softmax.
# The weighted sum is 0, as in PyTorch's fast implementation (SDPA). In training, the weights also pass through
# dropout (chapter 6).

# %%
print(scaled_dot_product_attention(q1, k1, v1, attn_mask=torch.zeros(1, 1, 2, 2, dtype=torch.bool))[0, 0, 0])

# %% [markdown] source="8417ab80"
# ## In short
#
# - A score is the dot product of a query and a key. The softmax turns scores into weights that sum to 1; the output
#   is the weighted sum of the values.
# - Dividing scores by √d_k keeps the weights from gathering in one place, however many dimensions there are.
# - Masks hide what may not be seen: padding in an encoder; padding and what follows in a decoder.
# - You wrote `ScaledDotProductAttention`: queries (B, L, K) become outputs (B, L, K).
#
# **To think about.** Weights always sum to 1. Where does a model look if no token is worth looking at? What would
# change if the sum could be less?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** What if scores are divided by d_k in place of √d_k?
#
# - (a) The weights gather in one place
# - (b) The weights are too even
# - (c) Nothing changes
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. That happens without any division.
# - (b) Yes. Scores shrink to the size $1/\sqrt{d_k}$, and the softmax is almost an average.
# - (c) No. The softmax is sensitive to differences of scores.
#
# </details>
#
# **2.** What if hidden scores become 0 in place of −∞?
#
# - (a) They are hidden all the same
# - (b) There is an error
# - (c) Hidden places are still seen
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. exp(0) is 1, not 0.
# - (b) No. There is no error, which makes it harder to find.
# - (c) Yes. exp(0) = 1, so they are seen even more than places whose score is negative.
#
# </details>
#
# **3.** Three queries look at five keys. How many outputs are there?
#
# - (a) 3
# - (b) 5
# - (c) 15
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. There is one output for each query.
# - (b) No. That is the number of keys and of values.
# - (c) No. 15 is the number of weights, 3 × 5.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="59fb8349"
# ### Exercise 1 ★ 5 min
#
# The kiwi is the query. With `math.exp` alone, compute its attention weights for the three fruits, scaled by √d_k
# as above: a list of three numbers.
#
# <details><summary>Hint 1</summary>
#
# The dot products of the kiwi with apple, banana and kiwi are 1, 1 and 2.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take `math.exp` of the three scores, each divided by √2; then divide by the sum of the three.
#
# </details>

# %% tags=["exercise"]
exponentials = [math.exp(score / math.sqrt(2)) for score in (1, 1, 2)]
by_hand = [one / sum(exponentials) for one in exponentials]  # three weights

# %%
without_scale = torch.tensor([1.0, 1.0, 2.0]).softmax(dim=0).tolist()
check_answer(
    by_hand,
    weights[2].tolist(),
    (without_scale, "The scores are not divided by √2."),
    (lambda it: not math.isclose(sum(it), 1), "They do not sum to 1. Divide by the sum of the three."),
)

# %% [markdown] source="413a1b3c"
# ### Exercise 2 ★ 5 min
#
# What are the weights of the three fruits under a causal mask? Guess the first two rows, then compute them with
# `my_attention`.
#
# <details><summary>Hint 1</summary>
#
# A causal mask is True in the lower triangle.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Give `torch.ones(3, 3, dtype=torch.bool).tril()` as the fourth argument, and take the weights, the second of the
# two results.
#
# </details>

# %% tags=["exercise"]
_, causal_weights = my_attention(query, key, value, torch.ones(3, 3, dtype=torch.bool).tril())  # weighted sum, weights

# %%
check_answer(
    causal_weights,
    # The apple sees only itself, and the banana does not see the kiwi.
    lambda it: it[0].tolist() == [1, 0, 0] and it[1, 2] == 0 and torch.allclose(it.sum(dim=1), torch.ones(3)),
    (weights, "These are the weights without a mask."),
    (lambda it: it[2].tolist() == [0, 0, 1], "This hides what came before. Use tril."),
)

# %% [markdown] source="a61e977b"
# ### Exercise 3 ★★ 8 min
#
# Above, we computed `output` step by step. Compute the same in one line, with PyTorch's
# `scaled_dot_product_attention`.
#
# <details><summary>Hint 1</summary>
#
# It takes q, k, v and the mask; the mask is called `attn_mask`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The `mask` that hid padding and what follows, (2, 8, 8), is already there.
#
# </details>

# %% tags=["exercise", "english"]
by_torch = scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (2, 8, 32)

# %% tags=["english"]
check_answer(
    by_torch,
    output,
    (scaled_dot_product_attention(q, k, v), "There is no mask."),
    (lambda it: it.isnan().any(), "The mask is inverted, or hides too much."),
)

# %% [markdown] source="07f2367d"
# The next chapter splits attention into several heads. It also adds a step that each token takes on its own.
# → [4. Multi-head attention and feed-forward](04_multi_head_and_feed_forward.ipynb)
