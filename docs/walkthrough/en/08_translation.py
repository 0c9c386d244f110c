# %% [markdown] source="570a65c1"
# # 8. Translation
#
# The paper made the Transformer for translation. In this chapter, the `Transformer` that you wrote is first trained,
# from scratch, as a small translator from Korean to English. Then we look into a German-English translator that was
# trained on real sentences. You need neither Korean nor German: what words mean is written beside them.

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
import random
import re
from collections import Counter

import drawings
import pandas as pd
import sacrebleu
import torch
from chapter_plots import plot_attention, plot_beam_search, plot_lines
from check import check, check_answer, mine
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_vanilla_transformer.data.tokenizer import train_tokenizer


pd.set_option("display.max_colwidth", None)
Transformer, noam, training_step, greedy = mine(
    "Transformer", "noam", "training_step", "greedy"
)  # from chapters 5 and 6

# %%
drawings.model_map(8)

# %% [markdown] source="1f18c1da"
# ## Making sentence pairs
#
# A translator learns from pairs of sentences that mean the same. Most data for translation come with licence
# conditions (Multi30k may be used for non-commercial purposes only) and cannot be part of this repository. So we use
# rules to make Korean and English sentences that describe pictures. The rules are short, but cover three of the
# things that make translation hard.
#
# - **Word order**: in Korean, the place comes before the verb; in English, after it.
# - **Words that are far apart**: whether English has `dog` or `dogs`, `is` or `are`, depends on 한 (one) or 두 (two)
#   in Korean.
# - **Words with several meanings**: 말 (*mal*) is a horse or talk; 배 (*bae*) is a pear or a boat. 차 is tea or a
#   car, and 쓰고 is writing or using.

# %% tags=["korean"]
NOUNS = {  # how Korean counts them; English singular and plural
    "강아지": ("마리", "dog", "dogs"), "고양이": ("마리", "cat", "cats"), "말": ("마리", "horse", "horses"),
    "새": ("마리", "bird", "birds"), "아이": ("명", "child", "children"), "여자": ("명", "woman", "women"),
    "남자": ("명", "man", "men"), "소녀": ("명", "girl", "girls"), "의사": ("명", "doctor", "doctors"),
}  # fmt: skip
NUMBERS = {"한": "a", "두": "two", "세": "three", "네": "four", "다섯": "five"}
ADJECTIVES = {"": "", "작은": "small", "커다란": "big", "젊은": "young", "행복한": "happy", "지친": "tired"}
PLACES = {
    "공원에서": "in the park", "바닷가에서": "on the beach", "길에서": "on the street", "숲에서": "in the forest",
    "눈 속에서": "in the snow", "집 앞에서": "in front of the house", "나무 아래에서": "under a tree",
    "다리 위에서": "on a bridge", "배 위에서": "on a boat",
}  # fmt: skip
ACTIONS = {
    "놀고": "playing", "달리고": "running", "자고": "sleeping", "기다리고": "waiting", "춤추고": "dancing",
    "말을 하고": "talking", "배를 먹고": "eating a pear", "차를 마시고": "drinking tea", "차를 밀고": "pushing a car",
    "편지를 쓰고": "writing a letter", "컴퓨터를 쓰고": "using a computer", "공을 쫓고": "chasing a ball",
}  # fmt: skip


def clause():
    noun, number, adjective, place, action = (
        random.choice(list(table)) for table in (NOUNS, NUMBERS, ADJECTIVES, PLACES, ACTIONS)
    )
    counter, one, many = NOUNS[noun]
    subject, verb = (one, "is") if number == "한" else (many, "are")
    korean = f"{adjective} {noun} {number} {counter}{'이' if counter == '명' else '가'} {place} {action} 있"
    english = f"{NUMBERS[number]} {ADJECTIVES[adjective]} {subject} {verb} {ACTIONS[action]} {PLACES[place]}"
    return " ".join(korean.split()), " ".join(english.split())


def pair():
    korean, english = clause()
    if random.random() < 1 / 3:  # one in three is two clauses
        more_korean, more_english = clause()
        korean, english = f"{korean}고, {more_korean}", f"{english}, and {more_english}"
    return f"{korean}다.", f"{english[0].upper()}{english[1:]}."


random.seed(0)
pairs = list({pair(): None for _ in range(5000)})  # each pair once
validation, test, train = pairs[:50], pairs[50:250], pairs[250:]
print(f"{len(train):,} pairs for training, {len(validation)} for validation, {len(test)} for testing")
pd.DataFrame(train[:6], columns=["Korean", "English"])


# %% [markdown] source="d4350bef"
# Some scenes are odd, because rules made them, but each sentence has one right answer, so it is easy to count what
# is right. 200 test pairs are put aside, to measure on sentences that were not seen in training.
#
# ## To tokens
#
# One vocabulary is made from the texts of both languages. With `add_eos=True`, the tokenizer ends each text with
# `[EOS]`. A decoder stops once it has written `[EOS]`.

# %%
tokenizer = train_tokenizer([text for one in train for text in one], vocab_size=380, add_eos=True)
examples = [tuple(tokenizer(text)["input_ids"] for text in one) for one in train]  # (ids of Korean, ids of English)
print(len(tokenizer))
for ids in examples[1]:
    print(tokenizer.convert_ids_to_tokens(ids))

# %% [markdown] source="008499e6"
# ## Batches by number of tokens
#
# In chapter 6, each sentence had ten tokens. Here their lengths differ, and in a batch of arbitrary sentences, the
# short ones get a lot of padding. So sort sentences by length, and fill a batch until its tokens, padding included,
# reach a limit. A batch then holds many short sentences or a few long ones.


# %%
def token_batches(examples, max_tokens):
    order = random.sample(range(len(examples)), len(examples))  # so that sentences of one length are mixed
    order.sort(key=lambda number: max(map(len, examples[number])))
    batches, batch = [], []
    for number in order:
        longest = max(map(len, examples[number]))  # in order of length: none so far is longer
        if batch and longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(number)
    batches.append(batch)
    random.shuffle(batches)  # so that short sentences do not all come first
    return batches


def padding_share(batches):
    real = padded = 0
    for batch in batches:
        for side in (0, 1):
            lengths = [len(examples[number][side]) for number in batch]
            real, padded = real + sum(lengths), padded + max(lengths) * len(lengths)
    return 1 - real / padded


by_tokens = token_batches(examples, max_tokens=300)
mixed = [list(range(start, start + 15)) for start in range(0, len(examples) - 15, 15)]
pd.DataFrame(
    {
        "batches": [len(mixed), len(by_tokens)],
        "sentences each": [15, f"{min(map(len, by_tokens))} to {max(map(len, by_tokens))}"],
        "padding": [f"{padding_share(batches):.1%}" for batches in (mixed, by_tokens)],
    },
    index=["any 15 sentences", "up to 300 tokens"],
)


# %% [markdown] source="c480d600"
# `training.TokenBudgetBatchSampler` does this in the package. When a batch becomes tensors, `[PAD]`, which is 0,
# fills the places that are left. `smoothed_loss` of chapter 6 does not count positions whose answer is `[PAD]`.


# %%
def collate(batch):
    source, labels = zip(*(examples[number] for number in batch), strict=True)
    return [pad_sequence([torch.tensor(ids) for ids in side], batch_first=True) for side in (source, labels)]


print([tuple(tensor.shape) for tensor in collate(by_tokens[0])])


# %% [markdown] source="6739ec44"
# ## Training
#
# Train the `Transformer` of chapter 5 with `training_step` of chapter 6. The learning rate follows Noam, and label
# smoothing is 0.1. The start token is the id of `[BOS]`. Translations are written by `greedy` of chapter 6, and cut
# at `[EOS]`. Every 100 steps, translate the longest sentence of the validation data.

# %% tags=["varies"]
torch.manual_seed(0)
sizes = {"d_model": 64, "heads": 4, "ffn_dim": 256, "encoder_layers": 2, "decoder_layers": 2}
my_model = Transformer(len(tokenizer), **sizes, head=nn.Linear(64, len(tokenizer)))
my_tokenizer = tokenizer
print(f"{sum(parameter.numel() for parameter in my_model.parameters()):,} parameters")


def translate(texts):
    my_model.eval()
    source = my_tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
    rows = greedy(my_model, source, 40, start=my_tokenizer.bos_token_id)[:, 1:].tolist()
    ends = [[*row, my_tokenizer.eos_token_id].index(my_tokenizer.eos_token_id) for row in rows]
    return [my_tokenizer.decode(row[:end]) for row, end in zip(rows, ends, strict=True)]


optimizer = torch.optim.Adam(my_model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step + 1, d_model=64, warmup=400))
losses = []
longest = max(validation, key=lambda one: len(one[0]))
print("source:", longest[0])
print("right: ", longest[1])
while len(losses) < 500:
    for source, labels in map(collate, token_batches(examples, max_tokens=300)):
        my_model.train()
        losses.append(training_step(my_model, optimizer, scheduler, source, labels, start=my_tokenizer.bos_token_id))
        if len(losses) % 100 == 0:
            print(f"step {len(losses)}:", *translate([longest[0]]))
        if len(losses) == 500:
            break


# %%
plot_lines({"training loss": losses}, range(1, 501), title="Training the translator", xlabel="step", ylabel="loss")

# %% [markdown] source="8eff48ba"
# At first it strings frequent words together; then sentences take shape; at last, the words are right. The loss does
# not go to 0 because of label smoothing. Can the model tell apart the two meanings of 말 and of 배? The first sentence
# says "two horses (말) are talking (말) on a boat (배)", the second "a young doctor is eating a pear (배) on a bridge".
# Neither was seen in training.

# %% tags=["varies", "english"]
texts = ["말 두 마리가 배 위에서 말을 하고 있다.", "젊은 의사 한 명이 다리 위에서 배를 먹고 있다."]
assert not {korean for korean, _ in train} & set(texts)
for text, translation in zip(texts, translate(texts), strict=True):
    print(text, "->", translation)

# %% [markdown] source="dcee4762"
# It chooses the meaning by the words beside it. This is what attention is good for.
#
# ## BLEU: scoring translations
#
# A sentence has several right translations, so accuracy is hard to measure. **BLEU** is a number from 0 to 100. It
# says how many **n-grams** (n words in a row) a model's translation shares with a human one. It is computed in two
# steps.
#
# 1. For n = 1, 2, 3, 4, count the share of the translation's n-grams that are also in the reference (precision).
#    Take the geometric mean of the four.
# 2. Short translations easily have a high precision. So if the translations are shorter than the references, the
#    score is multiplied by $e^{1 - r/c}$, where r is the length of the references and c that of the translations
#    (brevity penalty).
#
# Compute it for two sentences. Punctuation counts as words.

# %%
hypotheses = ["Two dogs are playing in the snow.", "A man is reading a book on a bench."]
references = ["Two small dogs are playing in the snow.", "A man is reading a newspaper on a bench in the park."]


def ngrams(sentence, n):
    words = re.findall(r"\w+|[^\w\s]", sentence)
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def precisions(hypotheses, references):
    counts = []
    for n in (1, 2, 3, 4):
        both = list(zip(hypotheses, references, strict=True))
        matched = sum(
            (ngrams(ours, n) & ngrams(right, n)).total() for ours, right in both
        )  # & takes the smaller count
        counts.append((matched, sum(ngrams(ours, n).total() for ours, _ in both)))
    return counts


def bleu(hypotheses, references):
    counts = precisions(hypotheses, references)
    if not all(matched for matched, _ in counts):
        return 0.0
    mean = math.exp(sum(math.log(matched / total) for matched, total in counts) / 4)  # geometric mean
    lengths = [sum(ngrams(text, 1).total() for text in texts) for texts in (hypotheses, references)]
    return 100 * min(1, math.exp(1 - lengths[1] / lengths[0])) * mean


by_sacrebleu = sacrebleu.corpus_bleu(hypotheses, [references]).score
print(f"BLEU by hand {bleu(hypotheses, references):.2f}, by sacreBLEU {by_sacrebleu:.2f}")
assert math.isclose(bleu(hypotheses, references), by_sacrebleu)
pd.DataFrame(precisions(hypotheses, references), index=[f"n = {n}" for n in (1, 2, 3, 4)], columns=["shared", "all"])


# %% [markdown] source="1efd1f95"
# Only `book` is wrong, but words are missing and long n-grams are broken up, so the score is low. Tools split words
# differently; to get comparable scores, use the standard one, **sacreBLEU**. Now measure the 200 test pairs.

# %% tags=["varies"]
translations = translate([korean for korean, _ in test])
score = sacrebleu.corpus_bleu(translations, [[english for _, english in test]]).score
exact = sum(ours == english for ours, (_, english) in zip(translations, test, strict=True))
print(f"BLEU {score:.1f}, {exact} of {len(test)} equal to the reference")
assert score > 95
torch.save(my_model.state_dict(), RUNS / "my_translator.pt")  # for chapter 9
saved = my_tokenizer.save_pretrained(RUNS / "my_translator_tokenizer")

# %% [markdown] source="fb984185"
# The model that you wrote line by line has learnt with the functions that you wrote, and translates. Sentences made
# by rules give very high scores; real ones are far harder. Now use a word that is not in the rules: 토끼, rabbit. The
# sentence says "two small rabbits are playing in the park".

# %% tags=["varies", "english"]
print(*translate(["작은 토끼 두 마리가 공원에서 놀고 있다."]))

# %% [markdown] source="945b3696"
# It has never seen the word for rabbit, and writes something that it knows. A model's world is its training data.
#
# ## A trained translator
#
# Now look at a model that was trained on real sentences. multi30k-de-en of this repository was trained on 29,000
# pairs of German and English sentences that describe pictures (Multi30k), and on further sentences about the same
# pictures, without translations. It is loaded with `attn_implementation="eager"` to show its attention.

# %%
folder = MODELS / "multi30k-de-en"
model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
print(f"{model.num_parameters():,} parameters, a vocabulary of {len(tokenizer):,}")

# %% [markdown] source="ea45b16b"
# Here, too, both languages share one vocabulary.

# %%
text = "Zwei Hunde spielen im Schnee."  # two | dogs | play | in the | snow
source = tokenizer(text, return_tensors="pt")
source_tokens = tokenizer.convert_ids_to_tokens(source["input_ids"][0])
print(source_tokens)

# %%
written = model.generate(**source, num_beams=1)
print(written[0].tolist())
print(tokenizer.convert_ids_to_tokens(written[0]))
print(tokenizer.decode(written[0], skip_special_tokens=True))

# %% [markdown] source="0729e6ab"
# It starts with `[BOS]`, writes token by token, and stops at `[EOS]`. `num_beams=1` is the greedy decoding of
# chapter 6.
#
# ## Where does it look while writing?
#
# With each token, the decoder's cross-attention looks at the German sentence. Take the weights of the last layer,
# average them over its four heads, and make a table.

# %%
output = model.generate(**source, num_beams=1, output_attentions=True, return_dict_in_generate=True)
target_tokens = tokenizer.convert_ids_to_tokens(output.sequences[0])
rows = []
for step, layers in enumerate(output.cross_attentions):
    attention = layers[-1][0, :, -1].mean(dim=0)  # last layer, token just read, mean of the heads: (German token,)
    most = attention.argmax().item()
    rows.append((target_tokens[step], target_tokens[step + 1], source_tokens[most], round(attention[most].item(), 2)))
pd.DataFrame(rows, columns=["read", "written", "looked at most", "weight"])

# %% [markdown] source="c6bd67cc"
# Each head does something different. Take a longer sentence, and draw the heads of the last layer one by one. Rows
# are the tokens that the decoder has **read**. What it collects in that row is used to choose the **next** token.


# %%
@torch.inference_mode()
def cross_attention(text, layer=-1):
    source = tokenizer(text, return_tensors="pt")
    read = model.generate(**source, num_beams=1)[:, :-1]
    attentions = model(**source, decoder_input_ids=read, output_attentions=True).cross_attentions
    return attentions[layer][0], *(tokenizer.convert_ids_to_tokens(ids) for ids in (read[0], source["input_ids"][0]))


# a | man | in | a | blue | shirt | stands | on | a | ladder | and | cleans | a | window
plot_attention(
    *cross_attention("Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster."),
    title="cross-attention, last layer",
)


# %% [markdown] source="0126c090"
# Most of the large weights lie along the diagonal, because the word order of the two languages is similar. To see
# your own sentences, run the following command in a terminal. The browser translates token by token, and draws the
# same picture (chapter 9).
#
# ```sh
# vanilla-transformer page --model model_cards/multi30k-de-en --output_dir runs/translator-page
# python -m http.server --bind 127.0.0.1 --directory runs/translator-page
# ```
#
# > The pictures of *pytorch-seq2seq* label each row with the token that was just written, not with the one that was
# > just read. The matrix is the same, but the labels are shifted by one.
#
# ## Beam search
#
# Greedy decoding takes the token that is most probable now, and never looks back. But a token that is a little less
# probable may lead to a better sentence. **Beam search** keeps several candidates, the beams, and extends them
# together.

# %%
text = "Ein Mann trägt viele Taschen."  # a | man | carries | many | bags
source = tokenizer(text, return_tensors="pt")
for beams in (1, 3):
    output = model.generate(**source, num_beams=beams)
    print(beams, tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown] source="2be9c4d8"
# The answers differ. Let us find out why, in three steps.
#
# ### First, greedy decoding
#
# Add the logarithms of the tokens' probabilities while extending the sentence. Their sum is the **score** of the
# sentence. Probabilities are below 1, so scores are below 0; the larger, the more probable.

# %%
with torch.inference_mode():
    encoded = model.model.encoder(**source).last_hidden_state  # the source is read once


@torch.inference_mode()
def next_log_probabilities(sentences):
    """Log-probabilities of the next token of each sentence so far (sentence, vocabulary)"""
    states = (encoded.expand(len(sentences), -1, -1),)
    output = model(encoder_outputs=states, decoder_input_ids=torch.tensor(sentences), use_cache=False)
    return output.logits[:, -1].log_softmax(dim=-1)


def show(total, ids):
    print(f"{total:.2f}", *tokenizer.convert_ids_to_tokens(ids)[1:])


total, ids = 0.0, [tokenizer.bos_token_id]
for _ in range(4):
    best = next_log_probabilities([ids])[0].max(dim=-1)
    total, ids = total + best.values.item(), [*ids, best.indices.item()]
    show(total, ids)


# %% [markdown] source="c97ba8cd"
# ### Keep two sentences
#
# Now keep the two sentences with the best scores. Extend each by its two most probable tokens, which gives four
# candidates, and keep only the best two of them.

# %%
running = [(0.0, [tokenizer.bos_token_id])]
for step in range(1, 5):
    rows = next_log_probabilities([ids for _, ids in running])
    candidates = []
    for (total, ids), row in zip(running, rows, strict=True):
        best = row.topk(2)
        for value, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            candidates.append((total + value, [*ids, token]))
    running = sorted(candidates, reverse=True)[:2]
    print(f"{step} tokens")
    for total, ids in running:
        show(total, ids)

# %% [markdown] source="fb828c42"
# Up to three tokens, the sentence with `carrying`, which greedy decoding chose, is ahead. But `is` was not thrown
# away, and with four tokens, its sentence takes the lead.
#
# ### Write it: `beam_step`
#
# Now choose the number of beams, and handle `[EOS]`. These are the rules of one step.
#
# 1. For each sentence that is not finished, add the log-probabilities of the next token to its score.
# 2. Of all tokens of all sentences, take the best candidates, **twice** as many as there are beams, so that enough
#    are left when some end with `[EOS]`.
# 3. Of the candidates without `[EOS]`, the best go on, as many as there are beams. A candidate that ends with
#    `[EOS]` is finished if it is among the best, as many as there are beams; otherwise it is dropped. The score of a
#    finished sentence is divided by its length; otherwise short ones would have an advantage. The start token does
#    not count.
#
# A sentence is (score, list of ids). For example, (-1.2, [2, 15]), extended by token 7 with the log-probability -0.3,
# becomes (-1.5, [2, 15, 7]). Scores are Python floats. Both lists are in the order of the candidates' ranks; those with
# equal scores may come in any order. Leave `running` as it is.


# %% tags=["blank"]
def beam_step(running, log_probabilities, beams, end):  # [(score, ids)], (sentence, V), beams, id of [EOS]
    totals = torch.tensor([[score] for score, _ in running]) + log_probabilities  # scores, extended (sentence, V)
    best = totals.flatten().topk(2 * beams)  # candidates: the best of all tokens of all sentences
    following, finished = [], []  # sentences that go on, sentences that ended
    for rank, (score, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):  # candidates
        sentence, token = divmod(index, totals.shape[1])  # which sentence was extended by which token
        ids = [*running[sentence][1], token]  # ids of the extended sentence
        if token != end and len(following) < beams:  # not [EOS], and fewer than beams go on so far
            following.append((score, ids))  # it goes on
        if token == end and rank < beams:  # [EOS], and the rank is within beams
            finished.append((score / (len(ids) - 1), ids))  # it is finished: score by length without the start token
    return following, finished  # both lists of (score, ids)


# %%
check(beam_step)

# %% [markdown] source="eede30c8"
# <details><summary>Hint 1</summary>
#
# A column of scores (sentence, 1) plus the log-probabilities (sentence, V) gives the scores of all extended sentences.
# Make one row of them (`flatten`), and choose with `topk`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `divmod(index, V)` turns an index of that row into (sentence, token). `enumerate` counts the ranks.
#
# </details>

# %% [markdown] source="6c367358"
# Beam search repeats this step. Of the finished sentences, it keeps the best, as many as there are beams. It stops
# when it has that many, and none of the unfinished sentences scores higher than the lowest of them. An unfinished
# sentence's score is divided by its length here, too.


# %%
def beam_search(beams):
    """Finished sentences (score, ids), and the sentences of each step, to be drawn"""
    running, finished, steps = [(0.0, [tokenizer.bos_token_id])], [], []
    while len(finished) < beams or finished[-1][0] < running[0][0] / len(steps):
        rows = next_log_probabilities([ids for _, ids in running])
        following, ended = beam_step(running, rows, beams, tokenizer.eos_token_id)
        steps.append((running, rows, following + ended))
        running, finished = following, sorted(finished + ended, reverse=True)[:beams]
    return finished, steps


finished, steps = beam_search(beams=3)
for score, ids in finished:
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")

# %% [markdown] source="4d0eba64"
# These are the three sentences and the three scores of `generate`.

# %%
output = model.generate(
    **source, num_beams=3, num_return_sequences=3, length_penalty=1.0, return_dict_in_generate=True, output_scores=True
)
for score, ids in zip(output.sequences_scores, output.sequences, strict=True):
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")
assert torch.allclose(output.sequences_scores, torch.tensor([score for score, _ in finished]), atol=1e-4)

# %% [markdown] source="37da544b"
# Draw the candidates as a tree. The numbers are sums of log-probabilities. Blue candidates were kept, grey ones
# dropped, and the orange sentence wins.

# %%
tree, places = [], {(tokenizer.bos_token_id,): 0}
for running, rows, kept in steps:
    candidates, _ = beam_step(running, rows, 6, end=-1)  # without an `[EOS]`, it returns all six candidates
    tree.append([])
    for total, ids in candidates:
        is_kept = ids in [one for _, one in kept]
        tree[-1].append((places[tuple(ids[:-1])], tokenizer.convert_ids_to_tokens(ids[-1]), total, is_kept))
    places = {tuple(ids): rank for rank, (_, ids) in enumerate(candidates)}
    if finished[0] in kept:
        winner = (len(tree) - 1, places[tuple(finished[0][1])])
plot_beam_search(tree, best=winner)

# %% [markdown] source="14ef1cf2"
# Look at the third token. `carrying` is a little above `is`, so greedy decoding chose it. The beams kept `is` as
# well. Its next token is `carrying`, too, and with it, this branch takes the lead.
#
# > *The Annotated Transformer* has no beam search ("a bit too complicated to cover here"). `Beam_Search.ipynb` of
# > *pytorch-transformer* has one, but it skips candidates that end with `[EOS]` and does not put them back. Finished
# > sentences are lost, so in its example short translations do not end, but run on.
#
# ## A world that it does not know
#
# This model has learnt sentences that describe pictures. The first one below is of that kind, and is translated
# well; the other two ("The parliament passed the law today", "I forgot my homework") become something that only
# looks like English.

# %%
for text in (
    "Eine Frau liest ein Buch auf einer Bank im Park.",  # a woman reads a book on a bench in the park
    "Der Bundestag hat das Gesetz heute verabschiedet.",  # the parliament passed the law today
    "Ich habe meine Hausaufgaben vergessen.",  # I forgot my homework
):
    output = model.generate(**tokenizer(text, return_tensors="pt"), num_beams=5)
    print(text, "->", tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown] source="85fe8140"
# How the words were split shows why. Words that it has often seen are one token; rare or new ones are cut into many.

# %%
print(tokenizer.tokenize("Eine Frau liest ein Buch"))
print(tokenizer.tokenize("Der Bundestag hat das Gesetz heute verabschiedet."))

# %% [markdown] source="7c8f3483"
# ## Training on your own sentences
#
# You train on real sentences as you did in this chapter. You need two files whose lines correspond, or a CSV, TSV or
# JSON file with two columns. [Translate](../../guides/translate.md#train-a-translator) says where to get the files of
# Multi30k.
#
# ```sh
# vanilla-transformer train-translation multi30k-de-en --data multi30k --output_dir runs/de-en
# vanilla-transformer translate --model runs/de-en --file sentences.txt --num_beams 5
# ```
#
# This command puts up to 4,096 tokens into each batch (`max_tokens: 4096`), and takes about two hours on one CPU
# core. Of the weights that are saved during training (**checkpoints**), the last 20 are averaged. On 1,000 test
# sentences, with five beams, the BLEU is 40.97 ([record](../../records.md)). The repository's model has wider
# feed-forward layers, and has also learnt from sentences without translations. It has a BLEU of 44.22 ([more text
# than pairs](../../guides/translate.md#more-text-than-pairs)).
#
# > The text of *The Annotated Transformer* promises batches with almost no padding, and `batch_size_fn` of 2018
# > makes them. The code of 2022 kept the text, but pads each sentence to 72 tokens.
#
# > *The Annotated Transformer* has an `average` of checkpoints, too, but it does not run: it calls `params()`, which
# > `nn.Module` does not have. Here it is `scripts/average_checkpoints.py`.
#
# > To train at the size of *pytorch-seq2seq*, write `multi30k-de-en-tutorial` in place of `multi30k-de-en`. The
# > tutorial's BLEU of 36.52 was measured on lower-cased words, and cannot be compared with the numbers of papers
# > ([results](../../results.md#multi30k)).
#
# ## In short
#
# - A translator learns from pairs of sentences. A batch is limited by its number of tokens, not of sentences, and
#   holds sentences of similar lengths.
# - BLEU measures how many n-grams are shared with the reference, and takes points off short translations.
# - Cross-attention decides where in the source to look, for each token that is written.
# - Beam search keeps several candidates, so that a sentence that is a little behind at first can still win.
#
# **To think about.** A translation that means the same but shares no word with the reference has a BLEU of 0. Is
# there a better way for a machine to score translations?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Two translations have BLEU 40 and 41. What does that tell?
#
# - (a) The second one is always better
# - (b) Measured on the same data by the same tool, the second one shares a little more with the reference
# - (c) Nothing
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. A translation with other words of the same meaning has a low BLEU.
# - (b) Yes. If data differ, or the way words are split, numbers cannot be compared.
# - (c) No. Under the same conditions, they can be compared.
#
# </details>
#
# **2.** What is beam search with one beam?
#
# - (a) Greedy decoding
# - (b) Random generation
# - (c) A search of all sentences
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. It keeps one sentence, so it takes the most probable token each time.
# - (b) No. There is nothing random in beam search.
# - (c) No. That would need as many beams as there are sentences.
#
# </details>
#
# **3.** Why limit a batch by its number of tokens, and not of sentences?
#
# - (a) To waste less time on padding
# - (b) To learn short sentences first
# - (c) To make the vocabulary smaller
#
# <details><summary>Each choice explained</summary>
#
# - (a) Yes. Sentences of similar lengths need hardly any padding.
# - (b) No. The order of batches is random.
# - (c) No. It has nothing to do with the vocabulary.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="db64257b"
# ### Exercise 1 ★ 5 min
#
# Translate two German sentences at once (`padding=True`), and then one by one: are the translations the same? Put
# "Zwei Hunde spielen im Schnee." and "Eine Frau liest ein Buch auf einer Bank im Park." into the list `texts`,
# translate both at once with three beams, and put the two translations into the list `together`.
#
# <details><summary>Hint 1</summary>
#
# Give `tokenizer(texts, padding=True, return_tensors="pt")` to `model.generate`, with `num_beams=3`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `tokenizer.batch_decode(..., skip_special_tokens=True)` turns it into text.
#
# </details>

# %% tags=["exercise"]
texts = ["Zwei Hunde spielen im Schnee.", "Eine Frau liest ein Buch auf einer Bank im Park."]
output = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"), num_beams=3)
together = tokenizer.batch_decode(output, skip_special_tokens=True)  # two sentences
print(together)

# %%
alone = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=3)[0] for text in texts]
check_answer(
    together,
    [tokenizer.decode(ids, skip_special_tokens=True) for ids in alone],
    (lambda it: "[PAD]" in it[0] or "[EOS]" in it[0], "Leave out special tokens: skip_special_tokens=True"),
)

# %% [markdown] source="5b31d736"
# ### Exercise 2 ★★ 8 min
#
# Translate "Ein Hund fährt auf einem Skateboard." (a dog rides a skateboard) with three beams and a `length_penalty`
# of 1.0, then of 0.0. With 0.0, scores are not divided by length. How many tokens does each translation have? Make a
# list of the two numbers.
#
# <details><summary>Hint 1</summary>
#
# Count the tokens of `model.generate(**source, num_beams=3, length_penalty=penalty)[0]`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `[len(model.generate(...)[0]) for penalty in (1.0, 0.0)]`
#
# </details>

# %% tags=["exercise"]
source = tokenizer("Ein Hund fährt auf einem Skateboard.", return_tensors="pt")
lengths = [len(model.generate(**source, num_beams=3, length_penalty=one)[0]) for one in (1.0, 0.0)]  # two numbers
print(lengths)

# %%
# Log-probabilities are below 0: each token lowers the sum, so without dividing, short sentences win.
check_answer(
    lengths,
    lambda it: it[1] < it[0],
    (lambda it: it[0] < it[1], "The order is wrong: first 1.0, then 0.0."),
    (lambda it: it[0] == it[1], "They are equal. Did length_penalty change?"),
)

# %% [markdown] source="f7ca21e2"
# ### Exercise 3 ★★ 8 min
#
# How does the cross-attention of the first layer (`layer=0`) differ from that of the last (`layer=-1`)? The mean of
# the largest weight of each row tells how sharply it looks at one place. Compute it for both layers with
# `cross_attention`, as `{0: ..., -1: ...}`. The sentence is `texts[1]` of exercise 1.
#
# <details><summary>Hint 1</summary>
#
# `cross_attention(texts[1], layer)[0]` is (head, token read, source token).
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take the largest of the last dimension, `amax(dim=-1)`, then the mean.
#
# </details>

# %% tags=["exercise"]
sharpness = {
    layer: cross_attention(texts[1], layer)[0].amax(dim=-1).mean().item() for layer in (0, -1)
}  # layer: number
print({layer: round(value, 3) for layer, value in sharpness.items()})

# %%
check_answer(
    sharpness,
    lambda it: 0 < it[0] < it[-1] < 1,  # the last layer looks at one token more sharply
    (lambda it: it[-1] < it[0], "The two layers seem to be swapped."),
)

# %% [markdown] source="ba6ffcfc"
# In the next chapter, models are saved, shared and used elsewhere. → [9. To Hugging Face](09_hugging_face.ipynb)
