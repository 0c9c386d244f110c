# %% [markdown]
# # 9. Hugging Face로
#
# 8장까지 모델을 만들고, 학습하고, 사용해 보았습니다. 혼자 사용할 모델이라면 여기서 끝내도 됩니다.
# 이 장에서는 모델을 다른 사람도 사용할 수 있게 합니다. 저장하고, 불러오고, 다시 학습하고, 올리는 일은 Hugging Face의
# transformers가 정해 둔 방식을 따릅니다. 그러면 이 모델을 처음 보는 사람도 늘 하던 대로 사용할 수 있습니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

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
from my_transformer import my_name  # 5장의 이름 대응
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
# 이 장에서 만드는 파일은 거의 모두 임시 폴더에 둡니다.
temporary = tempfile.TemporaryDirectory()
WORK = Path(temporary.name)
Transformer, tie_embeddings = mine("Transformer", "tie_embeddings")  # 5장에서

# %%
drawings.model_map(9)

# %% [markdown]
# ## 설정: `VanillaTransformerConfig`
#
# 모델의 크기와 변형은 모두 **설정**(config) 하나에 있습니다. 기본값은 *transformer-evolution*과 같습니다.

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
# 표의 열 하나가 이름이 붙은 설정(**프리셋**, preset) 하나입니다. 프리셋에서 몇 가지만 바꿀 수도 있습니다. 서로 맞지
# 않는 값을 주면 모델을 만들기 전에 오류를 내고 이유를 알려 줍니다.

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
# transformers에 들어 있지 않은 모델이기 때문입니다. 그림의 맨 아래에 있는 토크나이저는 따로 저장합니다.
# `config.json`의 `auto_map`은 어느 클래스가 어느 파일에 있는지 알려 줍니다.

# %%
print(json.dumps(json.loads((WORK / "first" / "config.json").read_text())["auto_map"], indent=1))

# %% [markdown]
# > *튜토리얼에서는* `torch.save(model.state_dict(), file)`로 가중치만 저장합니다. 불러오려면 같은 코드와 같은 설정을
# > 따로 챙겨야 합니다.
#
# ## 불러오기: 패키지가 있을 때
#
# 패키지의 모델 클래스를 임포트하면 transformers의 `Auto` 클래스에 이 모델이 등록됩니다. 그러면 클래스 이름을 몰라도 불러올
# 수 있습니다.

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
# 모델을 받은 사람에게는 이 패키지가 없어도 됩니다. 폴더에 든 코드를 실행하도록 `trust_remote_code=True`로 허락하기만
# 하면 됩니다. 남의 코드를 실행하는 일이므로, 허락하기 전에 코드를 읽어 보는 것이 좋습니다. 두 파일뿐입니다.
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
)
with contextlib.redirect_stdout(None):
    trainer.train()

# %%
log = pd.DataFrame([entry for entry in trainer.state.log_history if "eval_accuracy" in entry])
log[["epoch", "eval_loss", "eval_accuracy"]].round(3)

# %%
print(f"테스트 정확도 {trainer.predict(tokens['test']).metrics['test_accuracy']:.3f}")

# %% [markdown]
# 7장의 결과와 비교해 보세요. 120개 가운데 하나가 0.008이므로, 차이가 작으면 나아졌다고 말하기 이릅니다.
#
# 반복문에서 하던 일은 대부분 설정이나 메서드가 되었습니다.
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
# | 레이블 스무딩 | `label_smoothing_factor` 또는 `compute_loss_func=...` |
#
# 학습한 모델은 `save_model`로 저장합니다.

# %%
trainer.save_model(WORK / "own")
print("\n".join(sorted(file.name for file in (WORK / "own").iterdir() if file.is_file())))

# %% [markdown]
# `save_pretrained`가 만드는 파일 말고도 토크나이저의 파일과 `training_args.bin`이 있습니다. `training_args.bin`에는
# `TrainingArguments`로 준 학습 설정이 들어 있습니다.
#
# 7장에서 본 명령 `train-classifier`도 안에서는 `Trainer`로 학습합니다. 파이썬에서는 함수 `train_classifier`가 같은 일을
# 합니다. 둘 다 학습이 끝나면 학습의 기록과 **모델 카드**(model card)도 폴더에 남깁니다. 모델 카드는 모델을 소개하는
# 글이고, 파일 이름은 `README.md`입니다. nsmc-small의 폴더에서 확인해 봅시다.

# %%
print("\n".join(sorted(file.name for file in (MODELS / "nsmc-small").iterdir() if file.is_file())))

# %% [markdown]
# | 파일 | 내용 |
# |---|---|
# | `recipe.yaml` | 학습 설정 |
# | `run.json` | 라이브러리의 버전, 데이터의 체크섬 |
# | `metrics.json` | 정확도 같은 결과 |
# | `curves.png` | 학습하는 동안의 손실과 정확도 그래프 |
# | `README.md` | 모델 카드 |
#
# 한국어 글로 학습한 모델의 카드에는 앞부분에 한국어 요약이 있습니다. Hub의 독자는 여러 나라 사람이므로 나머지는
# 영어입니다. 카드의 첫 부분을 봅시다.

# %%
print((MODELS / "nsmc-small" / "README.md").read_text(encoding="utf-8").split("---")[2].split("## ")[0].strip())

# %% [markdown]
# ## Hub에 올리기
#
# **Hub**는 Hugging Face가 운영하는, 모델을 공유하는 웹사이트입니다. 이런 폴더가 그대로 Hub의 저장소가 됩니다. 먼저
# `--dry_run`으로 무엇이 올라가는지 확인합니다. 실제로 보내지는 않습니다. 터미널에서는 이렇게 입력합니다.
#
# ```sh
# vanilla-transformer push-to-hub model_cards/nsmc-small --repo_id USER/NAME --dry_run
# ```

# %%
with contextlib.redirect_stdout(io.StringIO()) as printed:
    push_to_hub([str(MODELS / "nsmc-small"), "--repo_id", "USER/NAME", "--dry_run"])
print(re.sub(r"(?m)^ *[\d,]+ +", "", printed.getvalue()))  # 크기는 빼고 봅니다

# %% [markdown]
# 올라갈 파일의 목록입니다. `a text of the data`는 데이터에서 고른 글이 예로 함께 올라간다는 뜻입니다. 내 데이터라면
# 공개해도 되는 글인지 확인하세요. 체크포인트와 옵티마이저의 상태는 올라가지 않습니다.
#
# 실제로 올리려면 `hf auth login`으로 한 번 로그인한 뒤, 내 폴더의 이름을 적고 `--dry_run`을 뺍니다. 그러면 누구나
# `from_pretrained("USER/NAME", trust_remote_code=True)`로 불러올 수 있습니다.
# [CSV로 학습하기](../../README.ko.md#csv로-학습하기)의 명령으로 학습했다면 폴더는 `runs/mine`입니다. 파이썬에서는
# `hf_vanilla_transformer.hub.upload("runs/mine", "USER/NAME")`이 같은 일을 합니다.
#
# `Trainer`로 직접 학습한 모델은 `trainer.push_to_hub()`로 올립니다. 모델과 토크나이저를 카드의 초안과 함께 올려 줍니다.
# 카드는 그때 새로 쓰이므로, 고치려면 올린 뒤에 고치세요.
# `model.push_to_hub("USER/NAME")`은 가중치, 설정, 코드만 올리고 토크나이저와 카드는 올리지 않습니다.
#
# 어떤 데이터로 학습했는지, 그 데이터의 이용 조건이 무엇인지도 함께 생각하세요. Multi30k는 비영리 목적으로만 사용할
# 수 있습니다.
#
# ## 다른 곳에서 사용하기
#
# torch와 transformers가 없는 곳에서 모델을 사용하고 싶을 때도 있습니다. `export`는 모델을 다른 형식으로 바꾸고,
# 그 답이 torch의 답과 같을 때만 저장합니다.
#
# | 형식 | 언제 사용하나 |
# |---|---|
# | `ctranslate2` | CPU에서 빠르게. 특히 번역 |
# | `onnx` | onnxruntime이 있는 곳, 브라우저와 Node.js |
#
# ```sh
# vanilla-transformer export --model model_cards/multi30k-de-en --format ctranslate2 --quantize int8 \
#     --output_dir runs/fast
# ```
#
# `--quantize int8`은 가중치를 8비트 정수로 줄입니다. 파일이 작아지고 빨라지는 대신 답이 조금 달라질 수 있습니다.
# 무엇을 고를지는 [엔진(영어)](../engines.md)에 있습니다.
#
# ## 내가 만든 모델을 브라우저로
#
# 이제 2장부터 한 줄씩 만든 **내 모델**을 브라우저에서 열어 봅시다. 7장에서 미세조정한 내 분류 모델을 꺼냅니다. 7장을
# 실행하지 않았다면 nsmc-small의 가중치를 내 클래스에 넣어 대신합니다.

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
print("7장에서 학습한 내 가중치" if file.is_file() else "nsmc-small의 가중치", my_model.load_state_dict(my_weights))

# %% [markdown]
# 5장에서는 패키지의 가중치를 내 모델에 넣었습니다. 이번에는 거꾸로 내 가중치를 패키지의 모델에 넣습니다. 이름만
# 바꾸면 되고, 남거나 모자라는 이름은 없습니다. 두 모델의 점수가 같은지 확인하고 저장합니다.

# %%
package = VanillaTransformerForSequenceClassification(config).eval()
print(package.load_state_dict({name: my_weights[my_name(name)] for name in package.state_dict()}))
review = tokenizer(["내가 만든 모델이 드디어 돌아간다", "지루하고 유치했다"], padding=True, return_tensors="pt")
start = torch.full((2, 1), tokenizer.bos_token_id)
with torch.inference_mode():
    ours = my_model(review["input_ids"], review["attention_mask"].bool(), start)[:, 0]
    theirs = package(**review).logits
print("점수의 가장 큰 차이가 1e-4보다 작은가:", ((ours - theirs).abs().max() < 1e-4).item())
assert torch.allclose(ours, theirs, atol=1e-4)
package.save_pretrained(RUNS / "my-model")
saved = tokenizer.save_pretrained(RUNS / "my-model")
print(*sorted(file.name for file in (RUNS / "my-model").iterdir()), sep="\n")

# %% [markdown]
# `page`는 브라우저가 모델을 계산하는 웹 페이지를 만듭니다. 저장소의 폴더에서 터미널을 열고 실행하세요.
#
# ```sh
# vanilla-transformer page --model runs/my-model --output_dir runs/my-page
# python -m http.server --bind 127.0.0.1 --directory runs/my-page
# ```
#
# 브라우저에서 `http://127.0.0.1:8000`을 여세요. 한국어를 한 글자씩 칠 때마다, 내가 한 줄씩 만들고 학습한 모델이 긍정인지
# 부정인지 답합니다. 페이지는 임베딩부터 그 답까지의 계산도 단계마다 보여 줍니다. 페이지의 [model.js](../../hf_vanilla_transformer/page/model.js)는
# 지금까지 만든 모델을 자바스크립트로 옮긴 350줄입니다. 폴더째 정적 웹 호스팅에 올리면 인터넷 어디서나 열 수 있습니다.
#
# ## 튜토리얼에서 온 체크포인트
#
# 튜토리얼의 코드로 이미 학습한 모델이 있다면 버리지 마세요. 체크포인트와 `.model` 파일을 세 단계로 가져올 수
# 있습니다. → [튜토리얼에서 이 패키지로](../tutorials.ko.md)
#
# ## 정리
#
# - 설정 하나가 모델의 크기와 변형을 모두 정합니다. 값이 서로 맞지 않으면 모델을 만들기 전에 오류가 납니다.
# - 저장한 폴더에는 설정, 가중치, 코드가 있어서 이 패키지가 없는 사람도 불러올 수 있습니다.
# - `Trainer`는 학습의 반복문을 설정으로 바꿉니다. 이 패키지의 명령은 학습의 기록과 모델 카드도 남깁니다.
# - Hub에 올리기 전에는 `--dry_run`으로 무엇이 올라가는지 확인하고, 데이터의 이용 조건을 읽습니다.
#
# **더 생각해 보기.** 내 모델을 받은 사람이 결과를 똑같이 다시 얻으려면 폴더에 무엇이 더 있어야 할까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** `model.safetensors`만 친구에게 보내면 친구가 모델을 사용할 수 있을까요?
#
# - (가) 있습니다
# - (나) 없습니다. 설정과 코드, 토크나이저도 있어야 합니다
# - (다) 친구에게 GPU가 있으면 됩니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 가중치만으로는 모델의 모양도, 글을 번호로 바꾸는 법도 알 수 없습니다.
# - (나) 맞습니다. 그래서 `save_pretrained`가 폴더를 만들고, 토크나이저도 같은 폴더에 저장합니다.
# - (다) 아닙니다. GPU와는 상관이 없습니다.
#
# </details>
#
# **2.** `trust_remote_code=True`는 무엇을 허락하는 것일까요?
#
# - (가) 인터넷에서 가중치를 내려받는 것
# - (나) 폴더에 든 파이썬 코드를 내 컴퓨터에서 실행하는 것
# - (다) 내 데이터를 Hub에 보내는 것
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 가중치는 허락하지 않아도 내려받습니다.
# - (나) 맞습니다. 그래서 코드를 먼저 읽어 보는 것이 좋습니다.
# - (다) 아닙니다. 아무것도 보내지 않습니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★★ 8분
#
# `nsmc-small`의 설정을 불러와 기본값과 다른 항목만 골라 보세요. 이름과 값을 `dict`에 담으세요.
# *transformer-evolution*과 무엇이 다른가요?
#
# <details><summary>힌트 1</summary>
#
# `AutoConfig.from_pretrained(...)`와 `VanillaTransformerConfig()`를 `to_dict()`로 바꾸어 비교합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `{name: theirs[name] for name in ours if theirs.get(name) != ours[name]}`의 꼴입니다. `_name_or_path`,
# `architectures`처럼 모양과 상관없는 것은 빼세요.
#
# </details>

# %% tags=["exercise"]
theirs, ours = AutoConfig.from_pretrained(MODELS / "nsmc-small").to_dict(), VanillaTransformerConfig().to_dict()
others = {"_name_or_path", "architectures", "dtype", "id2label", "label2id"}
different = {name: theirs[name] for name in ours if name not in others and theirs.get(name) != ours[name]}  # 이름: 값
print(different)

# %%
check_answer(
    different,
    lambda it: it["norm_first"] and it["decoder_layers"] == 1 and "pad_token_id" not in it,
    (lambda it: it["decoder_layers"] == 6, "기본값을 적었습니다. nsmc-small의 값을 적으세요."),
    (lambda it: "pad_token_id" in it, "같은 항목까지 들어 있습니다. 다른 것만 고르세요."),
)

# %% [markdown]
# ### 연습 2 ★★ 8분
#
# 처음에 저장한 폴더를 `WORK / "second"`에 한 번 더 저장하고, 그 `config.json`에서 `d_model`을 128로 바꾸세요.
# 불러오면 어떤 오류가 나나요? 오류의 이름을 적으세요.
#
# <details><summary>힌트 1</summary>
#
# `json.loads`로 읽어 고친 다음 `json.dumps`로 적습니다. `try`와 `except Exception as error`로 오류를 잡습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `type(error).__name__`이 오류의 이름입니다.
#
# </details>

# %% tags=["exercise"]
changed = json.loads((WORK / "first" / "config.json").read_text())
model.save_pretrained(WORK / "second")
(WORK / "second" / "config.json").write_text(json.dumps({**changed, "d_model": 128}))
try:
    AutoModelForSequenceClassification.from_pretrained(WORK / "second")
except Exception as error:
    name = type(error).__name__  # 오류의 이름

# %%
check_answer(
    name,
    "RuntimeError",  # 가중치의 모양이 설정과 맞지 않습니다
    ("NameError", "오류가 나지 않았거나, 다른 셀의 이름이 틀렸습니다."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 가중치를 반정밀도(`torch.float16`)로 저장하면 파일의 크기와 출력은 얼마나 달라지나요? 크기의 비(반정밀도 / 원래)와
# 점수의 가장 큰 차이를 구하세요. 원래 가중치는 `WORK / "first"`에 있습니다.
#
# <details><summary>힌트 1</summary>
#
# `model.half().save_pretrained(WORK / "half")`로 저장하고, 두 폴더의 `model.safetensors`의 크기를 `stat().st_size`로
# 비교합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 점수를 비교하려면 `from_pretrained(WORK / "half", dtype=torch.float32)`로 다시 불러옵니다.
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
ratio, largest = half / full, (after - before).abs().max().item()  # 크기의 비, 가장 큰 차이
print(f"크기 {ratio:.2f}배, 출력의 차이 {largest:.1e}")

# %%
check_answer(
    (ratio, largest),
    lambda it: 0.4 < it[0] < 0.6 and 0 < it[1] < 0.01,
    (lambda it: it[0] > 1.5, "비가 거꾸로입니다. 반정밀도를 원래로 나누세요."),
    (lambda it: it[1] == 0, "차이가 없습니다. 반정밀도로 저장한 것을 불러왔는지 보세요."),
)

# %% [markdown]
# 마지막 장에서는 학습 없이 손으로 가중치를 정해, 모델의 속을 끝까지 들여다봅니다.
# → [10. 손으로 정하는 가중치](10_weights_by_hand.ipynb)
