"""Build the documentation site in build/site, in English, and in Korean in build/site/ko; needs the extra [site].

    python docs/site/make_site.py

The pages are the repository's own texts, as they are read on GitHub: README, docs/, the walk-through, the model cards,
the changelog. Here a link between two pages becomes one of the site, any other leads into the repository; a link to
nothing is an error, as is each of Sphinx's warnings. reference_pages.py writes the reference pages from the code. The
folder page/ is the page with the published models.
"""

import html
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

from reference_pages import reference_pages

from hf_vanilla_transformer.commands import page as page_command


ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
CHAPTERS = sorted(path.stem for path in (ROOT / "docs" / "walkthrough").glob("[0-9]*.ipynb"))


def names(folder: str) -> list[str]:
    return sorted(path.name for path in (ROOT / folder).iterdir() if path.is_dir())


# Of each language, the pages of the site and the files of the repository that they are, in the order of the menu.
GUIDES = ["classify", "train", "translate"]
TUTORIALS = sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md") if ".ko" not in path.name)
MENU: dict[str, dict[str, dict[str, str]]] = {
    "en": {
        "Walk-through": {
            "walkthrough/index": "docs/walkthrough/en/README.md",
            **{f"walkthrough/{name}": f"docs/walkthrough/en/{name}.ipynb" for name in CHAPTERS},
            "walkthrough/glossary": "docs/walkthrough/en/glossary.md",
            "tutorials": "docs/tutorials.md",
            **{f"tutorials/{name}": f"docs/tutorials/{name}.md" for name in TUTORIALS},
        },
        "Guides": {
            "start": "docs/start.md",
            "how_it_works": "docs/how_it_works.md",
            **{f"guides/{name}": f"docs/guides/{name}.md" for name in GUIDES},
            **{name: f"docs/{name}.md" for name in ("engines", "serve", "scale", "works_with", "custom_model")},
            "in_python": "docs/in_python.ipynb",
        },
        "Reference": {},
        "Models and results": {
            "results": "docs/results.md",
            "performance": "docs/performance.md",
            **{
                f"models/{path.name}": f"model_cards/{path.name}/README.md"
                for path in (ROOT / "model_cards").iterdir()
            },
            "records": "docs/records.md",
        },
        "Project": {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"},
    },
    "ko": {
        "하나씩 만들기": {
            "walkthrough/index": "docs/walkthrough/README.md",
            **{f"walkthrough/{name}": f"docs/walkthrough/{name}.ipynb" for name in CHAPTERS},
            "walkthrough/glossary": "docs/walkthrough/glossary.ko.md",
        },
        "안내": {"start": "docs/start.ko.md", **{f"guides/{name}": f"docs/guides/{name}.ko.md" for name in GUIDES}},
        "튜토리얼": {
            "tutorials": "docs/tutorials.ko.md",
            **{f"tutorials/{name}": f"docs/tutorials/{name}.ko.md" for name in TUTORIALS},
        },
    },
}
HOME = {"en": "README.md", "ko": "README.ko.md"}
# The pages that both languages have.
IN_BOTH = {"index"}.union(*MENU["en"].values()) & {"index"}.union(*MENU["ko"].values())
LINK = re.compile(r"(?P<before>!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()(?P<target>[^)\s]+)(?P<after>\))")
IMAGE = re.compile(r'<img src="([^"]+)"(?: width="\d+")? alt="([^"]+)">')
TAG = re.compile(r"(?P<before><(?:img|a)\b[^>]*?\b(?:src|href)=\")(?P<target>[^\"]+)(?P<after>\")")


class DeadLink(Exception):
    """A page has a link to a file that is not there."""


class Tree:
    """The sources of one language: its pages, with links that fit, and the pictures that they show."""

    def __init__(self, language: str):
        self.language, self.folder = language, BUILD / "site-source" / language
        self.pages = {"index": HOME[language]}
        for group in MENU[language].values():
            self.pages |= {page: file for page, file in group.items() if (ROOT / file).exists()}

    def write(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for page, file in self.pages.items():
            text = (ROOT / file).read_text(encoding="utf-8")
            out = self.folder / f"{page}{Path(file).suffix}"
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(
                self.notebook(text, page) if out.suffix == ".ipynb" else self.page(text, page), encoding="utf-8"
            )
        reference = reference_pages() if self.language == "en" else {}
        for page, text in reference.items():
            (self.folder / page).parent.mkdir(exist_ok=True)
            (self.folder / page).write_text(text, encoding="utf-8")
        with open(self.folder / "index.md", "a", encoding="utf-8") as index:
            for title, group in MENU[self.language].items():
                pages = [page for page in group if page in self.pages]
                pages += [page.partition(".")[0] for page in reference if title == "Reference"]
                caption = f":caption: {title}\n" if title else ""
                index.write(f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n")

    def page(self, text: str, page: str) -> str:
        """A page whose links fit the site; code is left alone."""
        parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
        if page == "index" or page.startswith("models/"):
            parts[0] = re.sub(r"\A---\n.*?\n---\n", "", parts[0], flags=re.DOTALL)  # what the Hub reads
            parts[0] = parts[0].replace("# hf_vanilla_transformer\n", "# Vanilla Transformer\n", 1)
        return "".join(part if number % 2 else self.relink(part, page) for number, part in enumerate(parts))

    def notebook(self, text: str, page: str) -> str:
        content = json.loads(text)
        for cell in content["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = self.page("".join(cell["source"]), page)
        return json.dumps(content, ensure_ascii=False)

    def relink(self, text: str, page: str) -> str:
        text = IMAGE.sub(r"![\2](\1)", text)  # Sphinx copies no picture of a tag
        for pattern in (LINK, TAG):
            text = pattern.sub(lambda found: self.link(found, page), text)
        return text

    def link(self, found: re.Match, page: str) -> str:
        target, hash_mark, anchor = found["target"].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        here = Path(self.pages[page])
        file = posixpath.normpath(posixpath.join(here.parent.as_posix(), target))
        if not (ROOT / file).exists():
            raise DeadLink(f"{here}: {found['target']}")
        is_picture = found["before"].startswith("!") or "src=" in found["before"]
        return found["before"] + self.address(file, page, is_picture) + hash_mark + anchor + found["after"]

    def address(self, file: str, page: str, is_picture: bool) -> str:
        """Where a file of the repository is, from a page: on the site, on the other language's, or on GitHub."""
        start = posixpath.dirname(page) or "."
        if is_picture:
            copy = self.folder / "pictures" / file.replace("/", "-")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy)
            return posixpath.relpath(f"pictures/{copy.name}", start)
        for name, of in self.pages.items():
            if of == file:
                return posixpath.relpath(f"{name}{Path(file).suffix}", start)
        other = Tree("ko" if self.language == "en" else "en")
        for name, of in other.pages.items():
            if of == file:
                # The Korean site is a folder of the English one.
                place = f"ko/{name}.html" if other.language == "ko" else f"../{name}.html"
                return f"site:{posixpath.relpath(place, start)}"
        return f"{REPOSITORY}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{file}"


def dead_addresses(site: Path) -> list[str]:
    """The links of built pages that lead to no file, or to no place on a page; between the languages, too."""
    pages = [page for page in site.rglob("*.html") if page.parent != site / "page"]  # that page makes its own places
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    dead = []
    for page, text in texts.items():
        for target in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            address, _, place = unquote(html.unescape(target)).partition("#")
            if re.match(r"[a-z]+:", address):
                continue
            address = address.partition("?")[0]
            file = page if not address else (page.parent / address).resolve()
            if not file.is_file() or (place and file in places and place not in places[file]):
                dead.append(f"{page.relative_to(site)}: {target}")
    return sorted(dead)


def main() -> None:
    site = BUILD / "site"
    shutil.rmtree(site, ignore_errors=True)
    for language in ("en", "ko"):
        tree = Tree(language)
        try:
            tree.write()
        except DeadLink as error:
            sys.exit(f"dead link: {error}")
        out = site if language == "en" else site / "ko"
        options = [
            "-W",
            "--keep-going",
            "-q",
            "-j",
            "2",
            "-c",
            str(Path(__file__).parent),
            "-D",
            f"language={language}",
        ]
        doctrees = BUILD / "site-doctrees" / language
        words = [sys.executable, "-m", "sphinx", *options, "-d", str(doctrees), str(tree.folder), str(out)]
        if status := subprocess.run(words, check=False).returncode:
            sys.exit(status)
    cards = sorted(path for path in (ROOT / "model_cards").iterdir() if path.is_dir())
    page_command.main(["--model", *map(str, cards), "--output_dir", str(site / "page")])
    beside = {"models": [card.name for card in cards], "home": ".."}  # its chapters are the site's
    (site / "page" / "page.json").write_text(json.dumps(beside))
    if dead := dead_addresses(site):
        sys.exit("dead links:\n" + "\n".join(dead))
    print(site / "index.html")


if __name__ == "__main__":
    main()
