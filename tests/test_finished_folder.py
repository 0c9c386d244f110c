"""An output folder is there as a whole or not at all, whoever else writes there, and nobody's files are deleted."""

import contextlib
import errno
import os
import signal
import threading
from multiprocessing.pool import ThreadPool

import pytest
from processes import run_program

from hf_vanilla_transformer import finished_folder as module
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.finished_folder import MARK, MARKED, SCRATCH, finished_folder


def tree(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def write(folder, content="whole"):
    for name in ("a", "b"):
        (folder / name).write_text(content)


@pytest.fixture(params=["missing", "without parents", "empty", "mounted", "others' parent", "a link"])
def output(request, tmp_path, monkeypatch):
    folder = tmp_path / "there" / "output"
    if request.param != "without parents":
        folder.parent.mkdir()
    if request.param not in ("missing", "without parents"):
        (folder.parent / "linked" if request.param == "a link" else folder).mkdir()
    if request.param == "a link":
        folder.symlink_to(folder.parent / "linked", target_is_directory=True)
    if request.param == "mounted":
        monkeypatch.setattr(module.Path, "is_mount", lambda path: path == folder)
    if request.param == "others' parent":
        monkeypatch.setattr(module.os, "access", lambda path, mode: path != folder.parent)
    if request.param in ("mounted", "others' parent"):
        monkeypatch.setattr(module.Path, "rmdir", lambda path: path == folder and pytest.fail("it cannot be replaced"))
    return folder


def test_the_folder_comes_as_a_whole(output):
    with finished_folder(str(output)) as folder:
        write(folder)
        assert not {"a", "b"} & {path.name for path in output.parent.glob("output/*")}
    assert tree(output) == {"a", "b"}
    assert tree(output.parent) <= {"output", "output/a", "output/b", "linked", "linked/a", "linked/b"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, SystemExit])
def test_what_fails_leaves_all_as_it_was(output, error, tmp_path):
    before = tree(tmp_path)
    with pytest.raises(error), finished_folder(str(output)) as folder:
        write(folder)
        raise error
    assert tree(tmp_path) == before


def test_of_several_at_once_one_succeeds(output, request):
    """In a folder that cannot be replaced, each of two may see the other in the same moment, and neither write."""
    together = threading.Barrier(4, timeout=20)

    def run(number: int) -> bool:
        together.wait()
        try:
            with finished_folder(str(output)) as folder:
                write(folder, str(number))
        except (DataError, OSError):
            return False
        return True

    with ThreadPool(4) as threads:
        succeeded = threads.map(run, range(4))
    if not any(succeeded):
        assert request.node.callspec.params["output"] in ("mounted", "others' parent") and not tree(output)
        return
    assert succeeded.count(True) == 1
    assert {(output / name).read_text() for name in tree(output)} == {str(succeeded.index(True))}
    assert tree(output) == {"a", "b"}


def test_a_lock_of_another_in_the_scratch_folder_does_no_harm(tmp_path, monkeypatch):
    """Another process that looks for what was left may put it there while the folder is removed."""
    rmdir = os.rmdir

    def find_a_lock(path, **options):
        if SCRATCH in str(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", find_a_lock)
    with finished_folder(str(tmp_path / "output")) as folder:
        write(folder)
    assert tree(tmp_path / "output") == {"a", "b"}


def test_who_finishes_last_is_refused_in_one_line(output):
    with contextlib.suppress(DataError), finished_folder(str(output)) as first:
        write(first, "one")
        with contextlib.suppress(DataError), finished_folder(str(output)) as second:
            write(second, "one")
    assert tree(output) == {"a", "b"}
    with pytest.raises(DataError, match="is not empty"), finished_folder(str(output)):
        pytest.fail("it is full")


KILLED = """
import os, signal, sys
from hf_vanilla_transformer.finished_folder import finished_folder
with finished_folder(sys.argv[1]) as folder:
    (folder / "a").write_text("half")
    os.kill(os.getpid(), int(sys.argv[2]))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_left_is_removed_by_the_next(output, number):
    """But not what one that still runs is writing."""
    result = run_program(KILLED, output, int(number))
    assert result.returncode == -number, result.stderr
    assert "a" not in {path.name for path in output.glob("*")}
    with finished_folder(str(output.parent / "running")) as running:
        with finished_folder(str(output)) as folder:
            write(folder)
        assert running.is_dir()
    assert tree(output) == {"a", "b"}
    assert not list(output.parent.rglob(".*"))


@pytest.mark.parametrize("content", ["", MARKED.upper(), "\udcff"])
def test_what_somebody_else_made_stays(tmp_path, content):
    """Even if it is called as ours are."""
    for name in (f"{SCRATCH}mine", ".export-mine"):
        (tmp_path / name / "result").mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    (tmp_path / f"{SCRATCH}mine" / MARK).write_bytes(content.encode(errors="surrogateescape"))
    before = tree(tmp_path)
    with finished_folder(str(tmp_path / "output")) as folder:
        write(folder)
    assert tree(tmp_path) - {"output", "output/a", "output/b"} == before
