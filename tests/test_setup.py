"""The set-up of a fresh machine and of the container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from analysis import ROOT

FAILS = """#!/bin/sh
echo "error: Failed to download \\`numpy==2.0\\`" >&2
echo "  cause: failed to lookup address information" >&2
exit 2
"""
WORKS = "#!/bin/sh\n"


def ran(
    folder: Path, script: str, *words: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a copy of a script of env/ in `folder`."""
    (folder / "env").mkdir(exist_ok=True)
    shutil.copy(ROOT / "env" / script, folder / "env")
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **settings}
    command = [str(folder / "env" / script), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def ran_with_uv(uv: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `words` by env/run, which calls the shell script `uv`."""
    (folder / "bin").mkdir()
    (folder / "bin" / "uv").write_text(uv)
    (folder / "bin" / "uv").chmod(0o755)
    return ran(folder, "run", *words, PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_python_keeps_compiled_copies_of_modules(tmp_path: Path) -> None:
    done = ran_with_uv(WORKS, tmp_path, "env")
    assert done.returncode == 0, done.stderr
    assert "PATH=" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout


def test_without_a_network_the_error_is_one_line(tmp_path: Path) -> None:
    done = ran_with_uv(FAILS, tmp_path, "touch", "ran")
    assert done.returncode == 1
    [line] = (done.stdout + done.stderr).splitlines()
    assert line.startswith("error: the installation failed: Failed to download `numpy==2.0`; ")
    assert "packages of env/pyproject.toml" in line
    assert "failed to lookup" in (tmp_path / ".uv" / "log").read_text()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("python", ["/nonexistent", "/tmp", "/bin/false", "/bin/echo", "/bin/true"])
@pytest.mark.parametrize(("script", "expected"), [("run", "3.11 to 3.13"), ("offline", "3.12")])
def test_a_python_that_is_none_is_one_line(
    tmp_path: Path, script: str, expected: str, python: str
) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").write_text("3.12\n")
    done = ran(tmp_path, script, "name", PYTHON=python)
    said = f"error: Python: expected {expected} as {python} (or in PYTHON), got no Python\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_a_home_that_cannot_be_written_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "/proc/none")
    done = ran_with_uv(WORKS, tmp_path, "env")
    assert f"XDG_CACHE_HOME={tmp_path}/.uv/cache" in done.stdout.splitlines()


def test_the_container_has_the_locked_programs() -> None:
    definition = (ROOT / "env" / "container.def").read_text()
    version = re.search(r"^uv_version=(\S+)$", (ROOT / "env" / "run").read_text(), re.MULTILINE)
    assert version is not None
    assert f" uv=={version[1]}\n" in definition
    compiler = re.search(r"^    export CXX=(\S+)$", definition, re.MULTILINE)
    assert compiler is not None
    assert f" {compiler[1]} " in definition
    files = definition.split("%files\n")[1].split("\n\n")[0]
    assert all((ROOT / line.split()[0]).exists() for line in files.splitlines())
