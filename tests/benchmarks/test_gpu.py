"""The program that measures on a GPU: a part that fails or takes too long takes nothing from the others."""

import sys

from gpu import GpuArguments, Measurement
from shared import read_json


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
