"""The set-up of a fresh machine and of the container, and the hooks of contributors."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from analysis import ROOT

FAILS = """
echo "error: Failed to download \\`numpy==2.0\\`" >&2
echo "  cause: failed to lookup address information" >&2
exit 2
"""


def ran(
    folder: Path, script: str, *words: str, uv: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a copy of a script of env/ in `folder`, where the program uv is this shell script."""
    for name in ("env", "bin"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "bin" / "uv").write_text(f"#!/bin/sh\n{uv}\n")
    (folder / "bin" / "uv").chmod(0o755)
    shutil.copy(ROOT / "env" / script, folder / "env")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PATH": path} | settings
    command = [str(folder / "env" / script), *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_python_keeps_compiled_copies_of_modules_and_needs_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    done = ran(tmp_path, "run", "env", **{variable: "/proc/none"})
    assert done.returncode == 0, done.stderr
    assert "PATH=" in done.stdout and "PYTHONDONTWRITEBYTECODE" not in done.stdout
    assert f"XDG_CACHE_HOME={tmp_path}/.uv/cache" in done.stdout.splitlines()


def test_without_a_network_the_error_is_one_line(tmp_path: Path) -> None:
    done = ran(tmp_path, "run", "touch", "ran", uv=FAILS)
    [line] = (done.stdout + done.stderr).splitlines()
    assert line.startswith("error: the installation failed: Failed to download `numpy==2.0`; ")
    assert "packages of env/pyproject.toml" in line
    assert "failed to lookup" in (tmp_path / ".uv" / "log").read_text()
    assert done.returncode == 1 and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("python", ["/nonexistent", "/tmp", "/bin/false", "/bin/echo", "/bin/true"])
@pytest.mark.parametrize(("script", "expected"), [("run", "3.11 to 3.13"), ("offline", "3.12")])
def test_no_python_is_one_line(tmp_path: Path, script: str, expected: str, python: str) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").write_text("3.12\n")
    done = ran(tmp_path, script, "name", PYTHON=python)
    said = f"error: Python: expected {expected} as {python} (or in PYTHON), got no Python\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_the_container_has_the_locked_programs() -> None:
    definition = (ROOT / "env" / "container.def").read_text()
    version = re.search(r"^uv_version=(\S+)$", (ROOT / "env" / "run").read_text(), re.MULTILINE)
    compiler = re.search(r"^    export CXX=(\S+)$", definition, re.MULTILINE)
    assert version and f" uv=={version[1]}\n" in definition
    assert compiler and f" {compiler[1]} " in definition
    files = definition.split("%files\n")[1].split("\n\n")[0]
    assert all((ROOT / line.split()[0]).exists() for line in files.splitlines())


def programs(commands: list[str]) -> set[str]:
    """The commands up to their first option or path, as `ruff check`."""
    return {re.split(r" [-.>A-Z]", command)[0] for command in commands}


def test_every_linter_of_the_check_is_a_hook() -> None:
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = programs([hook["entry"].removeprefix("env/run ") for hook in repository["hooks"]])
    check = (ROOT / "env" / "check").read_text()
    linters = r"^(?:  xargs )?((?:ruff|mypy|lint-imports|deptry|snakefmt|clang-format)\b.*)"
    assert hooks == programs(re.findall(linters, check, re.MULTILINE))
