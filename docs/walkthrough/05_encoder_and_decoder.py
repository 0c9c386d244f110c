# %% [markdown]
# # 5. 인코더와 디코더
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/05_encoder_and_decoder.ipynb)
#
# > **English summary.** Residuals, layer norm; post-norm and pre-norm with their gradients by depth; cross-attention.
# > The reader writes the layers, the stacks and `Transformer`, and loads the package's trained weights into it:
# > its logits equal those of the classifier and of the translator, and it translates. Then parameters are counted.
#
# 4장까지 임베딩, 위치, 멀티헤드 어텐션, 피드포워드를 만들었습니다. 이 장에서는 이것들을 쌓아 모델을 완성하고,
# 학습된 가중치를 넣어 **내가 만든 모델로 번역까지** 해 봅니다.

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

import drawings
import matplotlib
import pandas as pd
import torch
import transformers
from chapter_plots import plot_attention, plot_lines
from my_transformer import Embedding, FeedForward, MultiHeadAttention  # 2장부터 4장까지 만든 클래스
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.loading import load_model


# %matplotlib inline
torch.manual_seed(0)
matplotlib.rcParams.update({"figure.dpi": 100, "text.hinting": "none"})  # 작은 한글도 읽히도록
transformers.utils.logging.disable_progress_bar()

# %%
drawings.model_map(5)

# %% [markdown]
# ## 잔차 연결과 층 정규화
#
# 층을 여러 개 쌓으면 학습이 어려워집니다. 그래서 어텐션이나 피드포워드를 지날 때마다 두 가지를 합니다.
#
# - **잔차 연결**(residual connection): 결과만 내보내지 않고, 들어온 벡터에 결과를 **더합니다**.
#   층이 아직 아무것도 배우지 못했어도 입력은 그대로 전해집니다.
# - **층 정규화**(layer normalization): 토큰마다 벡터의 평균을 0, 분산을 1로 맞춥니다.
#   그다음 칸마다 학습된 수를 하나 곱하고, 또 하나를 더합니다. 학습하기 전에는 1을 곱하고 0을 더합니다.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [100.0, 200.0, 300.0, 600.0]])
by_hand = (x - x.mean(dim=1, keepdim=True)) / (x.var(dim=1, unbiased=False, keepdim=True) + 1e-5).sqrt()
print(by_hand)
print(torch.allclose(by_hand, nn.LayerNorm(4, eps=1e-5)(x), atol=1e-6))

# %% [markdown]
# 크기가 백 배 다른 두 벡터가 똑같아졌습니다. 칸 사이의 상대적인 차이만 남습니다.
# 0으로 나누지 않도록 더하는 작은 수 `1e-5`가 eps입니다.
#
# > *The Annotated Transformer와 pytorch-transformer에서는* 분산을 n이 아니라 n-1로 나누어 구하고,
# > eps를 제곱근 밖에서 더합니다. 이 패키지에서는 `layer_norm_type="unbiased_std"`입니다.
#
# ## 정규화를 먼저 할까, 나중에 할까
#
# 정규화를 어디에 둘지는 두 가지 방법이 있습니다. Sublayer는 어텐션이나 피드포워드 같은 **하위 층**(sublayer)입니다.
#
# - post-norm (논문): $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$
# - pre-norm: $x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$

# %%
drawings.norms()

# %% [markdown]
# pre-norm에서 $x$는 정규화를 만나지 않고 끝까지 더해지기만 합니다. 그 차이는 기울기(gradient)에서 드러납니다.
# 기울기는 출력에서 입력 쪽으로 거꾸로 전해집니다(**역전파**, backpropagation).
# 디코더가 열두 층인 모델에서 층마다 기울기의 크기를 재 봅시다.


# %%
def gradient_norms(norm_first):
    torch.manual_seed(0)
    sizes = {"vocab_size": 100, "d_model": 64, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
    config = VanillaTransformerConfig.from_preset(
        "base", **sizes, encoder_layers=12, decoder_layers=12, norm_first=norm_first, final_norm=norm_first
    )
    model = VanillaTransformerForConditionalGeneration(config).eval()  # 드롭아웃 없이
    model(input_ids=torch.randint(7, 100, (16, 20)), labels=torch.randint(7, 100, (16, 20))).loss.backward()
    return [
        torch.cat([parameter.grad.flatten() for parameter in layer.parameters()]).norm().item()
        for layer in model.model.decoder.layers
    ]


norms = {"post-norm": gradient_norms(norm_first=False), "pre-norm": gradient_norms(norm_first=True)}
plot_lines(
    norms,
    list(range(12)),
    title="학습하기 전, 층마다 기울기의 크기",
    xlabel="디코더의 층 (11번이 출력 바로 앞)",
    ylabel="기울기의 크기",
    log_scale=True,
)

# %%
for name, values in norms.items():
    print(f"{name}: 첫 층 {values[0]:.3f}, 마지막 층 {values[-1]:.3f}, {values[-1] / values[0]:.1f}배")

# %% [markdown]
# post-norm에서는 출력에 가까운 층의 기울기가 훨씬 큽니다. 처음부터 가중치를 크게 고치면 학습이 불안정하므로,
# 한 번에 고치는 정도(학습률)를 천천히 올리며 시작합니다(6장의 워밍업, Xiong et al. 2020).
# pre-norm에서는 층 사이의 차이가 두 배 남짓입니다.
# 그 대신 더할수록 벡터가 커지므로, 맨 끝에 정규화를 한 번 더 합니다.
# 이 패키지에서는 `norm_first`와 `final_norm`으로 고릅니다.
#
# > *The Annotated Transformer의* 글은 논문대로 LayerNorm(x + Sublayer(x))라고 설명합니다.
# > 그런데 코드는 x + Dropout(Sublayer(LayerNorm(x)))입니다.
# > "the norm is first as opposed to last"라는 주석이 있습니다.
# > *torch.nn.Transformer는* post-norm일 때도 맨 끝에 정규화를 한 번 더 합니다. 논문에는 없는 것입니다.

# %%
presets = ["base", "annotated-transformer", "pytorch-transformer", "torch-nn-transformer", "transformer-evolution"]
configs = [VanillaTransformerConfig.from_preset(name) for name in presets]
pd.DataFrame(
    [[one.norm_first, one.final_norm] for one in configs], index=presets, columns=["norm_first", "final_norm"]
)

# %% [markdown]
# ## 만들기: `EncoderLayer`
#
# 저장소의 학습된 두 모델은 pre-norm이므로 우리도 pre-norm으로 만듭니다.
# 하위 층마다 정규화하고, 계산하고, 입력에 더합니다.

# %%
drawings.encoder_layer()


# %%
class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim):
        super().__init__()
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)

    def forward(self, x, mask):  # (B, S, D), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # (B, S, D)
        x = x + self.self_attention(normed, normed, normed, mask)[0]  # (B, S, D)
        normed = self.feed_forward_norm(x)  # (B, S, D)
        return x + self.feed_forward(normed)  # (B, S, D)


# %% [markdown]
# 계속 사용해 온 두 문장을 넣어 봅시다. S는 원문의 길이입니다. 인코더 쪽의 출력은 흔히 `memory`라고 부릅니다.

# %%
reviews_tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
batch = reviews_tokenizer(["겨울은 추워요.", "감기 조심하세요."], padding=True, return_tensors="pt")
is_token = batch["attention_mask"].bool()  # (B, S)
source_mask = is_token[:, None, None, :]  # (B, 1, 1, S): 헤드와 쿼리마다 같은 마스크
x = Embedding(len(reviews_tokenizer), 192)(batch["input_ids"])
memory = EncoderLayer(192, heads=3, ffn_dim=768)(x, source_mask)
print(tuple(batch["input_ids"].shape), "->", tuple(x.shape), "->", tuple(memory.shape))

# %% [markdown]
# ## 만들기: `DecoderLayer`와 교차 어텐션
#
# 인코더가 원문을 읽으면 디코더가 답을 한 토큰씩 씁니다. 디코더 층에는 어텐션이 둘 있습니다.
#
# 1. **마스크 셀프 어텐션**: 지금까지 쓴 글을 봅니다. 인과 마스크로 뒤를 가립니다.
# 2. **교차 어텐션**(cross-attention): 원문을 봅니다. 쿼리는 디코더에서, 키와 밸류는 인코더의 출력에서 옵니다.
#
# 둘은 같은 클래스 `MultiHeadAttention`이고, 키와 밸류로 무엇을 넣는지만 다릅니다.

# %%
drawings.decoder_layer()


# %%
class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim):
        super().__init__()
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)

    def forward(self, x, memory, causal, source_mask):  # (B, T, D), (B, S, D), (T, T), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # (B, T, D)
        x = x + self.self_attention(normed, normed, normed, causal)[0]  # (B, T, D)
        normed = self.cross_attention_norm(x)  # (B, T, D)
        x = x + self.cross_attention(normed, memory, memory, source_mask)[0]  # 쿼리 T개, 키와 밸류 S개 -> (B, T, D)
        normed = self.feed_forward_norm(x)  # (B, T, D)
        return x + self.feed_forward(normed)  # (B, T, D)


# %% [markdown]
# 두 문장의 답을 네 토큰까지 썼다고 하고 넣어 봅시다. T는 지금까지 쓴 글의 길이입니다. 무작위 벡터로 대신합니다.

# %%
written = torch.randn(2, 4, 192)  # (B, T, D)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (T, T)
layer = DecoderLayer(192, heads=3, ffn_dim=768)
cross = layer.cross_attention(written, memory, memory, source_mask)[1]
print("디코더 층:", tuple(written.shape), "->", tuple(layer(written, memory, causal, source_mask).shape))
print("교차 어텐션의 가중치 (문장, 헤드, 쓴 글, 원문):", tuple(cross.shape))

# %% [markdown]
# 저장소에 있는 독일어-영어 번역 모델에서 교차 어텐션을 꺼내 봅시다. 디코더에는 정답 문장을 미리 줍니다.

# %%
translator = load_model(str(MODELS / "multi30k-de-en"), attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
source = tokenizer(["Zwei Hunde spielen im Schnee."], return_tensors="pt")
target = torch.tensor([[tokenizer.bos_token_id, *tokenizer("Two dogs play in the snow.")["input_ids"][:-1]]])
with torch.inference_mode():
    outputs = translator(**source, decoder_input_ids=target, output_attentions=True)
source_tokens, target_tokens = (tokenizer.convert_ids_to_tokens(ids) for ids in (source["input_ids"][0], target[0]))
print("원문:", len(source_tokens), source_tokens)
print("번역:", len(target_tokens), target_tokens)
print("교차 어텐션 (문장, 헤드, 번역, 원문):", tuple(outputs.cross_attentions[-1].shape))

# %%
plot_attention(
    outputs.cross_attentions[-1][0].mean(dim=0),
    target_tokens,
    source_tokens,
    title="교차 어텐션, 헤드의 평균",
)

# %% [markdown]
# 행이 번역, 열이 원문입니다. 한 행은 '이 토큰까지 쓴 다음, 다음 토큰을 쓰려고 원문의 어디를 보는가'입니다.
# 그래서 `[BOS]` 행은 첫 단어 Two를 쓰려고 Zwei를 봅니다.
#
# > *pytorch-transformer와 함께 나온 문서에서는* 디코더 층에 셀프 어텐션 블록을 두 번 넘겨서,
# > 두 어텐션이 가중치 하나를 공유합니다. 저장소의 코드는 모듈 둘을 따로 만들고, 이 패키지도 그렇습니다.
#
# ## 만들기: `Encoder`, `Decoder`, `Transformer`
#
# 부품은 모두 모였습니다. 인코더도 디코더도 임베딩, 층 여러 개, 마지막 정규화입니다.


# %%
class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids, mask):  # (B, S), (B, 1, 1, S)
        x = self.embedding(ids)  # (B, S, D)
        for layer in self.layers:
            x = layer(x, mask)  # (B, S, D)
        return self.norm(x)  # (B, S, D)


class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(DecoderLayer(d_model, heads, ffn_dim) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids, memory, source_mask):  # (B, T), (B, S, D), (B, 1, 1, S)
        x = self.embedding(ids)  # (B, T, D)
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()  # (T, T)
        for layer in self.layers:
            x = layer(x, memory, causal, source_mask)  # (B, T, D)
        return self.norm(x)  # (B, T, D)


# %% [markdown]
# 맨 끝에는 쓰임새에 따라 선형 층 하나를 붙입니다. 다음 토큰을 고르려면 어휘의 크기만큼, 리뷰를 분류하려면
# 긍정과 부정의 두 칸짜리를 붙입니다. 이것도 head라고 부르지만 4장의 헤드와는 다릅니다.
# 출력은 **로짓**(logit)이라고 부르는 점수이고, 소프트맥스를 거치면 확률이 됩니다.


# %%
class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, encoder_layers, decoder_layers, head):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, heads, ffn_dim, encoder_layers)
        self.decoder = Decoder(vocab_size, d_model, heads, ffn_dim, decoder_layers)
        self.head = head

    def forward(self, source, is_token, target):  # (B, S), (B, S), (B, T)
        source_mask = is_token[:, None, None, :]  # (B, 1, 1, S)
        memory = self.encoder(source, source_mask)  # (B, S, D)
        x = self.decoder(target, memory, source_mask)  # (B, T, D)
        return self.head(x)  # (B, T, 출력의 수)


# 분류의 선형 층에는 편향이 없습니다. 디코더는 [BOS] 하나만 읽습니다(7장).
sizes = {"d_model": 192, "heads": 3, "ffn_dim": 768, "encoder_layers": 6, "decoder_layers": 1}
my_classifier = Transformer(len(reviews_tokenizer), **sizes, head=nn.Linear(192, 2, bias=False))
start = torch.full((2, 1), reviews_tokenizer.bos_token_id)
logits = my_classifier(batch["input_ids"], is_token, start)
print(tuple(batch["input_ids"].shape), tuple(start.shape), "->", tuple(logits.shape))

# %% [markdown]
# 이것이 Transformer입니다. `nn.Linear`, `nn.Embedding`, `nn.LayerNorm`만으로 처음부터 만들었습니다.
# 모두 모으면 [my_transformer.py](my_transformer.py)가 됩니다.
#
# ## 학습된 가중치를 내 모델에
#
# 정말 제대로 만들었을까요? 패키지로 학습한 가중치를 옮겨 넣었을 때 같은 답이 나오면 됩니다.
# 파라미터의 이름만 바꾸어 주면 됩니다.


# %%
NAMES = {
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


def my_weights(package_model):
    weights = {}
    for name, tensor in package_model.state_dict().items():
        for theirs, mine in NAMES.items():
            name = name.replace(theirs, mine)
        weights[name] = tensor
    return weights


classifier = load_model(str(MODELS / "nsmc-small")).eval()
print(my_classifier.load_state_dict(my_weights(classifier)))

# %% [markdown]
# 남는 이름도 모자라는 이름도 없습니다. 같은 두 문장을 양쪽에 넣어 로짓을 비교합시다.
# 32비트 실수는 더하는 순서에 따라 끝자리가 달라지므로, 64비트로 바꾸어(`double`) 비교합니다.

# %%
my_classifier.double(), classifier.double()
with torch.inference_mode():
    mine = my_classifier(batch["input_ids"], is_token, start)[:, 0]  # (B, 1, 2) -> (B, 2)
    theirs = classifier(**batch).logits
print("내 모델:", mine)
print("패키지: ", theirs)
assert torch.allclose(mine, theirs, rtol=0, atol=1e-6)

# %% [markdown]
# 같습니다! 번역 모델도 옮겨 봅시다. 이번에는 어휘 6,000개의 로짓이 자리마다 나옵니다.

# %%
sizes = {"d_model": 128, "heads": 4, "ffn_dim": 256, "encoder_layers": 4, "decoder_layers": 4}
my_translator = Transformer(len(tokenizer), **sizes, head=nn.Linear(128, len(tokenizer)))
print(my_translator.load_state_dict(my_weights(translator)))
my_translator.double(), translator.double()
with torch.inference_mode():
    mine = my_translator(source["input_ids"], source["attention_mask"].bool(), target)  # (B, T, V)
    theirs = translator(**source, decoder_input_ids=target).logits
print(tuple(mine.shape), "가장 큰 차이가 1e-6보다 작은가:", ((mine - theirs).abs().max() < 1e-6).item())

# %% [markdown]
# 그렇다면 번역도 할 수 있습니다. `[BOS]`에서 시작해 로짓이 가장 큰 토큰을 이어 붙이고, `[EOS]`가 나오면 멈춥니다(6장).


# %%
@torch.inference_mode()
def translate(text):
    source = tokenizer(text, return_tensors="pt")
    written = torch.tensor([[tokenizer.bos_token_id]])
    while written[0, -1] != tokenizer.eos_token_id and written.shape[1] < 40:
        logits = my_translator(source["input_ids"], source["attention_mask"].bool(), written)  # (1, T, V)
        written = torch.cat([written, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)  # (1, T + 1)
    return tokenizer.decode(written[0], skip_special_tokens=True)


print(translate("Zwei Hunde spielen im Schnee."))  # 개 두 마리가 눈밭에서 논다
print(translate("Eine Frau liest ein Buch auf einer Bank im Park."))  # 한 여자가 공원 벤치에서 책을 읽는다

# %% [markdown]
# 내가 한 줄씩 만든 모델이 독일어를 영어로 옮겼습니다.
#
# ## 이 패키지에서는
#
# 계산은 같습니다. [모델 파일](../../hf_vanilla_transformer/modeling_vanilla_transformer.py)에는 다음이 더 있습니다.
#
# | 더 있는 것 | 이유 | 장 |
# |---|---|---|
# | 드롭아웃 네 군데 | 외우지 않고 배우게 | 6 |
# | 패딩을 세지 않는 위치, 모두 가려진 행의 0 | 패딩을 어디에 두어도 같은 답을 내도록 | 2, 3 |
# | 생성할 때의 캐시, 여러 어텐션 구현 | 빠르게 | 6 |
# | `norm_first`, `position_embedding_type` 같은 설정 | 튜토리얼마다 다른 모델을 모두 만들 수 있게 | 2~5 |
# | 임베딩과 마지막 선형 층의 공유 | 파라미터를 줄이려고. 논문도 그렇습니다(§3.4) | 5 |
# | 저장하고 불러오기, 입력 검사 | 다른 사람도 사용할 수 있게 | 9 |
#
# ## 파라미터 세기
#
# 층 하나의 파라미터는 설정만 보고 셀 수 있습니다. 행렬은 가로 × 세로, 편향은 칸 수입니다.


# %%
def layer_parameters(d, ffn, attentions):
    attention = 4 * (d * d + d)  # Q, K, V, 출력
    feed_forward = d * ffn + ffn + ffn * d + d
    norms = (attentions + 1) * 2 * d  # 잔차 연결마다 곱하는 수와 더하는 수
    return attentions * attention + feed_forward + norms


def parameters_by_part(model):
    stacks = {"인코더 층": model.encoder.layers, "디코더 층": model.decoder.layers}
    counts = {name: sum(p.numel() for p in layers.parameters()) for name, layers in stacks.items()}
    total = model.num_parameters()
    return {"임베딩": model.encoder.embed_tokens.weight.numel(), **counts, "전체": total}


# %% [markdown]
# 논문의 표 3에는 base가 65M(6,500만), big이 213M이라고 적혀 있습니다. 같은 설정으로 다시 세어 봅시다.
# 큰 모델을 메모리에 올리지 않도록, 모양만 있는 `meta` 장치에서 만듭니다.

# %%
with torch.device("meta"):
    papers = {name: VanillaTransformerModel(VanillaTransformerConfig.from_preset(name)) for name in ("base", "big")}
counted = {name: parameters_by_part(model) for name, model in papers.items()}
pd.DataFrame(counted).map("{:,}".format)

# %% [markdown]
# 임베딩은 어휘 37,000개의 표 하나입니다. 논문처럼 인코더와 디코더의 임베딩, 마지막 선형 층이 행렬 하나를 공유합니다.
# 층의 파라미터 수가 위의 식과 맞는지 봅시다.

# %%
for name, d, ffn in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = 6 * layer_parameters(d, ffn, attentions=1), 6 * layer_parameters(d, ffn, attentions=2)
    print(name, f"{encoder:,}", f"{decoder:,}", (encoder, decoder) == tuple(list(counted[name].values())[1:3]))

# %% [markdown]
# 우리가 센 수는 논문의 65M, 213M과 조금 다릅니다.
# 층의 크기는 표에 적혀 있으니, 차이가 날 만한 곳은 어휘뿐입니다.
# 논문은 어휘를 '약 37,000'이라고만 적었습니다(§5.1). 논문의 수가 나오려면 어휘가 몇 개여야 할까요?

# %%
for name, millions, d in (("base", 65, 512), ("big", 213, 1024)):
    layers = counted[name]["인코더 층"] + counted[name]["디코더 층"]
    low, high = ((millions + edge) * 1e6 - layers for edge in (-0.5, 0.5))
    print(f"{name}: 어휘 {low / d:,.0f}개 ~ {high / d:,.0f}개")

# %% [markdown]
# 두 범위가 겹치지 않습니다. 같은 어휘로 두 수가 함께 나올 수는 없으므로, 표의 수는 어림으로 읽어야 합니다.
#
# 학습된 두 모델은 훨씬 작습니다. 전체가 세 수의 합보다 조금 큰 것은 맨 끝의 정규화(`final_norm`) 때문입니다.

# %%
small = {"nsmc-small": classifier.model, "multi30k-de-en": translator.model}
pd.DataFrame({name: parameters_by_part(model) for name, model in small.items()}).map("{:,}".format)

# %% [markdown]
# ## 정리
#
# - 하위 층마다 입력에 결과를 더하고(잔차 연결), 벡터의 크기를 고르게 맞춥니다(층 정규화).
# - pre-norm에서는 기울기가 깊은 곳까지 고르게 전해집니다. post-norm은 워밍업이 필요합니다.
# - 디코더는 자기가 쓴 글을 인과 마스크로 보고, 원문을 교차 어텐션으로 봅니다.
# - 만든 것: `EncoderLayer`, `DecoderLayer`, `Encoder`, `Decoder`, `Transformer`. 학습된 가중치를 넣으면 패키지와 같은
#   로짓을 냅니다.
#
# **더 생각해 보기.** BERT는 인코더만, GPT는 디코더만 있습니다. 인코더가 없다면 디코더 층의 무엇이 필요 없어질까요?
# 그런 모델로 번역을 하려면 원문을 어디에 넣어야 할까요?
#
# ## 직접 해 보기
#
# 풀이는 이 장의 맨 끝에 있습니다. 풀이의 출력은 셀을 실행해야 보입니다.
#
# 1. 임베딩을 공유하지 않는다면(행렬 세 개) base의 파라미터는 몇 개가 될까요?
# 2. 인과 마스크가 하는 일을 확인해 보세요. `my_translator`에 넣는 번역문의 마지막 토큰을 바꾸면
#    어느 자리의 로짓이 바뀌나요?
# 3. `EncoderLayer`를 물려받아 `forward`를 post-norm으로 고쳐 보세요. `nn.TransformerEncoderLayer`에 같은 가중치를
#    넣으면 출력이 같아야 합니다. 이 모듈은 `batch_first=True`, `dropout=0.0`으로 만드세요. `in_proj_weight`는
#    Q, K, V의 행렬을 위아래로 이어 둔 것입니다.
#
# 이 장에서는 학습된 가중치를 빌려 왔습니다. 다음 장에서는 가중치를 직접 학습합니다. → [6. 학습](06_training.ipynb)

# %% [markdown]
# ## 풀이

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 1
separate = counted["base"]["전체"] + 2 * 37000 * 512
print(f"{separate:,}")
config = VanillaTransformerConfig.from_preset("base")
config.share_encoder_decoder_embeddings = config.tie_word_embeddings = False
with torch.device("meta"):
    model = VanillaTransformerForConditionalGeneration(config)
assert model.num_parameters() - 37000 == separate  # 마지막 선형 층에는 편향 37,000개가 더 있습니다

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 2
other = target.clone()
other[0, -1] = (other[0, -1] + 1) % len(tokenizer)
with torch.inference_mode():
    changed = my_translator(source["input_ids"], source["attention_mask"].bool(), other)
is_same = (changed == mine).all(dim=-1)[0].tolist()
print(is_same)
assert is_same == [True] * (len(is_same) - 1) + [False]  # 앞자리들은 마지막 토큰을 보지 못합니다


# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
class PostNormEncoderLayer(EncoderLayer):
    def forward(self, x, mask=None):
        x = self.self_attention_norm(x + self.self_attention(x, x, x, mask)[0])
        return self.feed_forward_norm(x + self.feed_forward(x))


post_norm = PostNormEncoderLayer(64, heads=4, ffn_dim=128)
by_torch = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, dropout=0.0, batch_first=True)
attention = post_norm.self_attention
in_projections = (attention.q_proj, attention.k_proj, attention.v_proj)
by_torch.self_attn.in_proj_weight.data = torch.cat([one.weight for one in in_projections])
by_torch.self_attn.in_proj_bias.data = torch.cat([one.bias for one in in_projections])
by_torch.self_attn.out_proj.load_state_dict(attention.out_proj.state_dict())
by_torch.linear1.load_state_dict(post_norm.feed_forward.fc1.state_dict())
by_torch.linear2.load_state_dict(post_norm.feed_forward.fc2.state_dict())
with torch.no_grad():
    inputs = torch.randn(2, 5, 64)
    assert torch.allclose(post_norm(inputs), by_torch(inputs), atol=1e-5)
