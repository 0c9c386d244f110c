"""The documentation site's sources: every public name has a page and a docstring; links lead somewhere."""

import importlib
import inspect
import re
import sys

import pytest
from shared import ROOT


sys.path.insert(0, str(ROOT / "docs" / "site"))
import make_site
import reference_pages

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.__main__ import COMMANDS
from hf_vanilla_transformer.settings.recipes import RECIPES


NAMES = [(module, name) for module, names in reference_pages.public_names().items() for name in names]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference_pages.reference_pages()


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_public_name_says_what_it_is_and_has_a_page(module, name, pages):
    value = getattr(importlib.import_module(module), name)
    assert f"{module}.{name}\n" in pages[f"reference/{module.rpartition('.')[2]}.rst"]
    if not callable(value):
        return
    text = inspect.getdoc(value)
    assert text and len(text.split()) > 3
    # The arguments of a function with many are described.
    parameters = [] if inspect.isclass(value) else list(inspect.signature(value).parameters.values())
    if len([one for one in parameters if one.default is inspect.Parameter.empty]) > 2:
        assert "Args:" in text, text


def test_every_field_recipe_and_command_is_in_the_reference(pages):
    fields = re.findall(r"^\| `(\w+)` \|", pages["reference/configuration.md"], re.MULTILINE)
    # An encoder-decoder it always is.
    assert set(VanillaTransformerConfig.__annotations__) - set(fields) == {"is_encoder_decoder"}
    for recipe in RECIPES.glob("*.yaml"):
        assert f"## {recipe.stem}\n" in pages["reference/recipes.md"]
    for name in COMMANDS:
        assert f"## {name}\n" in pages["reference/commands.md"]
    assert "| `--threshold` |" in pages["reference/commands.md"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_sources_of_the_site_have_no_dead_links(language, tmp_path, monkeypatch):
    monkeypatch.setattr(make_site, "BUILD", tmp_path)
    tree = make_site.Tree(language)
    tree.write()
    index = (tree.folder / "index.md").read_text(encoding="utf-8")
    for page, file in tree.pages.items():
        assert page == "index" or f"\n{page}\n" in index, file


def test_a_dead_link_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(make_site, "BUILD", tmp_path)
    tree = make_site.Tree("en")
    with pytest.raises(make_site.DeadLink, match=r"README.md: docs/nowhere.md"):
        tree.page("[a `b`](docs/nowhere.md)", "index")
    assert tree.page("[a](docs/results.md#multi30k)", "index") == "[a](results.md#multi30k)"
    assert tree.page("[a](README.ko.md)", "index") == "[a](site:ko/index.html)"
    assert "blob/main/LICENSE)" in tree.page("[a](LICENSE)", "index")
    assert tree.page("```sh\n[a](docs/nowhere.md)\n```", "index").startswith("```sh")
