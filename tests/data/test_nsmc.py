"""NSMC: the sample, a folder, the download."""

import csv
import io
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from data.files import HEADER, assert_shape, data_error
from hf_vanilla_transformer.data import nsmc
from hf_vanilla_transformer.data.sources import file_checksum


pytestmark = pytest.mark.usefixtures("online")


# What a reviewer may write, and a careless reader breaks a line or a field at.
ODD_DOCUMENTS = [
    '그는 "최고"라고 했다',
    '"전부 인용"',
    '"',
    '따옴표 셋 """',
    "다음 줄\x85같지만 한 줄",
    "줄\u2028나눔\u2029글자",
    "세로\x0b탭과\x0c쪽 나눔\x1c\x1d\x1e",
    "되돌림\r문자",
    "NA",
    "null",
    "  앞뒤 공백  ",
]


def written(document: str) -> str:
    """A field as two CSV writers write it in turn, as NSMC's makers did: quoted where it must be."""
    for _ in range(2):
        field = io.StringIO()
        csv.writer(field, delimiter="\t", lineterminator="").writerow([document])
        document = field.getvalue()
    return document


@pytest.fixture
def server(nsmc_folder, monkeypatch):
    """A server on loopback, in place of the official one, that serves the folder and counts its requests."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            server.requests += 1

    official = {split: file_checksum(nsmc_folder / name) for split, name in nsmc.NSMC_FILES.items()}
    monkeypatch.setattr(nsmc, "NSMC_SHA256", official)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=nsmc_folder)) as server:
        server.requests = 0
        monkeypatch.setattr(nsmc, "NSMC_URL", f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.shutdown()


def test_sample_loads(load, caplog):
    """The log says nothing of a validation split that is always cut from train."""
    loaded = load("sample")
    assert not caplog.text
    assert_shape(loaded, ["negative", "positive"])
    rows_and_positive = {split: (len(part), sum(part["label"])) for split, part in loaded.items()}
    assert rows_and_positive == {"train": (570, 285), "validation": (30, 15), "test": (120, 60)}


def test_folder_keeps_rows_and_labels(load, nsmc_folder, caplog):
    with open(nsmc_folder / "ratings_train.txt", "a") as file:
        file.write("90\t\t1\n91\t   \t0\n")
    loaded = load(nsmc_folder)
    assert "2 of 42 rows have no text and are left out" in caplog.text
    assert_shape(loaded, ["negative", "positive"])
    assert loaded["test"]["text"][:] == [f"{i}번째 감상" for i in range(40, 50)]
    assert loaded["test"]["label"][:] == [i % 2 for i in range(40, 50)]
    assert len(loaded["train"]) + len(loaded["validation"]) == 40


def test_documents_come_back_as_written(load, nsmc_folder):
    lines = "".join(f"{i}\t{written(document)}\t{i % 2}\n" for i, document in enumerate(ODD_DOCUMENTS))
    (nsmc_folder / "ratings_test.txt").write_bytes((HEADER + lines).encode())
    assert load(nsmc_folder)["test"]["text"][:] == ODD_DOCUMENTS


def test_a_label_beside_0_and_1_is_none(load, nsmc_folder):
    (nsmc_folder / "ratings_test.txt").write_text(f"{HEADER}1\ta\u2028b\x85c\t0\n2\tb\t5\n", encoding="utf-8")
    with data_error(str(nsmc_folder), "1 of 2 rows have no label in the column label"):
        load(nsmc_folder)
    (nsmc_folder / "ratings_test.txt").unlink()
    with pytest.raises(FileNotFoundError, match="ratings_test.txt"):
        load(nsmc_folder)


def test_download_equals_the_folder_and_is_cached(load, server, nsmc_folder):
    expected = {split: part.to_dict() for split, part in load(nsmc_folder).items()}
    assert {split: part.to_dict() for split, part in load("nsmc").items()} == expected
    requests = server.requests
    assert {split: part.to_dict() for split, part in load("nsmc").items()} == expected
    assert server.requests == requests > 0


def test_a_failed_download_is_refused_and_tried_anew(load, server, nsmc_folder):
    path = nsmc_folder / "ratings_test.txt"
    good = path.read_bytes()
    path.unlink()
    for problem in ("cannot be downloaded: 404", "not the official file"):
        with data_error(f"{nsmc.NSMC_URL}/ratings_test.txt: {problem}"):
            load("nsmc")
        path.write_bytes(good[:-4])
    path.write_bytes(good)
    assert len(load("nsmc")["test"]) == 10
