"""Put transformers' own tests, of the installed version, into a folder as the package `transformers_tests`.

python tests/contracts/fetch.py FOLDER
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path


folder = Path(sys.argv[1])
requirement = f"transformers=={version('transformers')}"
if not (folder / requirement).is_file():
    with tempfile.TemporaryDirectory() as download:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
        subprocess.run([*pip, "--dest", download, requirement], check=True)
        (archive,) = Path(download).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(download, filter="data")
        sources = Path(download, archive.name.removesuffix(".tar.gz"))
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(sources / "tests", folder / "transformers_tests")
        # What they read, and the source distribution lacks.
        (folder / "transformers_tests" / "__init__.py").touch()
        (folder / "transformers_tests" / "fixtures").mkdir()
        shutil.copy(sources / "README.md", folder / "transformers_tests" / "fixtures" / "sample_text.txt")
    (folder / requirement).touch()
