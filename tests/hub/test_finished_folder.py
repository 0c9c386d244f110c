"""An output folder is there as a whole or not at all, whoever else writes there."""

import signal

import pytest
from processes import run_program

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.hub.finished_folder import finished_folder


def tree(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def write(folder, content="whole"):
    for name in ("a", "b"):
        (folder / name).write_text(content)


@pytest.fixture(params=["missing", "without parents", "empty", "a link"])
def output(request, tmp_path):
    folder = tmp_path / "there" / "output"
    if request.param != "without parents":
        folder.parent.mkdir()
    if request.param == "empty":
        folder.mkdir()
    if request.param == "a link":
        (folder.parent / "linked").mkdir()
        folder.symlink_to(folder.parent / "linked", target_is_directory=True)
    return folder


def test_the_folder_comes_as_a_whole(output):
    with finished_folder(str(output)) as folder:
        write(folder)
        assert not {"a", "b"} & {path.name for path in output.parent.glob("output/*")}
    assert tree(output) == {"a", "b"}
    assert tree(output.parent) <= {"output", "output/a", "output/b", "linked", "linked/a", "linked/b"}
    with pytest.raises(DataError, match="is not empty"), finished_folder(str(output)):
        pytest.fail("it is full")


def test_what_fails_leaves_all_as_it_was(output, tmp_path):
    before = tree(tmp_path)
    with pytest.raises(KeyboardInterrupt), finished_folder(str(output)) as folder:
        write(folder)
        raise KeyboardInterrupt
    assert tree(tmp_path) == before


def test_of_two_at_once_one_succeeds(output):
    with pytest.raises(OSError), finished_folder(str(output)) as folder:
        write(folder, "late")
        with finished_folder(str(output)) as other:
            write(other, "first")
    assert {name: (output / name).read_text() for name in tree(output)} == {"a": "first", "b": "first"}


KILLED = """
import os, sys
from hf_vanilla_transformer.hub.finished_folder import finished_folder
with finished_folder(sys.argv[1]) as folder:
    (folder / "a").write_text("half")
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signal")
def test_a_killed_process_leaves_no_half_of_it(tmp_path):
    assert run_program(KILLED, tmp_path / "output", int(signal.SIGKILL)).returncode == -signal.SIGKILL
    assert not (tmp_path / "output").exists()
