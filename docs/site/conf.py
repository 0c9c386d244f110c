"""Sphinx's settings for both languages; make_site.py writes the sources."""

import sys
from pathlib import Path


sys.path.insert(0, str(Path(__file__).parents[2]))

import hf_vanilla_transformer


project = "hf_vanilla_transformer"
author = "The hf_vanilla_transformer authors"
copyright = author
version = release = hf_vanilla_transformer.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": "{{path}}"}
nb_execution_mode = "off"
default_role = "code"  # `name` in a docstring is code
autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
html_theme = "furo"
html_title = project
html_theme_options = {
    "source_repository": "https://github.com/OWNER/hf_vanilla_transformer",
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
