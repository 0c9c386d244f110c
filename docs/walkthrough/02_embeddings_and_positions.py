# %% [markdown]
# # 2. 임베딩과 위치
#
# 1장에서 글은 번호의 목록이 되었습니다. 이 장에서는 번호마다 벡터를 하나씩 주고, 거기에 순서를 더합니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

# %%
import math

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines, plot_matrix, plot_sinusoid_table
from check import check, check_answer
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference.folder import load_model


# %%
drawings.model_map(2)

# %% [markdown]
# 1장의 두 문장을 다시 번호로 바꿉니다.

# %%
tokenizer = train_tokenizer(load_labelled_text("sample")["train"]["text"], vocab_size=2000)
sentences = ["겨울은 추워요.", "감기 조심하세요."]
batch = tokenizer(sentences, padding=True, pad_to_multiple_of=8, return_tensors="pt")
input_ids, attention_mask = batch["input_ids"], batch["attention_mask"]
print(input_ids)

# %% [markdown]
# ## 번호를 벡터로
#
# 번호는 이름표일 뿐입니다. 491번이 490번보다 크다는 사실에는 아무 뜻이 없습니다.
# 그래서 토큰마다 숫자 여러 개, 곧 벡터를 하나씩 줍니다. 이것이 **임베딩**(embedding)입니다.
# PyTorch의 `nn.Embedding`이 하는 일은 단순합니다. 큰 표에서 번호에 해당하는 행을 꺼냅니다.

# %%
embedding = nn.Embedding(2000, 128)  # 토큰 2,000개에 128칸짜리 벡터 하나씩
vectors = embedding(input_ids)
print("표:", tuple(embedding.weight.shape), " 두 문장:", tuple(input_ids.shape), "->", tuple(vectors.shape))
print("첫 토큰의 벡터가 표의 1540번 행인가:", vectors[0, 0].equal(embedding.weight[1540]))

# %% [markdown]
# 두 문장 × 여덟 자리 × 128칸(차원)이 되었습니다. 표의 숫자는 처음에는 무작위이고, 학습하면서 바뀝니다. 학습이 끝나면
# 쓰임새가 비슷한 토큰끼리 방향이 비슷해집니다. 학습된 nsmc-small의 표에서 확인해 봅시다. 같은 칸끼리 곱해서 모두 더한
# 수가 **내적**(dot product)입니다. 두 벡터의 길이를 1로 맞추면, 내적이 클수록 방향이 비슷합니다.

# %%
trained, pieces = load_model(str(MODELS / "nsmc-small")), AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
table = torch.nn.functional.normalize(trained.get_input_embeddings().weight.detach(), dim=1)
for token in ("▁지루", "▁감동", "▁배우"):
    similarity = table @ table[pieces.convert_tokens_to_ids(token)]
    print(token, "->", pieces.convert_ids_to_tokens(similarity.topk(6).indices.tolist())[1:])

# %% [markdown]
# ## 왜 √d를 곱할까
#
# 논문 §3.4는 임베딩에 $\sqrt{d}$를 곱합니다. $d$는 벡터의 차원이고, 코드에서는 `d_model`이라고 부릅니다.
#
# 이유는 크기에 있습니다. 논문의 코드(tensor2tensor)에서 임베딩은 표준편차가 $1/\sqrt{d}$인 작은 수로 시작합니다.
# `nn.Embedding`은 그냥 두면 표준편차 1로 시작하므로, 우리 모델에서는 초깃값을 직접 정해 주어야 합니다. 잠시 뒤 여기에
# 더할 위치는 -1과 1 사이의 사인과 코사인입니다. 둘의 크기를 비교해 봅시다.

# %%
small = torch.randn(2000, 128) * 128**-0.5
sizes = {"임베딩": small, "임베딩 × √d": small * math.sqrt(128), "위치": modeling.sinusoid_table(100, 128)}
pd.DataFrame({name: [numbers.square().mean().sqrt().item()] for name, numbers in sizes.items()}, ["크기"]).round(2)

# %% [markdown]
# 곱하지 않으면 위치가 임베딩을 덮어 버립니다. 곱하고 나면 임베딩이 조금 더 큽니다.
# 거꾸로 표준편차 1로 시작해서 √d까지 곱하면 임베딩이 위치를 덮어 버리고, 학습이 좀처럼 되지 않습니다(6장).
#
# 튜토리얼마다 선택이 다르므로, 이 패키지에서는 설정으로 고릅니다. `base`가 논문의 모델이고, `init_scheme`은 파라미터의
# 초깃값을 정하는 방법입니다. 위치에 관한 두 열은 뒤에서 설명합니다.

# %%
presets = ["base", "annotated-transformer", "pytorch-seq2seq", "pytorch-transformer", "transformer-evolution"]
fields = ["scale_embedding", "init_scheme", "position_embedding_type", "position_offset"]
configs = [VanillaTransformerConfig.from_preset(name) for name in presets]
pd.DataFrame([[getattr(one, field) for field in fields] for one in configs], index=presets, columns=fields)

# %% [markdown]
# > *transformer-evolution에서는* √d를 곱하지 않습니다. 그 대신 임베딩을 표준편차 1로 시작하므로
# > (`init_scheme`의 `torch`) 크기는 위치와 비슷합니다.
#
# ## 순서는 어디에 있을까
#
# 3장에서 만들 어텐션은 토큰마다 다른 토큰의 벡터를 섞어서 가져옵니다. 섞는 비율은 두 벡터의 내적으로 정하므로, 토큰이
# 몇 번째에 있는지는 계산에 들어가지 않습니다. 토큰의 순서를 바꾸어 넣어 봅시다. 각 토큰의 출력이 그대로라면
# 어텐션은 순서를 구별하지 못하는 것입니다. 아래의 `attend`는 0장에서 본 어텐션을 한 줄로 쓴 것입니다.


# %%
def attend(x):  # (L, D)
    return (x @ x.T / math.sqrt(x.shape[-1])).softmax(dim=-1) @ x  # (L, L) @ (L, D) -> (L, D)


vectors = nn.functional.normalize(embedding.weight[input_ids[1]].detach(), dim=-1)  # 둘째 문장 (8, 128)
order = torch.randperm(8)
print("위치 없이:", torch.allclose(attend(vectors)[order], attend(vectors[order]), atol=1e-6))

# %% [markdown]
# 같습니다. 순서를 바꾸어 넣으면 결과의 순서만 바뀌고, 토큰마다 얻은 벡터는 그대로입니다.
# 그런데 '개가 사람을 물었다'와 '사람이 개를 물었다'는 뜻이 다릅니다.
# 그래서 자리마다 다른 벡터를 더해 순서를 알려 줍니다. 이것이 **위치 인코딩**(positional encoding)입니다.
# 자리마다 아무 벡터나 더해도 결과가 달라집니다.

# %%
places = torch.randn(8, 128) / 8  # 자리마다 벡터 하나
print("위치를 더하고:", torch.allclose(attend(vectors + places)[order], attend(vectors[order] + places), atol=1e-6))

# %% [markdown]
# 이제 같은 토큰이라도 어디에 있느냐에 따라 결과가 다릅니다. 어떤 벡터를 더하는 것이 좋을까요?
#
# ## 사인과 코사인
#
# 자리 번호 0, 1, 2, …를 그대로 더하면 뒤로 갈수록 숫자가 커집니다.
# 크기는 늘 비슷하면서도 자리마다 다른 벡터가 필요합니다.
#
# 시계를 떠올려 보세요. 초침은 빨리 돌고 시침은 천천히 돕니다. 바늘이 도는 범위는 한 바퀴뿐이지만,
# 바늘 몇 개의 위치를 함께 보면 몇 시 몇 분 몇 초인지 알 수 있습니다.
# 위치 인코딩도 도는 속도(주파수)가 서로 다른 바늘 $d/2$개와 같습니다.
# 바늘 $i$(0부터 셉니다)는 한 자리마다 $1/10000^{2i/d}$라디안씩 돕니다.
# 바늘 끝의 두 좌표인 사인과 코사인을 짝수 칸과 홀수 칸에 적습니다.
#
# $$PE_{(pos,\,2i)} = \sin\frac{pos}{10000^{2i/d}} \qquad PE_{(pos,\,2i+1)} = \cos\frac{pos}{10000^{2i/d}}$$

# %%
d = 128
speed = 1 / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)  # 바늘 64개의 빠르기
angle = torch.arange(100).unsqueeze(1) * speed  # 자리 100개 × 바늘 64개
positions = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)  # 사인과 코사인을 번갈아

print(tuple(positions.shape), torch.allclose(positions, modeling.sinusoid_table(100, d)))

# %% [markdown]
# 패키지의 `sinusoid_table`과 같습니다. 표 전체를 그려 봅시다. 한 행이 한 자리의 벡터입니다.

# %%
plot_sinusoid_table(100, 128)

# %% [markdown]
# 왼쪽 칸은 빠른 바늘이라 행마다 색이 바뀌고, 오른쪽 칸은 느린 바늘이라 위에서 아래까지 거의 그대로입니다.
# 오른쪽의 세로줄 무늬는 0에 가까운 사인과 1에 가까운 코사인이 번갈아 놓인 것입니다. 네 칸만 따로 봅시다.

# %%
plot_lines(
    {f"{column}번 칸": positions[:, column].tolist() for column in (0, 10, 20, 40)},
    list(range(100)),
    title="위치 인코딩의 네 칸",
    xlabel="자리",
    ylabel="값",
)

# %% [markdown]
# ## 거리를 알 수 있다
#
# 사인과 코사인을 짝지은 데에는 이유가 있습니다. 다섯 자리 뒤의 바늘은 지금의 바늘을 더 돌린 것입니다. 더 돌리는
# 각도는 바늘마다 다르지만, 한 바늘에서는 어느 자리에서 시작하든 같습니다. 그래서 어느 자리의 벡터든 똑같이 돌리면
# 다섯 자리 뒤의 벡터가 됩니다. 사인과 코사인의 덧셈 정리로 계산합니다.

# %%
cos, sin = (5 * speed).cos(), (5 * speed).sin()
turned = torch.stack(
    [positions[:, 0::2] * cos + positions[:, 1::2] * sin, positions[:, 1::2] * cos - positions[:, 0::2] * sin], dim=2
).flatten(1)
print(torch.allclose(turned[:95], positions[5:]))

# %% [markdown]
# 두 자리의 내적은 거리만으로 정해집니다. 바늘마다 $\sin a \sin b + \cos a \cos b = \cos(a - b)$이기 때문입니다.
# 아래 그림에서 대각선과 나란한 선을 따라가면 색이 변하지 않습니다.

# %%
plot_matrix(positions[:60] @ positions[:60].T, title="두 자리의 내적", xlabel="자리", ylabel="자리")

# %% [markdown]
# > *The Annotated Transformer에서는* 이 표를 float32로 계산합니다. 이 패키지는 float64로 계산한 뒤 옮겨 적습니다.
# > 길이가 350토큰인 입력에서 인코더 출력이 2e-5쯤 차이 납니다([대응표](../tutorials.ko.md)).
# > *pytorch-transformer와 함께 나온 문서에서는* 지수 함수를 한 번 더 씌워서 주파수가 논문과 다릅니다.
#
# ## 만들기: `Embedding`
#
# 이제 첫 클래스를 만듭니다. 토큰의 표에서 행을 꺼내 √d를 곱하고, 자리의 벡터를 더합니다. 임베딩 행렬은 표준편차
# $1/\sqrt{d}$인 정규분포로 초기화합니다(`nn.init.normal_`). 위치 표는 학습하지 않으므로 파라미터가 아니라
# 버퍼(buffer)로 둡니다. 언제든 다시 계산할 수 있으므로 저장하지도 않습니다(`persistent=False`).
#
# B는 문장 수, L은 길이, D는 `d_model`, P는 자리의 수, V는 어휘의 크기입니다. `self.tokens`와 `self.positions`라는
# 이름은 바꾸지 마세요. 5장에서는 학습된 가중치를 `tokens`에 옮겨 넣고, 6장에서는 `positions`를 지워 봅니다.


# %% tags=["blank"]
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_length=128):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model은 짝수여야 합니다. 사인과 코사인이 짝을 이룹니다: {d_model}")
        self.tokens = nn.Embedding(vocab_size, d_model)  # 표 (V, D)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)  # 표의 수는 표준편차 1/√D로 시작
        speed = 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # 바늘마다 빠르기 (D/2,)
        angle = torch.arange(max_length).unsqueeze(1) * speed  # 자리마다 각도 (P, 1) × (D/2,) -> (P, D/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(
            1
        )  # 사인과 코사인을 번갈아 (P, D/2, 2) -> (P, D)
        self.register_buffer("positions", table.float(), persistent=False)  # 버퍼 self.positions (P, D)

    def forward(self, ids):  # (B, L)
        if ids.shape[1] > len(self.positions):
            raise ValueError(f"길이 {ids.shape[1]}인 글이 위치 {len(self.positions)}개보다 깁니다")
        x = self.tokens(ids)  # 표에서 꺼낸 행 (B, L, D)
        x = x * math.sqrt(x.shape[-1])  # √D를 곱합니다 (B, L, D)
        return x + self.positions[: ids.shape[1]]  # 위치를 더합니다 (B, L, D) + (L, D) -> (B, L, D)


# %%
check(Embedding)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 표는 `nn.Embedding(vocab_size, d_model)`입니다. 위치의 표를 만드는 네 줄은 이 장의 "사인과 코사인"에서 이미
# 실행했습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 버퍼는 `self.register_buffer("positions", table.float(), persistent=False)`로 만듭니다. `forward`에서는
# `self.tokens(ids)`에 `math.sqrt(x.shape[-1])`을 곱하고 `self.positions[: ids.shape[1]]`을 더합니다.
#
# </details>

# %% [markdown]
# 통과한 클래스는 저장소의 `runs/my_classes.py`에 저장됩니다. 다음 장은 거기서 이 클래스를 가져다 사용합니다.

# %% [markdown]
# 두 문장을 한꺼번에 넣어 봅시다.

# %%
my_embedding = Embedding(2000, 128)
with torch.inference_mode():
    inputs = my_embedding(input_ids)
print(tuple(input_ids.shape), "->", tuple(inputs.shape))

# %% [markdown]
# 첫 문장의 앞 40칸을 그려 봅시다. 그림에서는 토큰의 `▁`를 밑줄 `_`로 적습니다.
# 두 `[PAD]`는 임베딩이 같지만, 더한 위치가 달라서 두 행이 조금 다릅니다.

# %%
plot_matrix(
    inputs[0, :, :40],
    tokenizer.convert_ids_to_tokens(input_ids[0]),
    title="임베딩과 위치의 합",
    xlabel="벡터의 칸",
    ylabel="토큰",
)

# %% [markdown]
# 모델의 계산은 이 합에서 시작합니다.
#
# ## 이 패키지에서는
#
# 패키지는 같은 일을 모듈 둘로 나누어 합니다. 하나는 임베딩에 √d를 곱하고(`VanillaTransformerEmbedding`),
# 다른 하나는 위치를 더합니다(`VanillaTransformerSinusoidalPositions`). 위치에는 한 가지가 더 있습니다.
# 방금 만든 `Embedding`은 패딩도 자리로 세지만, 패키지는 **진짜 토큰만 셉니다**. 패딩의 자리는 -1로 둡니다.

# %%
left = tokenizer(sentences, padding=True, pad_to_multiple_of=8, padding_side="left", return_tensors="pt")
for side, mask in (("오른쪽", attention_mask[:1]), ("왼쪽", left["attention_mask"][:1])):
    print(f"패딩이 {side}: 마스크 {mask.tolist()}, 자리 {modeling.position_ids_from_mask(mask).tolist()}")

# %% [markdown]
# 자리는 마스크를 앞에서부터 차례로 더해(누적합) 셉니다.
# 그래서 패딩이 왼쪽에 있어도 진짜 토큰의 자리는 0부터 5까지 그대로입니다.
# 디코더가 여러 글을 한꺼번에 이어 쓸 때는 패딩을 왼쪽에 두므로, 자리가 패딩에 따라 달라지면 곤란합니다.
#
# 정말 결과가 같을까요? 같은 문장을 패딩만 오른쪽과 왼쪽에 달리 두어 학습된 인코더에 넣고, 진짜 토큰의 출력을
# 비교합니다.

# %%
states = {}
for side in ("right", "left"):
    padded = pieces(sentences, padding=True, padding_side=side, return_tensors="pt")
    with torch.inference_mode():
        states[side] = trained.model.encoder(**padded).last_hidden_state[padded["attention_mask"].bool()]
    print(side, states[side][0, :4])
print(torch.allclose(states["right"], states["left"], atol=1e-5))

# %% [markdown]
# > *transformer-evolution에서는* 1부터 세고 패딩에 0을 줍니다. 이 패키지에서는 `position_offset`을 1로 하면 됩니다.
# > *pytorch-seq2seq에서는* 패딩도 함께 0부터 셉니다. 패딩이 오른쪽에 있으면 진짜 토큰의 자리는 달라지지 않습니다.
#
# ## 학습되는 위치 임베딩(learned positional embedding)
#
# 위치를 계산하지 않고 임베딩처럼 학습할 수도 있습니다. 논문은 두 방법의 결과가 거의 같다고 합니다(표 3의 E). 위치를
# 학습하면 파라미터가 늘어납니다. 사인과 코사인의 표는 얼마든지 더 길게 계산할 수 있습니다. 그래도 학습할 때 본 적이
# 없는 뒤의 자리는 어느 방법으로도 잘 읽지 못합니다(6장에서 해 봅니다). 그래서 어느 방법을 고르든, 글이
# `max_position_embeddings`에 정해 둔 길이보다 길면 패키지는 오류를 냅니다.

# %%
for kind in ("sinusoidal", "learned"):
    config = VanillaTransformerConfig(
        vocab_size=2000, d_model=128, encoder_layers=1, decoder_layers=1, position_embedding_type=kind
    )
    encoder = modeling.VanillaTransformerEncoder(config)
    print(f"{kind}: 위치의 파라미터 {sum(p.numel() for p in encoder.embed_positions.parameters()):,}개")
    try:
        encoder(input_ids=torch.full((1, config.max_position_embeddings + 1), 7))
    except ValueError as error:
        print("  ", error)

# %% [markdown]
# 앞의 표에서 `pytorch-seq2seq`만 `learned`였습니다. `position_embedding_type`으로 고릅니다.
#
# ## 정리
#
# - 임베딩은 번호에 해당하는 행을 표에서 꺼냅니다. 학습이 끝나면 쓰임새가 비슷한 토큰끼리 방향이 비슷해집니다.
# - 작은 수로 시작한 임베딩에 √d를 곱해 위치와 크기를 맞춥니다.
# - 위치 인코딩은 도는 속도가 다른 바늘들의 사인과 코사인입니다. 자리를 옮기는 것은 바늘을 돌리는 것과 같습니다.
# - 만든 것: `Embedding`. (B, L)의 번호가 (B, L, D)의 벡터가 됩니다.
#
# **더 생각해 보기.** 위치를 더하지 않고 벡터 뒤에 이어 붙이면(concat) 무엇이 좋아지고 무엇이 나빠질까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 사인만 쓰지 않고 코사인과 짝지은 이유는 무엇일까요?
#
# - (가) 값을 더 크게 하려고
# - (나) 어느 자리에서든 같은 회전으로 몇 자리 뒤의 벡터를 얻으려고
# - (다) 파라미터를 줄이려고
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 사인도 코사인도 -1과 1 사이입니다.
# - (나) 맞습니다. 바늘 끝의 두 좌표가 모두 있어야 바늘을 돌릴 수 있습니다. 10장에서는 이 회전으로 복사하는 모델을
#   학습 없이 만듭니다.
# - (다) 아닙니다. 위치 인코딩에는 파라미터가 없습니다.
#
# </details>
#
# **2.** `nn.Embedding`의 초깃값(표준편차 1)에 √d를 곱하면 어떻게 될까요?
#
# - (가) 위치보다 훨씬 커서 순서를 알아보기 어렵습니다
# - (나) 위치와 크기가 같아집니다
# - (다) 학습하면 저절로 맞춰지므로 상관없습니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. d = 128이면 임베딩이 위치의 열여섯 배쯤 됩니다. 6장의 과제를 100스텝 학습해도 하나도 복사하지
#   못합니다.
# - (나) 아닙니다. 표준편차 1/√d로 시작할 때의 이야기입니다.
# - (다) 아닙니다. 오래 학습하면 나아지지만, 시작이 나쁘면 훨씬 오래 걸립니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★ 5분
#
# `d_model`이 4일 때 3번 자리의 벡터를 `math.sin`과 `math.cos`만으로 계산해 보세요. 네 수의 목록입니다.
#
# <details><summary>힌트 1</summary>
#
# 바늘은 둘입니다. 첫 바늘의 빠르기는 1, 둘째 바늘의 빠르기는 $1/10000^{2/4}$입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# $10000^{2/4} = 100$이므로 둘째 바늘의 각도는 3 / 100입니다.
#
# </details>

# %% tags=["exercise"]
by_hand = [math.sin(3), math.cos(3), math.sin(3 / 100), math.cos(3 / 100)]  # 수 네 개

# %%
check_answer(
    by_hand,
    modeling.sinusoid_table(4, 4)[3].tolist(),
    (
        [math.sin(3), math.sin(3 / 100), math.cos(3), math.cos(3 / 100)],
        "사인 둘, 코사인 둘의 차례입니다. 번갈아 두세요.",
    ),
    ([math.cos(3), math.sin(3), math.cos(3 / 100), math.sin(3 / 100)], "사인과 코사인이 바뀌었습니다."),
    (lambda it: math.isclose(it[2], math.sin(3 / 10)), "둘째 바늘의 지수가 i/d입니다. 2i/d로 계산하세요."),
)

# %% [markdown]
# ### 연습 2 ★★ 5분
#
# 마스크 `[0, 0, 1, 1, 1]`에서 자리 `[0, 0, 1, 2, 3]`을 `cumsum`으로 만들어 보세요. 1부터 세고 패딩은 0입니다.
#
# <details><summary>힌트 1</summary>
#
# `mask.cumsum(dim=0)`을 먼저 출력해 보세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 마스크 `[1, 1, 0]`처럼 0이 오른쪽에 있으면 누적합은 `[1, 2, 2]`입니다. 패딩의 자리를 0으로 만들려면 마스크를
# 곱하세요.
#
# </details>


# %% tags=["exercise"]
def positions_from_mask(mask):  # (L,)
    return mask.cumsum(dim=0) * mask  # 자리 (L,)


# %%
masks = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]])
check_answer(
    lambda: [positions_from_mask(mask).tolist() for mask in masks],
    [[0, 0, 1, 2, 3], [1, 2, 3, 0, 0]],
    ([[0, 0, 1, 2, 3], [1, 2, 3, 3, 3]], "오른쪽에 있는 패딩의 자리가 0이 아닙니다."),
)

# %% [markdown]
# ### 연습 3 ★ 3분
#
# 가장 느린 바늘은 몇 자리를 가야 한 바퀴를 돌까요? `speed`로 계산해 보세요.
#
# <details><summary>힌트 1</summary>
#
# 한 바퀴는 $2\pi$라디안입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 빠르기는 한 자리에 도는 각도입니다. 한 바퀴를 그 각도로 나누세요. 가장 느린 바늘은 `speed[-1]`입니다.
#
# </details>

# %% tags=["exercise"]
turn = 2 * math.pi / speed[-1].item()  # 자리의 수

# %%
check_answer(
    turn,
    lambda it: 50_000 < it < 2 * math.pi * 10_000,  # d가 커질수록 2π × 10000에 가까워집니다
    (lambda it: it < 7, "가장 빠른 바늘입니다. speed[-1]이 가장 느립니다."),
    (lambda it: it < 10_000, "2π를 곱했는지 보세요."),
)

# %% [markdown]
# 다음 장에서는 이 벡터들이 서로를 봅니다. → [3. 어텐션](03_attention.ipynb)
