"""README.md as a package index shows it: addresses in place of relative links. All else is in pyproject.toml."""

import re
import tomllib
from pathlib import Path

from setuptools import setup


ROOT = Path(__file__).parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
RELATIVE = r"\((?!https?:|#)([^)]*)\)"

text = (ROOT / "README.md").read_text(encoding="utf-8")
text = re.sub(rf"(!\[[^]]*]){RELATIVE}", rf"\1({REPOSITORY}/raw/main/\2)", text)
text = re.sub(rf"]{RELATIVE}", rf"]({REPOSITORY}/blob/main/\1)", text)
setup(long_description=text, long_description_content_type="text/markdown")
