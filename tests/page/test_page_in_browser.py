"""The page in Chromium, with the models of the clone.

Needs Debian's chromium-headless-shell (or chromium, which takes a quarter longer) with fonts-nanum, and playwright
from PyPI; skipped if one of them is missing. axe-core, which looks for what some readers cannot use, comes from npm.
"""

import functools
import json
import re
import shutil
import subprocess
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from exports.models import CONFIGS, random_model, save
from shared import LINES, ROOT, tiny_config

from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference import Classifier, Translator


pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="the page's browser tests need playwright")
playwright.expect.set_options(timeout=60_000)  # other tests run beside these
expect = playwright.expect

PAGE = ROOT / "hf_vanilla_transformer" / "page"
CLASSIFIER, TRANSLATOR = (ROOT / "model_cards" / name for name in ("nsmc-small", "multi30k-de-en"))
PANELS = ["map", "text", "head", "attentions", "layers", "decoding", "lens", "classifier", "experiments", "training"]
MARKUP = "<img src=x onerror=document.title='ran'>"
AXE = "axe-core@4.10.3"
CHROMIUM = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
# Learned positions and two vocabularies; no positions; norms with one scale; a head size of its own; one table.
OTHERS = ["preset pytorch-seq2seq", "preset torch-nn-transformer", "preset pytorch-transformer-scalar-norm"]
OTHERS += ["variant own-head-size", "variant shared-and-tied"]


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args, sent: list[tuple[str, int]], **kwargs):
        self.sent = sent
        super().__init__(*args, **kwargs)

    def log_message(self, *_):
        """Requests are not printed."""

    def copyfile(self, source, outputfile):
        content = source.read()
        self.sent.append((self.path, len(content)))
        outputfile.write(content)


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip("the page's browser tests need chromium")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("npm")
    npm = shutil.which("npm")
    words = [npm, "pack", "--silent", AXE]
    if npm is None or subprocess.run(words, cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip(f"npm cannot download {AXE}")
    with tarfile.open(next(folder.glob("*.tgz"))) as package:
        return package.extractfile("package/axe.min.js").read().decode()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page with models beside it; nothing may go wrong there or be asked of another host."""
    problems, servers, pages = [], [], []

    def visit(*models, address="?lang=en", ready=".panel", **settings):
        folder = tmp_path / "page"
        shutil.copytree(PAGE, folder, dirs_exist_ok=True)
        (folder / "models").mkdir(exist_ok=True)
        for model in models:
            (folder / "models" / model.name).symlink_to(model)
        beside = {"models": [model.name for model in models], "home": ".."}
        (folder / "page.json").write_text(json.dumps(beside))
        handler = functools.partial(Handler, directory=str(folder), sent=visit.sent)
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        base = f"http://127.0.0.1:{servers[-1].server_port}/"
        page = browser.new_page(**{"locale": "en-US", **settings})
        pages.append(page)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("request", lambda request: request.url.startswith(base) or problems.append(request.url))
        page.goto(base + address)
        page.wait_for_selector(ready)
        return page

    visit.problems, visit.sent = problems, []
    yield visit
    for page in pages:
        page.close()  # otherwise it goes on computing
    for server in servers:
        server.shutdown()
        server.server_close()
    assert not problems


def go(page, panel: str) -> None:
    page.evaluate(f"location.hash = '#{panel}'")
    expect(page.locator(f".of-{panel}")).to_be_visible()


def test_the_answers_are_those_of_python(visit):
    page = visit(TRANSLATOR, CLASSIFIER)
    translate, classify = Translator(str(TRANSLATOR), num_beams=1), Classifier(str(CLASSIFIER))
    sentence = "Ein Mann mit Hut fährt mit dem Fahrrad durch die Stadt."
    page.locator("#input").fill(sentence)
    expect(page.locator(".answer strong")).to_have_text(translate([sentence])[0])
    page.locator(".models select").select_option("nsmc-small")
    expect(page.locator(".answer strong")).to_have_text("negative")
    page.locator("#input").fill("정말 재미있고 감동적인 영화")
    expect(page.locator(".answer strong")).to_have_text("positive")
    assert (
        f"{classify.probabilities(['정말 재미있고 감동적인 영화']).max():.1%}"[:-1]
        in page.locator(".answer").inner_text()
    )


def test_axe_finds_nothing_in_any_panel(axe, visit):
    found = []
    for model, language in ((TRANSLATOR, "en"), (CLASSIFIER, "ko")):
        page = visit(model, address=f"?lang={language}&model={model.name}", reduced_motion="reduce")
        page.evaluate(axe)
        for panel in PANELS:
            go(page, panel)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                answer = page.evaluate(
                    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))"
                )
                found += [(model.name, panel, scheme, *one) for one in answer]
        page.close()
    assert not found


@pytest.mark.parametrize("task", ["classification", "translation"])
def test_every_panel_shows_other_architectures(task, visit, tmp_path):
    folders = []
    for name in OTHERS:
        folders.append(tmp_path / name.replace(" ", "-"))
        save(random_model(CONFIGS[name](), task), folders[-1])
    page = visit(*folders)
    for folder in folders:
        page.locator(".models select").select_option(folder.name)
        expect(page.locator("footer")).to_contain_text(f"{folder.name}:")
        page.locator("#input").fill(LINES[0])
        expect(page.locator(".map").first).to_be_visible()
        for panel in PANELS:
            go(page, panel)
            assert page.locator(".figures").inner_text().strip(), (folder.name, panel)


def test_a_model_is_chosen_while_another_opens_or_answers(visit):
    page = visit(CLASSIFIER, TRANSLATOR)
    choice = page.locator(".models select")
    for name in [TRANSLATOR.name, CLASSIFIER.name] * 3:
        choice.select_option(name)
        if name == CLASSIFIER.name:
            expect(page.locator("footer")).to_contain_text(name)  # it answers now
    choice.select_option(TRANSLATOR.name)
    expect(page.locator(".map").first).to_be_visible()
    expect(page.locator("footer")).to_contain_text(TRANSLATOR.name)
    page.locator("#input").fill("Ein Hund rennt.")
    expect(page.locator(".answer strong")).to_contain_text("dog")


def test_no_panel_is_wider_than_the_screen(visit):
    page = visit(TRANSLATOR)
    sentence = "Eine Gruppe von Menschen steht an einem sonnigen Tag vor einem sehr großen Gebäude und wartet."
    page.locator("#input").fill(sentence)
    expect(page.locator(".answer strong")).to_contain_text("group")
    for language in ("English", "한국어"):
        page.get_by_role("button", name=language).click()
        for width in (390, 768, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            for panel in PANELS:
                go(page, panel)
                wide, screen = page.evaluate(
                    "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
                )
                assert wide <= screen, (panel, language, width)


def test_every_panel_is_reached_and_left_by_keyboard(visit):
    page = visit(TRANSLATOR)
    for panel in PANELS[1:]:
        link = page.locator(f'.tour .map a[href="#{panel}"]').first
        if not link.count():
            link = page.locator(f'.contents a[href="#{panel}"]')
        link.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f".of-{panel}")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".of-map")).to_be_visible()
    expect(page.locator('.tour .map a[href="#training"]')).to_be_focused()


def test_arrow_keys_read_the_numbers_of_a_picture(visit):
    page = visit(TRANSLATOR, address="?lang=en#head")
    page.locator(".ledger .grid").first.focus()
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    hint = page.locator("#hint")
    expect(hint).to_contain_text("k[1] = ")
    expect(hint.locator("code")).to_have_text("key = self._split_heads(self.k_proj(source))")
    page.keyboard.press("Tab")
    expect(hint).to_be_hidden()


def test_padding_shows_in_another_pattern_than_the_future(visit):
    page = visit(TRANSLATOR, address="?lang=en#head")
    page.get_by_role("button", name="add 3 padding tokens").click()
    expect(page.locator(".ledger .swatch.padding")).to_have_count(3)
    page.get_by_role("button", name="decoder masked self-attention").click()
    page.locator(".figure .chip").nth(1).click()
    expect(page.locator(".ledger .swatch.causal").first).to_be_visible()
    assert page.locator(".ledger .swatch.padding").count() == 0


def test_a_scale_of_colours_has_its_middle_and_what_it_belongs_to(visit):
    page = visit(TRANSLATOR, address="?lang=en#attentions")
    expect(page.locator(".triple .legend").first).to_have_text("00.5001.00")
    go(page, "head")
    for title, count in (("One score", 2), ("Weighted sum", 2), ("Concatenate", 2)):  # one for each range of values
        expect(page.locator(".figure", has_text=title).locator(".legend")).to_have_count(count)


def test_a_number_has_about_three_digits_after_rounding_too(visit):
    page = visit(TRANSLATOR)
    numbers = [0.9996, 9.996, -9.996, 99.96, 999.6, 0.0004]
    shown = page.evaluate("async (all) => all.map((await import('./draw.js')).number)", numbers)
    assert shown == ["1.00", "10.0", "−10.0", "100", "1,000", "0"]


def test_overruling_a_token_changes_the_rest(visit):
    page = visit(TRANSLATOR, address="?lang=en#decoding")
    page.locator(".bars button", has_text="▁There").click()
    expect(page.locator(".of-decoding .chip.changed")).to_have_text("▁There")
    assert page.locator(".of-decoding .note", has_text="After: There").count() == 1
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".of-decoding .chip.changed")).to_have_count(0)
    expect(page.locator(".tree rect").first).to_be_visible()
    assert page.locator("tr.best").first.inner_text().split("\t")[1] == "▁Two ▁dogs ▁play ▁in ▁the ▁snow . [EOS]"


def test_scrubbing_takes_less_than_a_frame(visit):
    page = visit(TRANSLATOR, address="?lang=en#decoding")
    page.locator("#input").fill("Eine Gruppe von Menschen steht an einem sonnigen Tag vor einem sehr großen Gebäude.")
    expect(page.locator(".answer strong")).to_contain_text("group")
    tool = page.context.new_cdp_session(page)
    tool.send("Performance.enable", {"timeDomain": "threadTicks"})  # the page's own time, whatever runs beside it

    def seconds() -> float:
        metrics = {one["name"]: one["value"] for one in tool.send("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"]

    frames, before = 60, seconds()
    page.evaluate(
        """async (frames) => {
            const input = document.querySelector(".of-decoding input[type=range]");
            for (let round = 0; round < frames; round++) {
                input.value = 1 + (round % input.max);
                input.dispatchEvent(new Event("input"));
                await new Promise(requestAnimationFrame);
            }
        }""",
        frames,
    )
    assert (seconds() - before) / frames < 1 / 60


def test_a_word_is_left_out_in_one_click(visit):
    page = visit(CLASSIFIER, address="?lang=en#classifier")
    page.get_by_role("group", name="Leave out a word").get_by_role("button", name="지루했다").click()
    (whole,) = Classifier(str(CLASSIFIER))(["배우들의 연기가 정말 좋았지만 이야기는 지루했다"])
    said = f"Without “지루했다”: {whole['label']} {whole['score'] * 100:.1f} % →"
    expect(page.locator(".of-classifier .note", has_text=said)).to_be_visible()


def test_an_experiment_counts_the_sentences_that_stay(visit):
    page = visit(CLASSIFIER, address="?lang=en#experiments")
    for name in ("positions", "Run the experiment"):
        page.get_by_role("button", name=name).click()
    expect(page.locator(".of-experiments")).to_contain_text("of 20 sentences")


def test_a_question_about_the_run_is_guessed_before_its_answer_shows(visit):
    page = visit(TRANSLATOR, address="?lang=en#attentions")
    question = page.locator(".question")
    expect(question).to_contain_text(re.compile(r"has (\d+) × \1 weights"))
    assert "training" not in question.inner_text()
    question.get_by_role("button").last.click()
    expect(question).to_contain_text(re.compile(r"Not so. \d+. From each token it hides all later ones"))
    page.locator("#input").fill("Ein Hund.")  # another run, another question
    expect(question).not_to_contain_text("Not so.")


def test_every_question_has_an_answer(visit):
    for model, left_out in ((TRANSLATOR, "classifier"), (CLASSIFIER, "decoding lens")):
        page = visit(model)
        for panel in PANELS:
            go(page, panel)
            if panel in left_out:
                assert page.locator(".question").count() == 0
                continue
            page.locator(".question .options button").first.click()
            expect(page.locator(".question .right")).to_have_count(1)
            expect(page.locator(".question [role=status]")).to_contain_text(re.compile("^(Right|Not so)"))
        page.close()


def test_training_is_shown_and_can_be_scrubbed(visit):
    """By then the page has sent less than 250 kB without models, in Korean, which has three bytes a letter."""
    page = visit(TRANSLATOR, address="?lang=ko", reduced_motion="reduce")
    first = bytes_of_the_page(visit.sent)
    for panel in PANELS:
        go(page, panel)
    page.locator(".of-training button.primary").click()
    expect(page.locator(".of-training .sum")).to_contain_text(re.compile(r"^\d{2,}스텝"))
    assert first < 185_000 and bytes_of_the_page(visit.sent) < 250_000
    page.locator(".of-training input[type=range]").fill("2")
    expect(page.locator(".of-training .sum")).to_contain_text(re.compile("^2스텝"))
    assert page.evaluate("document.getAnimations().length") == 0


def bytes_of_the_page(sent: list[tuple[str, int]]) -> int:
    """What the server sent without models, a file that it sent twice counted twice."""
    return sum(size for path, size in sent if not path.startswith("/models/"))


def test_a_folder_of_files_is_opened(visit):
    page = visit(ready=".drop")
    page.locator(".open input").set_input_files(CLASSIFIER)
    expect(page.locator(".answer strong")).to_have_text("negative")
    assert "nsmc-small" in page.title()


def test_a_model_of_the_hub_is_fetched_from_there_alone(visit):
    page = visit(ready=".drop")
    asked = []

    def answer(route):
        asked.append(route.request.url)
        file = CLASSIFIER / route.request.url.rpartition("/")[2]
        headers = {"Access-Control-Allow-Origin": "*"}
        route.fulfill(**({"path": file} if file.exists() else {"status": 404}), headers=headers)

    page.context.route("https://huggingface.co/**", answer)
    page.goto(page.url.partition("?")[0] + "?lang=en&model=USER/NAME")
    expect(page.locator(".answer strong")).to_have_text("negative")
    assert all(url.startswith("https://huggingface.co/USER/NAME/resolve/main/") for url in asked)
    visit.problems[:] = [one for one in visit.problems if one not in asked and "404" not in one]


def test_what_is_no_model_gets_one_sentence(visit, tmp_path):
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    page = visit(tmp_path / "bert", address="?lang=ko", ready="[role=alert]")
    expect(page.get_by_role("alert")).to_have_text("vanilla_transformer가 아니라 bert 종류의 모델입니다.")
    for name in ("../models/bert", "https://example.org", "a/b/c"):
        page.goto(page.url.partition("?")[0] + f"?lang=en&model={name}")
        expect(page.get_by_role("alert")).to_have_text(f"?model={name} cannot be reached.")
    visit.problems.clear()  # each failure is also written to the console


def test_labels_and_tokens_are_texts_and_no_code(visit, tmp_path):
    model = tmp_path / "stranger"
    tokenizer = train_tokenizer(["constructor toString"] * 20, vocab_size=100, max_length=16)
    tokenizer.add_tokens([MARKUP, "__proto__"])
    labels = dict(enumerate(["__proto__", "constructor", MARKUP]))
    config = tiny_config(vocab_size=len(tokenizer), id2label=labels)
    random_model(config, "classification").save_pretrained(model)
    tokenizer.save_pretrained(model)
    page = visit(model)
    page.locator("#input").fill(f"constructor{MARKUP}__proto__")
    expect(page.locator(".map")).to_contain_text("constructor")
    for panel in PANELS:
        go(page, panel)
        assert page.locator("img").count() == 0
    go(page, "classifier")
    expect(page.locator(".of-classifier .chips").nth(1)).to_contain_text(MARKUP)
    expect(page.locator(".of-classifier .bars").first).to_contain_text(MARKUP)
    assert page.title() != "ran"
