"""The page in Chromium, with the models of the clone, beside Python.

Needs npm, Debian's chromium with fonts-nanum, and playwright from PyPI; skipped where one of them is missing.
"""

import contextlib
import functools
import json
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from shared import ROOT, tiny_config

from exports.models import random_model
from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.data.labelled_text import encode
from hf_vanilla_transformer.exports.browser_page import copy_runtime, make_page, page_server
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.inference.folder import load_model, load_tokenizer
from hf_vanilla_transformer.tokenizer import train_tokenizer


pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="the page's browser tests need playwright")
playwright.expect.set_options(timeout=30_000)  # other tests run beside these

CLASSIFIER, TRANSLATOR = (str(ROOT / "model_cards" / name) for name in ("nsmc-small", "multi30k-de-en"))
REVIEW = "배우들의 연기가 정말 좋았지만 이야기는 지루했다"
SENTENCE = "Ein Mann mit Hut fährt mit dem Fahrrad durch die Stadt."
# What a page may be given: nothing, nothing but signs, emoji, special tokens, other scripts, 10,000 characters.
HOSTILE = ["", " ", "\t\n", "\u200b", "[PAD]", "좋다 [BOS] 좋다", "<s>", "ㅋㅋㅋㅠㅠ", "😀👍🏽👨‍👩‍👧", "🇰🇷!"]
HOSTILE += ["ﬁ ½ ① Ａ", "e\u0301e\u0301 \u1100\u1161\u11a8", "▁▁ x ▁", "İstanbul ẞ 𝒜", "١٢٣ ४५६"]
HOSTILE += ["\x00\x01a\x85b\xa0c", "<b>굵게</b> & 'x'"]
HOSTILE += ["좋" + " " * 10_000 + "다", "한글" * 5_000, "지루하고 유치했다 " * 1_000, "x" * 10_000]


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("the page's browser tests need chromium")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def runtime(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("npm") / "runtime"
    try:
        copy_runtime(folder)
    except ValueError as error:
        if not str(error).startswith("npm"):
            raise
        pytest.skip(str(error))
    return str(folder)


def served(model: str, runtime: str, folder: Path):
    make_page(model, str(folder), runtime=runtime)
    with page_server(str(folder), port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def classifier_address(browser, runtime, tmp_path_factory):
    yield from served(CLASSIFIER, runtime, tmp_path_factory.mktemp("pages") / "classifier")


@pytest.fixture(scope="session")
def translator_address(browser, runtime, tmp_path_factory):
    yield from served(TRANSLATOR, runtime, tmp_path_factory.mktemp("pages") / "translator")


@pytest.fixture
def visit(browser):
    """Open a page and wait until it is ready; at the end, nothing may have gone wrong or been asked of others."""
    problems, contexts = [], []

    def visit(address: str, **settings):
        contexts.append(context := browser.new_context(**{"locale": "en-US", **settings}))
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("request", lambda request: request.url.startswith(address) or problems.append(request.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not problems


MARKUP = "<img src=x onerror=document.title='ran'>"
NAMES_OF_OBJECTS = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "then"]


@pytest.fixture(scope="session")
def strange_address(browser, runtime, tmp_path_factory):
    """Function of a task: the page of a tiny model whose labels, tokens, examples and name are markup and names."""
    folder, stack = tmp_path_factory.mktemp("strange"), contextlib.ExitStack()

    def strange_address(task: str) -> tuple[str, str]:
        model = folder / task / f"{MARKUP} __proto__"
        tokenizer = train_tokenizer([" ".join(NAMES_OF_OBJECTS)] * 20, vocab_size=100, max_length=16)
        tokenizer.add_tokens([MARKUP, "__proto__", "constructor"])
        labels = dict(enumerate([*NAMES_OF_OBJECTS[:3], MARKUP, "empty"]))
        fields = {"id2label": labels} if task == "classification" else {}
        random_model(tiny_config(vocab_size=len(tokenizer), **fields), task).save_pretrained(model)
        tokenizer.save_pretrained(model)
        examples = {"examples": [MARKUP, "constructor", "{name} $& __proto__"]}
        (model / "run.json").write_text(json.dumps({"data": {"validation": examples}}))
        pages = contextlib.contextmanager(served)(str(model), runtime, folder / task / "page")
        return stack.enter_context(pages), str(model)

    with stack:
        yield functools.cache(strange_address)


def ask(page, model: str, work: str, texts: list[str]) -> list:
    """What the page's own engine answers, a second `Classifier` or `Translator`.

    `work` is JavaScript: a function of the model and a text.
    """
    program = f"""async (texts) => {{
        const engine = await import("./engine.js");
        globalThis.asked ??= await engine.{model}.load(await engine.readJson("model/page.json"));
        const answers = [];
        for (const text of texts) answers.push(await ({work})(globalThis.asked, text));
        return answers;
    }}"""
    return page.evaluate(program, texts)


def some_texts() -> list[str]:
    data = load_labelled_text("sample")
    return [text for split in data.values() for text in split["text"]] + HOSTILE


def test_token_ids_equal_pythons(visit, classifier_address, translator_address):
    texts = some_texts()
    for address, model, folder in (
        (classifier_address, "Classifier", CLASSIFIER),
        (translator_address, "Translator", TRANSLATOR),
    ):
        ids = ask(visit(address), model, "(model, text) => model.encode(text)?.ids ?? []", texts)
        tokenizer = load_tokenizer(folder)
        read = [text[: 64 * 128] for text in texts]
        own = tokenizer(read, add_special_tokens=False)["input_ids"]
        expected = tokenizer(read, truncation=True, max_length=128)["input_ids"]
        assert ids == [whole if tokens else [] for whole, tokens in zip(expected, own, strict=True)]


def test_labels_probabilities_and_attention_equal_torchs(visit, classifier_address):
    texts = [text for text in some_texts()[::20] + HOSTILE if text.strip(" \t\n\u200b")]
    work = """async (model, text) => {
        const { ids, probabilities, encoder, cross } = await model.classify(text);
        const numbers = (layers) => layers.map((heads) => heads.map((rows) => rows.map((row) => Array.from(row))));
        return { ids, probabilities, encoder: numbers(encoder), cross: numbers(cross) };
    }"""
    answers = ask(visit(classifier_address), "Classifier", work, texts)
    tokenizer, model = load_tokenizer(CLASSIFIER), load_model(CLASSIFIER, attn_implementation="eager").eval()
    for text, answer, ids in zip(texts, answers, encode(texts, tokenizer, 128), strict=True):
        assert answer["ids"] == ids, text
        with torch.no_grad():
            outputs = model(torch.tensor([ids]), output_attentions=True)
        expected = outputs.logits.softmax(dim=-1)[0].tolist()
        assert answer["probabilities"] == pytest.approx(expected, abs=1e-5)
        assert np.argmax(answer["probabilities"]) == np.argmax(expected)
        for name, attentions in (("encoder", outputs.encoder_attentions), ("cross", outputs.cross_attentions)):
            assert np.abs(np.array(answer[name]) - torch.cat(attentions).numpy()).max() < 1e-4, text


def test_translations_and_cross_attention_equal_torchs(visit, translator_address):
    texts = [SENTENCE, "Zwei Hunde spielen im Schnee.", "Drei Kinder essen Eis „am“ (Strand)"]
    texts += [text for text in HOSTILE if len(text) < 100] + ["Zwei Hunde spielen im Schnee. " * 300]
    work = """async (model, text) => {
        let last = { translation: "", cross: [] };
        for await (const step of model.translate(text)) last = step;
        return { translation: last.translation, written: last.written,
                 cross: last.cross.map((heads) => heads.map((rows) => rows.map((row) => Array.from(row)))) };
    }"""
    answers = ask(visit(translator_address), "Translator", work, texts)
    tokenizer, model = load_tokenizer(TRANSLATOR), load_model(TRANSLATOR, attn_implementation="eager").eval()
    assert [answer["translation"] for answer in answers] == Translator(TRANSLATOR, num_beams=1)(texts)
    for text, answer in zip(texts[:3], answers, strict=False):
        target = [model.config.decoder_start_token_id, *tokenizer.convert_tokens_to_ids(answer["written"])[:-1]]
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs, decoder_input_ids=torch.tensor([target]), output_attentions=True)
        assert np.abs(np.array(answer["cross"]) - torch.cat(outputs.cross_attentions).numpy()).max() < 1e-4


def test_the_label_changes_while_typing(visit, classifier_address):
    page = visit(classifier_address, locale="ko-KR")
    page.get_by_label("분류할 글").fill("")
    playwright.expect(page.locator("#answer")).to_be_hidden()
    page.get_by_label("분류할 글").press_sequentially("정말 재미있고 감동적인 영화")
    probabilities = Classifier(CLASSIFIER).probabilities(["정말 재미있고 감동적인 영화"])
    playwright.expect(page.locator("#verdict")).to_have_text(f"긍정 {probabilities.max():.2%}")
    page.get_by_label("분류할 글").press_sequentially("인 줄 알았는데 지루하고 유치했다")
    playwright.expect(page.locator("#verdict strong")).to_have_text("부정")
    playwright.expect(page.locator("#cross .words").first).to_contain_text("지루하고")
    assert page.locator("#cross .words").count() == 3
    assert page.locator("canvas").bounding_box()["height"] > 100
    page.get_by_role("button", name="기대했는데 시간이 아까웠다").click()
    playwright.expect(page.locator("#cross .words").first).to_contain_text("아까")


def test_a_table_stands_behind_each_picture(visit, classifier_address):
    page = visit(classifier_address)
    page.get_by_label("Your text").fill(REVIEW)
    tokenizer, model = load_tokenizer(CLASSIFIER), load_model(CLASSIFIER, attn_implementation="eager").eval()
    with torch.no_grad():
        outputs = model(**tokenizer(REVIEW, return_tensors="pt"), output_attentions=True)
    page.locator("#encoder select[name=layer]").select_option("3")
    page.locator("#encoder select[name=head]").select_option("2")
    for section, expected in (
        ("#cross", outputs.cross_attentions[0][0, :, 0].T),
        ("#encoder", outputs.encoder_attentions[2][0, 1]),
    ):
        page.locator(f"{section} summary").click()
        rows = page.locator(f"{section} tbody tr")
        playwright.expect(rows).to_have_count(len(expected))
        cells = [[float(cell) for cell in row.locator("td").all_inner_texts()] for row in rows.all()]
        assert np.abs(np.array(cells) - expected.numpy()).max() < 1e-4
        heads = page.locator(f"{section} tbody th").all_inner_texts()
        assert heads == [token.replace("▁", "") for token in tokenizer.tokenize(REVIEW)]
    page.locator("#encoder select[name=head]").select_option("mean of all heads")
    mean = outputs.encoder_attentions[2][0].mean(dim=0)[0, 0].item()
    playwright.expect(page.locator("#encoder tbody td").first).to_have_text(f"{mean:.4f}")


def test_the_translation_comes_token_by_token(visit, translator_address):
    page = visit(translator_address)
    page.evaluate("""() => {
        globalThis.seen = [];
        const watch = new MutationObserver(() => seen.push(document.getElementById("verdict").innerText));
        watch.observe(document.getElementById("verdict"), { childList: true });
    }""")
    page.get_by_label("Your sentence").fill(SENTENCE)
    playwright.expect(page.locator("#verdict")).to_have_text("A man in a hat is riding a bicycle through the city.")
    seen = page.evaluate("seen")
    assert len(set(seen)) > 8 and all(later.startswith(before) for before, later in zip(seen, seen[1:], strict=False))
    page.locator("#cross summary").click()
    for row, word in enumerate(["A", "man", "in", "a"]):
        playwright.expect(page.locator("#cross tbody th").nth(row)).to_have_text(word)
    # What is typed meanwhile replaces what is under way.
    page.evaluate("""(texts) => {
        const input = document.getElementById("input");
        for (const text of texts) { input.value = text; input.dispatchEvent(new Event("input")); }
    }""", [SENTENCE, "Zwei Hunde", "Zwei Hunde spielen im Schnee."])  # fmt: skip
    playwright.expect(page.locator("#verdict")).to_have_text("Two dogs play in the snow.")


@pytest.mark.parametrize("kind", ["classifier", "translator"])
def test_no_text_breaks_a_page_on_a_phone(visit, kind, request):
    address = request.getfixturevalue(f"{kind}_address")
    page = visit(address, viewport={"width": 375, "height": 720}, locale="ko-KR", has_touch=True)
    for summary in page.locator("section:not([hidden]) summary").all():
        summary.click()
    for text in ["", " ", "\u200b", "😀👍🏽👨‍👩‍👧", "지루하고 유치했다 " * 1_000, "x" * 10_000, "<b>굵게</b>", REVIEW]:
        page.locator("#input").fill(text)
        playwright.expect(page.locator("#answer")).to_be_visible(visible=bool(text.strip(" \u200b")), timeout=60_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, text
        if len(text) > 1_000 and kind == "classifier":
            playwright.expect(page.locator("#notice")).to_contain_text("토큰 128개까지만")
    playwright.expect(page.locator("#notice")).to_be_hidden(timeout=60_000)
    assert page.locator("b").count() == 0


def test_the_keyboard_reaches_everything(visit, classifier_address):
    page = visit(classifier_address, locale="ko-KR")
    reached = []
    while True:
        page.keyboard.press("Tab")
        element = page.evaluate_handle("document.activeElement").as_element()
        name = element.evaluate("e => (e === document.body ? 'BODY' : e.id || e.name || e.textContent.trim())")
        if len(reached) > 2 and name in ("한국어", "BODY"):  # once round
            break
        reached.append(name)
        assert element.evaluate("e => getComputedStyle(e).outlineStyle !== 'none'"), reached
        if reached[-1] == "English":
            page.keyboard.press("Enter")
        if element.evaluate("e => e.tagName") == "SUMMARY":
            page.keyboard.press("Space")
    start = reached.index("English")
    assert reached[start + 1] == "input" and {"layer", "head", "The numbers as a table"} <= set(reached)
    playwright.expect(page.locator("details[open] table")).to_have_count(2)  # filled after the key is handled
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("kind", ["classifier", "translator"])
def test_a_screen_reader_finds_names_for_everything(visit, kind, request):
    page = visit(request.getfixturevalue(f"{kind}_address"))
    tree = page.locator("body").aria_snapshot()
    assert re.search(r"- heading .* \[level=1\]", tree) and "- textbox" in tree
    for role in ("button", "combobox", "img", "region", "group"):
        for element in page.get_by_role(role).all():
            name = element.aria_snapshot().split("\n")[0]
            assert re.match(r'- \w+ "\S', name) or "details" in element.evaluate("e => e.localName"), name
    label = page.locator("#verdict strong").inner_text()
    playwright.expect(page.locator("#spoken")).to_contain_text(label)


def test_the_language_is_the_browsers_until_it_is_chosen(visit, classifier_address):
    page = visit(classifier_address, locale="ko-KR")
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("분류할 때 어디를 볼까요?")
    page.get_by_role("button", name="English").click()
    playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Where does a classifier look?")
    playwright.expect(page.locator("#verdict strong")).to_have_text("negative")
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("#input").get_attribute("lang") == "ko"


def test_the_browser_refuses_other_origins(browser, classifier_address):
    page = browser.new_page()
    page.goto(classifier_address)
    asked = "fetch('http://localhost:9/').then(() => 'sent', (error) => error.message)"
    refusals = []
    page.on("console", lambda message: refusals.append(message.text))
    assert page.evaluate(asked) == "Failed to fetch"
    assert any("Content Security Policy" in text for text in refusals)
    page.close()


def test_a_file_that_is_missing_is_named(browser, classifier_address):
    page = browser.new_page(locale="en-US")
    page.route("**/classifier.onnx", lambda route: route.fulfill(status=404))
    page.goto(classifier_address)
    playwright.expect(page.locator("#notice")).to_have_text("The model failed: model/classifier.onnx: 404")
    page.close()


def test_the_settings_say_how_much_is_loaded(visit, classifier_address):
    page = visit(classifier_address)
    size = page.evaluate(
        """() => performance.getEntriesByType("resource").reduce((sum, file) => sum + file.encodedBodySize, 0)"""
    )
    settings = json.loads(page.evaluate("fetch('model/page.json').then((answer) => answer.text())"))
    assert size == pytest.approx(settings["bytes"], rel=0.05)


def words_of(texts: dict) -> set[str]:
    return set(texts).union(*(words_of(text) for text in texts.values() if isinstance(text, dict)))


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
def test_labels_are_shown_as_they_are(visit, strange_address, locale):
    """Also those that are names of the page's own words, or that every object of JavaScript has."""
    address, folder = strange_address("classification")
    page = visit(address, locale=locale)
    own = {"positive": "긍정", "negative": "부정"} if locale == "ko-KR" else {}
    words = words_of(json.loads(page.evaluate("fetch('words.json').then((answer) => answer.text())")))
    settings = json.loads(page.evaluate("fetch('model/page.json').then((answer) => answer.text())"))
    assert settings["labels"] == [*NAMES_OF_OBJECTS[:3], MARKUP, "empty"]
    labels = [*settings["labels"], *NAMES_OF_OBJECTS[3:], *sorted(words), "{time}", "$&", "undefined", "0"]
    assert len(labels) > 40
    page.route("**/model/page.json", lambda route: route.fulfill(json=settings))
    for start in range(0, len(labels), 5):
        settings["labels"] = (labels[start:] + labels)[:5]
        page.reload()
        page.wait_for_selector("body[data-ready]")
        page.locator("#input").fill("constructor")
        shown = [own.get(label, label) for label in settings["labels"]]
        playwright.expect(page.locator("#labels th")).to_have_text(shown)
        probabilities = Classifier(folder).probabilities(["constructor"])
        best = shown[probabilities.argmax()]
        playwright.expect(page.locator("#verdict")).to_have_text(f"{best} {probabilities.max():.2%}")
        playwright.expect(page.locator("#spoken")).to_contain_text(best)


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_tokens_examples_and_names_are_texts_and_no_code(visit, strange_address, task):
    address, folder = strange_address(task)
    page = visit(address, locale="ko-KR")
    texts = [" ".join(NAMES_OF_OBJECTS), f"constructor{MARKUP}__proto__", "toString 가 <b>"]
    tokenizer = load_tokenizer(folder)
    model = {"classification": "Classifier", "translation": "Translator"}[task]
    assert ask(page, model, "(model, text) => model.encode(text).ids", texts) == tokenizer(texts)["input_ids"]
    name = Path(folder).name
    assert page.title().endswith(name) and page.locator("#about").inner_text().startswith(name)
    assert page.locator("#examples button").all_inner_texts() == [MARKUP, "constructor", "{name} $& __proto__"]
    for summary in page.locator("section:not([hidden]) summary").all():
        summary.click()
    for text in [*texts, "", " ", "\u200b", "\t\n"]:
        page.locator("#input").fill(text)
        playwright.expect(page.locator("#answer")).to_be_visible(visible=text in texts)
        playwright.expect(page.locator("#notice")).to_be_visible(visible=text not in texts)
        if task == "translation":
            (translation,) = Translator(folder, num_beams=1)([text])
            assert text in texts or translation == ""
            if translation:
                playwright.expect(page.locator("#verdict")).to_have_text(translation)
        elif text in texts:
            heads = page.locator("#encoder tbody th")
            playwright.expect(heads).to_have_text([one.replace("▁", "") or "␣" for one in tokenizer.tokenize(text)])
    assert page.locator("main img, main b").count() == 0 and page.title().endswith(name)
