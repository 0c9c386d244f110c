"""`check` of the walk-through: right answers pass, and each wrong one is told what is wrong with it."""

import importlib
import inspect
import linecache

import pytest
import torch
from shared import ROOT


FOLDER = ROOT / "docs" / "walkthrough"
# What learners got wrong, by a piece of the English sentence that names it.
LISTED = {
    "Embedding": ["not multiplied by √d", "swapped", "first half", "count from 1", "exponent is i/d", "not added"],
    "ScaledDotProductAttention": [
        *("are not divided by", "d_k instead of √d_k", "mask is inverted", "mask is ignored", "after the softmax"),
        *("over the queries", "key is not transposed", "weights are transposed"),
    ],
    "MultiHeadAttention": [
        *("split by a plain view", "joined without a transpose", "Neither the split nor the join"),
        *("columns are interleaved", "W^O is missing", "Query and key are swapped", "not handed on", "scaled twice"),
    ],
    "FeedForward": ["GELU", "no activation"],
    "EncoderLayer": ["post-norm", "starts from the normalized vector", "no residual connection", "not normalized: it"],
    "DecoderLayer": [
        *("post-norm", "looks at the decoder itself", "values of cross-attention are normed"),
        *("ignores the source mask", "comes before self-attention"),
    ],
    "Encoder": ["one and the same", "no final norm", "ignores the source mask"],
    "Decoder": ["one too wide", "one too narrow", "upside down", "no causal mask"],
    "shift_right": ["not shifted", "to the left", "by two"],
    "smoothed_targets": ["divided by V - 1", "Rows whose label is padding"],
    "noam": ["takes the maximum", "exponent of warmup"],
    "training_step": ["not cleared"],
    "greedy": ["logits of the first position"],
}
BLANKS = [*LISTED, "most_frequent_pair", "merge", "Dropout", "Transformer", "smoothed_loss", "rotation"]
# Wrong in ways that no sentence knows.
UNLISTED = {
    "most_frequent_pair": [("most_common(1)[0][0]", "most_common(1)[0][0][::-1]")],
    "merge": [("left + right", "left + ' ' + right")],
    "Embedding": [("10000", "1000"), ("math.sqrt(x.shape[-1])", "2"), ("d_model % 2", "False")],
    "ScaledDotProductAttention": [("/ math.sqrt(", "* math.sqrt("), ("weights @ value, weights", "weights @ value")],
    "MultiHeadAttention": [("self.v_proj(value)", "self.v_proj(key)"), ("value, mask)", "value, mask & False)")],
    "FeedForward": [("torch.relu", "torch.tanh"), ("return self.fc2(x)", "return self.fc2(x) + 1")],
    "Dropout": [("/ (1 - self.rate)", "/ self.rate")],
    "EncoderLayer": [("self.feed_forward_norm(x)", "self.self_attention_norm(x)")],
    "DecoderLayer": [("memory, memory, source_mask)", "2 * memory, memory, source_mask)")],
    "Encoder": [("self.norm(x)", "self.norm(self.norm(x))")],
    "Decoder": [(".tril()", ".tril(2)"), ("layer(x, memory", "layer(x, -memory")],
    "Transformer": [("memory = self.encoder(source, source_mask)", "memory = 2 * self.encoder(source, source_mask)")],
    "shift_right": [("labels[:, :-1]", "labels[:, 1:]")],
    "smoothed_targets": [("smoothing / others", "0.5")],
    "smoothed_loss": [(".sum() / (", ".sum() / 2 / (")],
    "noam": [("d_model**-0.5", "d_model**-0.4")],
    "training_step": [("optimizer.step()", "optimizer.step(), optimizer.step()")],
    "greedy": [("range(length)", "range(length - 1)")],
    "rotation": [("-sin", "sin")],
}
# The same, written in another way.
RIGHT = {
    "merge": [("merged = []", "merged = list()")],
    "Embedding": [("math.sqrt(x.shape[-1])", "x.shape[-1] ** 0.5"), (", dtype=torch.float64", "")],
    "ScaledDotProductAttention": [
        ("query @ key.transpose(-2, -1)", 'torch.einsum("...lk,...mk->...lm", query, key)'),
        ("masked_fill(~mask, -math.inf)", "masked_fill(mask == 0, -1e9)"),
    ],
    "MultiHeadAttention": [("heads.transpose(1, 2).flatten(-2)", "torch.cat(heads.unbind(1), dim=-1)")],
    "Dropout": [("torch.rand_like(x) >= self.rate", "torch.bernoulli(torch.full_like(x, 1 - self.rate))")],
    "EncoderLayer": [("normed, normed, normed, mask", "query=normed, key=normed, value=normed, mask=mask")],
    "training_step": [
        *[("optimizer.zero_grad()", "pass"), ("loss.backward()", "optimizer.zero_grad(), loss.backward()")],
    ],
    "greedy": [("model.head(model.decoder(written, memory, source_mask))", "model(source, source != pad, written)")],
}


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """The module, in English, in a folder of its own."""
    monkeypatch.syspath_prepend(FOLDER)
    (tmp_path / "model_cards").mkdir()
    monkeypatch.chdir(tmp_path)
    importlib.import_module("words").use("en")
    yield importlib.import_module("check")
    importlib.import_module("words").use("ko")


def rewritten(checks, name: str, *changes: tuple[str, str]):
    """The right answer with changes, as a cell of a notebook defines it."""
    source = inspect.getsource(getattr(checks.my_transformer, name))
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    file = f"<ipykernel {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = dict(vars(checks.my_transformer))
    exec(compile(source, file, "exec"), names)
    return names[name]


def told(checks, answer) -> str:
    """What `check` says of a wrong answer, which is all that Jupyter shows."""
    with pytest.raises(checks.NotRight) as error:
        checks.check(answer)
    assert error.value._render_traceback_() == [str(error.value)]
    return str(error.value)


def test_each_blank_has_its_table_and_each_listed_mistake_a_sentence(checks):
    assert set(BLANKS) == set(checks.MISTAKES) == set(checks.PROBES)
    assert sum(map(len, LISTED.values())) == 49
    for name, pieces in LISTED.items():
        for piece in pieces:
            (_,) = [one.english for one in checks.MISTAKES[name] if piece in one.english]
    sentences = [(name, one.english) for name, table in checks.MISTAKES.items() for one in table]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("name", BLANKS)
def test_each_known_mistake_is_named_by_its_own_sentence(checks, name):
    for mistake in checks.MISTAKES[name]:
        answer = checks.variant(name, mistake)
        for language in ("ko", "en"):
            importlib.import_module("words").use(language)
            sentence = mistake.english if language == "en" else mistake.korean
            assert told(checks, answer) == f"{name}: {sentence}"


@pytest.mark.parametrize("name", UNLISTED)
def test_other_wrong_answers_stop_with_a_difference(checks, name):
    for change in UNLISTED[name]:
        sentence = told(checks, rewritten(checks, name, change))
        assert not any(one.english in sentence for one in checks.MISTAKES[name]), sentence
        assert any(words in sentence for words in ("is right", ", not ", "must raise", "an error")), sentence


@pytest.mark.parametrize("name", BLANKS)
def test_right_answers_pass_however_they_are_written(checks, name, capsys):
    for changes in ([], RIGHT.get(name, [])):
        checks.check(rewritten(checks, name, *changes))
        assert capsys.readouterr().out == f"{name}: right.\n"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("Embedding", "tokens", "token"),
        ("MultiHeadAttention", "q_proj", "query_proj"),
        ("MultiHeadAttention", "out_proj", "o_proj"),
        ("FeedForward", "fc1", "fc_1"),
        ("EncoderLayer", "self_attention_norm", "norm1"),
        ("DecoderLayer", "cross_attention", "cross_atention"),
        ("Encoder", "layers", "layer_list"),
        ("Decoder", "norm", "final_norm"),
        ("Transformer", "decoder", "deccoder"),
    ],
)
def test_a_misspelt_module_is_named(checks, name, right, wrong):
    source = inspect.getsource(getattr(checks.my_transformer, name))
    places = [f"self.{right}{end}" for end in (" ", "(", ".", ":") if f"self.{right}{end}" in source]
    changes = [(place, place.replace(right, wrong)) for place in places]
    sentence = told(checks, rewritten(checks, name, *changes))
    assert f"there is no self.{right}." in sentence
    assert f"Rename it: {wrong}" in sentence


@pytest.mark.parametrize("name", ["Encoder", "Decoder"])
def test_a_list_in_place_of_a_module_list_is_named(checks, name):
    assert "self.layers is a Python list" in told(checks, rewritten(checks, name, ("nn.ModuleList(", "list(")))


def test_other_parameters_and_results_are_told_in_a_line(checks):
    wrong = {
        "FeedForward": (
            ("nn.Linear(d_model, ffn_dim)", "nn.Linear(d_model, d_model)"),
            "self.fc1.weight: shape (8, 8)",
        ),
        "Embedding": ((", persistent=False", ""), "self.positions is saved as well"),
        "ScaledDotProductAttention": (("weights @ value, weights", "weights @ value"), "a tensor (2, 4, 4), where (a"),
    }
    for name, (change, words) in wrong.items():
        sentence = told(checks, rewritten(checks, name, change))
        assert words in sentence and "\n" not in sentence


def test_an_error_is_shown_with_its_line(checks):
    sentence = told(checks, rewritten(checks, "FeedForward", ("self.fc2(x)", "self.fc2(y)")))
    assert "NameError" in sentence and "return self.fc2(y)" in sentence


@pytest.mark.parametrize("name", BLANKS)
def test_what_was_not_written_yet_is_told(checks, name):
    source = importlib.import_module("make_notebooks").stub(inspect.getsource(getattr(checks.my_transformer, name)))
    names = dict(vars(checks.my_transformer))
    exec(source, names)
    assert "not written yet" in told(checks, names[name])


def test_what_passed_is_kept_for_the_next_chapters(checks, tmp_path, capsys):
    right = checks.my_transformer
    assert checks.mine("Encoder", "greedy") == [right.Encoder, right.greedy]
    assert capsys.readouterr().out == "The repository's: Encoder, greedy\n"
    for name in ("Encoder", "greedy", "EncoderLayer"):
        checks.check(rewritten(checks, name, ("return ", "return 1 * ")))
    capsys.readouterr()
    encoder, layer, feed_forward = checks.mine("Encoder", "EncoderLayer", "FeedForward")
    assert capsys.readouterr().out == "Mine: Encoder, EncoderLayer\nThe repository's: FeedForward\n"
    assert encoder is not right.Encoder and feed_forward is right.FeedForward
    assert isinstance(encoder(20, 8, 2, 16, layers=1).layers[0], layer)
    text = (tmp_path / "runs" / "my_classes.py").read_text(encoding="utf-8")
    assert text.count("return 1 * ") == 3 and "@torch.inference_mode()\ndef greedy" in text
    with pytest.raises(checks.NotRight):
        checks.check(rewritten(checks, "Encoder", ("self.norm(x)", "x")))
    sources = importlib.import_module("kept").sources()
    assert set(sources) == {"Encoder", "greedy", "EncoderLayer"}  # a wrong answer replaces nothing
    assert "return 1 * " in sources["Encoder"]


def test_what_stands_beside_an_answer_is_kept_with_it(checks):
    beside = "import torch.nn.functional as F\n\n\ndef clipped(x):\n    return F.relu(x)\n\n\n"
    changes = [("class FeedForward", f"{beside}class FeedForward"), ("torch.relu(x)", "clipped(x)")]
    checks.check(rewritten(checks, "FeedForward", *changes))
    checks.check(rewritten(checks, "noam"))
    assert checks.mine("FeedForward")(8, 16)(torch.zeros(2, 8)).shape == (2, 8)


def test_an_exercise_is_checked(checks, capsys):
    checks.check_answer(0.7, 0.7)
    checks.check_answer(lambda: torch.ones(2), torch.ones(2))
    checks.check_answer([1, 2], lambda answer: sum(answer) == 3)
    assert capsys.readouterr().out == "Right.\n" * 3
    wrong = {"Not written yet": [..., (1, ...)], "twice": [1.4], "This is 3, not 0.7": [3]}
    for words, answers in wrong.items():
        for answer in answers:
            with pytest.raises(checks.NotRight, match=words):
                checks.check_answer(answer, 0.7, (lambda answer: answer == 1.4, "twice"))
