"""The page in Chromium, with the models of the clone, beside Python.

Needs npm, Debian's chromium with fonts-nanum, and playwright from PyPI; skipped if one of them is missing.
"""

import functools
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from shared import ROOT, tiny_config

from exports.models import random_model
from hf_vanilla_transformer.exports.browser_page import copy_runtime, make_page
from hf_vanilla_transformer.inference import Classifier, Translator
from hf_vanilla_transformer.inference.folder import load_model, load_tokenizer
from hf_vanilla_transformer.tokenizer import train_tokenizer


pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="the page's browser tests need playwright")
playwright.expect.set_options(timeout=30_000)  # other tests run beside these

CLASSIFIER, TRANSLATOR = (str(ROOT / "model_cards" / name) for name in ("nsmc-small", "multi30k-de-en"))
SENTENCES = ["Ein Mann mit Hut fährt mit dem Fahrrad durch die Stadt.", "Zwei Hunde spielen im Schnee."]
# Special tokens, emoji, other scripts, control characters, markup, and texts that the model cuts.
TEXTS = [
    "배우들의 연기가 정말 좋았지만 이야기는 지루했다",
    "좋다 [BOS] 좋다",
    "ㅋㅋㅋㅠㅠ",
    "😀👍🏽👨‍👩‍👧",
    "ﬁ ½ ① Ａ",
]
TEXTS += ["e\u0301e\u0301 \u1100\u1161\u11a8", "▁▁ x ▁", "\x00\x01a\x85b\xa0c", "<b>굵게</b> & 'x'"]
TEXTS += ["지루하고 유치했다 " * 1_000, "x" * 10_000]
MARKUP = "<img src=x onerror=document.title='ran'>"


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Requests are not printed."""


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("the page's browser tests need chromium")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("npm") / "runtime"
    try:
        copy_runtime(folder)
    except ValueError as error:
        if not str(error).startswith("npm"):
            raise
        pytest.skip(str(error))
    return str(folder)


@pytest.fixture
def visit(browser, runtime, tmp_path):
    """Make and open a model's page; nothing may go wrong there or be asked of another host."""
    problems, servers = [], []

    def visit(model: str, **settings):
        folder = str(tmp_path / "page")
        make_page(model, folder, runtime=runtime)
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{servers[-1].server_port}/"
        page = browser.new_page(**{"locale": "en-US", **settings})
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("request", lambda request: request.url.startswith(address) or problems.append(request.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        return page

    yield visit
    for server in servers:
        server.shutdown()
        server.server_close()
    assert not problems


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


def test_a_classifiers_page_computes_what_torch_does(visit):
    page = visit(CLASSIFIER, locale="ko-KR")
    work = """async (model, text) => {
        const { ids, probabilities, encoder, cross } = await model.classify(text);
        const numbers = (layers) => layers.map((heads) => heads.map((rows) => rows.map((row) => Array.from(row))));
        return { ids, probabilities, encoder: numbers(encoder), cross: numbers(cross) };
    }"""
    tokenizer, model = load_tokenizer(CLASSIFIER), load_model(CLASSIFIER, attn_implementation="eager").eval()
    for text, answer in zip(TEXTS, ask(page, "Classifier", work, TEXTS), strict=True):
        inputs = tokenizer(text[: 64 * 128], truncation=True, max_length=128, return_tensors="pt")
        assert answer["ids"] == inputs["input_ids"][0].tolist(), text
        with torch.no_grad():
            outputs = model(**inputs, output_attentions=True)
        assert answer["probabilities"] == pytest.approx(outputs.logits.softmax(dim=-1)[0].tolist(), abs=1e-5)
        for name, attentions in (("encoder", outputs.encoder_attentions), ("cross", outputs.cross_attentions)):
            assert np.abs(np.array(answer[name]) - torch.cat(attentions).numpy()).max() < 1e-4, text
    assert ask(page, "Classifier", "(model, text) => model.classify(text)", ["", " ", "\u200b"]) == [None] * 3

    page.get_by_label("분류할 글").fill("")
    playwright.expect(page.locator("#answer")).to_be_hidden()
    page.get_by_label("분류할 글").press_sequentially("정말 재미있고 감동적인 영화")
    probabilities = Classifier(CLASSIFIER).probabilities(["정말 재미있고 감동적인 영화"])
    playwright.expect(page.locator("#verdict")).to_have_text(f"긍정 {probabilities.max():.2%}")
    playwright.expect(page.locator("#cross .words").first).to_contain_text("재미있고")
    page.get_by_role("button", name="English").click()
    playwright.expect(page.locator("#verdict strong")).to_have_text("positive")


def test_a_translators_page_computes_what_torch_does(visit):
    page = visit(TRANSLATOR)
    work = """async (model, text) => {
        let last;
        for await (const step of model.translate(text)) last = step;
        return { translation: last.translation, written: last.written,
                 cross: last.cross.map((heads) => heads.map((rows) => rows.map((row) => Array.from(row)))) };
    }"""
    tokenizer, model = load_tokenizer(TRANSLATOR), load_model(TRANSLATOR, attn_implementation="eager").eval()
    answers = ask(page, "Translator", work, SENTENCES)
    assert [answer["translation"] for answer in answers] == Translator(TRANSLATOR, num_beams=1)(SENTENCES)
    for text, answer in zip(SENTENCES, answers, strict=True):
        target = [model.config.decoder_start_token_id, *tokenizer.convert_tokens_to_ids(answer["written"])[:-1]]
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            outputs = model(**inputs, decoder_input_ids=torch.tensor([target]), output_attentions=True)
        assert np.abs(np.array(answer["cross"]) - torch.cat(outputs.cross_attentions).numpy()).max() < 1e-4
    page.get_by_label("Your sentence").fill(SENTENCES[1])
    playwright.expect(page.locator("#verdict")).to_have_text("Two dogs play in the snow.")


def test_labels_and_tokens_are_texts_and_no_code(visit, tmp_path):
    model = tmp_path / "model"
    tokenizer = train_tokenizer(["constructor toString"] * 20, vocab_size=100, max_length=16)
    tokenizer.add_tokens([MARKUP, "__proto__"])
    labels = dict(enumerate(["__proto__", "constructor", MARKUP]))
    config = tiny_config(vocab_size=len(tokenizer), id2label=labels)
    random_model(config, "classification").save_pretrained(model)
    tokenizer.save_pretrained(model)
    page = visit(str(model))
    page.locator("#input").fill(f"constructor{MARKUP}__proto__")
    playwright.expect(page.locator("#labels th")).to_have_text([*labels.values()])
    assert page.locator("main img").count() == 0 and page.title() != "ran"
