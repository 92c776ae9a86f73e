"""Results of other machines: of a node without a network, and of the nodes of a cluster."""

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.measure import bring as bringing
from analysis.measure import cluster
from analysis.measure.bring import LIMIT_BYTES, bring
from analysis.measure.machine import Commit
from analysis.results.check import faults, require_same_kind
from analysis.study.config import Config, Machine, load_config
from tests.editing import edit_json
from tests.measure.studies import contents
from tests.synthetic import CALLS, RUN, STUDIES, files_of, host_of, name_of, write_machine

LATER = "2026-02-02T03:04:05Z"


@pytest.fixture(autouse=True)
def _synthetic_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "discover", lambda: STUDIES)


def measured(root: Path, *runs: str) -> list[Path]:
    """The files of runs of a host."""
    for run in runs or (RUN,):
        write_machine(root, "box", CALLS, rounds=2, run=run)
    return files_of(root, "box", "calls")


def pack(folder: Path) -> Path:
    """The archive of env/offline of the results in `folder`."""
    return Path(shutil.make_archive(str(folder), "zip", folder))


def other_gpu(path: Path, **facts: Any) -> None:
    edit_json(path.with_suffix(".json"), lambda run: run["host"]["gpus"][0].update(facts))


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
    (same,) = (tmp_path / "one").rglob(f"{name_of(RUN)}.json")
    edit_json(same, lambda run: run.update(commit="1" * 40))
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
    for name in ("../box", "/tmp/box", "My Box", "published"):
        with pytest.raises(HotpathError, match="name of the machine: expected"):
            bring(archive, results, name)


def test_only_the_same_kind_of_machine_goes_on(tmp_path: Path) -> None:
    big = {"gpu": "Big GPU", "sms": 132, "pcie_generation": 5, "pcie_width": 16}
    for other, message in (
        ({"gpu": None}, "gpus: expected 1 as in"),
        ({"gpus": 2}, "gpus: expected 1 as in"),
        ({"gpu": "Small GPU"}, "gpu: expected 'Big GPU' as in"),
        ({"sms": 114}, "sms: expected 132 as in"),
        ({"pcie_width": 8}, "pcie_width: expected 16 as in"),
        ({"pcie_generation": 4}, "pcie_generation: expected 5 as in"),
    ):
        with pytest.raises(FieldError, match=f"here: {message}"):
            require_same_kind(host_of({**big, **other}), tmp_path, "here", host_of(big))
    # An idle link, and an unknown number.
    idle = host_of({**big, "pcie_generation": 1, "sms": None})
    require_same_kind(idle, tmp_path, "here", host_of(big))


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


HOSTILE: dict[str, str] = {
    "box/../../evil.csv": "results of one machine",
    "/etc/evil.csv": "results of one machine",
    "analysis/__init__.py": "results of one machine",
    "published/calls/copy.csv": "results of one machine",
    f"box/calls/{'a' * 300}.csv": "File name too long",
    "box/calls/a.csv": "expected <run> and one of",
    "a bomb": "bytes, unpacked, got",
    "no archive": "cannot be unpacked: File is not",
}
"""The file in an archive, and how the archive is refused."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_one_line(tmp_path: Path, name: str) -> None:
    archive, results = tmp_path / "hostile.zip", tmp_path / "results"
    if name == "no archive":
        archive.write_text("results")
    else:
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            packed.writestr(name, bytes(LIMIT_BYTES + 1 if name == "a bomb" else 1))
    with pytest.raises(HotpathError) as caught:
        bring(archive, results)
    assert HOSTILE[name] in str(caught.value) and str(caught.value).isprintable()
    assert not results.exists()


def test_a_damaged_archive_is_one_error_or_harmless(tmp_path: Path) -> None:
    measured(tmp_path / "one")
    archive, results = pack(tmp_path / "one"), tmp_path / "results"
    whole = archive.read_bytes()
    for at in random.Random(0).sample(range(len(whole)), 100):
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with suppress(HotpathError):
            bring(archive, results)
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


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Configuration of a repository in a separate folder, with one study."""
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    monkeypatch.setattr(cluster, "BUILD", tmp_path / "build")
    monkeypatch.setattr(Config, "results", tmp_path / "results")
    return replace(load_config(), studies={CALLS.name: CALLS})


def test_a_node_has_the_sources_and_results_of_now_and_keeps_its_build(
    tmp_path: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid file of results stays unchanged, on the node and in a merge."""
    for name in ("Snakefile", "kernels/a.cu", "build/a.so", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "profiles").symlink_to("workflow/profiles")
    bad, good = measured(tmp_path / "results", RUN, LATER)
    bad.write_text("")
    monkeypatch.setattr("subprocess.run", Mock(return_value=Mock(returncode=0)))
    monkeypatch.setattr("analysis.measure.cluster.commit_of", lambda root: Commit())
    tree = cluster.tree_of("box", 1)
    for gpus, expected in ((0, None), (2, [0, 1])):
        box = Machine(name="box", gpus=gpus)
        cluster.measure(config, {"grid": "full"}, box, 1)
        settings = json.loads((tree / "build" / "settings.json").read_text())
        assert settings.pop("gpu", None) == expected
        assert settings == {"grid": "full", "machine": "box", "machines": [], "runs": 1}
        (tmp_path / "kernels" / "b.cu").touch()
        (tmp_path / "kernels" / "a.cu").unlink(missing_ok=True)
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir()}
    of_results = {path.relative_to(tmp_path).as_posix() for path in good.parent.iterdir()}
    sources = {"Snakefile", "kernels/b.cu", "profiles", "build/settings.json"}
    assert found == sources | of_results
    assert list(cluster.merge(config, box)) == ["box: run 1: nothing new"]


def test_the_runs_of_nodes_become_one_machine_and_come_once(tmp_path: Path, config: Config) -> None:
    box = Machine(name="box", runs=2)
    first, second = (cluster.tree_of("box", run) / "results" for run in (1, 2))
    nothing = ["box: run 1: nothing new", "box: run 2: nothing new"]
    measured(second, LATER)
    brought = f"box: run 2: calls/{name_of(LATER)}.json"
    assert list(cluster.merge(config, box)) == [nothing[0], brought]
    measured(first)
    brought = f"box: run 1: calls/{name_of(RUN)}.json"
    assert list(cluster.merge(config, box)) == [brought, nothing[1]]
    before = contents(tmp_path / "results")
    assert list(cluster.merge(config, box)) == nothing
    (path,) = measured(tmp_path / "other" / "results", "2026-03-02T03:04:05Z")
    other_gpu(path, sms=114)
    shutil.copytree(path.parent, second / "box" / "calls", dirs_exist_ok=True)
    with pytest.raises(FieldError, match="sms: expected 132 as in"):
        list(cluster.merge(config, box))
    assert contents(tmp_path / "results") == before


UV = """#!/bin/sh
echo "$@" >>"$UV_LOG"
while [ $# -gt 0 ]; do
  if [ "$1" = --target ]; then mkdir -p "$2" && echo package >"$2/module.py"; fi
  shift
done
"""
SNAKEMAKE = """
import os, pathlib, sys
pathlib.Path("called").write_text("\\n".join([
    *sys.argv[1:], os.environ["HOTPATH_COMMIT"], os.environ["PYTHONPATH"], os.environ["CUDACXX"],
]))
folder = pathlib.Path("results/box/calls")
folder.mkdir(parents=True)
(folder / "python.csv").write_text("samples")
sys.exit(3)
"""


def command(folder: Path, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_commit_is_packed_with_its_packages_and_its_results_come_back(tmp_path: Path) -> None:
    """Changes that are not committed stay, and so do measured results. The packages come from a
    program in the place of uv."""
    root, unpacked = tmp_path / "repository", tmp_path / "node" / "hotpath"
    for name in ("results/box/calls/python.csv", "results/published/copy.csv", "Snakefile"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "env").mkdir()
    for script in ("run", "bundle", "offline"):
        shutil.copy(ROOT / "env" / script, root / "env")
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*named, "commit", "-qm", "first")):
        assert command(root, "git", *words).returncode == 0
    (root / "Snakefile").write_text("changed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    settings = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "UV_LOG": str(tmp_path / "uv.log"),
        "PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    packed = ("b.tar.xz", python, "compiler", "-numpy")
    done = command(tmp_path, root / "env" / "bundle", *packed, **settings)
    assert done.returncode == 0, done.stderr
    assert "warning: changes that are not committed are left out" in done.stderr
    unpacked.parent.mkdir()
    assert command(unpacked.parent, "tar", "xf", tmp_path / "b.tar.xz").returncode == 0
    commit = command(root, "git", "rev-parse", "HEAD").stdout
    assert (unpacked / "env" / "commit").read_text() == commit
    assert (unpacked / "Snakefile").read_text() == "Snakefile"
    assert (unpacked / ".packages" / "module.py").exists()
    assert [path.name for path in (unpacked / "results").iterdir()] == ["published"]
    exported, installed = (tmp_path / "uv.log").read_text().splitlines()[-2:]
    assert "--extra compiler --prune numpy --prune altair" in exported
    assert "--python-platform x86_64-manylinux" in installed

    # A failed command still packs its results. The study of several GPUs has a folder of its own; a
    # trial is not packed.
    archive, nvcc = unpacked / "box.zip", unpacked / ".packages" / "nvidia/cu13/bin/nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    make = "import os; os.makedirs({!r})".format
    for program, code, said in (
        (make("x"), 0, "nothing is packed: nothing was measured into results/box"),
        (make("build/smoke/results/box"), 0, "nothing is packed: the smoke grid is a trial, see"),
        (SNAKEMAKE, 3, str(archive)),
    ):
        assert not archive.exists()
        (unpacked / ".packages" / "snakemake.py").write_text(program)
        for other in ("box-x2", "box-xl") if program == SNAKEMAKE else ():
            (unpacked / "results" / other).mkdir()
        done = command(tmp_path, unpacked / "env" / "offline", "box", "grid=full", **settings)
        assert done.returncode == code and said in done.stdout, done.stderr
    assert list(unpacked.glob(".packages/__pycache__/snakemake.*.pyc"))
    called = (unpacked / "called").read_text()
    assert f"measure\nprofile\n--config\nmachine=box\ngrid=full\n{commit}" in called
    assert called.endswith(str(nvcc)) and str(unpacked / ".packages") in called
    assert ZipFile(archive).namelist() == ["box/", "box/calls/", "box/calls/python.csv", "box-x2/"]


def test_a_wrong_call_is_one_error(tmp_path: Path) -> None:
    """A checkout is no archive."""
    for name, expected in (("bundle", "the name of an archive"), ("offline", "a name for the")):
        done = command(tmp_path, ROOT / "env" / name)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: expected {expected}") and f", see env/{name}" in line
    (tmp_path / "env").mkdir()
    script = shutil.copy(ROOT / "env" / "offline", tmp_path / "env")
    for expected in ("the folder of an archive of env/bundle, got", "3.9 as "):
        refusal = command(tmp_path, script, "box", PYTHON=sys.executable).stderr
        assert refusal.startswith("error: ") and f"expected {expected}" in refusal
        (tmp_path / "env" / "python").write_text("3.9\n")
