# %% [markdown]
# # 9. Hugging Face로
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/09_hugging_face.ipynb)
#
# > **English summary.** What makes this Transformer a Hugging Face model: a configuration that checks itself, a saved
# > folder that carries its own code and loads with and without the package, `Trainer` in thirty lines of one's own,
# > and a dry run of an upload to the Hub. The end says what the exported engines and the page in the browser are for.
#
# 8장까지 모델을 만들고, 학습하고, 사용해 보았습니다. 혼자 사용할 모델이라면 여기서 끝내도 됩니다.
# 이 장에서는 다른 사람도 사용할 수 있게 합니다. 저장하고, 불러오고, 다시 학습하고, 올리는 일은 Hugging Face의
# transformers가 정해 둔 방식을 따릅니다. 그러면 이 모델을 처음 보는 사람도 늘 하던 대로 사용할 수 있습니다.

# %%
# 준비: Colab에서는 저장소와 한글 글꼴을 내려받습니다. 이미 저장소 안이라면 건너뜁니다.
import os
import subprocess
import sys
from pathlib import Path


if "google.colab" in sys.modules and not os.path.isdir("model_cards"):
    subprocess.run("git clone -q https://github.com/OWNER/hf_vanilla_transformer", shell=True, check=True)
    subprocess.run("pip install -q './hf_vanilla_transformer[train]'", shell=True, check=True)
    subprocess.run("apt-get install -qq fonts-nanum", shell=True, check=True)
    os.chdir("hf_vanilla_transformer")
# 저장소의 폴더: 지금 폴더에서 위로 올라가며 model_cards를 찾습니다.
CLONE = next((folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "model_cards").is_dir()), None)
if CLONE is None:
    sys.exit("저장소를 받아 그 안에서 노트북을 여세요: git clone https://github.com/OWNER/hf_vanilla_transformer")
sys.path.append(str(CLONE / "docs" / "walkthrough"))  # 그림을 그리는 코드가 있는 곳
MODELS = CLONE / "model_cards"  # 학습된 모델

import contextlib
import io
import json
import re
import tempfile

import datasets
import drawings
import pandas as pd
import torch
import transformers
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
from hf_vanilla_transformer.hub import RecordCallback
from hf_vanilla_transformer.metrics import compute_metrics


datasets.disable_progress_bars()
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
# 이 장에서 만드는 파일은 모두 임시 폴더에 둡니다.
temporary = tempfile.TemporaryDirectory()
WORK = Path(temporary.name)

# %%
drawings.model_map(9)

# %% [markdown]
# ## 설정: `VanillaTransformerConfig`
#
# 모델의 크기와 변형은 모두 **설정**(config) 하나에 있습니다. 기본값은 *transformer-evolution*의 것입니다.

# %%
config = VanillaTransformerConfig()
sizes = ["vocab_size", "d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "encoder_attention_heads"]
pd.DataFrame(
    {
        name: {size: getattr(VanillaTransformerConfig.from_preset(name), size) for size in sizes}
        for name in ("transformer-evolution", "annotated-transformer", "pytorch-seq2seq", "base", "big")
    }
)

# %% [markdown]
# 표의 열처럼 이름이 붙은 설정(**프리셋**, preset)에서 몇 가지만 바꿀 수도 있습니다. 서로 맞지 않는 값을 주면 모델을
# 만들기 전에 오류를 내고 이유를 알려 줍니다.

# %%
small = VanillaTransformerConfig.from_preset("base", d_model=128, encoder_layers=2, decoder_layers=2)
print(small.d_model, small.encoder_layers, small.tie_word_embeddings)
try:
    VanillaTransformerConfig(d_model=100, encoder_attention_heads=8)
except Exception as error:
    print(error)

# %% [markdown]
# `hidden_size`라는 이름을 찾는 도구도 있으므로, BERT에서 부르는 이름으로도 읽을 수 있습니다.

# %%
print(config.hidden_size, config.num_hidden_layers, config.num_attention_heads)

# %% [markdown]
# ## 저장하기: `save_pretrained`

# %%
torch.manual_seed(0)
model = VanillaTransformerForSequenceClassification(
    VanillaTransformerConfig(vocab_size=100, d_model=64, encoder_layers=1, decoder_layers=1)
).eval()
model.save_pretrained(WORK / "first")
print(*sorted(file.name for file in (WORK / "first").iterdir()), sep="\n")

# %%
drawings.saved_folder()

# %% [markdown]
# `config.json`은 설정, `model.safetensors`는 가중치입니다. 그리고 **모델의 코드 두 파일도 함께** 저장됩니다.
# transformers에 들어 있지 않은 모델이기 때문입니다. 그림의 맨 아래, 토크나이저는 따로 저장합니다. `config.json`의
# `auto_map`은 어느 클래스가 어느 파일에 있는지 알려 줍니다.

# %%
print(json.dumps(json.loads((WORK / "first" / "config.json").read_text())["auto_map"], indent=1))

# %% [markdown]
# > *튜토리얼에서는* `torch.save(model.state_dict(), file)`로 가중치만 저장합니다. 불러오려면 같은 코드와 같은 설정을
# > 따로 챙겨야 합니다.
#
# ## 불러오기: 패키지가 있을 때
#
# 패키지를 임포트하면 transformers의 `Auto` 클래스에 이 모델이 등록됩니다. 그러면 클래스 이름을 몰라도 불러올 수
# 있습니다.

# %%
again = AutoModelForSequenceClassification.from_pretrained(WORK / "first").eval()
print(type(again).__name__)
batch = {"input_ids": torch.tensor([[7, 8, 9]]), "attention_mask": torch.ones(1, 3, dtype=torch.long)}
with torch.no_grad():
    print("같은 출력:", torch.equal(model(**batch).logits, again(**batch).logits))

# %% [markdown]
# `AutoModel`은 분류하는 선형 층을 뺀 모델을, `AutoConfig`는 설정만 불러옵니다.

# %%
print(type(AutoModel.from_pretrained(MODELS / "nsmc-small")).__name__)
print(type(AutoConfig.from_pretrained(MODELS / "nsmc-small")).__name__)

# %% [markdown]
# 토크나이저와 모델을 하나로 만든 **파이프라인**(pipeline)도 그대로 사용할 수 있습니다.

# %%
classify = pipeline("text-classification", model=str(MODELS / "nsmc-small"), truncation=True)
print(classify("정말 재미있고 감동적인 영화"))

# %% [markdown]
# ## 불러오기: 패키지가 없을 때
#
# 모델을 받은 사람에게 이 패키지가 없어도 됩니다. 폴더에 든 코드를 실행해도 좋다고 `trust_remote_code=True`로 허락하면
# 됩니다. 남의 코드를 실행하는 일이므로, 허락하기 전에 코드를 읽어 보는 것이 좋습니다. 두 파일뿐입니다.
#
# 이 패키지를 임포트할 수 없는 새 파이썬 프로세스에서 확인해 봅시다.

# %%
program = """
import sys
sys.modules["hf_vanilla_transformer"] = None  # 이 이름을 임포트하면 오류가 납니다
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

# %% [markdown]
# 같은 답이 나오고, 클래스는 `transformers_modules`에서 왔습니다. transformers가 폴더에서 복사해 온 코드입니다.
#
# ## `Trainer`: 서른 줄로 학습하기
#
# 6장부터 8장까지의 반복문은 배우기에는 좋지만, 가장 좋은 모델을 고르고, 멈춘 학습을 잇고, GPU 여러 개로 학습하려면
# 자꾸 길어집니다. `Trainer`가 그 일을 대신합니다. nsmc-small을 패키지의 리뷰로 조금 더 학습해 봅시다.

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
    callbacks=[RecordCallback("sample", data)],
)
with contextlib.redirect_stdout(None):
    trainer.train()

# %%
log = pd.DataFrame([entry for entry in trainer.state.log_history if "eval_accuracy" in entry])
log[["epoch", "eval_loss", "eval_accuracy"]].round(3)

# %%
print(f"테스트 정확도 {trainer.predict(tokens['test']).metrics['test_accuracy']:.3f}")

# %% [markdown]
# 7장에서는 0.942였습니다. 120개 가운데 하나를 더 맞힌 것이므로, 나아졌다고 말하기는 이릅니다.
#
# 반복문에 있던 일은 모두 설정이 되었습니다.
#
# | 반복문 | `Trainer` |
# |---|---|
# | `for epoch in range(...)` | `num_train_epochs` |
# | `loss.backward()`, `optimizer.step()` | `train()` |
# | `DataLoader(..., shuffle=True, collate_fn=...)` | `train_dataset`, `processing_class` |
# | 가장 좋았던 가중치를 따로 두기 | `load_best_model_at_end`, `metric_for_best_model` |
# | `model.eval()`, `torch.no_grad()`, 정확도 세기 | `evaluate()`, `compute_metrics` |
# | 6장의 Noam 스케줄 | `lr_scheduler_type="inverse_sqrt"` |
# | 8장의 토큰 수로 만든 배치 | `TokenBudgetTrainer` (이 패키지) |
# | 레이블 스무딩 | `label_smoothing_factor` 또는 `compute_loss_func=LabelSmoothingLoss(...)` |
#
# `callbacks`의 `RecordCallback`은 이 패키지의 것입니다. 학습이 끝나면 모델, 토크나이저, 기록과 함께 모델을 소개하는
# 글인 **모델 카드**(`README.md`)를 폴더에 저장합니다.

# %%
print("\n".join(sorted(file.name for file in (WORK / "own").iterdir() if file.is_file())))

# %% [markdown]
# `run.json`에는 버전과 데이터의 체크섬이, `metrics.json`에는 정확도 같은 결과가 있습니다. 카드는 이렇게 시작합니다.

# %%
print((WORK / "own" / "README.md").read_text(encoding="utf-8").split("---")[2].split("## ")[0].strip())

# %% [markdown]
# ## Hub에 올리기
#
# **Hub**는 Hugging Face가 운영하는, 모델을 공유하는 웹사이트입니다. 이 폴더가 그대로 Hub의 저장소가 됩니다. 먼저
# `--dry_run`으로 무엇이 올라가는지 확인합니다. 실제로 보내지는 않습니다. 터미널에서는 이렇게 입력합니다.
#
# ```sh
# vanilla-transformer push-to-hub runs/quickstart --repo_id USER/NAME --dry_run
# ```

# %%
with contextlib.chdir(WORK), contextlib.redirect_stdout(io.StringIO()) as printed:
    push_to_hub(["own", "--repo_id", "USER/NAME", "--dry_run"])
print(re.sub(r"(?m)^ *[\d,]+ +", "", printed.getvalue()))  # 크기는 빼고 봅니다

# %% [markdown]
# 체크포인트와 옵티마이저의 상태는 올라가지 않습니다. `modules.json`, `sentence_bert_config.json`, `1_Pooling`은 문장의
# 벡터를 구하는 도구 sentence-transformers가 읽는 파일입니다. 실제로 올리려면 `hf auth login`으로 한 번 로그인한 뒤
# `--dry_run`을 빼면 됩니다. 그러면 누구나 `from_pretrained("USER/NAME", trust_remote_code=True)`로 불러올 수 있습니다.
# 파이썬에서는 `hf_vanilla_transformer.hub.push(model, "USER/NAME")`이 같은 일을 합니다.
# `model.push_to_hub("USER/NAME")`도 있지만 가중치, 설정, 코드만 올리고 토크나이저와 카드는 올리지 않습니다.
#
# 어떤 데이터로 학습했는지, 그 데이터의 이용 조건이 무엇인지도 함께 생각하세요. Multi30k는 비영리 목적으로만 사용할
# 수 있습니다.
#
# ## 다른 곳에서 사용하기
#
# torch와 transformers가 없는 곳에서 모델을 사용하고 싶을 때도 있습니다. `export`는 모델을 다른 형식으로 바꾸고,
# torch와 같은 답을 내는지 확인한 뒤에 끝납니다.
#
# | 형식 | 언제 사용하나 |
# |---|---|
# | `ctranslate2` | CPU에서 빠르게. 특히 번역 |
# | `onnx` | onnxruntime이 있는 곳, 브라우저와 Node.js |
# | `transformers` | `trust_remote_code`도 이 패키지도 없이. transformers에 똑같은 모델이 있을 때 |
#
# ```sh
# vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --quantize int8 \
#     --output_dir runs/fast
# ```
#
# `--quantize int8`은 가중치를 8비트 정수로 줄입니다. 파일이 작아지고 빨라지는 대신 답이 조금 달라질 수 있습니다.
# 무엇을 고를지는 [엔진(영어)](../engines.md)에 있습니다.
#
# `page`는 서버 없이 브라우저 안에서 모델을 실행하는 웹 페이지를 만듭니다. 리뷰를 입력하는 동안 글자를 칠 때마다 분류
# 결과와 어텐션이 바뀝니다. 7장에서 본 그림을 다른 사람에게 보여 주기에 좋습니다.
#
# ```sh
# vanilla-transformer page --model model_cards/nsmc-small --output_dir page
# ```
#
# ## 튜토리얼에서 온 체크포인트
#
# 튜토리얼의 코드로 이미 학습한 모델이 있다면 버리지 마세요. 체크포인트와 `.model` 파일을 세 단계로 가져올 수 있습니다.
# → [체크포인트 가져오기](checkpoint.ko.md)
#
# ## 정리
#
# - 설정 하나가 모델의 크기와 변형을 모두 정하고, 맞지 않는 값은 모델을 만들기 전에 오류가 됩니다.
# - 저장한 폴더에는 설정, 가중치, 코드가 있어서 이 패키지가 없는 사람도 불러올 수 있습니다.
# - `Trainer`는 학습의 반복문을 설정으로 바꾸고, `RecordCallback`은 그 기록과 모델 카드를 남깁니다.
# - Hub에 올리기 전에는 `--dry_run`으로 무엇이 올라가는지 확인하고, 데이터의 이용 조건을 읽습니다.
#
# **더 생각해 보기.** 내 모델을 받은 사람이 결과를 똑같이 다시 얻으려면 폴더에 무엇이 더 있어야 할까요?
#
# ## 직접 해 보기
#
# 풀이는 이 장의 맨 끝에 있습니다. 풀이의 출력은 셀을 실행해야 보입니다.
#
# 1. `nsmc-small`의 설정을 불러와 기본값과 다른 항목만 골라 보세요. *transformer-evolution*과 무엇이 다른가요?
# 2. 처음에 저장한 폴더의 `config.json`에서 `d_model`을 128로 바꾸고 불러오면 어떻게 될까요?
# 3. 가중치를 반정밀도(`torch.float16`)로 저장하면 파일의 크기와 출력은 얼마나 달라지나요?
#
# 여기까지 오느라 수고 많으셨습니다. 어휘에서 Hub까지, Transformer 하나를 처음부터 끝까지 만들었습니다.
# 다음에는 [내 데이터로 학습](../../README.ko.md#내-데이터로-학습하기)해 보세요. 코드를 더 읽고 싶다면 모델 전체가
# [파일 하나](../../hf_vanilla_transformer/modeling_vanilla_transformer.py)에 논문의 순서대로 있습니다.

# %% [markdown]
# ## 풀이

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 1
theirs, ours = AutoConfig.from_pretrained(MODELS / "nsmc-small").to_dict(), VanillaTransformerConfig().to_dict()
others = {"_name_or_path", "architectures", "dtype", "id2label", "label2id"}
different = {name: theirs[name] for name in ours if name not in others and theirs.get(name) != ours[name]}
print(different)
assert different["norm_first"] and different["decoder_layers"] == 1

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 2
changed = json.loads((WORK / "first" / "config.json").read_text())
model.save_pretrained(WORK / "second")
(WORK / "second" / "config.json").write_text(json.dumps({**changed, "d_model": 128}))
try:
    AutoModelForSequenceClassification.from_pretrained(WORK / "second")
    refused = False
except RuntimeError as error:  # 가중치의 모양이 설정과 맞지 않습니다
    refused = True
    print(type(error).__name__)
assert refused

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
with torch.no_grad():
    before = model(**batch).logits
model.half().save_pretrained(WORK / "half")
full, half = ((WORK / name / "model.safetensors").stat().st_size for name in ("first", "half"))
loaded = AutoModelForSequenceClassification.from_pretrained(WORK / "half", dtype=torch.float32).eval()
with torch.no_grad():
    difference = (loaded(**batch).logits - before).abs().max().item()
print(f"{full:,} -> {half:,}, 출력의 차이 {difference:.1e}")
assert half < 0.6 * full and 0 < difference < 0.01
