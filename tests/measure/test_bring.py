"""Results of a node without a network: packed there, checked and added here."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.measure import bring as bringing
from analysis.measure.bring import LIMIT_BYTES, bring
from analysis.results.check import faults
from analysis.results.collect import collect
from tests.measure.studies import contents
from tests.synthetic import CALLS, RUN, STUDIES, edit_run, files_of, name_of, write_machine

LATER = "2026-02-02T03:04:05Z"


@pytest.fixture(autouse=True)
def _synthetic_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "discover", lambda: STUDIES)


def packed(folder: Path, *, run: str = RUN, machine: str = "box") -> Path:
    """The archive of env/offline on a host that has measured one run."""
    write_machine(folder / "results", machine, CALLS, rounds=2, run=run)
    return pack(folder)


def pack(folder: Path) -> Path:
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder / "results", "results")
    return archive


def with_member(name: str, make: Callable[[tarfile.TarInfo], object]) -> Callable[[Path], object]:
    """An archive with one member more."""

    def change(archive: Path) -> None:
        member = tarfile.TarInfo(name)
        make(member)
        with tarfile.open(archive, "w:gz") as file:
            file.addfile(member, io.BytesIO(bytes(member.size)) if member.isreg() else None)

    return change


def _link(member: tarfile.TarInfo) -> None:
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"


def _sized(size: int) -> Callable[[tarfile.TarInfo], object]:
    return lambda member: setattr(member, "size", size)


def test_runs_of_two_hosts_become_one_machine_and_come_once(tmp_path: Path) -> None:
    archives = [packed(tmp_path / "one"), packed(tmp_path / "two", run=LATER)]
    results = tmp_path / "results"
    for archive, run in zip(archives, (RUN, LATER), strict=True):
        assert list(bring(archive, results)) == [f"box: calls/{name_of(run)}.json"]
    for name, text in contents(tmp_path / "one" / "results").items():
        assert contents(results)[name] == text
    assert list(bring(archives[0], results)) == ["box: every run is here already"]


def test_another_name_is_the_way_out_for_another_kind_of_machine(tmp_path: Path) -> None:
    results = tmp_path / "results"
    list(bring(packed(tmp_path / "one"), results))
    packed(tmp_path / "two", run=LATER)
    (path,) = files_of(tmp_path / "two" / "results", "box", "calls")
    edit_run(path.with_suffix(".json"), lambda run: run["host"]["gpus"][0].update(gpu="Other"))
    archive = pack(tmp_path / "two")
    with pytest.raises(HotpathError, match=r"gpu: expected 'Synthetic GPU' as in .*--as"):
        list(bring(archive, results))
    assert list(bring(archive, results, "other-box")) == [f"other-box: calls/{name_of(LATER)}.json"]
    assert collect(results, STUDIES).refused == {}
    assert list(bring(archive, results, "other-box")) == ["other-box: every run is here already"]


@pytest.mark.parametrize("name", ["../box", "/tmp/box", "a/b", "My Box", "published"])
def test_another_name_is_that_of_a_machine(tmp_path: Path, name: str) -> None:
    with pytest.raises(HotpathError, match="name of the machine: expected"):
        list(bring(packed(tmp_path / "one"), tmp_path / "results", name))
    assert not (tmp_path / "results").exists()


def test_new_runs_of_several_kinds_of_machine_are_refused(tmp_path: Path) -> None:
    packed(tmp_path / "one")
    packed(tmp_path / "one", run=LATER)
    paths = files_of(tmp_path / "one" / "results", "box", "calls")
    edit_run(paths[0].with_suffix(".json"), lambda run: run["host"]["gpus"][0].update(sms=114))
    assert len(list(faults(paths, STUDIES))) == 1
    with pytest.raises(HotpathError, match=r"sms: expected 132 as in .*--as"):
        list(bring(pack(tmp_path / "one"), tmp_path / "results"))
    assert not (tmp_path / "results").exists()


def test_a_bad_machine_of_an_archive_keeps_the_others_out(tmp_path: Path) -> None:
    packed(tmp_path / "one")
    packed(tmp_path / "one", machine="other")
    edit_run(
        files_of(tmp_path / "one" / "results", "other", "calls")[0].with_suffix(".json"),
        lambda run: run.update(machine="box"),
    )
    with pytest.raises(HotpathError, match="machine: expected 'other' by the path, got 'box'"):
        list(bring(pack(tmp_path / "one"), tmp_path / "results"))
    assert not (tmp_path / "results").exists()


def test_what_a_killed_process_left_is_not_brought(tmp_path: Path) -> None:
    packed(tmp_path / "one")
    packed(tmp_path / "one", run=LATER)
    first, second = files_of(tmp_path / "one" / "results", "box", "calls")
    second.with_suffix(".json").unlink()
    second.with_name(f".{second.name}.partial").touch()
    archive = pack(tmp_path / "one")
    assert list(bring(archive, tmp_path / "results")) == [f"box: calls/{first.stem}.json"]
    brought = tmp_path / "results" / "box" / "calls" / first.name
    brought.unlink()
    assert list(bring(archive, tmp_path / "results")) == [f"box: calls/{first.stem}.json"]
    assert brought.read_bytes() == first.read_bytes()


def test_a_run_of_another_content_is_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path / "one")
    results = tmp_path / "results"
    list(bring(archive, results))
    (path,) = files_of(results, "box", "calls")
    edit_run(path.with_suffix(".json"), lambda run: run.update(command="another"))
    before = contents(results)
    with pytest.raises(HotpathError, match=r"expected the content of .* got 'another'"):
        list(bring(archive, results))
    assert contents(results) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda path: path.write_text("results"), "not an archive of env/offline"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "not an archive of env/offline"),
        (with_member("results/../../evil.csv", _sized(1)), "plain files of results/<machine>"),
        (with_member("/etc/evil.csv", _sized(1)), "plain files of results/<machine>"),
        (with_member("results/box/calls/a.csv", _link), "plain files of results/<machine>"),
        (with_member("analysis/__init__.py", _sized(1)), "plain files of results/<machine>"),
        (
            with_member("results/box/calls/a.csv", _sized(LIMIT_BYTES + 1)),
            "bytes, unpacked, got 'more'",
        ),
        (with_member("results/published/copy.csv", _sized(1)), "plain files of results/<machine>"),
        (with_member("results/box/calls/a.csv", _sized(1)), "expected <run> and one of"),
    ],
)
def test_a_wrong_archive_is_one_error_and_adds_nothing(
    tmp_path: Path, change: Callable[[Path], object], says: str
) -> None:
    archive = packed(tmp_path / "one")
    change(archive)
    with pytest.raises(HotpathError) as caught:
        list(bring(archive, tmp_path / "results"))
    assert says in str(caught.value)
    assert not (tmp_path / "results").exists()


def test_a_wrong_checksum_is_one_error(tmp_path: Path) -> None:
    archive = packed(tmp_path / "one")
    whole = archive.read_bytes()
    for at in (len(whole) - 8, len(whole) - 4):  # the checksum, and the length
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(HotpathError, match="not an archive of env/offline: "):
            list(bring(archive, tmp_path / "results"))
    assert not (tmp_path / "results").exists()


def header(kind: bytes, size: int, name: str = "results/box/calls/a.csv") -> bytes:
    """A tar header, which may lie about the size."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


HUGE: dict[str, tuple[Iterable[bytes], str]] = {
    "a name of 1.5 GB": (
        chain([header(tarfile.GNUTYPE_LONGNAME, 3 * 2**29)], repeat(b"a" * 2**20, 1536)),
        "bytes, unpacked, got 'more'",
    ),
    "a name of 100 MB": (
        chain([header(tarfile.GNUTYPE_LONGNAME, 10**8)], repeat(b"a" * 2**20, 96)),
        "a long name of at most 4096 bytes",
    ),
    "an extension of 100 MB": (
        chain([header(tarfile.XHDTYPE, 10**8)], repeat(b"a" * 2**20, 96)),
        "a long name of at most 4096 bytes",
    ),
    "an extension of -1 byte": ([header(tarfile.XHDTYPE, -1), b"a" * 10**6], "got -1"),
    "a file of -1 byte": ([header(tarfile.REGTYPE, -1), b"a" * 10**6], "got -1"),
    "a chain of names": (
        repeat((header(tarfile.GNUTYPE_LONGNAME, 2) + b"a".ljust(512, b"\0")) * 1024, 20),
        "not an archive of env/offline",
    ),
    "a time that cannot be": (
        [
            header(tarfile.XHDTYPE, 15),
            b"15 mtime=1e400\n".ljust(512, b"\0"),
            header(tarfile.REGTYPE, 0, f"results/box/calls/{name_of(RUN)}.csv"),
        ],
        "not an archive of env/offline",
    ),
    "many folders": (
        repeat(header(tarfile.DIRTYPE, 0, "results/box/") * 1024, 400),
        "members, got 'more'",
    ),
    "a name part of 300 characters": (
        [header(tarfile.REGTYPE, 0, f"results/box/calls/{'a' * 300}.csv")],
        "plain files of results",
    ),
    "a machine of 300 characters": (
        [header(tarfile.REGTYPE, 0, f"results/{'a' * 300}/calls/a.csv")],
        "plain files of results",
    ),
    "a study of 300 characters": (
        [header(tarfile.REGTYPE, 0, f"results/box/{'a' * 300}/a.csv")],
        "plain files of results",
    ),
    "nothing": ([bytes(2**10)], "results of one machine"),
    "folders alone": ([header(tarfile.DIRTYPE, 0, "results/box/calls/")], "results of one machine"),
    "samples without a description": (
        [header(tarfile.REGTYPE, 0, f"results/box/calls/{name_of(RUN)}.csv")],
        "runs of box, got 'none'",
    ),
}
"""Archives, as parts of their tar files, and how each is refused."""


@pytest.mark.parametrize("name", HUGE)
def test_a_hostile_archive_is_one_line_in_little_time_and_memory(tmp_path: Path, name: str) -> None:
    parts, says = HUGE[name]
    archive = tmp_path / "huge.tar.gz"
    with gzip.open(archive, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
        file.write(bytes(2**10))
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))\n"
        "from analysis.measure.bring import main\n"
        "from analysis.base.cli import fail_in_one_line\n"
        "fail_in_one_line(main)\n"
    )
    (tmp_path / "results").mkdir()
    command = [sys.executable, "-c", program, str(archive), "--results", str(tmp_path / "results")]
    start = time.monotonic()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - start < 20
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert says in line and len(line) < 700


def test_a_damaged_archive_is_one_error_or_harmless(tmp_path: Path) -> None:
    archive = packed(tmp_path / "one")
    whole = archive.read_bytes()
    for at in range(0, len(whole), 16):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with suppress(HotpathError):
            list(bring(archive, tmp_path / f"results-{at}"))


def test_wrong_samples_are_refused_before_any_are_added(tmp_path: Path) -> None:
    packed(tmp_path / "one")
    packed(tmp_path / "one", run=LATER)
    path, _ = files_of(tmp_path / "one" / "results", "box", "calls")
    path.write_text(path.read_text().replace("1,ok", "1,okay", 1))
    with pytest.raises(HotpathError, match=rf"box/calls/{path.name}: checksum: expected"):
        list(bring(pack(tmp_path / "one"), tmp_path / "results"))
    assert not (tmp_path / "results").exists()


def test_the_files_of_a_pull_request_are_checked_alone(tmp_path: Path) -> None:
    for run in (RUN, LATER):
        write_machine(tmp_path, "box", CALLS, rounds=2, run=run)
    old, new = files_of(tmp_path, "box", "calls")
    old.write_text("damaged, but not asked for")
    assert list(faults([new, new.with_suffix(".json")], STUDIES)) == []
    new.write_text(new.read_text().replace("1,ok", "1,okay", 1))
    stray = new.with_name("notes.txt")
    stray.touch()
    other, checksum = faults([stray, new], STUDIES)
    assert other.startswith(f"{stray}: expected <run> and one of")
    assert checksum.startswith(f"{new}: checksum: expected")
    new.with_suffix(".json").unlink()
    (alone,) = faults([new], STUDIES)
    assert alone == f"{new}: expected {new.stem}.json beside it, got none"


@pytest.mark.parametrize(
    ("script", "expected"),
    [("bundle", "the name of an archive"), ("offline", "a name for the machine")],
)
def test_a_missing_argument_is_one_error(script: str, expected: str) -> None:
    done = subprocess.run([ROOT / "env" / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: expected {expected}, see env/{script}\n"


def test_a_checkout_is_no_archive_and_another_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    script = shutil.copy(ROOT / "env" / "offline", tmp_path / "env")
    environment = os.environ | {"PYTHON": sys.executable}

    def refusal() -> str:
        done = subprocess.run(
            [script, "box"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        return done.stderr

    assert refusal().startswith("error: expected the folder of an archive of env/bundle, got")
    (tmp_path / "env" / "python").write_text("3.9\n")
    assert refusal().startswith("error: Python: expected 3.9 as ")
