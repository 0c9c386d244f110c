"""`check` of the walk-through: right answers pass and are kept, and wrong ones are told what is wrong with them."""

import ast
import importlib
import inspect
import linecache
import re
import string
import sys
import tomllib

import pytest
import torch
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
OWN = ("words", "my_transformer", "probes", "kept", "check", "properties_parts", "properties_layers")
SENTENCES = tomllib.loads((FOLDER / "sentences.toml").read_text(encoding="utf-8"))


@pytest.fixture(params=["ko", "en"])
def checks(request, tmp_path, monkeypatch):
    """The module, with the edition's own my_transformer, in a folder of its own."""
    kept = {name: sys.modules.pop(name, None) for name in (*OWN, "properties_training")}
    monkeypatch.syspath_prepend(FOLDER)
    if request.param == "en":
        monkeypatch.syspath_prepend(FOLDER / "en")
    (tmp_path / "model_cards").mkdir()
    monkeypatch.chdir(tmp_path)
    importlib.import_module("words").use(request.param)
    yield importlib.import_module("check")
    for name, module in kept.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


class Notebook:
    """Cells that run one after another, as in Jupyter."""

    def __init__(self, checks):
        self.checks, self.names = checks, dict(vars(checks.my_transformer)) | {"In": [""], "check": checks.check}

    def run(self, cell: str) -> None:
        file = f"<ipykernel {hash(cell)}>"
        linecache.cache[file] = (len(cell), None, cell.splitlines(keepends=True), file)
        self.names["In"].append(cell)
        exec(compile(cell, file, "exec"), self.names)

    def told(self, *cells: str) -> str:
        """What the last cell's check says, which is all that Jupyter shows."""
        for cell in cells[:-1]:
            self.run(cell)
        with pytest.raises(self.checks.NotRight) as error:
            self.run(cells[-1])
        assert error.value._render_traceback_() == [str(error.value)]
        return str(error.value)


@pytest.fixture
def notebook(checks):
    return Notebook(checks)


def source(checks, name: str, *changes: tuple[str, str]) -> str:
    text = inspect.getsource(getattr(checks.my_transformer, name))
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def is_right(output: str, name: str) -> bool:
    return output in (f"{name}: right.\n", f"{name}: 맞습니다.\n")


def test_the_repositorys_answers_pass_and_are_kept(checks, notebook, capsys):
    for name in checks.PROPERTIES:
        notebook.run(source(checks, name))
        notebook.run(f"check({name})")
        assert is_right(capsys.readouterr().out, name)
    answers = checks.mine(*checks.PROPERTIES)
    assert "저장소" not in (printed := capsys.readouterr().out) and "repository" not in printed
    encoder, layer = (answers[list(checks.PROPERTIES).index(name)] for name in ("Encoder", "EncoderLayer"))
    assert encoder is not checks.my_transformer.Encoder
    assert isinstance(encoder(20, 8, 2, 16, layers=1).layers[0], layer)


def test_each_blank_has_its_properties(checks):
    own = {
        name for name, one in vars(checks.my_transformer).items() if inspect.getmodule(one) is checks.my_transformer
    }
    assert own - {"my_name"} == set(checks.PROPERTIES)


def test_what_an_answer_needs_is_kept_from_whichever_cell(checks, notebook, capsys):
    cells = (
        "x = 'a local variable of the answers has this name, too'",
        "import torch.nn.functional as F\nfrom functools import partial",
        "NEG_INF = float('-inf')\nSLOPE = {'zero': 0}\n\n\ndef clipped(x):\n    return F.leaky_relu(x, SLOPE['zero'])",
        source(checks, "FeedForward", ("torch.relu(x)", "clipped(x)")) + "\n\nprint('more')\ncheck(FeedForward)",
        source(checks, "ScaledDotProductAttention", ("-math.inf", "NEG_INF")),
        "check(ScaledDotProductAttention)",
        "Dropout = nn.Dropout\ncheck(Dropout)",
        "LayerNorm = partial(nn.LayerNorm)\ncheck(LayerNorm)",
        "noam = lambda step, d, w: (d ** -0.5) * min(step ** -0.5, step * w ** -1.5)\ncheck(noam)",
    )
    for cell in cells:
        notebook.run(cell)
    capsys.readouterr()
    feed_forward, attention, dropout, norm, noam = checks.mine(
        "FeedForward", "ScaledDotProductAttention", "Dropout", "LayerNorm", "noam"
    )
    assert len(capsys.readouterr().out.splitlines()) == 1
    x = torch.ones(2, 3, 8)
    assert feed_forward(8, 16)(x).shape == attention()(x, x, x)[0].shape == norm(8)(x).shape == x.shape
    assert dropout is torch.nn.Dropout and noam(1, 1, 1) == 1
    text = (checks.keep.__globals__["folder"]() / "my_classes.py").read_text(encoding="utf-8")
    assert "local variable" not in text and "more" not in text
    assert text.count("check(") == 1 and text.count("import torch.nn.functional") == 1


def test_what_is_missing_is_named_at_once(checks, notebook):
    notebook.run(source(checks, "FeedForward", ("torch.relu(x)", "torch.clamp(x, min=LEAST)")))
    notebook.names["LEAST"] = 0  # from a cell that is no longer there
    assert "LEAST" in notebook.told("check(FeedForward)")
    assert not (checks.keep.__globals__["folder"]() / "my_classes.py").exists()


def test_a_wrong_answer_replaces_nothing(checks, notebook):
    notebook.run(source(checks, "noam") + "\n\ncheck(noam)")
    notebook.told(source(checks, "noam", ("min(", "max(")) + "\n\ncheck(noam)")
    assert checks.mine("noam")(4, 16, 4) == checks.my_transformer.noam(4, 16, 4)


def test_the_answer_of_the_repository_does_not_replace_the_readers(checks, notebook, capsys):
    text = source(checks, "noam")
    file = checks.keep.__globals__["folder"]() / "my_classes.py"
    for cell in (text, text.replace("step", "now").replace("now**-0.5", "1 / now**0.5")):
        notebook.run(f"{cell}\n\ncheck(noam)")
        assert is_right(capsys.readouterr().out, "noam")
    kept = file.read_text(encoding="utf-8")
    assert "1 / now**0.5" in kept
    notebook.run(f"# @title\n{text}\n\ncheck(noam)")
    assert "my_classes.py" in capsys.readouterr().out
    assert file.read_text(encoding="utf-8") == kept


def test_a_tie_a_changed_list_and_a_missing_return_are_told(checks, notebook):
    last = source(checks, "most_frequent_pair", ("pairs.most_common(1)[0][0]", "max(reversed(pairs), key=pairs.get)"))
    pop = source(checks, "merge", ("return merged", "word.pop()\n    return merged"))
    none = source(checks, "softmax", ("return powers", "powers"))
    for cell, name, words in (
        (last, "most_frequent_pair", "(seen first|먼저 나온)"),
        (pop, "merge", "(list is changed|목록을 그 자리에서)"),
        (none, "softmax", "(there is no|없거나)"),
    ):
        assert re.search(words, notebook.told(cell, f"check({name})"))


def test_a_wrong_part_is_named_and_not_the_whole(checks, notebook):
    layer = source(checks, "EncoderLayer", ("normed, normed, normed", "normed, normed, x"))
    sentence = notebook.told(layer, source(checks, "Encoder"), "check(Encoder)")
    assert "EncoderLayer" in sentence and ("normalized" in sentence or "정규화" in sentence)


def test_exceptions_and_endless_loops_become_a_sentence(checks, notebook, monkeypatch):
    monkeypatch.setattr(checks, "SECONDS", 0.5)
    fails = {
        "FeedForward": (("self.fc2(x)", "self.fc2(y)"), "'y'"),
        "merge": (
            ("    merged = []", "    while True:\n        pass\n    merged = []"),
            "TimeoutError",
        ),
        "noam": (("step**-0.5", "exit()"), "SystemExit"),
    }
    for name, (change, words) in fails.items():
        sentence = notebook.told(source(checks, name, change), f"check({name})")
        assert words in sentence and "\n" not in sentence


@pytest.mark.parametrize("checks", ["ko"], indirect=True)
def test_answers_by_other_hands_are_judged_rightly(checks, monkeypatch):
    """A file of answers whose writers had not seen `check`: `@@@ right or wrong | blank | what is special`."""
    text = (ROOT / "tests" / "walkthrough_answers.txt").read_text(encoding="utf-8")
    monkeypatch.setattr(checks, "keep", lambda *_: None)
    general = {SENTENCES[key][0].partition("{")[0] for key in ("with random numbers the result differs…", "an error")}
    vague = []
    for piece in text.split("@@@ ")[1:]:
        head, _, cell = piece.partition("\n")
        verdict, blank, reason = head.split(" | ")
        notebook = Notebook(checks)
        notebook.run("from torch.nn.functional import scaled_dot_product_attention  # as chapter 3 has it")
        notebook.run(cell)
        if verdict == "right":
            notebook.run(f"check({blank})")
        else:
            sentence = notebook.told(f"check({blank})").removeprefix(f"{blank}: ")
            assert "\n" not in sentence, reason
            vague += [reason] if sentence.startswith(tuple(general)) else []
    assert len(vague) <= 2, vague  # shapes that do not fit: PyTorch's words, with the line


@pytest.mark.parametrize("checks", ["ko"], indirect=True)
def test_known_mistakes_are_mistakes(checks):
    """The English answers have the same code: tests/test_walkthrough_languages.py."""
    for blanks, rows in checks.MISTAKES.items():
        answers = [inspect.getsource(getattr(checks.my_transformer, name)) for name in blanks.split()]
        texts = [ast.unparse(ast.parse(answer)) for answer in answers]
        for _, sentence, *changes in rows:
            assert all(any(next(iter(change)) in text for text in texts) for change in changes), sentence
    for name in checks.PROPERTIES:
        for wrong, sentence in checks.mistakes(name):
            assert checks.failing(name, wrong), (name, sentence)


def test_sentences_are_in_both_languages():
    assert all(len(both) == 2 and all(both) for both in SENTENCES.values())
    assert len({both[1] for both in SENTENCES.values()}) == len(SENTENCES)
    for both in SENTENCES.values():
        korean, english = ({part[1] for part in string.Formatter().parse(one) if part[1]} for one in both)
        assert korean == english, both


def test_an_exercise_is_checked(checks, capsys):
    checks.check_answer(0.7, 0.7)
    checks.check_answer(lambda: torch.ones(2), torch.ones(2))
    checks.check_answer([1, 2], lambda answer: sum(answer) == 3)
    assert len(set(capsys.readouterr().out.splitlines())) == 1
    wrong = {"([Nn]ot written yet|아직 쓰지)": [..., (1, ...)], "twice": [1.4], "(This is 3, not 0.7|0.7이어야)": [3]}
    for words, answers in wrong.items():
        for answer in answers:
            with pytest.raises(checks.NotRight, match=words):
                checks.check_answer(answer, 0.7, (lambda answer: answer == 1.4, "twice"))
