"""The archive for a node without a network, and what runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from analysis import ROOT

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


def run(
    command: list[object], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with measured and published results, and one change that is not committed."""
    root = tmp_path / "repository"
    for script in ("run", "bundle", "offline"):
        (root / "env").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "env" / script, root / "env")
    for name in ("results/box/calls/python.csv", "results/published/copy.csv", "Snakefile"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    named = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*named, "commit", "-qm", "first"]):
        assert run(["git", *command], root).returncode == 0
    (root / "Snakefile").write_text("changed")
    return root


@pytest.fixture
def bundled(repository: Path, tmp_path: Path) -> Path:
    """The unpacked archive; packages come from a program in the place of uv."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    command = [repository / "env" / "bundle", tmp_path / "b.tar.xz", python, "compiler", "-numpy"]
    done = run([*command], tmp_path, PATH=path, UV_LOG=str(tmp_path / "uv.log"))
    assert done.returncode == 0, done.stderr
    assert "warning: changes that are not committed are left out" in done.stderr
    (tmp_path / "node").mkdir()
    assert run(["tar", "xf", tmp_path / "b.tar.xz"], tmp_path / "node").returncode == 0
    return tmp_path / "node" / "hotpath"


def test_an_archive_has_the_commit_and_packages_and_no_measured_results(
    bundled: Path, repository: Path, tmp_path: Path
) -> None:
    commit = run(["git", "rev-parse", "HEAD"], repository).stdout
    assert (bundled / "env" / "commit").read_text() == commit
    assert (bundled / "Snakefile").read_text() == "Snakefile"
    assert (bundled / ".packages" / "module.py").exists()
    assert [path.name for path in (bundled / "results").iterdir()] == ["published"]
    exported, installed = (tmp_path / "uv.log").read_text().splitlines()[-2:]
    assert "--extra compiler --prune numpy --prune altair" in exported
    assert "--python-platform x86_64-manylinux" in installed


def test_what_was_measured_is_packed_though_the_command_fails(bundled: Path) -> None:
    """The study of several GPUs has a folder of its own; a trial is not packed."""
    offline, archive = bundled / "env" / "offline", bundled / "box.zip"
    settings = {"PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1"}
    nvcc = bundled / ".packages" / "nvidia" / "cu13" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    for made, said in (
        ("", "nothing is packed: nothing was measured into results/box"),
        ("build/smoke/results/box", "nothing is packed: the smoke grid is a trial, see build/sm"),
        ("results/box", str(archive)),
    ):
        program = SNAKEMAKE if made == "results/box" else f"import os; os.makedirs({made!r} or 'x')"
        (bundled / ".packages" / "snakemake.py").write_text(program)
        for other in ("box-x2", "box-xl") if made == "results/box" else ():
            (bundled / "results" / other).mkdir()
        done = run([offline, "box", "grid=full"], bundled.parent, **settings)
        assert done.returncode == (3 if made == "results/box" else 0), done.stderr
        assert said in done.stdout and archive.exists() == (made == "results/box")
    assert list(bundled.glob(".packages/__pycache__/snakemake.*.pyc"))
    called = (bundled / "called").read_text()
    assert "measure\nprofile\n--config\nmachine=box\ngrid=full\n" in called
    assert (bundled / "env" / "commit").read_text() in called
    assert called.endswith(str(nvcc)) and str(bundled / ".packages") in called
    assert ZipFile(archive).namelist() == ["box/", "box/calls/", "box/calls/python.csv", "box-x2/"]


def test_a_wrong_call_is_one_error(tmp_path: Path) -> None:
    """A checkout is no archive."""
    for name, expected in (("bundle", "the name of an archive"), ("offline", "a name for the")):
        done = run([ROOT / "env" / name], tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: expected {expected}") and f", see env/{name}" in line
    (tmp_path / "env").mkdir()
    script = shutil.copy(ROOT / "env" / "offline", tmp_path / "env")
    refusal = run([script, "box"], tmp_path, PYTHON=sys.executable).stderr
    assert refusal.startswith("error: expected the folder of an archive of env/bundle, got")
    (tmp_path / "env" / "python").write_text("3.9\n")
    refusal = run([script, "box"], tmp_path, PYTHON=sys.executable).stderr
    assert refusal.startswith("error: Python: expected 3.9 as ")
