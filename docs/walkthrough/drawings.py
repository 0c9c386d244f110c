# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Drawings of the chapters, as SVG. A notebook shows the `Drawing` that a function returns.

A drawing is a card of its own colour, about 400 wide, so that it can be read on a phone and on any background. Its
colours are attributes, for viewers that drop styles; where styles are kept, they are dark on a dark screen.
"""

from collections.abc import Sequence
from html import escape

from words import word


# Fill in light and in dark. A kind is also named by the text in its boxes: nothing depends on colour alone.
FILLS = {
    "card": ("#ffffff", "#161b22"),
    "plain": ("#eef1f4", "#2d333b"),
    "attention": ("#ffe2bd", "#6b4310"),
    "feed_forward": ("#cfe4fb", "#17456e"),
    "norm": ("#f6f0b5", "#55500f"),
    "embedding": ("#f9d5dd", "#6a2836"),
    "output": ("#d5efd9", "#1d5229"),
}
INK, PALE, MARK = ("#1f2328", "#e6edf3"), ("#59636e", "#9da7b3"), ("#b3261e", "#ff8b81")
DASHES = ' stroke-dasharray="5 4"'
DARK = "".join(
    [
        *(f".vt-{kind}{{fill:{dark}}}" for kind, (_, dark) in FILLS.items()),
        f".vt-ink{{fill:{INK[1]}}}.vt-pale{{fill:{PALE[1]}}}.vt-mark{{fill:{MARK[1]}}}",
        f".vt-line{{stroke:{PALE[1]}}}.vt-border{{stroke:{MARK[1]}}}.vt-tip{{fill:{PALE[1]}}}",
    ]
)


class Drawing:
    """An SVG to which boxes, arrows and words are added.

    Args:
        width, height: Its size in units of about a pixel.
        description: What it shows, for readers who do not see it.
    """

    def __init__(self, width: int, height: int, description: str):
        self.width, self.height, self.description = width, height, description
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "middle", size: int = 13, kind: str = "ink"
    ) -> None:
        """Write words around the height y; `kind` is ink, pale or mark."""
        colour = {"ink": INK, "pale": PALE, "mark": MARK}[kind][0]
        self.parts.append(
            f'<text class="vt-{kind}" x="{x:g}" y="{y + size * 0.36:g}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}">{escape(word(words))}</text>'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str = "",
        *,
        kind: str = "plain",
        size: int = 13,
        mark: bool = False,
        dashed: bool = False,
    ) -> None:
        """Draw a box with its left upper corner at (x, y); `mark` gives it a thick red border."""
        border, colour = ("border", MARK[0]) if mark else ("line", PALE[0])
        self.parts.append(
            f'<rect class="vt-{kind} vt-{border}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
            f'fill="{FILLS[kind][0]}" stroke="{colour}" stroke-width="{3 if mark else 1}"'
            f"{DASHES if dashed else ''}/>"
        )
        if words:
            self.text(x + width / 2, y + height / 2, words, size=size)

    def arrow(self, *points: tuple[float, float], tip: bool = True, dashed: bool = False) -> None:
        """Draw a line through the points, with a tip at the last one."""
        (x0, y0), (x1, y1) = points[-2:]
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(
            f'<polyline class="vt-line" points="{path}" fill="none" stroke="{PALE[0]}" stroke-width="1.5"'
            f"{DASHES if dashed else ''}/>"
        )
        if tip:
            length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
            dx, dy = (x1 - x0) / length, (y1 - y0) / length
            corners = [(x1, y1)] + [(x1 - 7 * dx + 4 * s * dy, y1 - 7 * dy - 4 * s * dx) for s in (1, -1)]
            path = " ".join(f"{x:g},{y:g}" for x, y in corners)
            self.parts.append(f'<polygon class="vt-tip" points="{path}" fill="{PALE[0]}"/>')

    def circle(self, x: float, y: float, words: str, *, mark: bool = False) -> None:
        """Draw a small circle around one or two letters."""
        border, colour, fill = ("border" if mark else "line"), (MARK if mark else PALE)[0], FILLS["card"][0]
        self.parts.append(
            f'<circle class="vt-card vt-{border}" cx="{x:g}" cy="{y:g}" r="9" fill="{fill}" '
            f'stroke="{colour}" stroke-width="{2 if mark else 1}"/>'
        )
        self.text(x, y, words, size=12, kind="mark" if mark else "ink")

    def svg(self) -> str:
        """The whole file's text."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" style="max-width:100%;height:auto" role="img" '
                "font-family=\"NanumGothic, 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif\">",
                f"<title>{escape(word(self.description))}</title>",
                f"<style>@media (prefers-color-scheme:dark){{{DARK}}}</style>",
                f'<rect class="vt-card" width="{self.width}" height="{self.height}" rx="10" fill="#ffffff"/>',
                *self.parts,
                "</svg>\n",
            ]
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return word("그림(Jupyter에서는 셀을 실행하면 보입니다): {}").format(word(self.description))


def model_map(here: int | None = None) -> Drawing:
    """The whole model, with the chapter of each part; the parts of chapter `here` are marked."""
    words = "왼쪽의 인코더는 원문을 읽고, 오른쪽의 디코더는 다음 토큰을 예측합니다. 숫자는 그 부분을 만드는 장입니다."
    drawing = Drawing(400, 634 if here else 614, f"{word('Transformer 전체 지도.')} {word(words)}")
    if here:
        drawing.text(200, 618, word("빨간 테두리: 여기, {}장").format(here), kind="mark")

    def part(x: float, y: float, words: str, kind: str, *chapters: int, height: int = 30) -> None:
        drawing.box(x, y, 148, height, words, kind=kind, mark=here in chapters)
        for corner, chapter in zip((x + 148, x), reversed(chapters), strict=False):
            drawing.circle(corner, y, str(chapter), mark=here == chapter)

    def stack(x: float, top: float, name: str, layers: Sequence[tuple[str, str, int]]) -> None:
        drawing.box(x - 12, top, 172, 482 - top, kind="card", dashed=True, mark=here == 5)
        drawing.text(x - 4, top + 13, name, anchor="start", size=12, kind="pale")
        drawing.circle(x + 158, top + 2, "5", mark=here == 5)
        for number, (words, kind, chapter) in enumerate(layers):
            y = 474 - 82 * number
            part(x, y - 20, "층 정규화", "norm", height=20)
            part(x, y - 76, "드롭아웃 + 잔차 연결", "plain", height=20)
            part(x, y - 52, words, kind, *((3, 4) if chapter == 3 else (chapter,)), height=28)
            for low in (y + 20 if number == 0 else y + 6, y - 20, y - 52):
                drawing.arrow((x + 74, low), (x + 74, low - 4 if low < y else y))
        drawing.arrow((x + 74, top), (x + 74, top - 8))
        part(x, top - 32, "층 정규화", "norm", height=22)

    for x, source in ((26, "원문의 토큰"), (226, "지금까지 쓴 글의 토큰")):
        part(x, 572, source, "plain", 1)
        part(x, 526, "임베딩 + 위치", "embedding", 2)
        part(x, 494, "드롭아웃", "plain", height=20)
        for low, high in ((572, 556), (526, 514)):
            drawing.arrow((x + 74, low), (x + 74, high))
    feed_forward = ("피드포워드", "feed_forward", 4)
    stack(26, 294, "인코더 층 × N", [("셀프 어텐션", "attention", 3), feed_forward])
    cross = ("교차 어텐션", "attention", 5)
    stack(226, 212, "디코더 층 × N", [("마스크 셀프 어텐션", "attention", 3), cross, feed_forward])
    drawing.arrow((100, 262), (100, 250), (199, 250), (199, 354), (224, 354))
    part(226, 130, "선형 층", "output", 6)
    part(226, 82, "소프트맥스", "output", 6)
    for low, high in ((180, 160), (130, 112), (82, 62)):
        drawing.arrow((300, low), (300, high))
    drawing.text(300, 50, "다음 토큰의 확률")
    drawing.text(100, 26, "완성한 모델로 하는 일", size=12, kind="pale")
    for number, words in enumerate(("학습", "감정 분석", "번역", "Hugging Face", "손으로 정하기")):
        part(26, 42 + 31 * number, words, "plain", 6 + number, height=22)
    return drawing


def _layer(title: str, steps: Sequence[tuple[str, str]], description: str) -> Drawing:
    """A pre-norm layer from bottom to top, with the residual of each step at its left."""
    height = 84 + 148 * len(steps)
    drawing = Drawing(400, height, description)
    drawing.text(200, 20, title, size=14)
    x, y = 200, height - 34
    drawing.text(x, y + 14, "들어온 벡터 (B, L, D)", size=12, kind="pale")
    drawing.text(64, y - 60, "잔차", size=12, kind="pale", anchor="end")
    for words, kind in steps:
        drawing.arrow((x, y), (x, y - 18))
        drawing.arrow((x, y - 9), (74, y - 9), (74, y - 139), (x - 11, y - 139), dashed=True)
        drawing.box(140, y - 44, 120, 26, "층 정규화", kind="norm")
        drawing.arrow((x, y - 44), (x, y - 56))
        drawing.box(110, y - 86, 180, 30, words, kind=kind)
        drawing.arrow((x, y - 86), (x, y - 96))
        drawing.box(140, y - 118, 120, 22, "드롭아웃")
        drawing.arrow((x, y - 118), (x, y - 128))
        drawing.circle(x, y - 139, "+")
        if words.startswith("교차"):
            drawing.text(354, y - 79, "인코더의", size=12)
            drawing.text(354, y - 63, "출력: K, V", size=12)
            drawing.arrow((322, y - 71), (292, y - 71))
        y -= 148
    drawing.arrow((x, y), (x, 36))
    return drawing


def encoder_layer() -> Drawing:
    """The encoder layer of chapter 5."""
    words = "인코더 층: 셀프 어텐션과 피드포워드의 차례로, 층 정규화한 입력으로 계산하고 드롭아웃을 거쳐 더합니다."
    return _layer("인코더 층", [("멀티헤드 셀프 어텐션", "attention"), ("피드포워드", "feed_forward")], words)


def decoder_layer() -> Drawing:
    """The decoder layer of chapter 5."""
    words = (
        "디코더 층: 마스크 셀프 어텐션, 교차 어텐션, 피드포워드의 차례로, 저마다 층 정규화한 입력으로 계산하고 "
        "드롭아웃을 거쳐 더합니다."
    )
    names = ("마스크 셀프 어텐션", "교차 어텐션: Q만 여기서", "피드포워드")
    return _layer("디코더 층", list(zip(names, ("attention", "attention", "feed_forward"), strict=True)), words)


def norms() -> Drawing:
    """Post-norm beside pre-norm."""
    drawing = Drawing(400, 280, "post-norm은 더한 뒤에 정규화하고, pre-norm은 하위 층에 넣기 전에 정규화합니다.")
    drawing.arrow((200, 20), (200, 260), tip=False, dashed=True)
    for x, name, norm_y, sum_y in ((100, "post-norm (논문)", 60, 112), (300, "pre-norm", 188, 72)):
        drawing.text(x, 22, name, size=14)
        drawing.text(x, 262, "x")
        low = 252
        drawing.box(x - 55, norm_y, 110, 26, "층 정규화", kind="norm")
        box_y = 150 if norm_y < 100 else 128
        drawing.box(x - 55, box_y, 110, 30, "하위 층", kind="attention")
        drawing.circle(x, sum_y, "+")
        drawing.arrow((x, low), (x, norm_y + 26 if norm_y > 100 else box_y + 30))
        if norm_y > 100:
            drawing.arrow((x, norm_y), (x, box_y + 30))
        drawing.arrow((x, box_y), (x, sum_y + 10))
        drawing.arrow((x, 236), (x - 75, 236), (x - 75, sum_y), (x - 11, sum_y), dashed=True)
        if norm_y < 100:
            drawing.arrow((x, sum_y - 9), (x, norm_y + 26))
        drawing.arrow((x, min(norm_y, sum_y - 9)), (x, 38))
    return drawing


def attention() -> Drawing:
    """Query, key and value on their way through attention."""
    words = "입력에 행렬 셋을 곱해 Q, K, V를 만들고, Q와 K로 점수를, 소프트맥스로 가중치를 구해 V를 섞습니다."
    drawing = Drawing(400, 400, words)
    drawing.box(110, 356, 180, 28, "입력 x (B, L, D)", kind="embedding")
    for x, letter in ((75, "Q"), (200, "K"), (325, "V")):
        drawing.arrow((200, 356), (200, 344), (x, 344), (x, 332))
        drawing.box(x - 45, 304, 90, 28, word(f"선형 층 {letter}"))
        drawing.arrow((x, 304), (x, 284), tip=letter != "V")
        drawing.text(x + 14, 293, letter, kind="mark")
    steps = ["점수: 쿼리 · 키 (L × L)", "÷ √d_k", "마스크: 볼 수 없으면 -∞", "소프트맥스: 합이 1"]
    for number, words in enumerate(steps):
        y = 254 - 46 * number
        drawing.box(35, y, 205, 28, words, kind="attention" if number in (0, 3) else "plain")
        if number:
            drawing.arrow((138, y + 46), (138, y + 30))
    drawing.arrow((325, 284), (325, 78), tip=False)
    drawing.box(110, 50, 250, 28, "가중합: 가중치 × 밸류", kind="output")
    drawing.arrow((138, 116), (138, 80))
    drawing.text(148, 98, "어텐션 가중치", anchor="start", size=12, kind="pale")
    drawing.arrow((235, 50), (235, 34))
    drawing.text(235, 22, "출력 (B, L, D)")
    return drawing


def heads(number: int = 3) -> Drawing:
    """Columns cut into heads, attention in each, joined again."""
    words = word("벡터의 칸을 헤드 {}개로 나누어 따로 어텐션을 하고, 이어 붙인 뒤 선형 층을 지납니다.").format(number)
    drawing = Drawing(400, 330, words)
    width = 340 / number
    drawing.text(200, 316, "Q, K, V (B, L, D)를 (B, H, L, D/H)로 나누기")
    drawing.arrow((200, 306), (200, 294))
    drawing.text(200, 20, "출력 (B, L, D)")
    drawing.box(30, 44, 340, 28, "선형 층 Wᴼ: 헤드를 섞음", kind="output")
    drawing.arrow((200, 44), (200, 30))
    for head in range(number):
        x = 30 + width * head
        middle = x + width / 2
        drawing.box(x, 264, width, 28, word("칸 {}/{}").format(head + 1, number), kind="embedding")
        drawing.arrow((middle, 264), (middle, 226))
        drawing.box(x + 5, 162, width - 10, 62, kind="attention")
        drawing.text(middle, 182, word("헤드 {}").format(head + 1))
        drawing.text(middle, 204, "어텐션")
        drawing.arrow((middle, 162), (middle, 136))
        drawing.box(x, 106, width, 28, word("결과 {}").format(head + 1), kind="embedding")
    drawing.arrow((200, 106), (200, 74))
    drawing.text(210, 90, "이어 붙이기", anchor="start", size=12, kind="pale")
    return drawing


def merges(letters: Sequence[str], steps: Sequence[tuple[int, int]]) -> Drawing:
    """A word's merge tree. Each step joins the pieces at the places `left` and `left + 1`; its number is the rank."""
    drawing = Drawing(400, 60 + 56 * (len(steps) + 1), "")
    gap = 280 / (len(letters) - 1)
    pieces = [(letter, 60 + gap * place, 40 + 56 * len(steps)) for place, letter in enumerate(letters)]
    for letter, x, y in pieces:
        drawing.box(x - 22, y - 14, 44, 28, letter)
    for height, (place, rank) in enumerate(steps):
        (left, x0, y0), (right, x1, y1) = pieces[place : place + 2]
        x, y = (x0 + x1) / 2, 40 + 56 * (len(steps) - 1 - height)
        for start, low in ((x0, y0), (x1, y1)):
            drawing.arrow((start, low - 14), (x, y + 15), tip=False)
        width = 20 + 15 * len(left + right)
        drawing.box(x - width / 2, y - 14, width, 28, left + right, kind="output")
        drawing.text(x + width / 2 + 8, y, word("합치기 {}").format(rank), anchor="start", size=12, kind="pale")
        pieces[place : place + 2] = [(left + right, x, y)]
    ends = ", ".join(piece for piece, _, _ in pieces)
    words = word("합치기 나무: 글자 {}가 {}번 합쳐져 {}가 됩니다.")
    drawing.description = words.format(", ".join(letters), len(steps), ends)
    return drawing


def shift_right(tokens: Sequence[str], start: str) -> Drawing:
    """The right answer, moved one place to the right as the decoder's input, and what it predicts at each place."""
    words = word(
        "정답 {}를 한 칸 밀고 맨 앞에 {}을 넣은 것이 디코더의 입력입니다. 디코더는 자리마다 정답을 예측합니다."
    )
    drawing = Drawing(400, 270, words.format(", ".join(tokens), start))
    for y, words in ((34, "예측할 것"), (100, "디코더"), (168, "디코더 입력"), (236, "정답")):
        drawing.text(12, y, words, anchor="start", size=12, kind="pale")
    drawing.box(86, 84, 300, 32, "자리마다 앞만 봄 (인과 마스크)", kind="attention")
    gap = 300 / len(tokens)
    for place, (read, token) in enumerate(zip([start, *tokens], tokens, strict=False)):
        x = 86 + gap * (place + 0.5)
        drawing.box(x - 20, 20, 40, 28, token, kind="output")
        drawing.box(x - 20, 154, 40, 28, read, mark=place == 0)
        drawing.box(x - 20, 222, 40, 28, token, kind="output")
        drawing.arrow((x, 154), (x, 118))
        drawing.arrow((x, 84), (x, 50))
        if place + 1 < len(tokens):
            drawing.arrow((x + 12, 222), (x + gap - 10, 184))
    return drawing


def saved_folder() -> Drawing:
    """What a saved folder holds."""
    drawing = Drawing(400, 300, "저장한 폴더의 파일: 설정, 가중치, 설정과 모델의 코드, 토크나이저입니다.")
    drawing.text(20, 22, "폴더 하나", anchor="start", size=14)
    drawing.box(14, 38, 186, 250, kind="card", dashed=True)
    files = (
        ("config.json", "설정: 크기, auto_map", "embedding"),
        ("model.safetensors", "가중치: 이름마다 텐서", "output"),
        ("configuration_….py", "설정의 코드", "feed_forward"),
        ("modeling_….py", "모델의 코드", "feed_forward"),
        ("tokenizer.json …", "어휘와 나누는 규칙", "norm"),
    )
    for number, (name, words, kind) in enumerate(files):
        y = 50 + 47 * number
        drawing.box(24, y, 166, 34, name, kind=kind, size=12)
        drawing.arrow((190, y + 17), (222, y + 17), tip=False)
        drawing.text(228, y + 17, words, anchor="start", size=12)
    return drawing
