"""Every command and program in README and docs runs, at a size that takes seconds."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
import torch
from accelerate.commands.launch import launch_command_parser
from exports.models import random_model, save
from processes import run_program
from shared import QUIET, ROOT, TINY, TINY_TRANSLATOR, TWO_STEPS, read_json, tiny_config
from test_conversion import assert_identical, checkpoint
from torch.distributed.run import get_args_parser

from hf_vanilla_transformer import to_source_state_dict
from hf_vanilla_transformer.__main__ import COMMANDS


DOCS = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", *DOCS]
CHAPTERS = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "docs" / "walkthrough").rglob("[0-9]*.py"))
# Their programs need a tutorial's files: see below and test_korean_pages.py.
WITH_FILES = [page for page in DOCS if page.startswith("docs/tutorials/")]


# The last section of docs/guides/translate.md, whose commands need files of their own: a test below.
MORE_TEXT = "\n## More text than pairs\n"


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8").partition(MORE_TEXT)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_programs(page: str) -> list[str]:
    """Run a page's programs; returns them."""
    programs = blocks(page, "python")
    assert programs
    for program in programs:
        exec(compile(program, page, "exec"), {})
    return programs


def lines(page: str) -> list[list[str]]:
    """The words of each line of a page's blocks for the shell."""
    text = "".join(blocks(page, "sh")).replace("\\\n", "")
    return [words for line in re.split(r"\n(?! )", text) if (words := shlex.split(line, comments=True))]


def command(words: list[str]) -> list[str] | None:
    """The name and the arguments of the command of this package that a line runs; None of another program."""
    words = words[words.index("|") + 1 :] if words[0] == "echo" else words
    program, *rest = words
    if program == "torchrun" or words[:2] == ["accelerate", "launch"]:
        parser, rest = (get_args_parser(), rest) if program == "torchrun" else (launch_command_parser(), rest[1:])
        launch = parser.parse_args(rest)
        assert (launch.module, launch.training_script) == (True, "hf_vanilla_transformer")
        return launch.training_script_args
    if program == "python" and Path(rest[0]).parent == Path("scripts"):
        name = Path(rest[0]).stem.replace("_", "-")
        return [name if name in COMMANDS else Path(rest[0]).name, *rest[1:]]
    return rest if program == "vanilla-transformer" else None


@pytest.fixture(scope="module")
def translator(tmp_path_factory) -> Path:
    """A translator's folder, with random weights."""
    return Path(save(random_model(tiny_config()), tmp_path_factory.mktemp("translator")))


@pytest.fixture
def clone(trained, translator, tmp_path, monkeypatch) -> Path:
    """Where the pages' commands run: with what they expect to be there, small."""
    for folder in ("model_cards", "multi30k", "wmt14", "nsmc/raw", "runs"):
        (tmp_path / folder).mkdir(parents=True)
    for name, model in (("nsmc-small", trained), ("multi30k-de-en", translator)):
        (tmp_path / "model_cards" / name).symlink_to(model)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    splits = {"multi30k": ("train", "val", "test_2016_flickr"), "wmt14": ("train", "validation", "test")}
    for stem in (f"{folder}/{split}" for folder in splits for split in splits[folder]):
        (tmp_path / f"{stem}.en").write_text("Two dogs play in the snow.\n" * 2)
        (tmp_path / f"{stem}.de").write_text("Zwei Hunde spielen im Schnee.\n" * 2)
    for split in ("train", "test"):
        rows = "1\t좋다\t1\n2\t나쁘다\t0\n" * 9
        (tmp_path / "nsmc" / f"ratings_{split}.txt").write_text(f"id\tdocument\tlabel\n{rows}")
    reviews = [{"review_id": str(number), "review": f"{number}번 보았다"} for number in range(10, 40)]
    (tmp_path / "nsmc" / "raw" / "1.json").write_text(json.dumps(reviews))
    (tmp_path / "my.csv").write_text("text,label,rating,topics\n" + "좋다,1,4.5,a|b\n나쁘다,0,1.5,b\n" * 40)
    (tmp_path / "new.csv").write_text("text\n좋다\n")
    (tmp_path / "reviews.txt").write_text("재미있다\n")
    (tmp_path / "sentences.txt").write_text("Two dogs.\n")
    (tmp_path / "pairs").symlink_to(tmp_path / "multi30k")
    torch.save(checkpoint("annotated-transformer"), tmp_path / "model.pt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def published(clone):
    """The models whose answers the pages print."""
    for link in (clone / "model_cards").iterdir():
        link.unlink()
        link.symlink_to(ROOT / "model_cards" / link.name)


def made_small(name: str, arguments: list[str]) -> list[str]:
    """Flags that come after a command's own, for a run of seconds that sends nothing."""
    from_scratch = "--model" not in arguments and "finetune" not in arguments
    if name == "train-classifier":
        data = [] if "--data" in arguments else ["--data", "sample"]
        size = ["--vocab_size", "30" if "my.csv" in arguments else "1500", *TINY] if from_scratch else []
        return [*TWO_STEPS, *data, *size]
    if name == "pretrain":
        return [*TWO_STEPS, *TINY_TRANSLATOR, "--vocab_size", "60", "--validation", "5"]
    if name == "train-translation":
        flags = ["--max_steps", "1", "--save_strategy", "steps", "--save_steps", "1", "--eval_strategy", "no"]
        flags += ["--load_best_model_at_end", "false", "--average_last", "1", "--generation_max_length", "3", *QUIET]
        # The run's own evaluation writes three tokens; later commands write at most sixteen.
        return [*flags, "--max_length", "16", *(["--vocab_size", "60", *TINY_TRANSLATOR] if from_scratch else [])]
    if name == "evaluate":
        return ["--data", "sample"] if "nsmc" in arguments else []
    return ["--dry_run"] if name == "push-to-hub" else []


def run_small(succeed, name: str, arguments: list[str], **options) -> None:
    """Run a command for seconds, and write what it prints where a shell would."""
    end = arguments.index(">") if ">" in arguments else len(arguments)
    printed = succeed(name, *arguments[:end], *made_small(name, arguments), **options)
    for file in arguments[end + 1 :]:
        Path(file).write_text(printed, encoding="utf-8")


# The Korean pages have the same commands: tests/test_korean_pages.py.
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITH_FILES and not page.endswith(".ko.md")])
def test_a_pages_commands_run(page, succeed, clone):
    for words in lines(page):
        if told := command(words):
            name, *arguments = told
            text = words[1] if words[0] == "echo" else ""
            run_small(succeed, name, arguments, stdin=text)


@pytest.mark.slow
def test_more_text_goes_from_pairs_and_captions_to_a_translator(succeed, clone, monkeypatch):
    """Commands and programs in their order."""
    pytest.importorskip("ctranslate2", reason="the extra [ctranslate2] is not installed")
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "experiments"))  # where the scripts find each other
    for file in (clone / "multi30k").iterdir():
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    (clone / "captions.de").write_text("Zwei Hunde spielen.\n" * 3)
    page = (ROOT / "docs" / "guides" / "translate.md").read_text(encoding="utf-8")
    section = page.partition(MORE_TEXT)[2]
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(block, "translate.md", "exec"), {})
            assert (clone / "more" / "train.de").read_text().count("\n") == 3 * 2 + 3
            continue
        for line in re.split(r"\n(?! )", block.replace("\\\n", "").strip()):
            words = shlex.split(line)
            if told := command(words):
                run_small(succeed, told[0], told[1:])
            else:  # a script of experiments, which is the command with more settings
                succeed("experiments/train_translation.py", *words[2:], *made_small("train-translation", words))


@pytest.mark.parametrize("page", PAGES)
def test_a_pages_other_programs_are_there(page):
    makefile = (ROOT / "Makefile").read_text()
    for words in lines(page):
        if (told := command(words)) is not None:
            assert told[0] in COMMANDS or (ROOT / "scripts" / told[0]).is_file(), words
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words
        elif words[0] in ("python", "bash") and words[1] != "-c":
            assert (ROOT / words[1]).is_file() and words[1].startswith("scripts/"), words
        else:
            assert words[0] in ("git", "cd", "pip", "python"), words


@pytest.mark.parametrize("page", [*PAGES, *CHAPTERS])
def test_links_lead_to_files(page):
    file = ROOT / page
    prose = [line for line in file.read_text(encoding="utf-8").splitlines() if file.suffix == ".md" or line[:1] == "#"]
    for link in re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose)):
        assert link.startswith("https://") or (file.parent / link.partition("#")[0]).exists(), link


def test_the_table_of_changed_texts_is_the_records():
    metrics = read_json(ROOT / "model_cards" / "nsmc-small" / "metrics.json")["test"]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for one in metrics["robustness"]["changes"]:
        name, figure = one["change"].replace("_", " "), f"{one['accuracy']:.4f}"
        assert re.search(rf"^\| {name}[:| ].* \| {figure} \|$", page, re.MULTILINE), name
    mean = f"{metrics['robustness']['mean_of_spacings']:.4f}"
    assert re.search(rf"^\| \*\*mean of the first four\*\* .*\*\*{mean}\*\* \|$", page, re.MULTILINE)


def bare(code: str) -> str:
    """Without white space: ruff formats the pages' code, too, at another indentation."""
    return re.sub(r"\s", "", code)


@pytest.mark.parametrize("excerpt", blocks("docs/custom_model.md", "python"))
def test_the_anatomys_excerpts_are_the_code(excerpt):
    names = ("configuration_vanilla_transformer", "modeling_vanilla_transformer", "inference/registration")
    files = [ROOT / "hf_vanilla_transformer" / f"{name}.py" for name in names]
    files.append(ROOT / "docs" / "custom_model" / "mean" / "modeling_mean.py")
    assert any(bare(excerpt) in bare(file.read_text(encoding="utf-8")) for file in files)


@pytest.mark.slow
def test_the_anatomys_model_to_copy_trains_and_loads_elsewhere():
    program = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(f'{sys.argv[1]}/try_it.py')"
    done = run_program(program, ROOT / "docs" / "custom_model")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"transformers_modules\.\S+\.modeling_mean \[0, 1\]", done.stdout.splitlines()[-1])


PROGRAMS = ["README.md", "docs/start.md", "docs/engines.md"]
PROGRAMS += [f"docs/guides/{name}.md" for name in ("classify", "train", "translate")]


@pytest.mark.slow
@pytest.mark.parametrize("page", PROGRAMS)
def test_a_pages_programs_run(page, published, capsys):
    """What a comment says that a program prints, it prints."""
    programs = run_programs(page)
    out = capsys.readouterr().out
    for printed in (line[2:] for program in programs for line in program.splitlines() if line.startswith("# ")):
        assert printed in out


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(blocks("docs/works_with.md", "python"))))
def test_the_page_of_what_works_with_it(place, clone):
    program = blocks("docs/works_with.md", "python")[place]
    for module in re.findall(r"^(?:from|import) (peft|sentence_transformers|optuna)\b", program, re.MULTILINE):
        pytest.importorskip(module, reason=f"{module} is not installed")
    done = run_program(program)  # in a process of its own: nothing else has registered the classes
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [page for page in WITH_FILES if not page.endswith(".ko.md")])
def test_the_tutorials_pages_programs_convert(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, program = Path(page).stem, blocks(page, "python")[0]
    state_dict = checkpoint({"torch-nn-transformer": "torch-nn-transformer-norm-last"}.get(source, source))
    torch.save(state_dict, re.search(r'load_source_state_dict\("(.*)"\)', program)[1])
    names: dict = {}
    exec(compile(program, page, "exec"), names)
    loaded = type(names["model"]).from_pretrained("runs/converted")
    assert_identical(to_source_state_dict(loaded, source), state_dict)


def test_the_tutorials_pages_program_runs():
    run_programs("docs/tutorials.md")


@pytest.mark.slow
def test_the_notebook_does_all_in_ten_cells(published, monkeypatch):
    """Without a shell. What its cells print is in it."""
    cells = [cell for cell in read_json(ROOT / "docs" / "in_python.ipynb")["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    for cell in cells:
        source = "".join(cell["source"]).replace("num_train_epochs=6", "max_steps=2")
        source = source.replace('format="onnx"', 'format="ctranslate2"')  # traced in docs/guides/train.md
        assert not source.startswith(("!", "%"))
        exec(compile(source, "in_python.ipynb", "exec"), names)
    assert len(cells) == 10 and all(cell["outputs"] for cell in cells[1:])
    assert names["run"].metrics["test"]["accuracy"] == names["report"]["accuracy"]
    assert names["classify"].labels == ["negative", "positive"]
