"""The program that measures on a GPU: a part that fails or takes too long takes nothing from the others."""

import gzip
import subprocess
import sys

import pytest
from gpu import GpuArguments, Measurement
from shared import ROOT, read_json


WRITES = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('{\"reviews\": 3}')"


def test_each_part_is_written_when_it_ends(tmp_path, capsys):
    out = tmp_path / "out"
    measurement = Measurement(GpuArguments(packed=str(tmp_path), output_dir=str(out), seconds=30))
    python = (sys.executable, "-c")
    measurement.part("good", 20, *python, WRITES, out / "found.json", results=("found.json", "missing.json"))
    measurement.part("bad", 20, *python, "raise SystemExit('no such model')")
    assert measurement.part("slow", 0.5, *python, "import time; print('begun', flush=True); time.sleep(60)") < 0
    report = read_json(out / "gpu.json")
    assert report["device"] and report["versions"]["torch"]
    good, bad, slow = (report["parts"][name] for name in ("good", "bad", "slow"))
    assert good["status"] == 0 and good["found.json"] == {"reviews": 3} and "missing.json" not in good
    assert bad["status"] == 1 and "no such model" in bad["log"]
    assert slow["seconds"] < 15 and capsys.readouterr().out.count("status") == 3


@pytest.mark.skipif(sys.platform == "win32", reason="the packer is a shell script")
def test_what_is_packed_is_what_the_measurement_reads(tmp_path):
    for name in ("nsmc/ratings_train.txt", "nsmc/ratings_test.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("id\tdocument\tlabel\n")
    (tmp_path / "multi30k").mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        for side in ("de", "en"):
            (tmp_path / "multi30k" / f"{split}.{side}.gz").write_bytes(gzip.compress(b"Hund\n"))
    (tmp_path / "reviews.txt.gz").write_bytes(gzip.compress("좋다\n".encode()))
    words = ["packed", "nsmc", "multi30k", "reviews.txt.gz"]
    subprocess.run(["bash", ROOT / "scripts/benchmarks/pack_gpu.sh", *words], cwd=tmp_path, check=True)
    packed = {str(path.relative_to(tmp_path / "packed")) for path in (tmp_path / "packed").rglob("*.gz")}
    assert len(packed) == 9 and {"nsmc/ratings_train.txt.gz", "reviews.txt.gz"} <= packed
