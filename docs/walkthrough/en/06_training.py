# %% [markdown] source="3e8326f5"
# # 6. Training
#
# The model of chapter 5 translated with weights that somebody else had trained. The weights of a new model are
# random numbers, and it knows nothing. In this chapter, you **train** the **`Transformer` that you wrote**, from
# scratch. The task is as simple as can be: **copying** the numbers that it is given. A translator is trained in the
# same way.

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
import time

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines
from check import check, check_answer, mine
from my_transformer import my_name  # the names of chapter 5
from torch import nn
from transformers import get_inverse_sqrt_schedule

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration, training
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling


Transformer, EncoderLayer, DecoderLayer = mine("Transformer", "EncoderLayer", "DecoderLayer")  # from chapter 5

# %%
drawings.model_map(6)

# %% [markdown] source="4b0cecaa"
# ## The task: copying
#
# There are nine symbols, 2 to 10. 0 is reserved for padding, 1 for the start token. An input is ten random symbols
# in a row, and the right answer (the **label**) is the input itself. All have the same length, so no end token is
# needed.

# %%
PAD, START, SYMBOLS, LENGTH = 0, 1, 11, 10


def random_sequences(number, length=LENGTH):
    return torch.randint(2, SYMBOLS, (number, length))


torch.manual_seed(0)
labels = random_sequences(2)
print(labels)


# %% [markdown] source="ed1c6474"
# Make a small model from the classes of chapter 5. Its last linear layer gives a score to each of 11 ids: the nine
# symbols, padding and the start token.


# %%
def small_transformer(layers=1):
    head = nn.Linear(64, SYMBOLS)
    return Transformer(
        SYMBOLS, d_model=64, heads=4, ffn_dim=128, encoder_layers=layers, decoder_layers=layers, head=head
    )


model = small_transformer()
print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")


# %% [markdown] source="ae8bafe3"
# ## Shifting the labels by one
#
# The decoder reads the tokens so far and predicts the next one. So its input is the right answer, shifted to the
# right by one. The start token fills the place at the front.

# %%
drawings.shift_right(["5", "3", "8", "2"], start="1")

# %% [markdown] source="02b2d697"
# ### Write it: `shift_right`
#
# Many tools fill the end of shorter answers in a batch with `-100`, which means: do not count this. `-100` is no id
# of the vocabulary, so in the decoder's input it becomes padding.


# %% tags=["blank"]
def shift_right(labels, start=1, pad=0):  # (B, T)
    first = torch.full_like(labels[:, :1], start)  # the start token (B, 1)
    shifted = torch.cat([first, labels[:, :-1]], dim=1)  # the last token drops off (B, T)
    return shifted.masked_fill(shifted == -100, pad)  # -100 becomes padding (B, T)


# %%
check(shift_right)

# %% [markdown] source="2ae050da"
# <details><summary>Hint 1</summary>
#
# Put a column of start tokens (B, 1) beside the labels without their last token (B, T - 1).
#
# </details>
# <details><summary>Hint 2</summary>
#
# Join `torch.full_like(labels[:, :1], start)` and `labels[:, :-1]` by `torch.cat(..., dim=1)`, and replace -100 by
# `masked_fill`.
#
# </details>

# %%
decoder_input_ids = shift_right(labels)
pd.DataFrame(
    [decoder_input_ids[0].tolist(), labels[0].tolist()],
    index=["the decoder reads", "and predicts"],
    columns=[f"position {i}" for i in range(LENGTH)],
)

# %% [markdown] source="0896becb"
# At position 0, the decoder sees the start token `1` and predicts the first symbol; at position 1, it sees the
# first symbol and predicts the second. The causal mask of chapter 3 hides the answers that follow. So the model
# need not compute ten times, once for each token: it predicts all ten at once, in **parallel**. Giving the decoder
# the right answer as its next input, in place of the token that it predicted, is called **teacher forcing**.
#
# `shift_tokens_right` of this package does the same.

# %%
padded = torch.tensor([[5, 3, 8, -100, -100]])
print(shift_right(padded))
assert shift_right(padded).equal(modeling.shift_tokens_right(padded, PAD, START))

# %% [markdown] source="2cd97f4c"
# > In *The Annotated Transformer*, `Batch` cuts the answer into `tgt[:, :-1]` and `tgt[:, 1:]`, because its first
# > token serves as the start token. Here, answers have no start token; it is added when the input is made.
#
# ## The loss: how wrong is it?
#
# The decoder gives a vector of 64 columns for each position. The last linear layer, `head`, turns it into 11 scores,
# one for each id, the **logits**; the softmax turns these into probabilities. The **loss** is minus the logarithm of
# the answer's probability, averaged over all positions (**cross-entropy**). The loss is 0 if that probability is 1,
# and grows as the probability falls. PyTorch's `cross_entropy` computes it from the logits.

# %%
model.eval()
with torch.inference_mode():
    logits = model(labels, labels != PAD, shift_right(labels))  # (sentence, position, id)
probabilities = logits.softmax(dim=-1)
of_the_answer = probabilities.gather(-1, labels.unsqueeze(-1))
by_hand = -of_the_answer.log().mean()
by_torch = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
print(logits.shape)
print(f"by hand {by_hand:.4f}, by PyTorch {by_torch:.4f}")
assert torch.allclose(by_hand, by_torch)

# %% [markdown] source="8ace245b"
# How large is the loss of a model that knows nothing? If all 11 ids are equally probable, it is log 11. An
# untrained model may favour some of them for no reason, and be a little worse.

# %%
print(f"log 11 = {math.log(SYMBOLS):.4f}")

# %% [markdown] source="2e97153d"
# > The `Generator` of *The Annotated Transformer* computes the logarithm of the softmax (log-softmax) as well. Here,
# > logits are returned; `logits.log_softmax(-1)` are the same numbers.
#
# ## Label smoothing
#
# A model that is told to give the answer the probability 1 becomes overconfident. **Label smoothing** takes a
# little of the answer's probability (0.1 in §5.4 of the paper) and divides it evenly among the other tokens. Call
# these probabilities, which the model is to match, the **target distribution**. There is one row for each token.
#
# Implementations differ in which tokens share it. In the paper that proposed the method (Szegedy et al. 2016), all V
# tokens share it, the answer included; in *The Annotated Transformer*, only the tokens that are neither the answer
# nor padding share it. Here, we follow the latter.

# %% [markdown] source="4162d51b"
# ### Write it: `smoothed_targets`
#
# N is the number of tokens, V the size of the vocabulary. V - 1 tokens are not the answer, but padding cannot be an
# answer, so V - 2 are left.
#
# From here to `training_step`, only `pad` marks what does not count; you need not handle `-100`.


# %% tags=["blank"]
def smoothed_targets(labels, vocab_size, smoothing, pad=0):  # (N,)
    others = vocab_size - 2  # how many are neither answer nor padding
    targets = torch.full((len(labels), vocab_size), smoothing / others, device=labels.device)  # for the others (N, V)
    targets[torch.arange(len(labels)), labels] = 1 - smoothing  # the answer's column of each row
    targets[:, pad] = 0  # padding is no answer
    targets[labels == pad] = 0  # rows whose answer is padding do not count
    return targets  # (N, V)


# %%
check(smoothed_targets)

# %% [markdown] source="62a13151"
# <details><summary>Hint 1</summary>
#
# First fill everything with the share of the others; then correct the answer's column, the column of padding, and
# the rows whose answer is padding.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Fill with `torch.full((len(labels), vocab_size), smoothing / (vocab_size - 2))`.
# `targets[torch.arange(len(labels)), labels]` is the answer's column of each row.
#
# </details>

# %% [markdown] source="7aa333ac"
# To see the effect clearly, take 0.4 from the answer. The five rows are the target distributions of the answers 2,
# 1, 0, 3 and 3.

# %%
answers = torch.tensor([2, 1, 0, 3, 3])
targets = smoothed_targets(answers, vocab_size=5, smoothing=0.4)
pd.DataFrame(targets, index=[f"answer {answer}" for answer in answers.tolist()]).round(3)

# %% [markdown] source="275897ec"
# The answer has 0.6, and the other three tokens that are not padding (0) share 0.4. The answer of the third row is
# padding; for this reason, the whole row is 0.
#
# ### Write it: `smoothed_loss`
#
# Compute the cross-entropy with the target distribution. For each token, multiply (target distribution) ×
# (log-probabilities of the model), sum over the vocabulary, and put a minus in front; then take the mean over the
# tokens that are not padding.


# %% tags=["blank"]
def smoothed_loss(logits, labels, smoothing, pad=0):  # (B, T, V), (B, T)
    targets = smoothed_targets(labels.flatten(), logits.shape[-1], smoothing, pad)  # target distribution (B × T, V)
    log_probabilities = logits.flatten(0, 1).log_softmax(dim=-1)  # the model's log-probabilities (B × T, V)
    return -(targets * log_probabilities).sum() / (labels != pad).sum()  # the mean over tokens that are not padding


# %%
check(smoothed_loss)

# %% [markdown] source="f5c0ae0c"
# <details><summary>Hint 1</summary>
#
# `labels.flatten()` is (B × T,), and `logits.flatten(0, 1)` is (B × T, V). Their rows belong together.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Put a minus in front of the sum, and divide by `(labels != pad).sum()`. Where the answer is padding, the target
# distribution is 0, so nothing is added.
#
# </details>

# %% [markdown] source="2f16699e"
# The **KL divergence** measures how far the model's probabilities are from the target distribution. It differs from
# the cross-entropy by a number that depends on the target distribution alone, so both are smallest at the same
# place. Let us plot it against the probability of the answer.


# %%
def loss_at(confidence, smoothing):
    """Of five tokens, 0 is padding and 1 the answer; 2, 3 and 4 share what is left."""
    predicted = torch.tensor([confidence] + [(1 - confidence) / 3] * 3)
    expected = smoothed_targets(torch.tensor([1]), 5, smoothing)[0, 1:]
    return nn.functional.kl_div(predicted.log(), expected, reduction="sum").item()


confidences = [i / 200 for i in range(60, 200)]
curves = {f"smoothing {s}": [loss_at(c, s) for c in confidences] for s in (0.0, 0.1)}
plot_lines(
    curves, confidences, title="Loss by the answer's probability", xlabel="probability of the answer", ylabel="loss"
)


# %% [markdown] source="e4ea6c77"
# Without smoothing, the loss keeps falling as the answer's probability goes to 1. With 0.1, it is smallest at 0.9,
# and grows from there.
#
# > `LabelSmoothing` of *The Annotated Transformer* also divides among the V - 2 tokens that are neither padding nor
# > the answer, and computes the KL divergence. The example
# > [label_smoothing.py](../../../scripts/examples/label_smoothing.py) does the same for `Trainer`.
# > `label_smoothing_factor` of transformers divides among all V and computes the cross-entropy. *pytorch-seq2seq*
# > has no label smoothing, and says so.
#
# ## The learning rate: up, then down
#
# The **gradient** tells in which direction to change the weights to lower the loss. Going back from the loss
# through all weights to find their gradients is called **backpropagation**; in PyTorch it is `loss.backward()`.
#
# The **learning rate** sets how far one step goes in that direction. The paper first raises it little by little
# (**warm-up**), and then slowly lowers it (§5.3, equation 3). *The Annotated Transformer* calls this schedule Noam.
# The rate is the smaller of two terms.
#
# $$\mathrm{rate} = d^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# $d$ is the dimension of the model, $step$ how often the weights have been changed, and $warmup$ the number of steps
# in which the rate rises.

# %% [markdown] source="3f49731a"
# ### Write it: `noam`
#
# Compute equation 3 with Python numbers. At the first step, `step` is 1, not 0.


# %% tags=["blank"]
def noam(step, d_model, warmup):
    falling = step**-0.5  # falls as the inverse square root of the step
    rising = step * warmup**-1.5  # rises with the step, and meets the other at warmup
    return d_model**-0.5 * min(falling, rising)  # the smaller of the two


# %%
check(noam)

# %% [markdown] source="a7640d80"
# <details><summary>Hint 1</summary>
#
# Write down equation 3. In Python, $x^{-0.5}$ is `x**-0.5`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)`
#
# </details>

# %%
curves = {
    f"dimension {d_model}, warm-up {warmup}": [noam(step, d_model, warmup) for step in range(1, 20001)]
    for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000))
}
plot_lines(curves, range(1, 20001), title="Noam schedule", xlabel="step", ylabel="learning rate")

# %% [markdown] source="7b0ca7bb"
# The **optimizer** changes the weights, by their gradients and the learning rate. We use Adam with the settings of
# the paper. Adam divides each gradient by the root of the **mean of its squares** (its second moment), so that all
# parameters take steps of similar size. In the first steps, this mean is estimated from a few gradients only, and the
# quotient varies widely (Liu et al. 2020). In post-norm, moreover, gradients near the output are large from the
# start (chapter 5). So the learning rate starts small. Later in this chapter, you leave the warm-up out and see
# whether it is necessary.
#
# The **schedule** sets the learning rate of each step; `LambdaLR` makes one from your function. The commands of this
# package use `inverse_sqrt` of transformers instead. It is given the peak, the rate at the end of the warm-up. Are
# the two curves the same?

# %%
D_MODEL, WARMUP = 64, 100
peak = noam(WARMUP, D_MODEL, WARMUP)
unused = torch.optim.Adam(model.parameters(), lr=peak)
package_schedule = get_inverse_sqrt_schedule(unused, WARMUP).lr_lambdas[0]
steps = (50, 100, 200, 400)
ours = [noam(step, D_MODEL, WARMUP) for step in steps]
theirs = [peak * package_schedule(step) for step in steps]
assert math.isclose(peak, training.noam_peak(D_MODEL, WARMUP))
assert torch.allclose(torch.tensor(ours), torch.tensor(theirs))
pd.DataFrame([ours, theirs], index=["equation 3", "inverse_sqrt"], columns=[f"step {step}" for step in steps]).round(4)

# %% [markdown] source="bb54b15c"
# > *Other tutorials* keep the learning rate constant: Adam at 0.0005 in *pytorch-seq2seq*, at 0.0001 in
# > *pytorch-transformer*, and 0.00005 in the notebook of *transformer-evolution* (from the code of each).
# > *pytorch-seq2seq* says that BERT uses a constant rate, too; BERT's paper (Devlin et al. 2019, appendix A.2) says
# > that it rises for 10,000 steps and then falls in a straight line.
#
# ## Where dropout is
#
# In training, the `Dropout` of chapter 5 sets some numbers, chosen at random, to 0, so that the model does not rely
# on a few of them. It can stand in four places. The paper (§5.4) names two of them, and your model has it in these
# two. The sub-layers in the table are the attentions and feed-forward networks of chapter 5.

# %%
places = {
    "embedding_dropout": "on embeddings plus positions (paper)",
    "dropout": "on a sub-layer's output (paper)",
    "attention_dropout": "on attention weights",
    "activation_dropout": "between the two linear layers",
}
presets = ["base", "transformer-evolution", "annotated-transformer", "pytorch-seq2seq"]
table = pd.DataFrame({name: VanillaTransformerConfig.from_preset(name).to_dict() for name in presets})
table.loc[list(places)].assign(**{"where": places.values()})

# %% [markdown] source="136bba63"
# > *transformer-evolution* has no dropout on embeddings, but has it on attention weights. *The Annotated Transformer*
# > and *pytorch-seq2seq* have it in all four places.
#
# `model.train()` switches dropout on, `model.eval()` off. While it is on, the same input gives another output each
# time.

# %%
for mode in (model.train, model.eval):
    mode()
    with torch.no_grad():
        logits = [model(labels, labels != PAD, shift_right(labels)) for _ in range(2)]
        first, second = (smoothed_loss(one, labels, smoothing=0.1).item() for one in logits)
    print(f"{mode.__name__:5}  {first:.4f}  {second:.4f}")

# %% [markdown] source="f4fe23e8"
# ## Generating token by token
#
# In training, the decoder reads the whole correct answer at once. In generation there is none: the decoder reads
# the token that it has just chosen, and goes on. Choosing the most probable token each time is called **greedy
# decoding**.
#
# ### Write it: `greedy`
#
# Read the source once, with `model.encoder`. Then, `length` times, choose the next token with `model.decoder` and
# `model.head`, and append it. Whoever calls `greedy` calls `model.eval()` first.


# %% tags=["blank"]
@torch.inference_mode()
def greedy(model, source, length, start=1, pad=0):  # (B, S)
    source_mask = (source != pad)[:, None, None, :]  # what is not padding (B, 1, 1, S)
    memory = model.encoder(source, source_mask)  # the source is read once (B, S, D)
    written = torch.full_like(source[:, :1], start)  # the start token (B, 1)
    for _ in range(length):  # length times
        logits = model.head(model.decoder(written, memory, source_mask))  # logits of all positions (B, T, V)
        best = logits[:, -1].argmax(dim=-1, keepdim=True)  # the largest logit of the last position (B, 1)
        written = torch.cat([written, best], dim=1)  # one token more (B, T + 1)
    return written  # with the start token (B, 1 + length)


# %%
check(greedy)

# %% [markdown] source="d4563f9e"
# <details><summary>Hint 1</summary>
#
# `written` starts as a column of start tokens, and grows by one column each time.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Choose the next token from the logits of the last position, `logits[:, -1]`, by `argmax(dim=-1, keepdim=True)`;
# append it with `torch.cat`.
#
# </details>

# %% [markdown] source="d00118ba"
# The model is not trained yet, so it writes arbitrary symbols. The first 1 of the output is the start token.

# %%
model.eval()
source = torch.tensor([[2, 3, 4, 5, 6, 7, 8, 9, 10, 2]])
print("input: ", source[0].tolist())
print("output:", greedy(model, source, LENGTH)[0].tolist())

# %% [markdown] source="0fad7b6a"
# ## Training
#
# Everything is ready. A step computes the loss and its gradients (backpropagation), changes the weights, sets the
# next learning rate, and clears the gradients. PyTorch adds gradients up; without clearing, those of earlier steps
# are mixed in.
#
# ### Write it: `training_step`
#
# Do not call `model.train()` or `model.eval()` here: whoever calls this function has chosen one of them.


# %% tags=["blank"]
def training_step(model, optimizer, scheduler, source, labels, smoothing=0.1, start=1, pad=0):
    logits = model(source, source != pad, shift_right(labels, start, pad))  # logits (B, T, V)
    loss = smoothed_loss(logits, labels, smoothing, pad)  # the loss
    loss.backward()  # backpropagation: gradients of all parameters
    optimizer.step()  # change the parameters
    scheduler.step()  # the next learning rate
    optimizer.zero_grad()  # clear the gradients
    return loss.item()  # the value of the loss: a Python number


# %%
check(training_step)

# %% [markdown] source="4abf0234"
# <details><summary>Hint 1</summary>
#
# The model gets the source, its mask (True where there is no padding), and the labels, shifted by one.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Call `loss.backward()`, `optimizer.step()`, `scheduler.step()` and `optimizer.zero_grad()`, in this order.
#
# </details>

# %% [markdown] source="58b62818"
# ## First, memorize one batch
#
# Do not start with a long training. First, let the model see **one batch** again and again, until it knows it by
# heart (overfit one batch). Any model should be able to do that, so the loss must get close to 0. If it does not,
# something is wrong: the model, the loss or the step. It takes seconds to find out. Do this first with every new
# model.
#
# ### Write it: `overfit`
#
# Switch off what keeps the model from memorizing. Switch dropout off by `model.eval()`, and train in that mode.
# Gradients and changes of the parameters still work in it. Set label smoothing to 0. Keep the learning rate constant
# (`ConstantLR`). Return the losses of all steps as a list.


# %% tags=["blank"]
def overfit(model, source, labels, steps, rate=1e-3):  # (B, S), (B, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # Adam; it is made once
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)  # the same rate at each step
    model.eval()  # without dropout
    losses = [training_step(model, optimizer, scheduler, source, labels, smoothing=0.0) for _ in range(steps)]
    return losses  # the loss of each step


# %%
check(overfit)

# %% [markdown] source="8f6cd636"
# <details><summary>Hint 1</summary>
#
# Call your `training_step` `steps` times, and collect the losses that it returns. With a new optimizer in each step,
# the means that Adam has gathered would be lost.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `torch.optim.Adam(model.parameters(), lr=rate)`, `torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)` and
# `training_step(..., smoothing=0.0)`.
#
# </details>

# %%
torch.manual_seed(0)
model, batch = small_transformer(), random_sequences(8)
losses = overfit(model, batch, batch, steps=100)
memorized = (greedy(model, batch, LENGTH)[:, 1:] == batch).all(dim=1).float().mean().item()
print(f"first loss {losses[0]:.2f}, last loss {losses[-1]:.2f}, copied of this batch {memorized:.0%}")

# %% [markdown] source="2f4f157d"
# Model, loss and step fit together. But the model knows eight rows by heart; it has not learnt to copy. Now train on
# a new batch in each step.
#
# ## Training on new batches
#
# Training repeats `training_step`. Each batch is 64 new rows of ten symbols. Every 100 steps, the model copies 200
# new rows, and we count those that are right from the first symbol to the last. The model computes on the device of
# its input: if you have a GPU, it is enough to add `.to("cuda")` to the model and the batches.


# %%
def copy_accuracy(model, number=200, length=LENGTH):
    model.eval()
    source = random_sequences(number, length)
    copies = greedy(model, source, length)
    return (copies[:, 1:] == source).all(dim=1).float().mean().item()


def train(model, steps, rate=noam, show=True):
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step + 1, D_MODEL, WARMUP))
    losses = []
    for step in range(1, steps + 1):
        model.train()
        batch = random_sequences(64)  # the input is the answer (64, 10)
        losses.append(training_step(model, optimizer, scheduler, batch, batch))
        if show and step % 100 == 0:
            print(f"step {step}  loss {losses[-1]:.3f}  copied {copy_accuracy(model):.1%}")
    return losses


torch.manual_seed(0)
model = small_transformer()
losses = train(model, steps=300)


# %%
plot_lines({"training loss": losses}, range(1, 301), title="Learning to copy", xlabel="step", ylabel="loss")

# %% [markdown] source="7fbd5dca"
# After 300 steps, it copies almost everything. You wrote the model, the loss and the training. The loss does not go
# to 0 because of label smoothing. The target distribution has 0.9 for the answer and 0.1/9 for each of the nine
# others. Even if the model's probabilities equal this target, the loss is not 0 but the **entropy** of that
# distribution. Dropout adds a little.

# %%
print(f"the least loss {-(0.9 * math.log(0.9) + 0.1 * math.log(0.1 / 9)):.3f}")
print("input: ", source[0].tolist())
print("output:", greedy(model.eval(), source, LENGTH)[0].tolist())

# %% [markdown] source="34d535b6"
# Count again, on 500 new rows.

# %%
copied = copy_accuracy(model, 500)
print(f"{copied:.1%}")
torch.save(model.state_dict(), RUNS / "my_copier.pt")  # chapter 10 looks inside

# %% [markdown] source="87fb1495"
# ## Leaving things out, one at a time
#
# Is everything that you have learnt necessary? Leave things out, one at a time, and train for 100 steps. The rest
# stays as it is. Such an experiment is called an **ablation**. A single result may be chance, so each training is
# done three times, with another **seed** of the random numbers. Let us see how each part is left out.
#
# To leave out the **positional encoding**, set the table of positions in both `Embedding` to 0.


# %%
def without_positions(model):
    for stack in (model.encoder, model.decoder):
        stack.embedding.positions.zero_()
    return model


# %% [markdown] source="81a168f2"
# To leave out the **causal mask**, the decoder layer throws away the mask that it gets. Derive a class, and change
# `forward` only.


# %%
class SeesEverything(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        return super().forward(x, memory, None, source_mask)


def without_causal_mask(model):
    model.decoder.layers[0] = SeesEverything(64, heads=4, ffn_dim=128)
    return model


# %% [markdown] source="4e01b42c"
# To leave out the **residual connections**, remove the `x` of `x + ...`. Only the output of the sub-layer goes on.


# %%
class EncoderWithoutResiduals(EncoderLayer):
    def forward(self, x, mask):
        normed = self.self_attention_norm(x)
        x = self.dropout(self.self_attention(normed, normed, normed, mask)[0])  # without x +
        return self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class DecoderWithoutResiduals(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        normed = self.self_attention_norm(x)
        x = self.dropout(self.self_attention(normed, normed, normed, causal)[0])
        x = self.dropout(self.cross_attention(self.cross_attention_norm(x), memory, memory, source_mask)[0])
        return self.dropout(self.feed_forward(self.feed_forward_norm(x)))


def without_residuals(model):
    for number in range(len(model.encoder.layers)):
        model.encoder.layers[number] = EncoderWithoutResiduals(64, heads=4, ffn_dim=128)
        model.decoder.layers[number] = DecoderWithoutResiduals(64, heads=4, ffn_dim=128)
    return model


# %% [markdown] source="22db836f"
# To leave out the **small start**, begin with embeddings of standard deviation 1, the default of `nn.Embedding`, in
# place of the $1/\sqrt{d}$ of chapter 2.


# %%
def without_small_start(model):
    for stack in (model.encoder, model.decoder):
        nn.init.normal_(stack.embedding.tokens.weight, std=1.0)
    return model


# %% [markdown] source="20b069cd"
# Now train them all. The loss is the mean of the last ten steps. In the columns named by a seed
# stands the share that is copied.


# %% tags=["varies"]
def three_runs(change=lambda model: model, rate=noam, steps=100, layers=1):
    ends, copied = [], {}
    for seed in range(3):
        torch.manual_seed(seed)
        model = change(small_transformer(layers))
        ends += train(model, steps, rate, show=False)[-10:]
        copied[f"seed {seed}"] = copy_accuracy(model)
    return {"last loss": sum(ends) / len(ends), **copied}


results = pd.DataFrame(
    {
        "nothing": three_runs(),
        "positions": three_runs(without_positions),
        "causal mask": three_runs(without_causal_mask),
        "residuals": three_runs(without_residuals),
        "small start": three_runs(without_small_start),
    }
).T.rename_axis("left out")
results.round(2)


# %% [markdown] source="da4c2511"
# - Without positions, the model knows which symbols there are, but not their order. It copies nothing.
# - Without the causal mask, the loss in training is small: the model copies the answer, which stands one position
#   ahead. But when it generates, nothing stands there, and it copies nothing. **A small loss does not mean that
#   much was learnt.**
# - Without residuals, even a model with a single layer in each stack copies nothing after 100 steps.
# - If embeddings start at a standard deviation of 1, multiplying them by √d drowns the positions, and 100 steps are
#   not enough to learn the order.
#
# ## Why a warm-up?
#
# To leave out the warm-up alone, **keep the peak of the learning rate**, and start with it. After the warm-up, both
# schedules are the same.


# %%
def without_warmup(step, d_model, warmup):
    return noam(max(step, warmup), d_model, warmup)


# %% [markdown] source="fe35fd98"
# The model of the paper is post-norm, and yours is pre-norm. So change it to post-norm: as drawn in chapter 5, it
# normalizes after the addition, and has no norm at the end.


# %%
class PostNormEncoderLayer(EncoderLayer):
    def forward(self, x, mask):
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class PostNormDecoderLayer(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, causal)[0]))
        x = self.cross_attention_norm(x + self.dropout(self.cross_attention(x, memory, memory, source_mask)[0]))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


def post_norm(model):
    for stack, layer in ((model.encoder, PostNormEncoderLayer), (model.decoder, PostNormDecoderLayer)):
        stack.layers = nn.ModuleList(layer(64, heads=4, ffn_dim=128) for _ in stack.layers)
        stack.norm = nn.Identity()
    return model


# %% tags=["varies"]
warmup = pd.DataFrame(
    {
        "yes": three_runs(post_norm, steps=150, layers=2),
        "no": three_runs(post_norm, without_warmup, steps=150, layers=2),
    }
).T.rename_axis("warm-up")
warmup.round(2)

# %% [markdown] source="e53f4379"
# The peak is the same, and so is the rate after the warm-up. But without warm-up, the post-norm model copies nothing
# in any of three runs. In post-norm, the two causes named above come together: gradients near the output are large
# from the start, and Adam divides them by a mean that it has estimated from a few gradients only. The first steps
# carry the parameters too far, and later steps do not bring them back (Xiong et al. 2020). The pre-norm model learns
# without a warm-up, only more slowly. Try it: `three_runs(rate=without_warmup, steps=150, layers=2)`.
#
# A command trains on the same task, with a slightly larger model (2 + 2 layers, `d_model` 128).
#
# ```sh
# python scripts/train_copy.py scripts/recipes/copy.yaml --output_dir runs/copy
# ```
#
# > The example of *The Annotated Transformer* trains on rows that all start with 1, and has 0 as padding. To show
# > the model's copy, the edition of 2022 gives it an input that begins with 0. Its start token is 0, too.
# > But 0 is padding, which the model never had to predict. The start token must be the same in training and generation.
#
# ## `generate` and its cache
#
# The loop of `greedy` is wasteful. With each new token, it computes the keys and values of all earlier ones again.
# Because of the causal mask, the keys and values of earlier tokens do not change, whatever follows. If they are kept
# in a **cache**, only the new token has to be computed. `generate` of transformers does that.
#
# ### Write it: `cached_attention`
#
# Self-attention with a cache gets the vector (B, 1, D) of **the new token alone**. It computes query, key and value
# of that token, appends key and value to the cache, and looks with one query at all keys so far. There are no tokens
# behind it yet, so no mask is needed.
#
# `attention` is a `MultiHeadAttention` of chapter 4. `cache` is a `dict`, empty at first; `"key"` and `"value"` hold
# two tensors (B, H, T, K). T is the number of tokens written so far.


# %% tags=["blank"]
def cached_attention(attention, x, cache):  # MultiHeadAttention, (B, 1, D), dict
    query = attention.split(attention.q_proj(x))  # query of the new token (B, H, 1, K)
    key = attention.split(attention.k_proj(x))  # its key (B, H, 1, K)
    value = attention.split(attention.v_proj(x))  # its value (B, H, 1, K)
    if cache:  # the cache is not empty
        key = torch.cat([cache["key"], key], dim=2)  # behind the keys of the cache (B, H, T, K)
        value = torch.cat([cache["value"], value], dim=2)  # behind its values (B, H, T, K)
    cache["key"], cache["value"] = key, value  # keep key and value in the cache
    heads, _ = attention.attention(query, key, value)  # one query, T keys (B, H, 1, K)
    joined = heads.transpose(1, 2).flatten(-2)  # heads side by side (B, 1, D)
    return attention.out_proj(joined)  # times W^O (B, 1, D)


# %%
check(cached_attention)

# %% [markdown] source="89fb3577"
# <details><summary>Hint 1</summary>
#
# It is almost the `forward` of `MultiHeadAttention`. The only addition: put the split key and value behind those of
# the cache.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Tokens are dimension 2: `torch.cat([cache["key"], key], dim=2)`. At the first token, the cache is empty.
#
# </details>

# %% [markdown] source="02644a00"
# Now give each layer of the decoder a cache, and send the vector of the new token alone through the layers. The rest
# is the `forward` of `DecoderLayer`. Positions count from the start of the text, so all tokens are embedded, and the
# last one is taken.


# %%
@torch.inference_mode()
def greedy_with_cache(model, source, length):
    source_mask = (source != PAD)[:, None, None, :]
    memory = model.encoder(source, source_mask)
    written, caches = torch.full_like(source[:, :1], START), [{} for _ in model.decoder.layers]
    for _ in range(length):
        x = model.decoder.embedding(written)[:, -1:]  # the new token alone (B, 1, D)
        for layer, cache in zip(model.decoder.layers, caches, strict=True):
            x = x + cached_attention(layer.self_attention, layer.self_attention_norm(x), cache)
            x = x + layer.cross_attention(layer.cross_attention_norm(x), memory, memory, source_mask)[0]
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
        best = model.head(model.decoder.norm(x)).argmax(dim=-1)  # (B, 1)
        written = torch.cat([written, best], dim=1)
    return written


# %% [markdown] source="ccfc3756"
# Compare with `generate` of the package, too. In chapter 5, the package's weights went into your model. Now **your
# weights go into the package's model**, whose settings give it the structure of yours.

# %%
config = VanillaTransformerConfig.from_preset(
    "annotated-transformer",
    **{"vocab_size": SYMBOLS, "d_model": D_MODEL, "pad_token_id": PAD, "eos_token_id": None},
    **{"bos_token_id": START, "decoder_start_token_id": START, "layer_norm_type": "standard", "layer_norm_eps": 1e-5},
    **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in
       {"layers": 1, "attention_heads": 4, "ffn_dim": 128}.items()},
)  # fmt: skip
package = VanillaTransformerForConditionalGeneration(config).eval()
my_weights = model.state_dict()
print(package.load_state_dict({name: my_weights[my_name(name)] for name in package.state_dict()}))

# %%
many = random_sequences(1000)


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


by_hand, slow = timed(lambda: greedy(model, many, LENGTH))
cached, fast = timed(lambda: greedy_with_cache(model, many, LENGTH))
generated, _ = timed(lambda: package.generate(many, max_new_tokens=LENGTH, do_sample=False))
print("same tokens:", torch.equal(by_hand, cached), torch.equal(by_hand, generated))
print(f"loop {slow:.2f} s, cache {fast:.2f} s: {slow / fast:.1f} times")
assert torch.equal(by_hand, cached) and torch.equal(by_hand, generated)


# %% [markdown] source="cd7ad3a6"
# The tokens are the same, in less time. The longer the text, the larger the difference: for n tokens, the loop
# computes 1 + 2 + … + n tokens, and with the cache only n.

# %%
pd.DataFrame({"loop": {n: sum(range(1, n + 1)) for n in (10, 50, 100)}, "cache": {n: n for n in (10, 50, 100)}})

# %% [markdown] source="a25854d7"
# > `greedy_decode` (The Annotated Transformer, pytorch-transformer) and `translate_sentence` (pytorch-seq2seq) put
# > in everything from the start for each token, as the loop above does.
#
# ## In short
#
# - The decoder reads the answer shifted right by one, and predicts the next token at all positions in parallel
#   (teacher forcing).
# - The loss is minus the logarithm of the answer's probability. Label smoothing keeps the model from overconfidence.
# - Let a new model memorize one batch first. Without positions, causal mask or residuals, copying is learnt slowly or
#   not at all; post-norm needs a warm-up, too.
# - When generating there is no answer, so the model goes on token by token. A cache gives the same answer in less
#   time.
#
# **To think about.** In training, the model always reads the right answer; when generating, it reads what it chose.
# If it is wrong once, what happens next? Can this gap be narrowed?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Without the causal mask, the loss is smaller. Why does the model not copy?
#
# - (a) The learning rate is too high
# - (b) In training, it saw the answers and copied them
# - (c) It has no positions
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. The learning rate is as before.
# - (b) Yes. It only learnt to look at the answer that follows, and when it generates, nothing follows.
# - (c) No. The positions are still there.
#
# </details>
#
# **2.** What happens without `optimizer.zero_grad()`?
#
# - (a) There is an error
# - (b) Gradients add up from step to step
# - (c) The parameters do not change
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. There is no error, which makes it hard to find. That is why `check` looks for it.
# - (b) Yes. Those of earlier batches are added, and both direction and size of the steps are wrong.
# - (c) No. They do change.
#
# </details>
#
# **3.** Can the loss be 0 with a label smoothing of 0.1?
#
# - (a) Yes, after enough training
# - (b) No
# - (c) Yes, without dropout
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. Even for a model that matches the targets exactly, it is 0.545.
# - (b) Yes, this is right. The loss is smallest when the answer has the probability 0.9, and is then the entropy of
#   the target distribution.
# - (c) No. Dropout adds only a little.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="eafcbfd5"
# ### Exercise 1 ★ 5 min
#
# With a label smoothing of 0.3, for which probability of the answer is the loss smallest? Find it in `confidences`.
#
# <details><summary>Hint 1</summary>
#
# Guess first. With a smoothing of 0.1, it was 0.9.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `min(confidences, key=...)` with `loss_at` finds the probability with the smallest loss.
#
# </details>

# %% tags=["exercise"]
best = min(confidences, key=lambda confidence: loss_at(confidence, smoothing=0.3))  # a probability

# %%
check_answer(
    best,
    lambda it: abs(it - 0.7) < 0.01,  # where it equals the answer's share, 1 - 0.3
    (lambda it: abs(it - 0.9) < 0.01, "This is the one for a smoothing of 0.1."),
    (lambda it: it < 0.31, "Here the loss is largest."),
)

# %% [markdown] source="361eff77"
# ### Exercise 2 ★★ 10 min
#
# What happens if the decoder gets the labels as they are, not shifted? Train for 100 steps with a label smoothing
# of 0, and find the last loss and the share of copied rows. The loop does what `training_step` does, with one line
# changed.
#
# <details><summary>Hint 1</summary>
#
# Follow `train`, but give the model `batch` in place of `shift_right(batch)`. A constant learning rate is enough.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The loss is `smoothed_loss(model(batch, batch != PAD, batch), batch, 0.0)`. As an optimizer,
# `torch.optim.Adam(cheater.parameters(), lr=1e-3)` will do.
#
# </details>

# %% tags=["exercise"]
torch.manual_seed(0)
cheater = small_transformer()
optimizer = torch.optim.Adam(cheater.parameters(), lr=1e-3)
for _ in range(100):
    cheater.train()
    batch = random_sequences(64)
    loss = smoothed_loss(cheater(batch, batch != PAD, batch), batch, 0.0)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
last_loss, share = loss.item(), copy_accuracy(cheater)  # the last loss, the share of copied rows
print(f"loss {last_loss:.3f}, copied {share:.1%}")

# %%
# The loss is small soon, but what it learnt is to repeat the token just read. Without the answer, it cannot copy.
check_answer(
    (last_loss, share),
    lambda it: it[0] < 0.5 and it[1] < 0.1,
    (lambda it: it[1] > 0.5, "The labels seem to be shifted. Put them in as they are."),
    (lambda it: it[0] > 1, "It has not learnt enough. Train for 100 steps, and clear the gradients."),
)

# %% [markdown] source="71e129cf"
# ### Exercise 3 ★ 5 min
#
# The model was trained on rows of length 10. What share of rows of length 8, 10 and 14 does it copy? Make a `dict`
# from length to share.
#
# <details><summary>Hint 1</summary>
#
# `copy_accuracy` has an argument `length`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `{length: copy_accuracy(model, length=length) for length in (8, 10, 14)}`
#
# </details>

# %% tags=["exercise"]
shares = {length: copy_accuracy(model, length=length) for length in (8, 10, 14)}  # length: share
print({length: f"{share:.1%}" for length, share in shares.items()})

# %%
check_answer(
    shares,
    lambda it: it[14] < 0.5 < it[10],  # positions from the 11th on were never trained
    (lambda it: set(it) != {8, 10, 14}, "Lengths 8, 10 and 14 should all be there."),
)

# %% [markdown] source="72e98678"
# In the next chapter, your model reads film reviews and says whether they are positive. → [7. Classifying
# reviews](07_review_classification.ipynb)
