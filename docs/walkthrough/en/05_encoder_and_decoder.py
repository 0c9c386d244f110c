# %% [markdown] source="0231570e"
# # 5. Encoder and decoder
#
# By now you have embeddings, positions, multi-head attention and the feed-forward network. In this chapter you stack
# them into the whole model, put trained weights into it, and **translate with the model that you built**.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %%
import math  # noqa: F401 - for your answers

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.inference.folder import load_model


Embedding, MultiHeadAttention, FeedForward = mine(
    "Embedding", "MultiHeadAttention", "FeedForward"
)  # from chapters 2 and 4

# %%
drawings.model_map(5)

# %% [markdown] source="2ab1e5a8"
# ## Residual connections and layer normalization
#
# The more layers are stacked, the harder training gets. So two things are done around each attention and each
# feed-forward network.
#
# - **Residual connection**: the result does not replace the vector that came in; it is **added** to it. Even while a
#   layer has learnt nothing yet, its input gets through.
# - **Layer normalization**: each token's vector gets the mean 0 and the variance 1. Then each column is multiplied
#   by a learnt number, and another one is added. Before training, these are 1 and 0.
#
# ### Write it: `LayerNorm`
#
# As an equation, with the mean $\mu$ and the variance $\sigma^2$ of the D columns of one token:
#
# $$\mathrm{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$
#
# The small number $\epsilon$ (eps) keeps us from dividing by 0. $\gamma$ and $\beta$ are learnt, one number for each
# column. As in PyTorch, their names are `weight` and `bias`. A tensor in `nn.Parameter` becomes a parameter, which
# training changes.


# %% tags=["blank"]
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))  # γ: multiplies each column; starts at 1 (D,)
        self.bias = nn.Parameter(torch.zeros(d_model))  # β: is added to each column; starts at 0 (D,)

    def forward(self, x):  # (..., D)
        mean = x.mean(dim=-1, keepdim=True)  # the mean of each token (..., 1)
        variance = x.var(dim=-1, unbiased=False, keepdim=True)  # the variance of each token, divided by D (..., 1)
        normed = (x - mean) / (variance + self.eps).sqrt()  # mean 0, variance 1 (..., D)
        return normed * self.weight + self.bias  # times γ, plus β (..., D)


# %%
check(LayerNorm)

# %% [markdown] source="c642e678"
# <details><summary>Hint 1</summary>
#
# Mean and variance are taken over the last dimension. With `keepdim=True` they are (..., 1), so that each token has
# its own.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The variance is `x.var(dim=-1, unbiased=False, keepdim=True)`: `unbiased=False` divides by D, not by D - 1. Add eps
# inside the square root.
#
# </details>

# %% [markdown] source="47c03933"
# Put in two vectors, one a hundred times as large as the other, and compare with PyTorch's `nn.LayerNorm`.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [100.0, 200.0, 300.0, 600.0]])
with torch.no_grad():
    print(LayerNorm(4)(x))
    print(torch.allclose(LayerNorm(4)(x), nn.LayerNorm(4)(x), atol=1e-6))

# %% [markdown] source="111dce5e"
# Both became the same. Only the relative differences between columns remain.
#
# > *The Annotated Transformer and pytorch-transformer* divide by n-1 instead of n in the variance, and add eps
# > outside the square root. In this package, that is `layer_norm_type="unbiased_std"`.
#
# ## Normalize before or after?
#
# There are two places for the normalization. A sub-layer is an attention or a feed-forward network.
#
# - post-norm (the paper): $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$
# - pre-norm: $x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$

# %%
drawings.norms()

# %% [markdown] source="f9d64134"
# In pre-norm, $x$ itself is not normalized: each sub-layer only adds to it, up to the end. That makes deep stacks
# easy to train. How much it matters is measured later in this chapter, once the model is complete. The vectors grow
# with each addition, so one more normalization stands at the very end. In this package, `norm_first` and
# `final_norm` choose.
#
# > The text of *The Annotated Transformer* explains LayerNorm(x + Sublayer(x)), as the paper does. The code is x +
# > Dropout(Sublayer(LayerNorm(x))), with the comment "the norm is first as opposed to last". *torch.nn.Transformer*
# > adds a normalization at the very end in post-norm, too; the paper has none.

# %%
presets = ["base", "annotated-transformer", "pytorch-transformer", "torch-nn-transformer", "transformer-evolution"]
configs = [VanillaTransformerConfig.from_preset(name) for name in presets]
pd.DataFrame(
    [[one.norm_first, one.final_norm] for one in configs], index=presets, columns=["norm_first", "final_norm"]
)

# %% [markdown] source="659475f4"
# ## Write it: `Dropout`
#
# The paper puts **dropout** on the output of each sub-layer, and on the sum of embeddings and positions (§5.4). In
# training, it sets some numbers, chosen at random, to 0, so that the model does not rely on a few of them. The
# others are divided by 1 - rate, which makes them larger, so that the mean stays as it was. rate is at least 0 and
# below 1.
#
# A module has `self.training`: `model.train()` sets it to True, `model.eval()` to False. Outside training, dropout
# does nothing.


# %% tags=["blank"]
class Dropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):  # any shape
        if not self.training:  # outside training
            return x  # x as it is
        keep = torch.rand_like(x) >= self.rate  # True where a number is kept: for each with probability 1 - rate
        return x * keep / (1 - self.rate)  # what is kept, larger, so that the mean stays


# %%
check(Dropout)

# %% [markdown] source="23ba4269"
# <details><summary>Hint 1</summary>
#
# `torch.rand_like(x)` gives random numbers between 0 and 1, in the shape of x. Keep the numbers of x where the random
# number is at least rate: that happens with probability 1 - rate.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `keep = torch.rand_like(x) >= self.rate` is True or False. `x * keep` sets the columns that are False to 0.
#
# </details>

# %% [markdown] source="5798babd"
# PyTorch's `nn.Dropout` does the same. The output differs each time; its mean does not.

# %%
for module in (Dropout(0.25), nn.Dropout(0.25)):
    dropped = module(torch.ones(8))
    print(type(module).__name__, dropped, f"mean of many: {module(torch.ones(100_000)).mean():.2f}")

# %% [markdown] source="abd72166"
# ## Write it: `EncoderLayer`
#
# The paper has post-norm, but all three trained models of this repository are pre-norm, so yours is, too. Each
# sub-layer normalizes, computes, passes through dropout, and adds to its input.
#
# Keep all names of this chapter's classes that begin with `self.`: trained weights are loaded under these names at
# the end of the chapter, and chapter 6 uses `self.dropout` when it changes the `forward` of a layer. One dropout
# serves both sub-layers.

# %%
drawings.encoder_layer()


# %% tags=["blank"]
class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.self_attention_norm = LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)
        self.dropout = Dropout(dropout)

    def forward(self, x, mask):  # (B, S, D), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # x, normalized (B, S, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])  # x + attention (B, S, D)
        normed = self.feed_forward_norm(x)  # x, normalized (B, S, D)
        return x + self.dropout(self.feed_forward(normed))  # x + feed-forward (B, S, D)


# %%
check(EncoderLayer)

# %% [markdown] source="8e229a96"
# <details><summary>Hint 1</summary>
#
# Follow the drawing from bottom to top. A sub-layer is two lines: compute `normed`, then add to `x` what is computed
# from it.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])`. The `[0]` picks the output out of
# (output, weights). The line of the feed-forward network is similar.
#
# </details>

# %% [markdown] source="cdf9a4b4"
# Give it two Korean sentences, in the vocabulary of nsmc-small, the repository's classifier of Korean film reviews.
# S is the length of the source. The encoder's output is often called `memory`.

# %% tags=["english"]
reviews_tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
reviews = ["정말 재미있는 영화", "지루하고 유치했다"]  # a really enjoyable film; it was boring and childish
batch = reviews_tokenizer(reviews, padding=True, return_tensors="pt")
is_token = batch["attention_mask"].bool()  # (B, S)
source_mask = is_token[:, None, None, :]  # (B, 1, 1, S): the same for all heads and queries
x = Embedding(len(reviews_tokenizer), 192)(batch["input_ids"])
memory = EncoderLayer(192, heads=3, ffn_dim=768)(x, source_mask)
print(tuple(batch["input_ids"].shape), "->", tuple(x.shape), "->", tuple(memory.shape))

# %% [markdown] source="69c18ab8"
# ## Write it: `DecoderLayer`, and cross-attention
#
# The encoder reads the source; the decoder writes the answer, token by token. A decoder layer has two attentions.
#
# 1. **Masked self-attention** looks at what was written so far. The causal mask hides what follows.
# 2. **Cross-attention** looks at the source. Its queries come from the decoder, its keys and values from the
#    encoder's output.
#
# Both are the same class, `MultiHeadAttention`. They differ in two things: what they get as keys and values, and the
# mask. In self-attention the mask hides the tokens that follow (causal mask), in cross-attention the padding of the
# source.

# %%
drawings.decoder_layer()


# %% tags=["blank"]
class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.self_attention_norm = LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_norm = LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)
        self.dropout = Dropout(dropout)

    def forward(self, x, memory, causal, source_mask):  # (B, T, D), (B, S, D), (T, T), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # x, normalized (B, T, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, causal)[0])  # x + self-attention (B, T, D)
        normed = self.cross_attention_norm(x)  # x, normalized (B, T, D)
        x = x + self.dropout(self.cross_attention(normed, memory, memory, source_mask)[0])  # x + cross-attention
        normed = self.feed_forward_norm(x)  # x, normalized (B, T, D)
        return x + self.dropout(self.feed_forward(normed))  # x + feed-forward (B, T, D)


# %%
check(DecoderLayer)

# %% [markdown] source="2e54e190"
# <details><summary>Hint 1</summary>
#
# There is one more sub-layer than in the encoder layer, the cross-attention. Each of the three has a norm of its
# own.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Self-attention gets `normed` three times, and `causal`. Cross-attention gets `normed` as queries, `memory` as keys
# and values, and `source_mask`.
#
# </details>

# %% [markdown] source="bc462c43"
# Suppose that four tokens of each answer have been written. T is the number of tokens written so far. Random
# vectors stand in for them.

# %%
written = torch.randn(2, 4, 192)  # (B, T, D)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (T, T)
layer = DecoderLayer(192, heads=3, ffn_dim=768)
cross = layer.cross_attention(written, memory, memory, source_mask)[1]
print("decoder layer:", tuple(written.shape), "->", tuple(layer(written, memory, causal, source_mask).shape))
print("weights of cross-attention (sentence, head, written, source):", tuple(cross.shape))

# %% [markdown] source="87e3fd0c"
# Now look at the cross-attention of the repository's German-English translator. Its decoder is given the correct
# translation.

# %%
translator = load_model(str(MODELS / "multi30k-de-en"), attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
source = tokenizer(["Zwei Hunde spielen im Schnee."], return_tensors="pt")
target = torch.tensor([[tokenizer.bos_token_id, *tokenizer("Two dogs play in the snow.")["input_ids"][:-1]]])
with torch.inference_mode():
    outputs = translator(**source, decoder_input_ids=target, output_attentions=True)
source_tokens, target_tokens = (tokenizer.convert_ids_to_tokens(ids) for ids in (source["input_ids"][0], target[0]))
print("source:", len(source_tokens), source_tokens)
print("translation:", len(target_tokens), target_tokens)
print("cross-attention (sentence, head, translation, source):", tuple(outputs.cross_attentions[-1].shape))

# %%
plot_attention(
    outputs.cross_attentions[-1][0].mean(dim=0),
    target_tokens,
    source_tokens,
    title="cross-attention, mean of the heads",
)

# %% [markdown] source="50ced4c9"
# Rows are the translation, columns the source. Each row answers one question: after this token, where in the source
# does the decoder look to write the next one? So the row of `[BOS]` looks at *Zwei* to write the first word, *Two*.
#
# > The document that came with *pytorch-transformer* passes the self-attention block to the decoder layer twice, so
# > that both attentions share one set of weights. The repository's code makes two modules, and so does this package.
#
# ## Write it: `Encoder`, `Decoder`, `Transformer`
#
# All parts are ready. The encoder and the decoder each consist of an embedding, some layers, and a last
# normalization.
#
# ### `Encoder`
#
# The layers are in `self.layers`. Make it an `nn.ModuleList`: chapter 6 takes layers by number, as in `layers[0]`.


# %% tags=["blank"]
class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, mask):  # (B, S), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # embedding and dropout (B, S, D)
        for layer in self.layers:  # each layer in turn
            x = layer(x, mask)  # its output (B, S, D)
        return self.norm(x)  # x, normalized (B, S, D)


# %%
check(Encoder)

# %% [markdown] source="6f5ba7bc"
# <details><summary>Hint 1</summary>
#
# Put the layers into an `nn.ModuleList`, not into a Python list. Only then does PyTorch find the parameters in them.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))`. `forward` is four lines:
# embedding, dropout, a loop over the layers, the last normalization.
#
# </details>

# %% [markdown] source="e67bc968"
# ### `Decoder`
#
# It is almost the same as the encoder, but makes a causal mask. The mask must be on the device of the input, CPU or
# GPU: give it `device=ids.device`.


# %% tags=["blank"]
class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(DecoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, memory, source_mask):  # (B, T), (B, S, D), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # embedding and dropout (B, T, D)
        length = ids.shape[1]  # T
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()  # causal mask (T, T)
        for layer in self.layers:  # each layer in turn
            x = layer(x, memory, causal, source_mask)  # its output (B, T, D)
        return self.norm(x)  # x, normalized (B, T, D)


# %%
check(Decoder)

# %% [markdown] source="c72bcf97"
# <details><summary>Hint 1</summary>
#
# The causal mask is the lower triangle of chapter 3. Its size is the length of what was written so far,
# `ids.shape[1]`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()`. Each layer gets `layer(x, memory, causal,
# source_mask)`.
#
# </details>

# %% [markdown] source="f5e95491"
# ### `Transformer`
#
# The linear layer at the very end depends on the task. To choose the next token, it has as many outputs as the
# vocabulary has tokens; to classify reviews, it has two, positive and negative. This layer is also called a head, but
# has nothing to do with the heads of chapter 4. Its outputs are scores called **logits**; the softmax turns them into
# probabilities.
#
# `head` is a linear layer that the caller has made. `is_token` is True where the source is not padding. Chapter 6 calls
# `self.encoder`, `self.decoder` and `self.head` one by one.


# %% tags=["blank"]
class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, encoder_layers, decoder_layers, head, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, heads, ffn_dim, encoder_layers, dropout)
        self.decoder = Decoder(vocab_size, d_model, heads, ffn_dim, decoder_layers, dropout)
        self.head = head

    def forward(self, source, is_token, target):  # (B, S), (B, S), (B, T)
        source_mask = is_token[:, None, None, :]  # the same for all heads and queries (B, 1, 1, S)
        memory = self.encoder(source, source_mask)  # the encoder's output (B, S, D)
        x = self.decoder(target, memory, source_mask)  # the decoder's output (B, T, D)
        return self.head(x)  # logits (B, T, number of outputs)


# %%
check(Transformer)

# %% [markdown] source="6077919d"
# <details><summary>Hint 1</summary>
#
# `is_token` is (B, S). The mask is the same with two more dimensions, for heads and queries: (B, 1, 1, S).
#
# </details>
# <details><summary>Hint 2</summary>
#
# The encoder gets source and mask; the decoder gets `target`, the encoder's output and the same mask; its result
# passes through `self.head`.
#
# </details>

# %% [markdown] source="7096103d"
# Make a `Transformer` of the size of the classifier, and give it both sentences.

# %%
# The classifier's linear layer has no bias. Its decoder reads [BOS] alone (chapter 7).
sizes = {"d_model": 192, "heads": 3, "ffn_dim": 768, "encoder_layers": 6, "decoder_layers": 1}
my_classifier = Transformer(len(reviews_tokenizer), **sizes, head=nn.Linear(192, 2, bias=False))
start = torch.full((2, 1), reviews_tokenizer.bos_token_id)
logits = my_classifier(batch["input_ids"], is_token, start)
print(tuple(batch["input_ids"].shape), tuple(start.shape), "->", tuple(logits.shape))

# %% [markdown] source="8fe2323b"
# This is the Transformer, built from nothing but `nn.Linear` and `nn.Embedding`. All of the repository's answers are
# together in [my_transformer.py](my_transformer.py).
#
# ## Tied embeddings
#
# A translator has three tables of (V, D): the encoder's embedding, the decoder's embedding, and the matrix of the
# last linear layer. In the paper, all three are **one table** (weight tying, §3.4). That is possible if source and
# target share one vocabulary.
#
# A row of the last linear layer decides the logit of one token: the larger its dot product with the decoder's output,
# the larger the logit. A row of the embedding is the vector of one token, too, so what is learnt in one place helps
# in the other. And the model has far fewer parameters. Here is another reason to start the embedding with small
# numbers, of standard deviation $1/\sqrt{d}$, and to multiply by $\sqrt{d}$ (chapter 2): the same table must be small
# where it makes logits, or their dot products grow too large, and large where positions are added, or they drown it.
#
# ### Write it: `tie_embeddings`
#
# Tying does not copy values: all places **point to the same parameter**. Copies would become different in training.
# The last linear layer of a classifier has two rows and cannot be tied. For it, `head=False` ties the two embeddings
# alone.


# %% tags=["blank"]
def tie_embeddings(model, head=True):
    table = model.encoder.embedding.tokens.weight  # the encoder's table (V, D)
    model.decoder.embedding.tokens.weight = table  # the decoder points to the same table
    if head:  # head is True
        model.head.weight = table  # so does the last linear layer (V, D)
    return model  # the model that was handed in


# %%
check(tie_embeddings)

# %% [markdown] source="2877ca94"
# <details><summary>Hint 1</summary>
#
# The table is in `embedding.tokens.weight`. Assign a parameter, and that place points to the same parameter.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `model.decoder.embedding.tokens.weight = table`. With `table.clone()` or `copy_`, you get another table with the same
# values. Return the model at the end.
#
# </details>

# %%
sizes = {"d_model": 128, "heads": 4, "ffn_dim": 1024, "encoder_layers": 4, "decoder_layers": 4}
my_translator = Transformer(len(tokenizer), **sizes, head=nn.Linear(128, len(tokenizer)))
before = sum(parameter.numel() for parameter in my_translator.parameters())
tie_embeddings(my_translator)
print(f"parameters: {before:,}, tied {sum(parameter.numel() for parameter in my_translator.parameters()):,}")

# %% [markdown] source="15b8cedb"
# ## Trained weights in your model
#
# Is your model right? With the weights that the package trained, it must give the same answers as the package. Only
# the names of the parameters differ.

# %% tags=["shared"]
NAMES = {  # name in the package: my name
    "model.": "",
    "embed_tokens": "embedding.tokens",
    "self_attn_residual.pre_norm": "self_attention_norm",
    "encoder_attn_residual.pre_norm": "cross_attention_norm",
    "feed_forward_residual.pre_norm": "feed_forward_norm",
    "self_attn.": "self_attention.",
    "encoder_attn.": "cross_attention.",
    "final_norm": "norm",
    "classifier": "head",
    "lm_head": "head",
}


def my_name(name):
    """The name in my model of a parameter of the package"""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


# %%
def my_weights(package_model):
    return {my_name(name): tensor for name, tensor in package_model.state_dict().items()}


classifier = load_model(str(MODELS / "nsmc-small")).eval()
tie_embeddings(my_classifier, head=False)  # encoder and decoder of nsmc-small have one table, too
print(my_classifier.load_state_dict(my_weights(classifier)))


# %% [markdown] source="23401650"
# No name is missing, and none is left over. Put the same two sentences into both, and compare the logits. The last
# digits of 32-bit numbers depend on the order of addition, so we compare in 64 bits (`double`).

# %%
my_classifier.double().eval(), classifier.double()
with torch.inference_mode():
    ours = my_classifier(batch["input_ids"], is_token, start)[:, 0]  # (B, 1, 2) -> (B, 2)
    theirs = classifier(**batch).logits
print("mine:       ", ours)
print("the package:", theirs)
assert torch.allclose(ours, theirs, rtol=0, atol=1e-6)

# %% [markdown] source="7c0cf8be"
# They are equal! Now the translator. This time there are logits for 6,000 tokens at each position.

# %%
print(my_translator.load_state_dict(my_weights(translator)))
my_translator.double().eval(), translator.double()
with torch.inference_mode():
    ours = my_translator(source["input_ids"], source["attention_mask"].bool(), target)  # (B, T, V)
    theirs = translator(**source, decoder_input_ids=target).logits
largest = (ours - theirs).abs().amax(dim=-1)[0]  # the largest difference at each position (T,)
print(tuple(ours.shape), "less than 1e-6 at each position:", (largest < 1e-6).tolist())
assert (largest < 1e-6).all()

# %% [markdown] source="06293a9a"
# Then it can translate, too. Start with `[BOS]`, append the token with the largest logit, and stop at `[EOS]`
# (chapter 6).


# %%
@torch.inference_mode()
def translate(text):
    source = tokenizer(text, return_tensors="pt")
    written = torch.tensor([[tokenizer.bos_token_id]])
    while written[0, -1] != tokenizer.eos_token_id and written.shape[1] < 40:
        logits = my_translator(source["input_ids"], source["attention_mask"].bool(), written)  # (1, T, V)
        written = torch.cat([written, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)  # (1, T + 1)
    return tokenizer.decode(written[0], skip_special_tokens=True)


print(translate("Zwei Hunde spielen im Schnee."))
print(translate("Eine Frau liest ein Buch auf einer Bank im Park."))


# %% [markdown] source="194d28bc"
# The model that you wrote line by line has translated German into English.
#
# ## The gradients of pre-norm and post-norm
#
# Let us now measure how pre-norm and post-norm differ. The place of the normalization changes the gradients.
# Gradients are passed backwards, from the output towards the input (**backpropagation**). Make two untrained models
# with twelve decoder layers, and measure the size of the gradient that comes back from the loss in each layer. Your
# model is pre-norm only, so we use the package's, which can be either.


# %%
def gradient_norms(norm_first):
    torch.manual_seed(0)
    sizes = {"vocab_size": 100, "d_model": 64, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
    config = VanillaTransformerConfig.from_preset(
        "base", **sizes, encoder_layers=12, decoder_layers=12, norm_first=norm_first, final_norm=norm_first
    )
    model = VanillaTransformerForConditionalGeneration(config).eval()  # without dropout
    model(input_ids=torch.randint(7, 100, (16, 20)), labels=torch.randint(7, 100, (16, 20))).loss.backward()
    return [
        torch.cat([parameter.grad.flatten() for parameter in layer.parameters()]).norm().item()
        for layer in model.model.decoder.layers
    ]


norms = {"post-norm": gradient_norms(norm_first=False), "pre-norm": gradient_norms(norm_first=True)}
plot_lines(
    norms,
    list(range(12)),
    title="Size of gradients by layer, before training",
    xlabel="layer of the decoder (11 is next to the output)",
    ylabel="size of the gradient",
    log_scale=True,
)


# %%
for name, values in norms.items():
    print(f"{name}: first layer {values[0]:.3f}, last {values[-1]:.3f}, ratio {values[-1] / values[0]:.1f}")

# %% [markdown] source="0b04245f"
# In post-norm, gradients are much larger near the output. If weights are changed a lot from the start, training is
# unstable; so the learning rate, which sets how far one step goes, is raised slowly (the warm-up of chapter 6; Xiong
# et al. 2020). In pre-norm, the gradients of the layers differ by a factor of about two.
#
# ## In this package
#
# The computation is the same. The [model file](../../../hf_vanilla_transformer/modeling_vanilla_transformer.py) has
# a few things more.
#
# | what | why | chapter |
# |---|---|---|
# | dropout in two more places | to learn rather than to memorize | 6 |
# | positions that do not count padding; 0 for rows that see nothing | the same answer wherever the padding is | 2, 3 |
# | a cache for generating; several implementations of attention | speed | 6 |
# | settings such as `norm_first` and `position_embedding_type` | to build the models of all tutorials | 2 to 5 |
# | saving and loading, checks of inputs | so that others can use it | 9 |

# %% [markdown] source="5a69d54f"
# ## In short
#
# - Each sub-layer adds its result to its input (residual connection), and vectors are brought to one size (layer
#   norm).
# - In pre-norm, gradients reach all layers about equally. Post-norm needs a warm-up.
# - A decoder looks at what it wrote through a causal mask, and at the source by cross-attention.
# - You wrote `LayerNorm`, `Dropout`, both layers, `Encoder`, `Decoder`, `Transformer` and `tie_embeddings`. With
#   trained weights, your model gives the logits of the package.
#
# **To think about.** BERT has an encoder only, GPT a decoder only. Without an encoder, which part of a decoder layer
# is of no use? Where would such a model get the source of a translation?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Where do the queries, keys and values of cross-attention come from?
#
# - (a) All three from the decoder
# - (b) Queries from the decoder, keys and values from the encoder
# - (c) Queries from the encoder, keys and values from the decoder
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. That is the self-attention of the decoder.
# - (b) Yes. The decoder asks, and the source answers.
# - (c) No. The output would have the length of the source. There must be one vector for each position of the text
#   that is written.
#
# </details>
#
# **2.** Suppose that the causal mask is one position too wide, so that each position sees the next token. What
# changes in translations with trained weights?
#
# - (a) They become nonsense
# - (b) Nothing at all
# - (c) The logits change, but the translations may be the same
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. In generation, nothing follows the last position, so it sees no token that it should not see. From the
#   second layer on, it only reads changed vectors of the earlier positions.
# - (b) No. The logits of earlier positions change. That is why all positions must be compared.
# - (c) Yes. So translations need not show such a mistake. In training, though, the model would copy the answers and
#   learn nothing (chapter 6).
#
# </details>
#
# **3.** What does `nn.ModuleList([EncoderLayer(...)] * 6)` make?
#
# - (a) Six different layers
# - (b) One layer, applied six times
# - (c) An error
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. In Python, `*` makes a list with the same object six times.
# - (b) Yes. It has a sixth of the parameters, and all six change together.
# - (c) No. There is no error, which makes it harder to find.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="4e9a2d27"
# ### Exercise 1 ★ 8 min
#
# See what the causal mask does. Change the last token of `target`, the translation that `my_translator` gets. At
# which positions do the logits change? Make a list with True where they stay the same.
#
# <details><summary>Hint 1</summary>
#
# Make `other = target.clone()`, change `other[0, -1]`, put it into `my_translator`, and compare with `ours`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# For each position, see whether all 6,000 logits are the same: `(changed == ours).all(dim=-1)[0].tolist()`.
#
# </details>

# %% tags=["exercise"]
other = target.clone()
other[0, -1] = (other[0, -1] + 1) % len(tokenizer)
with torch.inference_mode():
    changed = my_translator(source["input_ids"], source["attention_mask"].bool(), other)
is_same = (changed == ours).all(dim=-1)[0].tolist()  # True or False for each position

# %%
check_answer(
    is_same,
    [True] * (target.shape[1] - 1) + [False],  # earlier positions do not see the last token
    (lambda it: all(it), "All are the same. Did you put in the changed text?"),
    (lambda it: not any(it), "All differ. Did you change the source?"),
)

# %% [markdown] source="9060929e"
# ### Exercise 2 ★★ 12 min
#
# Derive a class from `EncoderLayer`, and change its `forward` to post-norm, as in the paper: $\mathrm{LayerNorm}(x +
# \mathrm{Sublayer}(x))$. PyTorch's `nn.TransformerEncoderLayer` is post-norm, so with the same weights it must give
# the same output.
#
# <details><summary>Hint 1</summary>
#
# The sub-layer gets `x` as it is, and the sum is normalized.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))`; the line of the
# feed-forward network is similar.
#
# </details>


# %% tags=["exercise"]
class PostNormEncoderLayer(EncoderLayer):
    def forward(self, x, mask=None):  # (B, S, D), (B, 1, 1, S)
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))  # (B, S, D)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))  # (B, S, D)


# %%
def with_the_same_weights(layer):
    """PyTorch's layer. in_proj_weight is the matrices of Q, K and V, one above the other."""
    by_torch = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, dropout=0.0, batch_first=True)
    attention = layer.self_attention
    in_projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    by_torch.self_attn.in_proj_weight.data = torch.cat([one.weight for one in in_projections])
    by_torch.self_attn.in_proj_bias.data = torch.cat([one.bias for one in in_projections])
    by_torch.self_attn.out_proj.load_state_dict(attention.out_proj.state_dict())
    by_torch.linear1.load_state_dict(layer.feed_forward.fc1.state_dict())
    by_torch.linear2.load_state_dict(layer.feed_forward.fc2.state_dict())
    return by_torch


post_norm = PostNormEncoderLayer(64, heads=4, ffn_dim=128).eval()
inputs = torch.randn(2, 5, 64)
with torch.no_grad():
    check_answer(
        lambda: post_norm(inputs),
        with_the_same_weights(post_norm)(inputs),
        (EncoderLayer.forward(post_norm, inputs, None), "This is still pre-norm."),
    )


# %% [markdown] source="781a4de7"
# ## Appendix: counting parameters
#
# The parameters of a layer can be counted from its settings: a matrix has width × height of them, and a bias has one
# for each column.


# %%
def layer_parameters(d, ffn, attentions):
    attention = 4 * (d * d + d)  # Q, K, V, output
    feed_forward = d * ffn + ffn + ffn * d + d
    norms = (attentions + 1) * 2 * d  # for each residual, a factor and a summand
    return attentions * attention + feed_forward + norms


def parameters_by_part(model):
    stacks = {"encoder layers": model.encoder.layers, "decoder layers": model.decoder.layers}
    counts = {name: sum(p.numel() for p in layers.parameters()) for name, layers in stacks.items()}
    total = model.num_parameters()
    return {"embedding": model.encoder.embed_tokens.weight.numel(), **counts, "total": total}


# %% [markdown] source="aaf9d1ba"
# Table 3 of the paper says that base has 65M (65 million) and big 213M. Count again with the same settings. To keep
# the large models out of memory, they are made on the device `meta`, which has shapes only.

# %%
with torch.device("meta"):
    papers = {name: VanillaTransformerModel(VanillaTransformerConfig.from_preset(name)) for name in ("base", "big")}
counted = {name: parameters_by_part(model) for name, model in papers.items()}
pd.DataFrame(counted).map("{:,}".format)

# %% [markdown] source="ade881ab"
# There is a single table of embeddings for the vocabulary of 37,000: as in the paper, the embeddings of encoder and
# decoder and the last linear layer share one matrix. Do the parameters of the layers agree with the formula?

# %%
for name, d, ffn in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = 6 * layer_parameters(d, ffn, attentions=1), 6 * layer_parameters(d, ffn, attentions=2)
    print(name, f"{encoder:,}", f"{decoder:,}", (encoder, decoder) == tuple(list(counted[name].values())[1:3]))

# %% [markdown] source="f3323fe6"
# Our counts differ a little from the paper's 65M and 213M. The sizes of the layers are in the table, so only the
# vocabulary can be different; the paper says "about 37,000" (§5.1). How many tokens would give the paper's numbers?

# %%
for name, millions, d in (("base", 65, 512), ("big", 213, 1024)):
    layers = counted[name]["encoder layers"] + counted[name]["decoder layers"]
    low, high = ((millions + edge) * 1e6 - layers for edge in (-0.5, 0.5))
    print(f"{name}: a vocabulary of {low / d:,.0f} to {high / d:,.0f}")

# %% [markdown] source="31cf423e"
# The two ranges do not overlap. No single vocabulary gives both numbers, so those in the table must be rough.
#
# The two models loaded in this chapter are far smaller. Their totals are a little more than the sum of the other
# three numbers: they include the last normalization (`final_norm`).

# %%
small = {"nsmc-small": classifier.model, "multi30k-de-en": translator.model}
pd.DataFrame({name: parameters_by_part(model) for name, model in small.items()}).map("{:,}".format)

# %% [markdown] source="cb78f7a2"
# ### Exercise 3 ★★ 8 min
#
# How many parameters would base have if embeddings were not shared (three matrices)? Use `counted`.
#
# <details><summary>Hint 1</summary>
#
# If they are shared, there is one matrix of 37,000 × 512.
#
# </details>
# <details><summary>Hint 2</summary>
#
# There are two matrices more. Add them to `counted["base"]["total"]`.
#
# </details>

# %% tags=["exercise"]
separate = counted["base"]["total"] + 2 * 37000 * 512  # a number of parameters
print(f"{separate:,}")

# %%
config = VanillaTransformerConfig.from_preset("base")
config.share_encoder_decoder_embeddings = config.tie_word_embeddings = False
with torch.device("meta"):
    model = VanillaTransformerForConditionalGeneration(config)
check_answer(
    separate,
    model.num_parameters() - 37000,  # the last linear layer has 37,000 biases more
    (counted["base"]["total"] + 37000 * 512, "This adds one matrix. There should be three in all."),
    (counted["base"]["total"] + 3 * 37000 * 512, "One of them is counted already."),
)

# %% [markdown] source="2cde3217"
# In this chapter, we borrowed trained weights. In the next one, you train the model that you built, from scratch. →
# [6. Training](06_training.ipynb)
