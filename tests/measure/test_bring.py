"""Results of other machines: of a node without a network, and of the nodes of a cluster."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure import bring as bringing
from analysis.measure import cluster
from analysis.measure.bring import LIMIT_BYTES, bring
from analysis.results.check import faults, require_same_kind
from analysis.results.collect import collect
from analysis.study.config import Config, Machine, load_config
from tests.measure.studies import contents
from tests.synthetic import CALLS, RUN, STUDIES, edit_run, files_of, host_of, name_of, write_machine

LATER = "2026-02-02T03:04:05Z"


@pytest.fixture(autouse=True)
def _synthetic_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "discover", lambda: STUDIES)


def measured(root: Path, *runs: str, machine: str = "box") -> list[Path]:
    """The files of runs of a host."""
    for run in runs or (RUN,):
        write_machine(root, machine, CALLS, rounds=2, run=run)
    return files_of(root, machine, "calls")


def pack(folder: Path) -> Path:
    """The archive of env/offline of the results in `folder`."""
    return Path(shutil.make_archive(str(folder), "zip", folder))


def other_gpu(path: Path, **facts: Any) -> None:
    edit_run(path.with_suffix(".json"), lambda run: run["host"]["gpus"][0].update(facts))


def test_runs_of_two_hosts_become_one_machine_and_come_once(tmp_path: Path) -> None:
    """Without what a killed process left."""
    results = tmp_path / "results"
    for name, run in (("one", RUN), ("two", LATER)):
        (first, *_) = measured(tmp_path / name, run)
        first.with_name(f".{first.name}.partial").touch()
        shutil.copy(first, first.with_name(first.name.replace("2026", "2025", 1)))  # alone
        assert bring(pack(tmp_path / name), results) == [f"box/calls/{name_of(run)}.json"]
        brought = results / "box" / "calls" / first.name
        assert brought.read_bytes() == first.read_bytes()
    before = contents(results)
    assert len(before) == 2 * len([*(tmp_path / "one").rglob("2026*.*")])
    assert bring(pack(tmp_path / "one"), results) == ["nothing new"]
    assert contents(results) == before
    (same,) = (tmp_path / "one").rglob(f"{name_of(RUN)}.json")
    edit_run(same, lambda run: run.update(commit="1" * 40))
    with pytest.raises(HotpathError, match=r"the content of .*, or another name, see --as"):
        bring(pack(tmp_path / "one"), results)
    assert contents(results) == before


def test_another_name_is_the_way_out_for_another_kind_of_machine(tmp_path: Path) -> None:
    results = tmp_path / "results"
    measured(results)
    (path,) = measured(tmp_path / "two", LATER)
    other_gpu(path, gpu="Other")
    archive = pack(tmp_path / "two")
    with pytest.raises(HotpathError, match=r"gpu: expected 'Synthetic GPU' as in .*--as"):
        bring(archive, results)
    assert bring(archive, results, "other-box") == [f"other-box/calls/{name_of(LATER)}.json"]
    assert collect(results, STUDIES).refused == {}
    for name in ("../box", "/tmp/box", "My Box", "published"):
        with pytest.raises(HotpathError, match="name of the machine: expected"):
            bring(archive, results, name)


BIG = {"gpu": "Big GPU", "sms": 132, "pcie_generation": 5, "pcie_width": 16}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"gpu": None}, "gpus: expected 1 as in"),
        ({"gpus": 2}, "gpus: expected 1 as in"),
        ({"gpu": "Small GPU"}, "gpu: expected 'Big GPU' as in"),
        ({"sms": 114}, "sms: expected 132 as in"),
        ({"pcie_width": 8}, "pcie_width: expected 16 as in"),
        ({"pcie_generation": 4}, "pcie_generation: expected 5 as in"),
        ({"pcie_generation": 1, "sms": None}, ""),  # an idle link, and an unknown number
    ],
)
def test_results_of_another_kind_of_machine_are_refused(
    tmp_path: Path, other: dict[str, Any], message: str
) -> None:
    host, where = host_of({**BIG, **other}), "config: machine"
    require_same_kind(host, tmp_path / "box", where)  # the first of its folder
    if not message:
        require_same_kind(host, tmp_path / "box", where, host_of(BIG))
        return
    with pytest.raises(FieldError, match=f"{where}: {message}"):
        require_same_kind(host, tmp_path / "box", where, host_of(BIG))


@pytest.mark.parametrize("is_signed", [True, False])
def test_one_bad_run_of_an_archive_keeps_all_out(tmp_path: Path, is_signed: bool) -> None:
    """Of another kind than the others, or with wrong samples."""
    first, second = measured(tmp_path / "one", RUN, LATER)
    if is_signed:
        other_gpu(first, sms=114)
    else:
        first.write_text(first.read_text().replace("1,ok", "1,okay", 1))
    assert len(list(faults([first, second], STUDIES))) == 1
    says = r"sms: expected 132 as in .*--as" if is_signed else r"box/calls/.*\.csv: checksum: expec"
    with pytest.raises(HotpathError, match=says):
        bring(pack(tmp_path / "one"), tmp_path / "results")
    assert not (tmp_path / "results").exists()


def one_file(name: str, size: int = 1) -> Callable[[Path], None]:
    """An archive of one file of zeros."""

    def make(archive: Path) -> None:
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            packed.writestr(name, bytes(size))

    return make


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no archive": (lambda path: path.write_text("results"), "cannot be unpacked: File is not"),
    "an outer path": (one_file("box/../../evil.csv"), "results of one machine"),
    "an absolute path": (one_file("/etc/evil.csv"), "results of one machine"),
    "another folder": (one_file("analysis/__init__.py"), "results of one machine"),
    "published": (one_file("published/calls/copy.csv"), "results of one machine"),
    "a long name": (one_file(f"box/calls/{'a' * 300}.csv"), "File name too long"),
    "no name of a run": (one_file("box/calls/a.csv"), "expected <run> and one of"),
    "a bomb": (one_file("box/calls/a.csv", LIMIT_BYTES + 1), "bytes, unpacked, got"),
}
"""Archives, and how each is refused."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_one_line(tmp_path: Path, name: str) -> None:
    make, says = HOSTILE[name]
    archive, results = tmp_path / "hostile.zip", tmp_path / "results"
    make(archive)
    with pytest.raises(HotpathError) as caught:
        bring(archive, results)
    assert says in str(caught.value) and str(caught.value).isprintable()
    assert not results.exists()


def test_a_damaged_archive_is_one_error_or_harmless(tmp_path: Path) -> None:
    measured(tmp_path / "one")
    archive = pack(tmp_path / "one")
    whole = archive.read_bytes()
    for at in random.Random(0).sample(range(len(whole)), 100):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        results = tmp_path / f"results-{at}"
        with suppress(HotpathError):
            bring(archive, results)
        if results.exists():
            assert contents(results).items() <= contents(tmp_path / "one").items()


def test_the_files_of_a_pull_request_are_checked_alone(tmp_path: Path) -> None:
    old, new = measured(tmp_path, RUN, LATER)
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
    assert alone == f"{new}: ignored: expected {new.stem}.json beside it, got none"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Configuration of a repository in a separate folder, with one study."""
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    monkeypatch.setattr(cluster, "BUILD", tmp_path / "build")
    monkeypatch.setattr(Config, "results", tmp_path / "results")
    return replace(load_config(), studies={CALLS.name: CALLS})


def tree(run: int) -> Path:
    """The results of a run on a node."""
    return cluster.tree_of("box", run) / "results"


def test_tree_has_the_current_sources_and_keeps_its_build(tmp_path: Path, config: Config) -> None:
    del config
    for name in ("Snakefile", "kernels/a.cu", "results/box/x.csv", "build/a.so", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "profiles").symlink_to("workflow/profiles")
    tree = cluster.tree_of("box", 1)
    cluster.copy_sources(tree)
    (tree / "build").mkdir()
    (tree / "build" / "old.so").touch()
    (tmp_path / "kernels" / "a.cu").rename(tmp_path / "kernels" / "b.cu")
    cluster.copy_sources(tree)
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir()}
    assert found == {"Snakefile", "kernels/b.cu", "profiles", "build/old.so"}


@pytest.mark.parametrize(("gpus", "expected"), [(0, None), (2, [0, 1])])
def test_a_node_measures_what_the_results_lack_on_the_gpus_that_were_asked_for(
    tmp_path: Path,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    expected: list[int] | None,
) -> None:
    """An invalid file stays unchanged, on the node and in a merge."""
    bad, good = measured(tmp_path / "results", RUN, LATER)
    bad.write_text("")
    shutil.copytree(good.parent, good.parent.with_name("Calls"))
    good.with_name("notes.txt").touch()
    done = SimpleNamespace(returncode=0)
    monkeypatch.setattr("analysis.measure.cluster.subprocess.run", lambda *_, **__: done)
    monkeypatch.setattr("analysis.measure.cluster.commit_of", lambda root: SimpleNamespace(name=""))
    box = Machine(name="box", gpus=gpus)
    cluster.measure(config, {"grid": "full"}, box, 1)
    settings = json.loads((tree(1).parent / "build" / "settings.json").read_text())
    assert settings.pop("gpu", None) == expected
    assert settings == {"grid": "full", "machine": "box", "machines": [], "runs": 1}
    assert good in [tmp_path / path.relative_to(tree(1).parent) for path in tree(1).rglob("*.csv")]
    assert list(cluster.merge(config, box)) == ["box: run 1: nothing new"]


def test_the_runs_of_nodes_become_one_machine_and_come_once(tmp_path: Path, config: Config) -> None:
    box = Machine(name="box", runs=2)
    nothing = ["box: run 1: nothing new", "box: run 2: nothing new"]
    (path,) = measured(tree(2), LATER)
    second = f"box: run 2: calls/{name_of(LATER)}.json"
    assert list(cluster.merge(config, box)) == [nothing[0], second]
    measured(tree(1))
    assert list(cluster.merge(config, box)) == [
        f"box: run 1: calls/{name_of(RUN)}.json",
        nothing[1],
    ]
    before = contents(tmp_path / "results")
    assert list(cluster.merge(config, box)) == nothing
    (path,) = measured(tree(1).parent / "other" / "results", "2026-03-02T03:04:05Z")
    other_gpu(path, sms=114)
    shutil.copytree(path.parent, tree(2) / "box" / "calls", dirs_exist_ok=True)
    with pytest.raises(FieldError, match="sms: expected 132 as in"):
        list(cluster.merge(config, box))
    assert contents(tmp_path / "results") == before


def test_a_fault_in_a_machine_is_one_error() -> None:
    for machines, message in (
        ([{"name": "a"}, {"name": "a"}], "machines: expected every entry once"),
        ([{"name": "published"}], "machines.published.name: expected anything but 'published'"),
        ([{"name": "a", "gpu": 1}], "machines.a.gpu: expected a known key, such as 'gpus'"),
    ):
        with pytest.raises(FieldError, match=message):
            load_config({"machines": machines})
