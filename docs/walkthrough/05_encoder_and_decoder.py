# %% [markdown]
# # 5. 인코더와 디코더
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/05_encoder_and_decoder.ipynb)
#
# > **English summary.** Residuals, layer norm; post-norm and pre-norm with their gradients by depth; cross-attention.
# > The whole model is put together from the package's modules and equals `VanillaTransformerModel`.
# > Its parameters are counted by part, and those of the paper's base and big model recounted.
#
# 4장까지 임베딩, 위치, 멀티헤드 어텐션, 피드포워드를 만들었습니다. 이 장에서는 이것들을 쌓아 모델을 완성합니다.

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

import inspect

import matplotlib
import pandas as pd
import torch
import transformers
from chapter_plots import plot_lines
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerModel,
)
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling
from hf_vanilla_transformer.figures import plot_attention
from hf_vanilla_transformer.loading import load_model


# %matplotlib inline
matplotlib.rcParams.update({"figure.dpi": 100, "text.hinting": "none"})  # 작은 한글도 읽히도록
transformers.utils.logging.disable_progress_bar()
torch.manual_seed(0)

# %% [markdown]
# ## 더하고 고르게 맞추기
#
# 층을 여러 개 쌓으면 학습이 어려워집니다. 그래서 어텐션이나 피드포워드를 지날 때마다 두 가지를 합니다.
#
# - **잔차 연결**(residual connection): 결과만 내보내지 않고, 들어온 벡터에 결과를 **더합니다**.
#   층이 아직 아무것도 배우지 못했어도 입력은 그대로 전해집니다.
# - **층 정규화**(layer normalization): 토큰마다 벡터의 평균을 0, 분산을 1로 맞춥니다.
#   그다음 칸마다 배운 수를 곱하고 더합니다. 학습하기 전에는 1을 곱하고 0을 더합니다.

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
# 정규화를 어디에 둘지는 두 가지 방법이 있습니다. Sublayer는 어텐션이나 피드포워드입니다.
#
# - post-norm (논문): $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$
# - pre-norm: $x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$
#
# 패키지에서는 `norm_first`로 고릅니다. 잔차 연결 모듈의 코드입니다.
# `before`는 Sublayer에 들어가기 전, `after`는 나온 다음입니다. `nn.Identity`는 아무것도 하지 않습니다.

# %%
print(inspect.getsource(modeling.VanillaTransformerResidual))

# %% [markdown]
# pre-norm에서 $x$는 정규화를 만나지 않고 끝까지 더해지기만 합니다. 그 차이는 기울기(gradient)에서 드러납니다.
# 기울기는 출력에서 입력 쪽으로 거꾸로 전해집니다. 디코더가 열두 층인 모델에서 층마다 기울기의 크기를 재 봅시다.


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
    title="Gradients before training, by depth",
    xlabel="decoder layer (11 is next to the output)",
    ylabel="norm of the gradient",
    log_scale=True,
)

# %%
for name, values in norms.items():
    print(f"{name}: 첫 층 {values[0]:.3f}, 마지막 층 {values[-1]:.3f}, 비 {values[-1] / values[0]:.1f}")

# %% [markdown]
# post-norm에서는 출력에 가까운 층의 기울기가 훨씬 큽니다. 처음부터 크게 움직이면 학습이 불안정하므로,
# 한 번에 고치는 정도(학습률)를 천천히 올리며 시작합니다(6장의 워밍업, Xiong et al. 2020).
# pre-norm에서는 층 사이의 차이가 두 배 남짓입니다.
# 그 대신 더할수록 벡터가 커지므로, 맨 끝에 정규화를 한 번 더 합니다(`final_norm`).
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
# ## 인코더 층
#
# 이제 코드를 읽을 수 있습니다. 셀프 어텐션, 피드포워드, 그리고 둘레의 잔차 연결입니다.

# %%
print(inspect.cleandoc(inspect.getsource(modeling.VanillaTransformerEncoderLayer.forward).split('"""')[2]))

# %% [markdown]
# ## 디코더 층과 교차 어텐션
#
# 인코더가 원문을 읽으면 디코더가 답을 한 토큰씩 씁니다. 디코더 층에는 어텐션이 둘 있습니다.
#
# 1. **마스크 셀프 어텐션**: 지금까지 쓴 자기 글을 봅니다. 인과 마스크로 뒤를 가립니다.
# 2. **교차 어텐션**(cross-attention): 원문을 봅니다. 쿼리는 디코더에서, 키와 밸류는 인코더의 출력에서 옵니다.
#
# 두 모듈은 클래스가 같고, 키와 밸류의 출처만 다릅니다. 교차 어텐션의 코드입니다.
# `cache`는 생성할 때 쓰는 캐시이므로 지금은 넘어가세요(6장).

# %%
body = inspect.cleandoc(inspect.getsource(modeling.VanillaTransformerDecoderLayer.forward).split('"""')[2])
print(body.split("\n\n")[1])  # 세 문단 가운데 둘째

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
    title="Cross-attention, mean of the heads",
)

# %% [markdown]
# 행이 번역, 열이 원문입니다. 한 행은 '이 토큰까지 쓴 다음, 다음 토큰을 쓰려고 원문의 어디를 보는가'입니다.
# 그래서 `[BOS]` 행은 첫 단어 Two를 쓰려고 Zwei를 봅니다.
#
# > *pytorch-transformer와 함께 나온 문서에서는* 디코더 층에 셀프 어텐션 블록을 두 번 넘겨서,
# > 두 어텐션이 가중치 하나를 같이 씁니다. 저장소의 코드는 모듈 둘을 따로 만들고, 이 패키지도 그렇습니다.
#
# ## 전체를 조립하기
#
# 부품은 모두 모였습니다. 인코더도 디코더도 '임베딩 + 위치 + 층 여러 개'입니다.


# %%
class Stack(nn.Module):
    """토큰 번호를 벡터로 바꾸고, 위치를 더하고, 층을 차례로 지납니다."""

    def __init__(self, config, layer_class):
        super().__init__()
        self.embed_tokens = modeling.VanillaTransformerEmbedding(config.vocab_size, config)
        self.embed_positions = modeling.VanillaTransformerSinusoidalPositions(config.max_position_embeddings, config)
        self.layers = nn.ModuleList([layer_class(config, number) for number in range(config.encoder_layers)])

    def forward(self, ids, attention_mask, *inputs_of_a_layer):
        states = self.embed_positions(self.embed_tokens(ids), modeling.position_ids_from_mask(attention_mask))
        for layer in self.layers:
            states = layer(states, *inputs_of_a_layer)
        return states


def to_add(may_see):
    """볼 자리는 0, 가릴 자리는 아주 작은 수."""
    return torch.zeros(may_see.shape).masked_fill(~may_see, torch.finfo(torch.float32).min)


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder = Stack(config, modeling.VanillaTransformerEncoderLayer)
        self.decoder = Stack(config, modeling.VanillaTransformerDecoderLayer)

    def forward(self, source, source_mask, target, target_mask):
        pad = to_add(source_mask.bool()[:, None, None, :])
        causal = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        pad_and_causal = to_add(target_mask.bool()[:, None, None, :] & causal)
        read = self.encoder(source, source_mask, pad)
        return self.decoder(target, target_mask, pad_and_causal, read, pad)


# %% [markdown]
# 이것이 Transformer입니다. 패키지의 `VanillaTransformerModel`에서 가중치를 옮겨 오면 출력이 같아야 합니다.

# %%
config = VanillaTransformerConfig(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2)
config._attn_implementation = "eager"
package = VanillaTransformerModel(config).eval()
ours = Transformer(config).eval()
print(ours.load_state_dict(package.state_dict()))

source_ids, target_ids = torch.randint(7, 100, (2, 6)), torch.randint(7, 100, (2, 5))
source_mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
target_mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
with torch.inference_mode():
    expected = package(
        input_ids=source_ids,
        attention_mask=source_mask,
        decoder_input_ids=target_ids,
        decoder_attention_mask=target_mask,
    ).last_hidden_state
    states = ours(source_ids, source_mask, target_ids, target_mask)
print(tuple(states.shape), torch.allclose(states, expected, atol=1e-5))

# %% [markdown]
# 서른 줄 남짓한 조립이 패키지의 모델과 같습니다. 패키지의 모델에는 여기에 드롭아웃, 생성할 때의 캐시,
# 배우는 위치 같은 선택, 입력 검사가 더 있습니다.
#
# 맨 끝에는 쓰임새에 따라 선형 층 하나를 붙입니다. 다음 토큰을 고르려면 어휘의 크기만큼,
# 리뷰를 분류하려면 긍정과 부정의 두 칸짜리를 붙입니다. 이것도 head라고 부르지만 4장의 헤드와는 다릅니다.
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
# 임베딩은 어휘 37,000개의 표 하나입니다. 논문처럼 인코더와 디코더의 임베딩, 마지막 선형 층이 행렬 하나를 같이 씁니다.
# 층의 파라미터 수가 위의 식과 맞는지 봅시다.

# %%
for name, d, ffn in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = 6 * layer_parameters(d, ffn, attentions=1), 6 * layer_parameters(d, ffn, attentions=2)
    print(name, f"{encoder:,}", f"{decoder:,}", (encoder, decoder) == tuple(list(counted[name].values())[1:3]))

# %% [markdown]
# 우리가 센 수는 논문의 65M, 213M과 조금 다릅니다.
# 층의 크기는 표에 적혀 있으니, 크게 다를 수 있는 것은 어휘뿐입니다.
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
small = {"nsmc-small": load_model(str(MODELS / "nsmc-small")).model, "multi30k-de-en": translator.model}
pd.DataFrame({name: parameters_by_part(model) for name, model in small.items()}).map("{:,}".format)

# %% [markdown]
# ## 직접 해 보기
#
# 1. 임베딩을 같이 쓰지 않는다면(행렬 세 개) base의 파라미터는 몇 개가 될까요?
# 2. 조립한 `ours`에서 인과 마스크가 하는 일을 확인해 보세요.
#    번역문의 마지막 토큰을 바꾸면 어느 자리의 출력이 바뀌나요?
# 3. `norm_first=True`인 `VanillaTransformerModel`의 출력을 `Transformer`로 얻으려면 무엇을 바꿔야 할까요?

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
other_ids = target_ids.clone()
other_ids[1, -1] = (other_ids[1, -1] + 1) % 100
with torch.inference_mode():
    others = ours(source_ids, source_mask, other_ids, target_mask)
is_same = (states[1] == others[1]).all(dim=-1).tolist()
print(is_same)
assert is_same == [True, True, True, True, False]  # 앞자리들은 마지막 토큰을 보지 못합니다

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
# 설정만 바꾸면 됩니다. 잔차 연결 모듈이 `norm_first`를 읽으므로 조립은 그대로입니다.
# 마지막 정규화까지 하려면 `final_norm=True`이고, 이때는 Stack의 끝에 `nn.LayerNorm`을 하나 더합니다.
config = VanillaTransformerConfig(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, norm_first=True)
config._attn_implementation = "eager"
package, ours = VanillaTransformerModel(config).eval(), Transformer(config).eval()
ours.load_state_dict(package.state_dict())
with torch.inference_mode():
    expected = package(source_ids, source_mask, target_ids, target_mask).last_hidden_state
    assert torch.allclose(ours(source_ids, source_mask, target_ids, target_mask), expected, atol=1e-5)

# %% [markdown]
# 모델은 완성되었지만 아직 아무것도 모릅니다. 다음 장에서 가르칩니다. → [6. 학습](06_training.ipynb)
