"""Sphinx's settings for both languages; make_site.py writes the sources."""

import sys
from pathlib import Path


sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from make_site import IN_BOTH, REPOSITORY

import hf_vanilla_transformer


project = "hf_vanilla_transformer"
author = "The hf_vanilla_transformer authors"
copyright = author
version = release = hf_vanilla_transformer.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": "{{path}}"}
nb_execution_mode = "off"
default_role = "code"  # `name` in a docstring is code
autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
html_theme = "furo"
html_title = "Vanilla Transformer"
html_context = {"in_both": IN_BOTH}
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "top_of_page_buttons": [],
}
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "languages.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_sphinx = False
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type"]


def show_examples(app, what, name, obj, options, lines: list[str]) -> None:
    """An indented paragraph of a docstring is a program; before napoleon reads the sections."""
    for place in range(len(lines) - 1, 0, -1):
        begins = lines[place].startswith("    ") and not lines[place - 1].strip()
        if begins and not any(line.startswith(("Args:", "Returns:", "Raises:", "Yields:")) for line in lines[:place]):
            lines[place:place] = ["::", ""]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", show_examples, priority=100)
