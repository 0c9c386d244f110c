# %% [markdown] source="b6376ec8"
# # 1. Vocabulary
#
# From here on, you build the Transformer piece by piece. It has an **encoder**, which reads a text, and a
# **decoder**, which writes the answer. Run the cells from top to bottom. Where a cell is empty, fill it in, and run
# the `check(...)` below it. You can skip the indented boxes, which compare other tutorials with this one.
#
# A neural network computes with numbers only, so the first thing to do is to turn text into numbers. The pieces into
# which a text is cut are called **tokens**; the list of all tokens is the **vocabulary**. Each token has a number,
# its id, and so a text becomes a list of ids.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %%
from collections import Counter

import drawings
import pandas as pd
from check import check, check_answer
from transformers import AutoTokenizer

from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.data.tokenizer import SPECIAL_TOKENS, train_tokenizer


# %%
drawings.model_map(1)

# %% [markdown] source="2109b1eb"
# ## What is a token?
#
# We start with short film reviews that were written for this course. The vocabulary is made from `train`; `test` is
# kept aside as text that was never seen.

# %% tags=["english"]
lines = (MODELS.parent / "docs" / "walkthrough" / "en" / "lines.txt").read_text(encoding="utf-8").splitlines()
train, test = lines[:200], lines[200:]
print(f"{len(train)} for training, {len(test)} for testing")
for review in train[:3]:
    print("-", review)

# %% [markdown] source="9b9f3b4b"
# The simplest way is to split at spaces. In English, that works fairly well. In other languages it does not: Korean
# changes the ends of its words all the time. The cell below collects the words of Korean film reviews that start
# with 영화 (*yeonghwa*, "film"): 영화의 is "of the film", 영화지만 "it is a film, but".

# %% tags=["english"]
korean = load_labelled_text("sample")["train"]["text"]  # film reviews in Korean
counts = Counter(word for review in korean for word in review.split())
print([word for word in counts if word.startswith("영화")])

# %% [markdown] source="db0d1d6d"
# If each of these is a token of its own, the vocabulary grows without end, and new words keep coming. English does
# the same, but less often: *bored*, *boring*, *boredom*. The other extreme is to make each character a token: then
# hardly any token is new, but texts become long, and one token means almost nothing. Let us count.


# %%
def describe(split):
    known = {token for review in train for token in split(review)}
    tokens = [token for review in test for token in split(review)]
    unseen = sum(token not in known for token in tokens) / len(tokens)
    return {"kinds": len(known), "tokens of a review": len(tokens) / len(test), "new tokens": f"{unseen:.1%}"}


pd.DataFrame([describe(str.split), describe(list)], index=["words", "characters"]).round(1)


# %% [markdown] source="822b2f89"
# Of the tokens in the test reviews, about a quarter are new if we split into words. If we split into characters,
# texts become about five times as long.
#
# Between the two are **sub-words**. Characters that often stand together become one token; rare words are cut into
# several. If *boring* can be split into `bor` + `ing`, the model learns `ing` once, for all words.
#
# ## BPE by hand
#
# The best-known way to find sub-words is **byte-pair encoding** (BPE). It has a single rule.
#
# > Find the two pieces that most often stand side by side, and merge them into one. Repeat.
#
# We write this rule as two functions. A word is a list of pieces; at first, each piece is a character.
#
# ### Write it: `most_frequent_pair`
#
# Count the pairs of neighbouring pieces in all words, and return the most frequent pair. If several pairs are equally
# frequent, return the one that occurs first. There is always at least one pair. `Counter` counts how often things
# occur.


# %% tags=["blank"]
def most_frequent_pair(words):  # for each word, the list of its pieces
    pairs = Counter(pair for word in words for pair in zip(word, word[1:], strict=False))  # counts of neighbours
    return pairs.most_common(1)[0][0]  # the most frequent pair: (left, right)


# %%
check(most_frequent_pair)

# %% [markdown] source="433b873e"
# <details><summary>Hint 1</summary>
#
# The pairs of one word are `zip(word, word[1:])`. Print them for `list("bored")` first.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Put the pairs of all words into a single `Counter(...)`. The first entry of `most_common(1)` is a pair and its
# count; return the pair.
#
# </details>

# %% [markdown] source="85e5cb49"
# ### Write it: `merge`
#
# In one word, replace each `left` that is followed by `right` by the single piece `left + right`. Go from left to
# right: in `a a a`, merging (a, a) gives `aa a`. A word without the pair stays as it is.


# %% tags=["blank"]
def merge(word, left, right):  # a list of pieces, and the two to be merged
    merged = []  # a new list
    for piece in word:  # each piece, from the left
        if merged and (merged[-1], piece) == (left, right):  # the new list ends in left, and this piece is right
            merged[-1] = left + right  # replace the end of the list by left + right
        else:
            merged.append(piece)  # append this piece
    return merged  # the merged list; the given one stays as it is


# %%
check(merge)

# %% [markdown] source="37db6384"
# <details><summary>Hint 1</summary>
#
# Make a new list, and move the pieces over one by one. If the last piece that you moved is `left` and the current
# one is `right`, merge them.
#
# </details>
# <details><summary>Hint 2</summary>
#
# To merge, write `merged[-1] = left + right`; otherwise `merged.append(piece)`. At the first piece, `merged` is
# still empty.
#
# </details>

# %% [markdown] source="21442016"
# Let us try three words.

# %% tags=["english"]
words = [list("boring"), list("bored"), list("boredom")]
for _ in range(3):
    left, right = most_frequent_pair(words)
    words = [merge(word, left, right) for word in words]
    print(f"{left} + {right}:", words)

# %% [markdown] source="8017922e"
# `bo` (three times), `bor` (three times) and `bore` (twice) became pieces. Nobody chose them: counting alone found
# them. The merges of *bored*, in their order, make a tree.

# %% tags=["english"]
drawings.merges(list("bored"), [(0, 1), (0, 2), (0, 3)])

# %% [markdown] source="373c83b0"
# ## Training a vocabulary
#
# `train_tokenizer` does the same with all reviews in `train`. It merges until there are 600 pieces, and returns a
# **tokenizer**, which splits texts into tokens. The first seven pieces are special tokens, which we will see in a
# moment.

# %% tags=["english"]
tokenizer = train_tokenizer(train, vocab_size=600)
pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
print(len(tokenizer))
print("The longest pieces:", sorted(pieces[7:], key=len)[-8:])

# %% [markdown] source="7e66830c"
# Add the trained vocabulary to the table. Far fewer tokens are new than with words, and texts are much shorter than
# with characters.

# %%
pd.DataFrame(
    [describe(str.split), describe(list), describe(tokenizer.tokenize)], index=["words", "characters", "BPE"]
).round(1)

# %% [markdown] source="e7daa534"
# Fewer than 600 pieces occur in the texts: special tokens do not, and neither do pieces that were always merged
# further.
#
# ## Seven special tokens
#
# The first seven places of the vocabulary hold **special tokens**, which do not occur in texts. Their ids are 0
# to 6.

# %%
meaning = {
    "pad_token": "fills places up to the same length",
    "unk_token": "a character that is not in the vocabulary",
    "bos_token": "starts a text: the decoder's first input",
    "eos_token": "ends a text: a translation stops here",
    "sep_token": "separates two texts",
    "cls_token": "stands for the whole text (BERT)",
    "mask_token": "hides a token that is to be guessed",
}
pd.DataFrame(
    [(tokenizer.convert_tokens_to_ids(token), token, meaning[name]) for name, token in SPECIAL_TOKENS.items()],
    columns=["id", "token", "meaning"],
)

# %% [markdown] source="1241a0dc"
# These chapters use four of them: `[PAD]`, `[UNK]`, `[BOS]` and `[EOS]`.
#
# > *Each tutorial has its own ids.* In transformer-evolution and in this package, `[PAD]` is 0. The Multi30k
# > vocabulary of *The Annotated Transformer* has `<s>`, `</s>`, `<blank>`, `<unk>` as 0, 1, 2, 3;
# > *pytorch-transformer* has `[UNK]`, `[PAD]`, `[SOS]`, `[EOS]` as 0, 1, 2, 3. So if you convert a model of a
# > tutorial, you must say which ids it uses ([table](../../tutorials.md)).
#
# ## `▁` remembers the spaces

# %% tags=["english"]
for text in ("Winter is cold.", "Winter is co ld."):
    tokens = tokenizer.tokenize(text)
    print(tokens, "->", tokenizer.convert_tokens_to_string(tokens))

# %% [markdown] source="b5e5c8c4"
# `▁` looks like an underscore but is another character. It means "there was a space before this", as in
# SentencePiece. To get the spaces back, join the tokens and replace each `▁` by a space. The first word of a text
# gets a `▁` as well, so that a word is split in the same way at the start and in the middle of a sentence.
#
# ## What is unknown becomes `[UNK]`

# %% tags=["english"]
ids = tokenizer("The best film 🦖 뷁!")["input_ids"]
print(tokenizer.convert_ids_to_tokens(ids))
print(tokenizer.decode(ids))

# %% [markdown] source="20a83dcb"
# For a character that never occurred in training, there is no piece. It becomes `[UNK]` (unknown), and turning the
# ids back into text does not restore it. The more text a vocabulary is made from, the rarer this is.
#
# ## Two sentences as numbers
#
# Here are two sentences that we will keep using.

# %% tags=["english"]
sentences = ["What a warm film!", "Winter is cold."]
for sentence in sentences:
    ids = tokenizer(sentence)["input_ids"]
    print(tokenizer.convert_ids_to_tokens(ids), ids)

# %% [markdown] source="4b93ce4e"
# A neural network processes many sentences at once. For that, the ids must stand in a rectangle, a tensor. But the
# two sentences differ in length. Filling the shorter one with `[PAD]` is called **padding**. GPUs are fastest if
# lengths are multiples of 8, so we pad to a multiple of 8.

# %%
batch = tokenizer(sentences, padding=True, pad_to_multiple_of=8, return_tensors="pt")
print(batch["input_ids"].shape)
print(batch["input_ids"])

# %%
pd.DataFrame([tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"]], index=["sentence 1", "sentence 2"])

# %% [markdown] source="17a490c2"
# `[PAD]` only fills places and means nothing, so the model must not look at it. The **attention mask** marks it: 1
# for real tokens, 0 for padding. Attention comes in chapter 3.

# %%
print(batch["attention_mask"])

# %% [markdown] source="c8c61cf9"
# A model gets these two tensors, `input_ids` and `attention_mask`.
#
# > *transformer-evolution* makes its mask by hand, with `get_attn_pad_mask`. Here, the `attention_mask` of the
# > tokenizer (sentences × length) goes to the model as it is.
#
# ## A larger vocabulary has longer pieces
#
# The repository has a translator, multi30k-de-en, which was trained on German and English descriptions of pictures.
# Split a sentence with its vocabulary.

# %% tags=["english"]
large = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
print(len(large))
print(large.tokenize("A man plays the guitar in the park."))
print(tokenizer.tokenize("A man plays the guitar in the park."))

# %% [markdown] source="b1679008"
# With the large vocabulary, each word is one token. It was made from more text and has 6,000 pieces, so frequent
# words became whole pieces.
#
# ## In short
#
# - A neural network computes with numbers, so texts are cut into tokens, and each token has an id.
# - Sub-words lie between words and characters. BPE makes a vocabulary by merging, again and again, the two pieces
#   that most often stand side by side.
# - Special tokens have a role and do not occur in texts: `[PAD]` fills places, `[UNK]` is unknown, `[BOS]` starts a
#   text.
# - Sentences of different lengths are padded, and the attention mask marks the real tokens.
#
# **To think about.** *Colour* and *color* mean the same but are different tokens. What kind of vocabulary would help
# a model to connect them? What would it lose?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** What changes if the vocabulary grows from 600 to 6,000 pieces?
#
# - (a) Texts become shorter lists of ids
# - (b) There is no `[UNK]` any more
# - (c) The table of embeddings gets smaller
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. Frequent words become one token each.
# - (b) No. A character that was never seen is `[UNK]` in a large vocabulary, too.
# - (c) No. Each token has a vector (chapter 2), so the table gets larger.
#
# </details>
#
# **2.** The mask of a sentence is `[1, 1, 1, 0]`. What is true?
#
# - (a) There are three real tokens, and the last place is padding
# - (b) The last token is `[UNK]`
# - (c) The model sees the last token only
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. 1 is a real token, 0 is padding.
# - (b) No. `[UNK]` stands for an unknown character, but its place is not empty, so it has a 1.
# - (c) No. The model does not look where the mask is 0. What 0 and 1 mean differs between tools, so always check
#   (chapter 3).
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="38138dce"
# ### Exercise 1 ★ 5 min
#
# Shrink the vocabulary to 300 pieces. Do the test reviews get more tokens, or fewer? Compute the average number of
# tokens of a test review.
#
# <details><summary>Hint 1</summary>
#
# `train_tokenizer(train, vocab_size=300)` makes the small tokenizer.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Add up the lengths of `tokenize(review)` over `test`, and divide by `len(test)`.
#
# </details>

# %% tags=["exercise", "english"]
small = train_tokenizer(train, vocab_size=300)
average = sum(len(small.tokenize(review)) for review in test) / len(test)  # tokens of a review: one number
print(average)

# %%
large_average = sum(len(tokenizer.tokenize(review)) for review in test) / len(test)
check_answer(
    average,
    lambda it: large_average < it < 1.5 * large_average,  # fewer merges: shorter pieces and longer texts
    (large_average, "This is the average of the large vocabulary."),
    (lambda it: it > 100, "This looks like the sum. Divide by the number of reviews."),
)

# %% [markdown] source="626d4962"
# ### Exercise 2 ★ 3 min
#
# Without `attention_mask`, make the same mask from `batch["input_ids"]` and `tokenizer.pad_token_id` alone.
#
# <details><summary>Hint 1</summary>
#
# It is 1 where there is no padding.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Comparing with `!=` gives True and False. `.long()` turns them into 1 and 0.
#
# </details>

# %% tags=["exercise"]
mask = (batch["input_ids"] != tokenizer.pad_token_id).long()  # 1 and 0 (2, 8)

# %%
check_answer(
    mask,
    batch["attention_mask"],
    (1 - batch["attention_mask"], "It is inverted. Real tokens are 1."),
    (batch["input_ids"], "These are the ids. Compare them with the id of padding."),
)

# %% [markdown] source="b8829214"
# ### Exercise 3 ★★ 8 min
#
# Write a function that splits a word with a vocabulary: it starts with characters and merges the learnt pairs in the
# order in which they were learnt. `pairs` holds three pairs in that order.
#
# <details><summary>Hint 1</summary>
#
# Call `merge` once for each pair.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Start with `pieces = list(word)`, then loop `for left, right in pairs:`.
#
# </details>


# %% tags=["exercise"]
def tokenize_word(word, pairs):
    pieces = list(word)  # the list of characters
    for left, right in pairs:  # each pair, in the order of learning
        pieces = merge(pieces, left, right)  # the list with the pair merged
    return pieces  # the list of pieces


# %% tags=["english"]
pairs = [("b", "o"), ("bo", "r"), ("bor", "e")]
check_answer(
    lambda: (tokenize_word("bore", pairs), tokenize_word("bores", pairs)),
    (["bore"], ["bore", "s"]),
    ((list("bore"), list("bores")), "These are only the characters. Merge the pairs."),
)

# %% [markdown] source="c3c04993"
# In the next chapter, each id becomes a vector, and its position is added. → [2. Embeddings and
# positions](02_embeddings_and_positions.ipynb)
