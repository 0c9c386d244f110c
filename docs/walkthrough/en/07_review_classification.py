# %% [markdown] source="332dd359"
# # 7. Classifying reviews
#
# In this chapter, a model reads film reviews and says whether they are positive or negative. The answer that it has
# to give is called the **label**. The reviews are in Korean, because the repository's classifier was trained on
# Korean; where their meaning matters, it is given in English. First, the `Transformer` that you wrote is trained on a
# few hundred reviews that come with the package. Then it gets weights that were trained on many reviews, and is
# trained further.

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
import csv

import drawings
import numpy as np
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_histogram, plot_lines
from check import check_answer, mine
from my_transformer import my_name  # the names of chapter 5
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding

from hf_vanilla_transformer.data import load_labelled_text, tokenize
from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference import Classifier


pd.set_option("display.max_colwidth", None)
Transformer, tie_embeddings = mine("Transformer", "tie_embeddings")  # from chapter 5

# %%
drawings.model_map(7)

# %% [markdown] source="7dd731bc"
# ## Look at the data
#
# If you start training without knowing the data, you cannot explain the results. So look at the raw file first.
# This file comes with the package; it is small, but has the format of the Naver film reviews (NSMC): an id, the
# text and the label (0 negative, 1 positive), separated by tabs. The first review says: "I really liked this
# director's early works, but now he just imitates himself; this film is the worst of them." The second: "It's fun,
# so why does everybody complain? I'm happy."

# %%
file = SAMPLES / "ratings_train.txt"
print(*file.read_text(encoding="utf-8").splitlines()[:6], sep="\n")

# %%
raw = pd.read_csv(file, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
texts = raw["document"]
pd.Series(
    {
        "reviews": len(raw),
        "without text": (texts.str.strip() == "").sum(),
        "repeated texts": texts.duplicated().sum(),
        "positive": (raw["label"] == 1).sum(),
        "shortest (characters)": texts.str.len().min(),
        "median": int(texts.str.len().median()),
        "longest": texts.str.len().max(),
    }
)

# %%
plot_histogram(texts.str.len(), title="Length of reviews", xlabel="characters", ylabel="reviews")

# %% [markdown] source="3254fce0"
# This file is clean; the real NSMC is not. Of its 150,000 training rows, 5 have no text, and 3,817 repeat the text
# of another row. Of its 50,000 test rows, 3 have no text. Half of the texts have 27 characters or fewer; 95% have
# 107 or fewer.
#
# Decide beforehand how empty rows are read. Without `keep_default_na=False`, pandas turns an empty text into the
# number `nan`, and a tokenizer that gets it raises an error. Without `quoting=csv.QUOTE_NONE`, a review that starts
# with a quotation mark may swallow the rows that follow. `load_labelled_text` of this package drops empty rows, and
# reads quotation marks as ordinary characters.
#
# ## Split the data
#
# Data are split into three. The model learns from the **training** data. Settings, and when to stop, are decided on
# the **validation** data. The final score comes from the **test** data, which were never looked at before.

# %%
data = load_labelled_text("sample", validation_fraction=0.15)
names = data["train"].features["label"].names
print(names)
pd.DataFrame(
    {
        split: {"reviews": len(rows), **{name: rows["label"][:].count(i) for i, name in enumerate(names)}}
        for split, rows in data.items()
    }
)

# %%
pd.DataFrame(data["train"][:5])

# %% [markdown] source="c9eaa164"
# Half are positive and half negative, so guessing has an accuracy of about 0.5.
#
# As in chapter 1, train a vocabulary, and turn texts into ids.

# %%
tokenizer = train_tokenizer(data["train"]["text"], vocab_size=1500)
tokens = tokenize(data, tokenizer)
print(tokens["train"][0])

# %% [markdown] source="57f5951c"
# `DataCollatorWithPadding` makes a batch of several reviews: it pads to the longest one, and makes the attention
# mask.

# %%
torch.manual_seed(0)
loader = DataLoader(
    tokens["train"].remove_columns("length"),
    batch_size=32,
    shuffle=True,
    collate_fn=DataCollatorWithPadding(tokenizer),
)
print({name: tuple(tensor.shape) for name, tensor in next(iter(loader)).items()})

# %% [markdown] source="a7679e3a"
# ## How an encoder-decoder classifies
#
# The encoder reads the review, and the decoder reads a single start token, `[BOS]`. The encoder's output is a vector
# for each token of the review. From these, the decoder's cross-attention collects what it needs into a single vector;
# a linear layer turns that into two scores. Make a small model from the classes of chapter 5 to see it. Its last
# linear layer has two columns and no bias. The two reviews say "really fun" and "boring and childish".

# %%
torch.manual_seed(0)
head = nn.Linear(64, 2, bias=False)
model = Transformer(
    len(tokenizer), d_model=64, heads=4, ffn_dim=256, encoder_layers=2, decoder_layers=1, head=head
).eval()
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")


# %% tags=["english"]
def scores(model, batch):
    """Two scores for each review (B, 2)"""
    start = torch.full((len(batch["input_ids"]), 1), tokenizer.bos_token_id)  # [BOS] alone (B, 1)
    return model(batch["input_ids"], batch["attention_mask"].bool(), start)[:, 0]  # (B, 1, 2) -> (B, 2)


batch = tokenizer(["정말 재미있다", "지루하고 유치했다"], padding=True, return_tensors="pt")
with torch.inference_mode():
    source_mask = batch["attention_mask"].bool()[:, None, None, :]
    memory = model.encoder(batch["input_ids"], source_mask)
    vector = model.decoder(torch.full((2, 1), tokenizer.bos_token_id), memory, source_mask)
    print("output of the encoder", tuple(memory.shape))
    print("output of the decoder", tuple(vector.shape))
    print("scores               ", tuple(scores(model, batch).shape))


# %% [markdown] source="8de859d2"
# > *transformer-evolution* takes the maximum over all positions of the decoder, padding included, for its linear
# > layer. This package leaves padding out. For NSMC the decoder reads a single `[BOS]`, so both give the same. A
# > comment in that code says that the output of `Transformer` is `(bs, n_dec_seq, n_dec_vocab)`; it is `(bs,
# > n_dec_seq, d_hidn)`.
#
# ## Training
#
# The loop is that of chapter 6. But the answer is one of two labels instead of a token, and the learning rate is
# constant. Reading all training data once is an **epoch**. After each, we measure the accuracy on the validation
# data, and keep the weights of the best epoch.


# %%
@torch.inference_mode()
def predict(model, tokenizer, texts):
    """A probability for each label (N, 2)"""
    model.eval()
    parts = [texts[start : start + 64] for start in range(0, len(texts), 64)]
    batches = [tokenizer(part, padding=True, truncation=True, max_length=128, return_tensors="pt") for part in parts]
    return torch.cat([scores(model, batch) for batch in batches]).softmax(dim=-1)


def accuracy(model, tokenizer, split):
    predicted = predict(model, tokenizer, split["text"][:]).argmax(dim=-1)
    return (predicted == torch.tensor(split["label"][:])).float().mean().item()


def train_an_epoch(model, optimizer, loader):
    model.train()
    losses = []
    for batch in loader:
        loss = nn.functional.cross_entropy(scores(model, batch), batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return sum(losses) / len(losses)


optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history, best = {}, 0.0
for epoch in range(1, 7):
    loss = train_an_epoch(model, optimizer, loader)
    score = accuracy(model, tokenizer, data["validation"])
    history[epoch] = {"training loss": loss, "validation accuracy": score}
    if score > best:
        best, best_weights = score, copy.deepcopy(model.state_dict())
model.load_state_dict(best_weights)
table = pd.DataFrame(history).T.rename_axis("epoch")
table.round(3)


# %%
plot_lines(
    {name: table[name].tolist() for name in table},
    table.index,
    title="Training a small classifier",
    xlabel="epoch",
    ylabel="loss, accuracy",
)

# %%
accuracies = {split: accuracy(model, tokenizer, data[split]) for split in ("train", "validation", "test")}
print({split: round(score, 3) for split, score in accuracies.items()})

# %% [markdown] source="3ae0a1f2"
# The model gets most of the training data right, but on reviews that it has never seen, the accuracy drops. That is
# **overfitting**: the model has memorized a few hundred reviews, and has not learnt Korean.
#
# > *transformer-evolution* chooses the epoch with the highest accuracy on the test data, and reports that. A score
# > that is chosen on the test data is too high. This package chooses on validation data, which are taken from the
# > training data, and uses the test data once, at the end.
#
# ## Weights trained on many reviews
#
# The repository has nsmc-small. It first learnt from reviews without labels (**pretraining**), then from NSMC, which
# has labels. As in chapter 5, put these weights into **your model**, and give it the same test reviews.
#
# Encoder and decoder of nsmc-small share one table of embeddings, so `tie_embeddings` must tie those of your model,
# too. Untied, your model would take the weights and give the same scores. But as soon as you train it, the two tables
# change separately, and chapter 9 cannot move them into the package's model, which has one.

# %%
ready = AutoModelForSequenceClassification.from_pretrained(MODELS / "nsmc-small", attn_implementation="eager").eval()
ready_tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
head = nn.Linear(192, 2, bias=False)
my_model = Transformer(
    len(ready_tokenizer), d_model=192, heads=3, ffn_dim=768, encoder_layers=6, decoder_layers=1, head=head
)
tie_embeddings(my_model, head=False)  # the classifier's linear layer has two rows: it is not tied
print(my_model.load_state_dict({my_name(name): tensor for name, tensor in ready.state_dict().items()}))
ready_score = accuracy(my_model, ready_tokenizer, data["test"])
print(f"test accuracy: from scratch {accuracies['test']:.3f}, with nsmc-small's weights {ready_score:.3f}")

# %% [markdown] source="d1436497"
# Starting from weights that were trained on a lot of text is far better. Training them a little further on one's
# own data is called **fine-tuning**. We use the same `train_an_epoch`, with a smaller learning rate, so that what
# the weights have learnt is not destroyed.

# %% tags=["varies"]
torch.manual_seed(0)
fine_tuning_loader = DataLoader(
    tokenize(data, ready_tokenizer)["train"].remove_columns("length"),
    batch_size=32,
    shuffle=True,
    collate_fn=DataCollatorWithPadding(ready_tokenizer),
)
optimizer = torch.optim.Adam(my_model.parameters(), lr=3e-5)
loss = train_an_epoch(my_model, optimizer, fine_tuning_loader)
print(f"loss {loss:.3f}, validation accuracy {accuracy(my_model, ready_tokenizer, data['validation']):.3f}")
print(f"test accuracy {accuracy(my_model, ready_tokenizer, data['test']):.3f}")
embeddings = (my_model.encoder.embedding.tokens.weight, my_model.decoder.embedding.tokens.weight)
print("still one table after training:", embeddings[0] is embeddings[1])
torch.save(my_model.state_dict(), RUNS / "my_classifier.pt")  # for chapter 9

# %% [markdown] source="3d11e365"
# The model and the loop are yours. A few hundred reviews more do not raise the score much, because the weights have
# already learnt from all of NSMC. If the validation accuracy falls, overfitting has begun: stop.
#
# Now look inside the package's nsmc-small, as it was before this fine-tuning. It was loaded with
# `attn_implementation="eager"` to show its attention.

# %% [markdown] source="6934db49"
# ## The attention in your own sentence
#
# Change the sentence below, and run the cells again. Or do it in the browser: the following command opens a page in
# which both pictures of this chapter, and the probabilities, change with each letter that you type (chapter 9).
#
# ```sh
# vanilla-transformer page --model model_cards/nsmc-small --output_dir runs/page
# python -m http.server --bind 127.0.0.1 --directory runs/page
# ```

# %% tags=["english"]
review = "음악은 훌륭하지만 시나리오가 엉망이라 실망했다"
# The music is excellent, | but the screenplay | is a mess, | and I was disappointed

encoded = ready_tokenizer(review, return_tensors="pt")
with torch.no_grad():
    outputs = ready(**encoded, output_attentions=True)
pieces = ready_tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
for name, probability in zip(names, outputs.logits.softmax(dim=-1)[0], strict=True):
    print(f"{name:8} {probability:.4f}")

# %% [markdown] source="81ac047c"
# These are the attention weights of the encoder's first layer: how much each token (row) looks at each other token
# (column). The darker, the more. Pictures write `▁`, the mark of a space, as `_`.

# %%
plot_attention(outputs.encoder_attentions[0][0], pieces, pieces, title="self-attention of the encoder, layer 0")

# %% [markdown] source="0bfde9b3"
# The decoder reads the review through its cross-attention alone. Where did the single `[BOS]` look?

# %%
cross = outputs.cross_attentions[0][0]
plot_attention(cross, ["[BOS]"], pieces, title="cross-attention of the start token")

# %%
pd.DataFrame(cross[:, 0].numpy(), index=[f"head {head}" for head in range(3)], columns=pieces).round(3)

# %% [markdown] source="5f1620a8"
# All three heads look more at ▁실망 (disappointment) than at ▁훌륭 (excellent). But attention says where the model
# looked, not why it answered as it did. To find out why, leave out one word at a time.

# %%
words = review.split()
shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
classify = Classifier(ready, ready_tokenizer)
positive = classify.probabilities([review, *shorter])[:, 1]
pd.DataFrame({"left out": ["(nothing)", *words], "positive": positive}).round(4)


# %% [markdown] source="09ec6a4d"
# Whichever word is left out, the answer stays negative. The probability of "positive" rises most without 실망했다 (I was
# disappointed), and second most without 음악은 (the music). Yet all three heads looked more at 엉망이라 (is a mess) than at
# 음악은. What gets the most attention need not be what decides, and what gets little may count.
#
# ## What it gets wrong
#
# Here are all test reviews that it got wrong, the most confident first.

# %% tags=["english"]
test = data["test"]
probabilities = classify.probabilities(test["text"][:])
labels = np.array(test["label"][:])
confidence, predicted = probabilities.max(axis=-1), probabilities.argmax(axis=-1)
wrong = sorted(np.flatnonzero(predicted != labels).tolist(), key=lambda i: -confidence[i])
english = {
    "진짜 별 기대": "I really expected nothing... why am I crying?",
    "이 가격에": "So touching, at this price! The ticket was worth every won",
    "이 정도면": "They owe the actors an apology for this",
    "감동 실화": "A touching true story, they say. Will somebody find me the touching part?",
}
rows = [(names[labels[i]], f"{confidence[i]:.2f}", test["text"][i]) for i in wrong]
meanings = [next((meaning for start, meaning in english.items() if row[2].startswith(start)), "") for row in rows]
pd.DataFrame(
    [(*row, meaning) for row, meaning in zip(rows, meanings, strict=True)],
    columns=["answer", "confidence", "review", "in English"],
)

# %% [markdown] source="9e850b38"
# Irony ("Will somebody find me the touching part?") and praise in negative words ("Why am I crying?") are hard.
# The authors of this package have read 50 reviews of NSMC's validation data on which an earlier nsmc-small was
# confident and wrong, and sorted them: the table is in the [results](../../results.md#what-it-gets-wrong). 12
# reviews mix praise and criticism, and 9 have a label that does not fit the text.
#
# ## Training on all of NSMC
#
# A single command does all this with the whole of NSMC. The data are downloaded once.
#
# ```sh
# vanilla-transformer train-classifier nsmc --output_dir runs/nsmc
# ```
#
# A model of the size of *transformer-evolution* (15.2 million parameters) reaches a test accuracy of 0.8525 after 31
# minutes on two cores; for nsmc-small, see the [results](../../results.md). These were measured on about 50,000 test
# reviews of NSMC, so they differ from those above. To fine-tune nsmc-small on your own data:
#
# ```sh
# vanilla-transformer train-classifier finetune --data my.csv --text_column text \
#     --output_dir runs/mine-finetuned
# vanilla-transformer evaluate --model runs/mine-finetuned --output_dir runs/evaluation
# ```
#
# `evaluate` lists all mistakes, like the table above, and measures how far probabilities can be trusted.
#
# ## In short
#
# - Look at the data before training. If you count empty rows, repeated rows and lengths first, they cause no surprise
#   later.
# - An encoder-decoder classifies with a single start token: the decoder's one output vector becomes the scores of
#   the labels.
# - With few data, a model only memorizes (overfitting). Choose on validation data, and use test data once, at the
#   end.
# - Attention says where a model looked, not why it answered as it did.
#
# **To think about.** What would a model have to know to get "Will somebody find me the touching part?" right? Would
# more reviews be enough?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** The accuracy is close to 1 on the training data, and far lower on the test data. What is the most likely
# reason?
#
# - (a) Overfitting
# - (b) A learning rate that is too small
# - (c) Wrong test data
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. It has memorized the training data. More data help, or weights that were trained on a lot of text.
# - (b) No. With too small a rate, the training data would not be right, either.
# - (c) No. It may happen, but is not what to suspect first.
#
# </details>
#
# **2.** Why not choose the epoch by the accuracy on the test data?
#
# - (a) It takes longer
# - (b) The score gets too high
# - (c) There are too few test data
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. It takes as long as on validation data.
# - (b) Yes. The highest of several scores is partly luck, and new texts will not have that luck.
# - (c) No. Even if there are many, they must not be used to choose.
#
# </details>
#
# **3.** How can the decoder classify a review if it reads `[BOS]` alone?
#
# - (a) The embedding of [BOS] holds the review
# - (b) Cross-attention collects from the encoder's output
# - (c) It reads the encoder's last token
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. The embedding of `[BOS]` is the same for every review.
# - (b) Yes. Cross-attention is the only way in.
# - (c) No. It can see the outputs of all tokens.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="09e675ef"
# ### Exercise 1 ★ 5 min
#
# On the same test reviews, what is the accuracy of nsmc-small if only answers with a confidence above 0.9 count? Use
# `confidence`, `predicted` and `labels`.
#
# <details><summary>Hint 1</summary>
#
# `sure = confidence > 0.9` is an array of True and False. `predicted[sure]` picks the entries where it is True.
#
# </details>
# <details><summary>Hint 2</summary>
#
# It is the mean of `predicted[sure] == labels[sure]`.
#
# </details>

# %% tags=["exercise"]
sure = confidence > 0.9
accuracy_when_sure = float((predicted[sure] == labels[sure]).mean())  # a number between 0 and 1
print(f"of {sure.sum()}: {accuracy_when_sure:.3f}")

# %%
check_answer(
    accuracy_when_sure,
    lambda it: ready_score < it < 1 and abs(it - (predicted == labels)[confidence > 0.9].mean()) < 1e-6,
    (ready_score, "This is the accuracy of all answers."),
    (lambda it: it > 1, "This looks like a count. Make it a share."),
)

# %% [markdown] source="f3ab1913"
# ### Exercise 2 ★★ 8 min
#
# Check that padding does not change the answer. Give your model `my_model` the short review 재미있다 ("it is fun") on
# its own, and together with the longer `review`. What is the largest difference between the short review's scores
# in the two cases?
#
# <details><summary>Hint 1</summary>
#
# Make two batches with `ready_tokenizer([...], padding=True, return_tensors="pt")`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take the largest absolute value of `scores(my_model.eval(), together)[0] - scores(my_model, alone)[0]`.
#
# </details>

# %% tags=["exercise", "english"]
together = ready_tokenizer(["재미있다", review], padding=True, return_tensors="pt")
alone = ready_tokenizer(["재미있다"], return_tensors="pt")
my_model.eval()
with torch.inference_mode():
    largest = (scores(my_model, together)[0] - scores(my_model, alone)[0]).abs().max().item()  # one number
print(f"difference of scores {largest:.1e}")

# %%
check_answer(
    largest,
    lambda it: it < 1e-4,  # thanks to the mask, [PAD] is not seen
    (lambda it: it > 0.01, "Too different. Compare the same review, after my_model.eval()."),
)

# %% [markdown] source="c6e32476"
# ### Exercise 3 ★★ 8 min
#
# How does your model read 전혀 지루하지 않다 ("not boring at all") and 전혀 재미있지 않다 ("not fun at all")? Make a
# list of both probabilities of "positive". Draw the cross-attention with `plot_attention`, too.
#
# <details><summary>Hint 1</summary>
#
# Column 1 of `predict(my_model, ready_tokenizer, [...])` is the probability of "positive".
#
# </details>
# <details><summary>Hint 2</summary>
#
# `predict(...)[:, 1].tolist()`.
#
# </details>

# %% tags=["exercise", "english"]
negated = ["전혀 지루하지 않다", "전혀 재미있지 않다"]  # not boring at all; not fun at all
positives = predict(my_model, ready_tokenizer, negated)[:, 1].tolist()  # two probabilities
print(dict(zip(negated, [round(one, 3) for one in positives], strict=True)))

# %%
check_answer(
    positives,
    lambda it: it[0] > 0.5 > it[1],  # it understands the negation
    (lambda it: it[1] > 0.5 > it[0], "These look like the probabilities of negative, column 0."),
)

# %% [markdown] source="9c157a15"
# In the next chapter, the decoder writes whole sentences. → [8. Translation](08_translation.ipynb)
