"""Memory and time against the number of rows: the script writes its data, measures two starts, leaves a report.

Here a thread stands for each process, which would import everything anew.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
import size
from shared import read_json


@pytest.mark.slow
def test_each_size_is_measured_twice_and_its_data_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(size, "ProcessPoolExecutor", lambda number, context: ThreadPoolExecutor(number))
    flags = ["--rows", "100", "--vocab_lines", "50", "--vocab_size", "300", "--output_dir", str(tmp_path / "run")]
    size.main(flags)
    report = read_json(tmp_path / "run" / "size.json")
    assert [(point["kind"], point["rows"]) for point in report["sizes"]] == [("parallel", 100), ("labelled", 100)]
    for point in report["sizes"]:
        assert tuple(point["first"]) == size.STAGES and tuple(point["second"]) == size.STAGES[:-1]
        assert all(stage["peak_bytes"] > 1e8 for start in ("first", "second") for stage in point[start].values())
    assert "| parallel | 100 |" in capsys.readouterr().out
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"size.json", "size.png"}  # the data are removed
