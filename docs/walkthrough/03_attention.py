# %% [markdown]
# # 3. 어텐션
#
# 2장에서 토큰마다 벡터를 하나씩 주었습니다. 하지만 토큰은 아직 서로를 모릅니다. '배가 아프다'의 '배'와 '배를 탔다'의
# '배'는 임베딩이 같습니다. 뜻은 옆에 있는 단어가 정합니다. **어텐션**(attention)은 토큰이 다른 토큰을 보고 필요한 것을
# 가져오는 계산입니다.

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
from chapter_plots import plot_attention, plot_masks
from check import check, check_answer, mine
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AutoTokenizer

from hf_vanilla_transformer import modeling_vanilla_transformer as modeling
from hf_vanilla_transformer.inference.folder import load_model


Embedding = mine("Embedding")  # 2장에서 만든 클래스

# %%
drawings.model_map(3)

# %% [markdown]
# ## 쿼리, 키, 밸류
#
# 도서관에서 책을 찾는 일과 비슷합니다.
# 찾는 말이 **쿼리**(query), 책등의 제목이 **키**(key), 책의 내용이 **밸류**(value)입니다.
# 파이썬의 `dict`는 키가 똑같을 때만 값을 돌려줍니다. 어텐션은 모든 값을 섞되, 키가 쿼리와 *비슷할수록*
# 많이 섞습니다.
#
# 과일 셋으로 해 봅시다. 벡터의 첫 칸은 '새콤함', 둘째 칸은 '부드러움'이라고 생각하세요.
# 쿼리, 키, 밸류로 모두 같은 벡터를 사용합니다.

# %%
fruits = ["사과", "바나나", "키위"]
x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
query = key = value = x
pd.DataFrame(x, index=fruits, columns=["새콤함", "부드러움"])

# %% [markdown]
# ### 점수
#
# 쿼리와 키가 얼마나 비슷한지는 2장에서 본 내적으로 잽니다. 행이 쿼리, 열이 키입니다.

# %%
scores = query @ key.T
pd.DataFrame(scores, index=fruits, columns=fruits)

# %% [markdown]
# ### 소프트맥스
#
# 점수를 합이 1인 **어텐션 가중치**(attention weight)로 바꿉니다. 지수 함수를 씌워 모두 양수로 만들고, 합으로
# 나눕니다.

# %%
pd.DataFrame(scores.softmax(dim=1), index=fruits, columns=fruits).round(3)

# %% [markdown]
# 사과의 행을 보세요. 사과와 키위에 0.422씩, 바나나에 0.155입니다.
#
# ### 스케일
#
# 논문의 식에는 한 단계가 더 있습니다. 소프트맥스에 넣기 전에 점수를 $\sqrt{d_k}$로 나눕니다.
# $d_k$는 키의 차원이고, 여기서는 2입니다.

# %%
weights = (scores / math.sqrt(2)).softmax(dim=1)
pd.DataFrame(weights, index=fruits, columns=fruits).round(3)

# %% [markdown]
# 같은 행이 0.401, 0.198, 0.401이 되었습니다. 가중치가 조금 더 고르게 퍼졌습니다.
#
# > *이 예제는 여러 글에 나옵니다.* 그런데 √2로 나눈 결과라면서 0.422, 0.156, 0.422를 적은 글이 있습니다.
# > 위의 두 표에서 보듯 0.422는 나누기 *전*의 값입니다(가운데는 반올림하면 0.155).
# > 나눈 뒤의 값은 0.401, 0.198, 0.401입니다.
#
# ### 가중합
#
# 마지막으로 밸류에 가중치를 곱해 더합니다. 사과의 결과는 사과와 키위를 0.401씩, 바나나를 0.198만큼 섞은 것입니다.

# %%
pd.DataFrame(weights @ value, index=fruits, columns=["새콤함", "부드러움"]).round(3)

# %% [markdown]
# 이것이 어텐션의 전부입니다. 논문의 식 (1)입니다.
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# 그림으로 그리면 이렇습니다. 맨 아래의 선형 층은 조금 뒤에, 마스크는 그다음에 설명합니다.

# %%
drawings.attention()

# %% [markdown]
# ### 만들기: `ScaledDotProductAttention`
#
# 식을 클래스로 옮깁니다. L은 쿼리의 수, M은 키와 밸류의 수, K는 벡터의 차원입니다. `...`은 배치처럼 앞에 붙는
# 차원입니다. `mask`는 볼 수 있는 자리가 True입니다. 모양은 점수와 같습니다. 모든 쿼리의 마스크가 같다면 (..., 1, M)일
# 수도 있습니다. 볼 수 없는 자리의 점수를 $-\infty$(`-math.inf`)로 바꾸면 소프트맥스 뒤에 0이 됩니다. `-1e9`처럼
# 절댓값이 아주 큰 음수로 바꾸어도 됩니다. 볼 자리가 하나도 없는 행에서만 결과가 다릅니다. 이 경우는 이 장의 뒤에서
# 봅니다. 마스크를 주지 않으면(`None`) 모두 봅니다.


# %% tags=["blank"]
class ScaledDotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):  # (..., L, K), (..., M, K), (..., M, K), (..., L이나 1, M)
        scores = query @ key.transpose(-2, -1)  # 내적 (..., L, K) @ (..., K, M) -> (..., L, M)
        scores = scores / math.sqrt(key.shape[-1])  # √K로 나눈 점수 (..., L, M)
        if mask is not None:  # 마스크를 받았으면
            scores = scores.masked_fill(~mask, -math.inf)  # 볼 수 없는 자리가 -∞인 점수 (..., L, M)
        weights = scores.softmax(dim=-1)  # 어텐션 가중치. 행마다 합이 1 (..., L, M)
        return weights @ value, weights  # 가중합 (..., L, M) @ (..., M, K) -> (..., L, K)과 가중치


# %%
check(ScaledDotProductAttention)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 위의 과일 예제의 단계를 그대로 코드로 옮기면 됩니다: 점수, 스케일, 마스크, 소프트맥스, 가중합. 배치가 앞에 붙으므로
# `key.T` 대신 마지막 두 차원을 바꾸는 `key.transpose(-2, -1)`을 사용하세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 가릴 때는 `scores.masked_fill(~mask, -math.inf)`, 소프트맥스는 `scores.softmax(dim=-1)`입니다. 마지막 줄은 `return
# weights @ value, weights`입니다.
#
# </details>

# %% [markdown]
# 위에서 한 단계씩 계산한 과일의 결과와도 같습니다.

# %%
my_attention = ScaledDotProductAttention()
mixed, same_weights = my_attention(query, key, value)
print(tuple(mixed.shape), torch.allclose(same_weights, weights), torch.allclose(mixed, weights @ value))

# %% [markdown]
# ## 왜 √d_k로 나눌까
#
# 차원이 크면 내적도 커집니다. 무작위 벡터로 재 보면 내적의 크기는 $\sqrt{d_k}$에 비례합니다. 점수의 차이가 크면
# 소프트맥스는 하나에 거의 1을 몰아줍니다. 그러면 파라미터를 어느 쪽으로 얼마나 고칠지 알려 주는 기울기(gradient)가 0에
# 가까워져 학습이 더뎌집니다. 가장 큰 가중치와, 점수까지 역전파된 기울기의 크기를 함께 재 봅시다.


# %%
def gradient(scores):
    """소프트맥스를 지나 역전파된 기울기의 크기"""
    scores = scores.clone().requires_grad_()
    (scores.softmax(dim=1) * torch.randn_like(scores)).sum().backward()
    return scores.grad.norm(dim=1).mean().item()


rows = {}
for d in (4, 64, 1024):
    dots = (torch.randn(1000, 1, d) * torch.randn(1000, 10, d)).sum(dim=2)  # 쿼리 1000개, 키는 10개씩
    measured = [[one.softmax(dim=1).amax(dim=1).mean().item(), gradient(one)] for one in (dots, dots / math.sqrt(d))]
    rows[f"d_k = {d}"] = [dots.std().item(), math.sqrt(d), *measured[0], *measured[1]]
columns = ["내적의 표준편차", "√d_k", "가장 큰 가중치", "기울기", "나눈 뒤: 가중치", "나눈 뒤: 기울기"]
pd.DataFrame.from_dict(rows, orient="index", columns=columns).round(2)

# %% [markdown]
# 나누지 않으면 차원이 커질수록 가중치 하나가 1에 가까워지고 기울기가 사라집니다. 나누어 주면 차원이 커져도 둘 다 거의
# 변하지 않습니다.
#
# ## 진짜 문장, 진짜 모델
#
# 인코더는 똑같이 생긴 층(layer)을 여러 개 쌓은 것입니다. 학습된 nsmc-small의 첫 층에서 두 문장을 따라가 봅시다.
# 짧은 문장에는 패딩이 하나 붙습니다. `eager`는 가중치까지 돌려주는 구현입니다.

# %%
tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
model = load_model(str(MODELS / "nsmc-small"), attn_implementation="eager").eval()
batch = tokenizer(["겨울은 추워요.", "감기 조심하세요."], padding=True, return_tensors="pt")
tokens = [tokenizer.convert_ids_to_tokens(ids) for ids in batch["input_ids"]]
print(*tokens, sep="\n")
print(batch["attention_mask"])

# %% [markdown]
# 쿼리, 키, 밸류는 어디서 올까요? 같은 입력에 서로 다른 행렬 셋을 곱해서 만듭니다(그림 맨 아래의 선형 층).
# 행렬은 학습으로 정해집니다.
# 그래서 같은 토큰도 쿼리일 때, 키일 때, 밸류일 때 벡터가 다릅니다.
# 한 문장이 자기 자신을 보는 이런 어텐션을 **셀프 어텐션**(self-attention)이라고 합니다.
# `pre_norm`은 벡터의 크기를 고르게 맞추는 단계로, 5장에서 설명합니다.
# 헤드(head)는 4장에서 설명합니다. 여기서는 첫 헤드의 64칸만 사용합니다.
# 임베딩과 위치는 2장에서 만든 `Embedding`에 학습된 표를 옮겨 계산합니다. 어느 `Embedding`을 가져왔는지는 이 장
# 앞부분의 `import` 셀이 알려 줍니다. 2장의 `check`를 통과했다면 내가 만든 것이고, 아니면 저장소의
# [my_transformer.py](my_transformer.py)에 있는 것입니다.

# %%
encoder, layer = model.model.encoder, model.model.encoder.layers[0]
embedding = Embedding(len(tokenizer), 192)
embedding.tokens.load_state_dict(encoder.embed_tokens.state_dict())
with torch.inference_mode():
    hidden = layer.self_attn_residual.pre_norm(embedding(batch["input_ids"]))
    q = layer.self_attn.q_proj(hidden)[..., :64]
    k = layer.self_attn.k_proj(hidden)[..., :64]
    v = layer.self_attn.v_proj(hidden)[..., :64]
print(tuple(hidden.shape), "->", tuple(q.shape))
pd.concat([pd.DataFrame(one[0, :, :4], tokens[0]) for one in (q, k, v)], axis=1, keys=["Q", "K", "V"]).round(2)

# %% [markdown]
# 첫 문장의 Q, K, V에서 앞 네 칸을 적었습니다. 다음은 $\sqrt{64}$로 나눈 점수입니다.

# %%
scores = q @ k.transpose(1, 2) / math.sqrt(64)
pd.DataFrame(scores[0], index=tokens[0], columns=tokens[0]).round(2)

# %% [markdown]
# 두 번째 문장입니다.

# %%
pd.DataFrame(scores[1], index=tokens[1], columns=tokens[1]).round(2)

# %% [markdown]
# ### 마스크
#
# 첫 문장의 마지막 열은 `[PAD]`입니다. 볼 수 없는 자리의 점수를 $-\infty$로 바꿉니다.

# %%
masked = scores.masked_fill(batch["attention_mask"][:, None, :] == 0, -math.inf)
pd.DataFrame(masked[0], index=tokens[0], columns=tokens[0]).round(2)

# %%
probabilities = masked.softmax(dim=-1)
pd.DataFrame(probabilities[0], index=tokens[0], columns=tokens[0]).round(2)

# %% [markdown]
# 마지막 *행*은 `[PAD]`가 쿼리일 때입니다. 값이 있지만 그 행의 출력은 아무도 보지 않으므로 그대로 두어도 됩니다. 다음은
# 두 번째 문장의 가중치와, 가중합의 앞 네 칸입니다.

# %%
pd.DataFrame(probabilities[1], index=tokens[1], columns=tokens[1]).round(2)

# %%
output = probabilities @ v
pd.DataFrame(output[1, :, :4], index=tokens[1]).round(2)

# %% [markdown]
# 방금 만든 클래스로 두 문장을 한꺼번에 계산해 봅시다. 모델이 스스로 계산한 가중치와도 같아야 합니다. 모델이 돌려주는
# 모양은 (문장, 헤드, 쿼리, 키)입니다. `[PAD]`가 쿼리인 행은 빼고 비교합니다. 패키지는 `[PAD]`를 자리로 세지
# 않아서(2장) 그 행만 다릅니다.

# %%
is_token = batch["attention_mask"].bool()  # (B, M)
result, my_weights = my_attention(q, k, v, is_token[:, None, :])  # 쿼리마다 같은 마스크 (B, 1, M)
with torch.inference_mode():
    attentions = encoder(**batch, output_attentions=True).attentions[0]
print("q, k, v:", tuple(q.shape), " 출력:", tuple(result.shape), torch.allclose(result, output, atol=1e-6))
same = torch.allclose(my_weights[is_token], attentions[:, 0][is_token], atol=1e-6)
print("가중치: ", tuple(my_weights.shape), " 모델의 가중치:", tuple(attentions.shape), same)

# %% [markdown]
# 첫 헤드의 가중치를 그려 봅시다. 그림에서는 토큰의 `▁`를 밑줄 `_`로 적습니다.

# %%
plot_attention(attentions[0, 0], tokens[0], tokens[0], title="0번 층, 0번 헤드")

# %%
plot_attention(attentions[1, 0], tokens[1], tokens[1], title="0번 층, 0번 헤드")

# %% [markdown]
# 이 그림을 다른 문장으로도 보고 싶다면 터미널에서 아래의 명령을 실행하세요. 브라우저에서 글자를 칠 때마다 같은 모델의
# 어텐션이 바뀝니다(9장).
#
# ```sh
# vanilla-transformer page --model model_cards/nsmc-small --output_dir runs/page
# python -m http.server --bind 127.0.0.1 --directory runs/page
# ```
#
# ## 두 '배'는 달라졌을까
#
# 이 장의 첫머리에서 '배가 아프다'의 '배'와 '배를 탔다'의 '배'는 임베딩이 같다고 했습니다. 어텐션으로 옆의 단어를 보고
# 나면 달라져야 합니다. 두 `▁배`의 벡터를 인코더의 층마다 꺼내 코사인 유사도를 재 봅시다. 1이면 방향이 같습니다.

# %%
states = []
for text in ("배가 너무 아프다", "배를 타고 바다로 갔다"):
    with torch.inference_mode():
        hidden = encoder(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
    states.append([layer[0, 0] for layer in hidden])  # 층마다 첫 토큰 ▁배의 벡터
similarity = [torch.cosine_similarity(first, second, dim=0).item() for first, second in zip(*states, strict=True)]
names = ["임베딩", *(f"층 {number}" for number in range(len(similarity) - 1))]
pd.DataFrame([similarity], index=["두 ▁배의 유사도"], columns=names).round(2)

# %% [markdown]
# 인코더에 들어갈 때는 1, 곧 같은 벡터였습니다. 층 하나만 지나도 0.88로 떨어집니다. 옆에 있는 '아프다'와 '타고'가 섞여
# 들어왔기 때문입니다. 그 뒤로는 다시 조금 가까워집니다. 이 모델은 감정을 맞히도록 학습되었으므로 '배'의 뜻을 끝까지
# 간직할 필요가 없기 때문일 것입니다.
#
# ## 마스크의 세 가지 모양
#
# 인코더는 패딩만 가리면 됩니다. 디코더는 글을 앞에서부터 한 토큰씩 쓰므로 **뒤를 보면 안 됩니다.**
# 그런데 학습할 때는 정답 전체를 한꺼번에 넣으므로, 가리지 않으면 다음에 쓸 답을 미리 보게 됩니다.
# 뒤를 가리는 마스크를 **인과 마스크**(causal mask)라고 합니다. 디코더에서는 둘을 함께 사용합니다.

# %%
plot_masks([*tokens[0], "[PAD]"], [1, 1, 1, 1, 1, 0, 0])

# %% [markdown]
# 파란 칸이 볼 수 있는 자리입니다. 두 마스크는 각각 코드 한 줄로 만들고, 함께 적용하려면 `&`로 합칩니다.

# %%
pad = torch.tensor([1, 1, 1, 0]).bool()  # (M,)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (L, M)
print(pad & causal)

# %% [markdown]
# > *transformer-evolution에서는* `get_attn_pad_mask`와 `get_attn_decoder_mask`가 **가릴** 자리를 True로 표시합니다.
# > 이 패키지에 넘기는 `attention_mask`는 거꾸로 **볼** 토큰이 1입니다. 인과 마스크는 디코더가 스스로 만듭니다.
# > *torch.nn.Transformer의* `src_key_padding_mask`도 패딩이 True입니다.
#
# ## 볼 곳이 하나도 없다면
#
# 한 행의 키가 모두 가려지면 어떻게 될까요? 패딩이 왼쪽에 있고 인과 마스크까지 있으면 실제로 일어나는 일입니다.
# 맨 앞의 `[PAD]`는 자기 자신만 볼 수 있는데, 그것도 패딩이기 때문입니다. 세 가지 방법으로 계산해 봅시다.

# %%
q1, k1, v1 = torch.randn(3, 1, 1, 2, 4)  # 토큰 둘, 네 칸
hide_all = torch.full((1, 1, 2, 2), torch.finfo(torch.float32).min)
scores = q1 @ k1.transpose(2, 3) / math.sqrt(4)
print("-inf를 더하면:         ", (scores - math.inf).softmax(dim=-1)[0, 0, 0])
print("가장 작은 수를 더하면: ", (scores + hide_all).softmax(dim=-1)[0, 0, 0])
_, by_package = modeling.eager_attention_forward(torch.nn.Module().eval(), q1, k1, v1, hide_all, scaling=0.5)
print("패키지:                ", by_package[0, 0, 0])

# %% [markdown]
# `-inf`로 가리면 0을 0으로 나누게 되어 `nan`이 나오고, `nan` 하나가 모델 전체로 번집니다.
# −∞로 가린 우리의 클래스도 그렇습니다. 패딩을 오른쪽에만 두면 이런 행이 생기지 않으므로 이 연재에서는 그대로 둡니다.
# 가장 작은 수를 더하면 `nan`은 없지만, 가린 자리를 골고루 보게 됩니다.
#
# **이 패키지에서는**(`eager_attention_forward`) 소프트맥스 뒤에 가린 자리의 가중치를 한 번 더 0으로 만듭니다. 그러면
# 가중합도 0이 되어 PyTorch의 빠른 구현(SDPA)과 결과가 같습니다. 학습할 때는 가중치에 드롭아웃도 적용합니다(6장).

# %%
print(scaled_dot_product_attention(q1, k1, v1, attn_mask=torch.zeros(1, 1, 2, 2, dtype=torch.bool))[0, 0, 0])

# %% [markdown]
# ## 정리
#
# - 쿼리와 키의 내적이 점수이고, 소프트맥스를 거치면 합이 1인 어텐션 가중치가 됩니다. 출력은 밸류의 가중합입니다.
# - 점수를 √d_k로 나누면 차원이 커져도 가중치가 한 곳에 몰리지 않습니다.
# - 볼 수 없는 자리는 마스크로 가립니다. 인코더는 패딩만, 디코더는 뒤에 올 토큰도 가립니다.
# - 만든 것: `ScaledDotProductAttention`. (B, L, K)의 쿼리가 (B, L, K)의 출력이 됩니다.
#
# **더 생각해 보기.** 가중치의 합은 늘 1입니다. 볼 만한 토큰이 하나도 없을 때 모델은 어디를 볼까요?
# 합이 1이 아니어도 된다면 무엇이 달라질까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 점수를 √d_k로 나누지 않고 d_k로 나누면 어떻게 될까요?
#
# - (가) 가중치가 한 곳에 몰립니다
# - (나) 가중치가 지나치게 고르게 퍼집니다
# - (다) 아무 차이도 없습니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 나누지 않을 때의 이야기입니다.
# - (나) 맞습니다. 점수의 크기가 $1/\sqrt{d_k}$로 줄어 소프트맥스가 거의 평균이 됩니다.
# - (다) 아닙니다. 소프트맥스는 점수의 차이에 민감합니다.
#
# </details>
#
# **2.** 가린 자리의 점수를 −∞가 아니라 0으로 바꾸면 어떻게 될까요?
#
# - (가) 똑같이 가려집니다
# - (나) 오류가 납니다
# - (다) 가린 자리도 계속 봅니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. exp(0)은 0이 아니라 1입니다.
# - (나) 아닙니다. 오류가 나지 않아서 더 찾기 어렵습니다.
# - (다) 맞습니다. exp(0) = 1이므로 점수가 음수인 자리보다 오히려 더 많이 봅니다.
#
# </details>
#
# **3.** 어텐션에서 쿼리 3개가 키 5개를 봅니다. 출력은 몇 개일까요?
#
# - (가) 3개
# - (나) 5개
# - (다) 15개
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 출력은 쿼리마다 하나입니다.
# - (나) 아닙니다. 키와 밸류의 수입니다.
# - (다) 아닙니다. 15는 가중치(3 × 5)의 수입니다.
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
# 키위가 쿼리일 때 세 과일의 가중치를 파이썬의 `math.exp`만으로 계산해 보세요. 세 수의 목록입니다.
#
# <details><summary>힌트 1</summary>
#
# 키위와 사과, 바나나, 키위의 내적은 1, 1, 2입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# √2로 나눈 세 점수에 `math.exp`를 씌운 다음, 셋의 합으로 나눕니다.
#
# </details>

# %% tags=["exercise"]
exponentials = [math.exp(score / math.sqrt(2)) for score in (1, 1, 2)]
by_hand = [one / sum(exponentials) for one in exponentials]  # 가중치 세 개

# %%
without_scale = torch.tensor([1.0, 1.0, 2.0]).softmax(dim=0).tolist()
check_answer(
    by_hand,
    weights[2].tolist(),
    (without_scale, "√2로 나누지 않았습니다."),
    (lambda it: not math.isclose(sum(it), 1), "합이 1이 아닙니다. 셋의 합으로 나누세요."),
)

# %% [markdown]
# ### 연습 2 ★ 5분
#
# 과일 셋에 인과 마스크를 씌우면 가중치는 어떻게 될까요? 첫째 행과 둘째 행을 먼저 예상하고, `my_attention`으로 계산해
# 보세요.
#
# <details><summary>힌트 1</summary>
#
# 인과 마스크는 아래쪽 삼각형만 True입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `torch.ones(3, 3, dtype=torch.bool).tril()`을 넷째 인자로 주고, 반환되는 두 값 중 가중치를 사용하세요.
#
# </details>

# %% tags=["exercise"]
_, causal_weights = my_attention(query, key, value, torch.ones(3, 3, dtype=torch.bool).tril())  # 가중합과 가중치

# %%
check_answer(
    causal_weights,
    # 사과는 자기 자신밖에 볼 수 없고, 바나나는 키위를 보지 못합니다.
    lambda it: it[0].tolist() == [1, 0, 0] and it[1, 2] == 0 and torch.allclose(it.sum(dim=1), torch.ones(3)),
    (weights, "가리지 않은 가중치입니다."),
    (lambda it: it[2].tolist() == [0, 0, 1], "뒤가 아니라 앞을 가렸습니다. tril을 사용하세요."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 위에서 한 단계씩 계산한 `output`을 PyTorch의 `scaled_dot_product_attention` 한 줄로 얻어 보세요.
#
# <details><summary>힌트 1</summary>
#
# q, k, v와 마스크를 주면 됩니다. 마스크의 이름은 `attn_mask`입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 마스크는 `is_token`(2, M)에 쿼리의 차원을 끼운 (2, 1, M)이어야 합니다: `is_token[:, None, :]`.
#
# </details>

# %% tags=["exercise"]
by_torch = scaled_dot_product_attention(q, k, v, attn_mask=is_token[:, None, :])  # (2, 6, 64)

# %%
check_answer(
    by_torch,
    output,
    (scaled_dot_product_attention(q, k, v), "마스크를 주지 않았습니다."),
    (
        scaled_dot_product_attention(q, k, v, attn_mask=~is_token[:, None, :]),
        "마스크가 거꾸로입니다. 볼 토큰이 True입니다.",
    ),
)

# %% [markdown]
# 다음 장에서는 어텐션을 여러 개로 나누고, 토큰마다 따로 계산하는 단계를 더합니다.
# → [4. 멀티헤드와 피드포워드](04_multi_head_and_feed_forward.ipynb)
