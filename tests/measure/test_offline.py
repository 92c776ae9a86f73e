"""The archive for a node without a network, and what runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

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


def run(folder: Path, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_commit_and_its_packages_are_packed_and_what_they_measure_comes_back(
    tmp_path: Path,
) -> None:
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
        assert run(root, "git", *words).returncode == 0
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
    words = ("b.tar.xz", python, "compiler", "-numpy")
    done = run(tmp_path, root / "env" / "bundle", *words, **settings)
    assert done.returncode == 0, done.stderr
    assert "warning: changes that are not committed are left out" in done.stderr
    unpacked.parent.mkdir()
    assert run(unpacked.parent, "tar", "xf", tmp_path / "b.tar.xz").returncode == 0
    commit = run(root, "git", "rev-parse", "HEAD").stdout
    assert (unpacked / "env" / "commit").read_text() == commit
    assert (unpacked / "Snakefile").read_text() == "Snakefile"
    assert (unpacked / ".packages" / "module.py").exists()
    assert [path.name for path in (unpacked / "results").iterdir()] == ["published"]
    exported, installed = (tmp_path / "uv.log").read_text().splitlines()[-2:]
    assert "--extra compiler --prune numpy --prune altair" in exported
    assert "--python-platform x86_64-manylinux" in installed

    # What was measured is packed though the command fails. The study of several GPUs has a folder
    # of its own; a trial is not packed.
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
        done = run(tmp_path, unpacked / "env" / "offline", "box", "grid=full", **settings)
        assert done.returncode == code and said in done.stdout, done.stderr
    assert list(unpacked.glob(".packages/__pycache__/snakemake.*.pyc"))
    called = (unpacked / "called").read_text()
    assert f"measure\nprofile\n--config\nmachine=box\ngrid=full\n{commit}" in called
    assert called.endswith(str(nvcc)) and str(unpacked / ".packages") in called
    assert ZipFile(archive).namelist() == ["box/", "box/calls/", "box/calls/python.csv", "box-x2/"]


def test_a_wrong_call_is_one_error(tmp_path: Path) -> None:
    """A checkout is no archive."""
    for name, expected in (("bundle", "the name of an archive"), ("offline", "a name for the")):
        done = run(tmp_path, ROOT / "env" / name)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: expected {expected}") and f", see env/{name}" in line
    (tmp_path / "env").mkdir()
    script = shutil.copy(ROOT / "env" / "offline", tmp_path / "env")
    for expected in ("the folder of an archive of env/bundle, got", "3.9 as "):
        refusal = run(tmp_path, script, "box", PYTHON=sys.executable).stderr
        assert refusal.startswith("error: ") and f"expected {expected}" in refusal
        (tmp_path / "env" / "python").write_text("3.9\n")
