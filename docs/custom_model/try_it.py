"""Train the model of `mean` with Trainer, save it with its code, and load it where `mean` cannot be imported."""

import subprocess
import sys
import tempfile

import mean  # noqa: F401  # registers the classes
from transformers import AutoConfig, AutoModelForSequenceClassification, Trainer, TrainingArguments


# Two labels: small ids and large ones.
rows = [{"input_ids": [10 * label + number % 10], "labels": label} for number in range(100) for label in (0, 1)]
folder = tempfile.mkdtemp()
model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model("mean", vocab_size=20, num_labels=2))
arguments = TrainingArguments(folder, num_train_epochs=5, learning_rate=0.1, report_to="none", disable_tqdm=True)
trainer = Trainer(model, arguments, train_dataset=rows)
trainer.train()
trainer.save_model()

elsewhere = """
import sys, torch
from transformers import AutoModelForSequenceClassification

model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], trust_remote_code=True)
print(type(model).__module__, model(torch.tensor([[3], [13]])).logits.argmax(dim=1).tolist())
"""
subprocess.run([sys.executable, "-c", elsewhere, folder], check=True, cwd=folder)
