# %% [markdown] source="18d17a35"
# # 9. To Hugging Face
#
# By now you have built, trained and used models. If a model is for you alone, that is enough. In this chapter,
# others can use it, too. Saving, loading, training further and sharing follow the conventions of Hugging Face's
# transformers, so that even those who have never seen this model can use it as they use any other.

# %% cellView="form" jupyter={"source_hidden": true}
# @title Set-up: run this and go on
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # not found? Open the notebook in a clone of the repository


# %matplotlib inline
MODELS, RUNS = chapter.begin("en")  # the folder of trained models, and that of what you make

# %%
import contextlib
import io
import json
import os
import re
import subprocess
import tempfile

import drawings
import pandas as pd
import torch
import transformers
from check import check_answer, mine
from my_transformer import my_name  # the names of chapter 5
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    pipeline,
)

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands.push_to_hub import main as push_to_hub
from hf_vanilla_transformer.data import load_labelled_text, tokenize
from hf_vanilla_transformer.evaluation.metrics import compute_metrics


transformers.utils.logging.set_verbosity_error()
# Almost all files of this chapter go into a temporary folder.
temporary = tempfile.TemporaryDirectory()
WORK = Path(temporary.name)
Transformer, tie_embeddings = mine("Transformer", "tie_embeddings")  # from chapter 5

# %%
drawings.model_map(9)

# %% [markdown] source="f80e5baf"
# ## The configuration: `VanillaTransformerConfig`
#
# Sizes and variants of a model are all in one **configuration** (config). Its defaults are those of
# *transformer-evolution*.

# %%
config = VanillaTransformerConfig()
sizes = ["vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "encoder_attention_heads"]
pd.DataFrame(
    {
        name: {size: getattr(VanillaTransformerConfig.from_preset(name), size) for size in sizes}
        for name in ("transformer-evolution", "annotated-transformer", "pytorch-seq2seq", "base", "big")
    }
)

# %% [markdown] source="c4df7986"
# The columns of the table are configurations with a name (**presets**). You can take one and change a few values.
# Values that do not fit each other raise an error, with the reason, before a model is made.

# %%
small = VanillaTransformerConfig.from_preset("base", d_model=128, encoder_layers=2, decoder_layers=2)
print(small.d_model, small.encoder_layers, small.tie_word_embeddings)
try:
    VanillaTransformerConfig(d_model=100, encoder_attention_heads=8)
except Exception as error:
    print(error)

# %% [markdown] source="0dd9d2ae"
# Some tools look for the name `hidden_size`, so the names that BERT uses can be read, too.

# %%
print(config.hidden_size, config.num_hidden_layers, config.num_attention_heads)

# %% [markdown] source="f428af6d"
# ## Saving: `save_pretrained`

# %%
torch.manual_seed(0)
model = VanillaTransformerForSequenceClassification(
    VanillaTransformerConfig(vocab_size=100, d_model=64, encoder_layers=1, decoder_layers=1)
).eval()
model.save_pretrained(WORK / "first")
print(*sorted(file.name for file in (WORK / "first").iterdir()), sep="\n")

# %%
drawings.saved_folder()

# %% [markdown] source="912d0eef"
# `config.json` is the configuration, `model.safetensors` the weights. And **the two files of the model's code are
# saved as well**, because this model is not part of transformers. The tokenizer, at the bottom of the drawing, is
# saved separately. `auto_map` in `config.json` says which class is in which file.

# %%
print(json.dumps(json.loads((WORK / "first" / "config.json").read_text())["auto_map"], indent=1))

# %% [markdown] source="d04ce951"
# > *Tutorials* save the weights alone, with `torch.save(model.state_dict(), file)`. To load them, you must have kept
# > the same code and the same settings.
#
# ## Loading with the package
#
# Importing one of the package's model classes registers the model with the `Auto` classes of transformers. Then you can
# load a model without naming its class.

# %%
again = AutoModelForSequenceClassification.from_pretrained(WORK / "first").eval()
print(type(again).__name__)
batch = {"input_ids": torch.tensor([[7, 8, 9]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
with torch.no_grad():
    print("same output:", torch.equal(model(**batch).logits, again(**batch).logits))

# %% [markdown] source="af4a69e6"
# `AutoModel` loads the model without the linear layer that classifies, and `AutoConfig` the configuration alone.

# %%
print(type(AutoModel.from_pretrained(MODELS / "nsmc-small")).__name__)
print(type(AutoConfig.from_pretrained(MODELS / "nsmc-small")).__name__)

# %% [markdown] source="2d1f9817"
# A **pipeline**, which is tokenizer and model in one, works as well. The review says "a really enjoyable and moving
# film".

# %% tags=["korean"]
classify = pipeline("text-classification", model=str(MODELS / "nsmc-small"), truncation=True)
print(classify("정말 재미있고 감동적인 영화"))


# %% [markdown] source="e1fdc212"
# ## Loading without the package
#
# Whoever gets your model need not have this package. `trust_remote_code=True` allows the code in the folder to run.
# It is somebody else's code, so read it before you allow it; it is only two files.
#
# Try it in a new Python process that cannot import this package.

# %% tags=["korean"]
program = """
import sys
sys.modules["hf_vanilla_transformer"] = None  # importing this name is an error
from transformers import pipeline
classify = pipeline("text-classification", model=sys.argv[1], trust_remote_code=True)
print(classify("정말 재미있고 감동적인 영화"))
print(type(classify.model).__module__.split(".")[0])
"""
print(
    subprocess.run(
        [sys.executable, "-c", program, str(MODELS / "nsmc-small")],
        env={**os.environ, "HF_MODULES_CACHE": str(WORK / "modules"), "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
)


# %% [markdown] source="539a11d1"
# The answer is the same, and the class comes from `transformers_modules`: the code that transformers copied from the
# folder.
#
# ## `Trainer`: training in thirty lines
#
# Loops such as those of chapters 6 to 8 are good for learning. But choosing the best model, resuming after an
# interruption and training on several GPUs make them longer and longer. `Trainer` does all that. Train nsmc-small a
# little further on the package's reviews.

# %%
tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
data = load_labelled_text("sample", validation_fraction=0.15)
tokens = tokenize(data, tokenizer)

trainer = Trainer(
    AutoModelForSequenceClassification.from_pretrained(MODELS / "nsmc-small"),
    TrainingArguments(
        output_dir=str(WORK / "own"),
        num_train_epochs=2,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=64,
        learning_rate=1e-4,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        logging_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=42,
    ),
    train_dataset=tokens["train"],
    eval_dataset=tokens["validation"],
    processing_class=tokenizer,
    compute_metrics=compute_metrics,
)
with contextlib.redirect_stdout(None):
    trainer.train()

# %%
log = pd.DataFrame([entry for entry in trainer.state.log_history if "eval_accuracy" in entry])
log[["epoch", "eval_loss", "eval_accuracy"]].round(3)

# %%
print(f"test accuracy {trainer.predict(tokens['test']).metrics['test_accuracy']:.3f}")

# %% [markdown] source="35c3b8e9"
# Compare it with the result of chapter 7. One review of 120 is 0.008, so a small difference does not mean that a
# model is better.
#
# Most of the loop is now a setting or a method.
#
# | loop | `Trainer` |
# |---|---|
# | `for epoch in range(...)` | `num_train_epochs` |
# | `loss.backward()`, `optimizer.step()` | `train()` |
# | `DataLoader(..., shuffle=True, collate_fn=...)` | `train_dataset`, `processing_class` |
# | keeping the best weights | `load_best_model_at_end`, `metric_for_best_model` |
# | `model.eval()`, `torch.no_grad()`, counting the accuracy | `evaluate()`, `compute_metrics` |
# | the Noam schedule of chapter 6 | `lr_scheduler_type="inverse_sqrt"` |
# | the batches by tokens of chapter 8 | `TokenBudgetTrainer` (of this package) |
# | label smoothing | `label_smoothing_factor`, or `compute_loss_func=...` |
#
# `save_model` saves the trained model.

# %%
trainer.save_model(WORK / "own")
print("\n".join(sorted(file.name for file in (WORK / "own").iterdir() if file.is_file())))

# %% [markdown] source="5fa4e67e"
# Besides the files of `save_pretrained`, there are those of the tokenizer, and `training_args.bin`, which holds the
# `TrainingArguments`.
#
# `train-classifier`, the command of chapter 7, trains with `Trainer`, too. In Python, the function
# `train_classifier` does the same. After training, both also leave records of the run and a **model card** in the
# folder. A model card introduces the model; its file is `README.md`. This is the folder of nsmc-small:

# %%
print("\n".join(sorted(file.name for file in (MODELS / "nsmc-small").iterdir() if file.is_file())))

# %% [markdown] source="ae64ef99"
# | file | content |
# |---|---|
# | `recipe.yaml` | the settings of the training |
# | `run.json` | versions of the libraries, checksums of the data |
# | `metrics.json` | results such as the accuracy |
# | `curves.png` | a plot of loss and accuracy during training |
# | `README.md` | the model card |
#
# The card of a model for Korean has a summary in Korean near its beginning; the rest is in English. The summary says
# what the model does, what data it was trained on, and how accurate it is. This is how the card begins:

# %%
print((MODELS / "nsmc-small" / "README.md").read_text(encoding="utf-8").split("---")[2].split("## ")[0].strip())

# %% [markdown] source="5dcefffa"
# ## Upload to the Hub
#
# The **Hub** is the website of Hugging Face where models are shared. Such a folder, as it is, becomes a
# repository there. First, `--dry_run` shows what would be uploaded; nothing is sent. In a terminal, type:
#
# ```sh
# vanilla-transformer push-to-hub model_cards/nsmc-small --repo_id USER/NAME --dry_run
# ```

# %%
with contextlib.redirect_stdout(io.StringIO()) as printed:
    push_to_hub([str(MODELS / "nsmc-small"), "--repo_id", "USER/NAME", "--dry_run"])
print(re.sub(r"(?m)^ *[\d,]+ +", "", printed.getvalue()))  # without sizes

# %% [markdown] source="cd1b742c"
# This lists the files that would be uploaded. `a text of the data` means that this text is uploaded as an example of
# the data. If the data are yours, make sure that it may be public. Checkpoints and the state of the optimizer are not
# uploaded.
#
# To really upload, log in once with `hf auth login`, name your own folder, and leave out `--dry_run`. Then everybody
# can load the model with `from_pretrained("USER/NAME", trust_remote_code=True)`. If you have followed
# [Train on a CSV](../../../README.md#train-on-a-csv), your folder is `runs/mine`. In Python,
# `hf_vanilla_transformer.hub.upload("runs/mine", "USER/NAME")` does the same.
#
# After training with your own `Trainer`, call `trainer.push_to_hub()`. It uploads model and tokenizer with a draft of
# a card. It writes this card anew, so edit it after the upload. `model.push_to_hub("USER/NAME")` uploads weights, configuration and code, but neither tokenizer nor card.
#
# Check the licence of the training data, too. Multi30k may be used for non-commercial purposes only.
#
# ## Using it elsewhere
#
# Sometimes a model is to run where there is neither torch nor transformers. `export` turns it into another format,
# and saves it only if its answers agree with torch's.
#
# | format | when |
# |---|---|
# | `ctranslate2` | fast on CPUs, above all for translation |
# | `onnx` | where there is onnxruntime; in browsers and Node.js |
#
# ```sh
# vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --quantize int8 \
#     --output_dir runs/fast
# ```
#
# `--quantize int8` makes the weights 8-bit integers. The file gets smaller and the model faster, but answers may
# change a little. [Engines](../../engines.md) says which to choose.
#
# ## Your model in the browser
#
# Now open **your own model**, which you have written line by line since chapter 2, in the browser. Take the
# classifier that you fine-tuned in chapter 7. If you have not run that chapter, the weights of nsmc-small in your
# classes stand in for it.

# %% tags=["varies"]
config = AutoConfig.from_pretrained(MODELS / "nsmc-small")
head = nn.Linear(config.d_model, 2, bias=False)
my_model = Transformer(
    config.vocab_size, d_model=192, heads=3, ffn_dim=768, encoder_layers=6, decoder_layers=1, head=head
).eval()
tie_embeddings(my_model, head=False)
file = RUNS / "my_classifier.pt"
if file.is_file():
    my_weights = torch.load(file, weights_only=True)
else:
    ready = AutoModelForSequenceClassification.from_pretrained(MODELS / "nsmc-small")
    my_weights = {my_name(name): tensor for name, tensor in ready.state_dict().items()}
print(
    "my weights of chapter 7" if file.is_file() else "the weights of nsmc-small", my_model.load_state_dict(my_weights)
)

# %% [markdown] source="3d3f3786"
# In chapter 5, the package's weights went into your model. This time, your weights go into the package's model.
# Only the names change; none is left over, and none is missing. Compare the scores of both models, and save.

# %% tags=["korean"]
package = VanillaTransformerForSequenceClassification(config).eval()
print(package.load_state_dict({name: my_weights[my_name(name)] for name in package.state_dict()}))
review = tokenizer(
    ["내가 만든 모델이 드디어 돌아간다", "지루하고 유치했다"], padding=True, return_tensors="pt"
)  # "my model runs at last"; "boring and childish"
start = torch.full((2, 1), tokenizer.bos_token_id)
with torch.inference_mode():
    ours = my_model(review["input_ids"], review["attention_mask"].bool(), start)[:, 0]
    theirs = package(**review).logits
print("largest difference of scores below 1e-4:", ((ours - theirs).abs().max() < 1e-4).item())
assert torch.allclose(ours, theirs, atol=1e-4)
package.save_pretrained(RUNS / "my-model")
saved = tokenizer.save_pretrained(RUNS / "my-model")
print(*sorted(file.name for file in (RUNS / "my-model").iterdir()), sep="\n")

# %% [markdown] source="a512f1b7"
# `page` makes a web page in which the browser computes a model. Open a terminal in the repository's folder, and run:
#
# ```sh
# vanilla-transformer page --model runs/my-model --output_dir runs/my-page
# python -m http.server --bind 127.0.0.1 --directory runs/my-page
# ```
#
# Open `http://127.0.0.1:8000` in your browser. With each Korean letter that you type, the model that you wrote and
# trained says whether the text is positive, and the page shows each step from the embedding to the answer. Its
# [model.js](../../../hf_vanilla_transformer/page/model.js) is the model of these chapters in 350 lines of JavaScript.
# Put the folder on any host of static files, and it opens anywhere.
#
# ## A checkpoint of a tutorial
#
# If you have trained a model with the code of a tutorial, do not throw it away: checkpoint and vocabulary can be
# converted. → [From a tutorial](../../tutorials.md)
#
# ## In short
#
# - One configuration sets sizes and variants, and values that do not fit raise an error before a model is made.
# - A saved folder has configuration, weights and code, so it also loads without the package.
# - `Trainer` turns the training loop into settings; the commands of this package also leave records and a model card.
# - Before an upload, see with `--dry_run` what goes up, and read the licence of the data.
#
# **To think about.** What else would have to be in the folder for others to get exactly your results?
#
# ## Questions
#
# Choose an answer, then unfold the explanations.
#
# **1.** Can a friend use your model if you send `model.safetensors` alone?
#
# - (a) Yes
# - (b) No: configuration, code and tokenizer are needed, too
# - (c) Yes, with a GPU
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. The weights say neither what the model looks like nor how text becomes ids.
# - (b) Right. That is why `save_pretrained` makes a folder, and the tokenizer is saved into it as well.
# - (c) No. It has nothing to do with GPUs.
#
# </details>
#
# **2.** What does `trust_remote_code=True` allow?
#
# - (a) Downloading weights from the internet
# - (b) Running the Python code in the folder on your machine
# - (c) Sending your data to the Hub
#
# <details><summary>Each choice explained</summary>
#
# - (a) No. Weights are downloaded without it.
# - (b) Yes. So it is a good idea to read the code first.
# - (c) No. Nothing is sent.
#
# </details>

# %% [markdown] source="81fdad78"
# ## Exercises
#
# Each exercise says how hard it is (★) and how long it takes. Replace the `...` in the cell, then run the check
# below it. If you are stuck, unfold the hints one at a time. In the edition with blanks, the answer is folded; in
# the solved edition, it is filled in.

# %% [markdown] source="46fd81fa"
# ### Exercise 1 ★★ 8 min
#
# How does nsmc-small differ from *transformer-evolution*, whose values are the defaults? Load the configuration of
# `nsmc-small`, and make a `dict` of the names whose values differ from the defaults, with the values of nsmc-small.
#
# <details><summary>Hint 1</summary>
#
# Call `to_dict()` on `AutoConfig.from_pretrained(...)` and on `VanillaTransformerConfig()`, and compare the two.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `{name: theirs[name] for name in ours if theirs.get(name) != ours[name]}`. Leave out what has nothing to do with
# the shape, such as `_name_or_path` and `architectures`.
#
# </details>

# %% tags=["exercise"]
theirs, ours = AutoConfig.from_pretrained(MODELS / "nsmc-small").to_dict(), VanillaTransformerConfig().to_dict()
others = {"_name_or_path", "architectures", "dtype", "id2label", "label2id"}
different = {
    name: theirs[name] for name in ours if name not in others and theirs.get(name) != ours[name]
}  # name: value
print(different)

# %%
check_answer(
    different,
    lambda it: it["norm_first"] and it["decoder_layers"] == 1 and "pad_token_id" not in it,
    (lambda it: it["decoder_layers"] == 6, "These are the defaults. Write the values of nsmc-small."),
    (lambda it: "pad_token_id" in it, "Some are the same. Pick those that differ."),
)

# %% [markdown] source="f04c4f99"
# ### Exercise 2 ★★ 8 min
#
# Save the first model once more, into `WORK / "second"`, and change `d_model` to 128 in its `config.json`. Which
# error do you get when you load it? Put its name into `name`.
#
# <details><summary>Hint 1</summary>
#
# Read it with `json.loads`, change it, and write it with `json.dumps`. Catch the error with `try` and `except
# Exception as error`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The name of the error is `type(error).__name__`.
#
# </details>

# %% tags=["exercise"]
changed = json.loads((WORK / "first" / "config.json").read_text())
model.save_pretrained(WORK / "second")
(WORK / "second" / "config.json").write_text(json.dumps({**changed, "d_model": 128}))
try:
    AutoModelForSequenceClassification.from_pretrained(WORK / "second")
except Exception as error:
    name = type(error).__name__  # the name of the error

# %%
check_answer(
    name,
    "RuntimeError",  # the shapes of the weights do not fit the configuration
    ("NameError", "There was no error, or a name of another cell is wrong."),
)

# %% [markdown] source="4d7673b6"
# ### Exercise 3 ★★ 8 min
#
# Save the weights in half precision (`torch.float16`). How do the size of the file and the outputs change? Find the
# ratio of sizes (half / full) and the largest difference between the scores of `batch`. The full weights are in
# `WORK / "first"`, and loaded as `again`.
#
# <details><summary>Hint 1</summary>
#
# Save with `model.half().save_pretrained(WORK / "half")`, and compare `stat().st_size` of both `model.safetensors`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# To compare scores, load it again with `from_pretrained(WORK / "half", dtype=torch.float32)`.
#
# </details>

# %% tags=["exercise"]
with torch.no_grad():
    before = again(**batch).logits
model.half().save_pretrained(WORK / "half")
full, half = ((WORK / name / "model.safetensors").stat().st_size for name in ("first", "half"))
loaded = AutoModelForSequenceClassification.from_pretrained(WORK / "half", dtype=torch.float32).eval()
with torch.no_grad():
    after = loaded(**batch).logits
ratio, largest = half / full, (after - before).abs().max().item()  # ratio of sizes, largest difference
print(f"size × {ratio:.2f}, difference of outputs {largest:.1e}")

# %%
check_answer(
    (ratio, largest),
    lambda it: 0.4 < it[0] < 0.6 and 0 < it[1] < 0.01,
    (lambda it: it[0] > 1.5, "The ratio is upside down: divide half by full."),
    (lambda it: it[1] == 0, "There is no difference. Did you load what was saved in half precision?"),
)

# %% [markdown] source="8d805882"
# In the last chapter, you set weights by hand, without training, and see what is inside a model. → [10. Weights by
# hand](10_weights_by_hand.ipynb)
