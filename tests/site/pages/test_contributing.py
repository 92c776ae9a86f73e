"""The page for contributors, followed step by step in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import ROOT
from tests.roots import text_of

PAGE = ROOT / "docs" / "contributing.md"
STUDY = "host_sum"

# A file's name in bold on a separate line, optionally a place in it, then the text for it.
FILE = re.compile(r"^\*\*`([^`]+)`\*\*(.*?)\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def section(title: str) -> str:
    """The text under a heading of the page, to the next of its level; fences have none."""
    lines: list[str] = []
    is_wanted = is_fenced = False
    for line in PAGE.read_text().splitlines(keepends=True):
        is_fenced ^= line.startswith("```")
        if line.startswith("## ") and not is_fenced:
            is_wanted = line == f"## {title}\n"
        elif is_wanted:
            lines.append(line)
    assert lines, f"the page has no section {title}"
    return "".join(lines)


def write(copy: Path, path: str, where: str, content: str) -> None:
    """Put `content` at its place by the page: a new file, the end of one, or below a line."""
    target = copy / path
    assert target.exists() == bool(where), path
    target.parent.mkdir(parents=True, exist_ok=True)
    before = target.read_text() if where else ""
    match re.fullmatch(r"(?:, under `(.*)`|, at its end):?|", where):
        case re.Match() as found if found[1]:
            assert before.count(f"\n{found[1]}\n") == 1
            target.write_text(before.replace(f"\n{found[1]}\n", f"\n{found[1]}\n{content}"))
        case re.Match():
            target.write_text(before + "\n\n" * bool(before and path.endswith(".py")) + content)
        case None:
            pytest.fail(f"{path}{where}: where is that?")


def run(copy: Path, commands: str) -> str:
    """Run what the page says; `env/run` stands for the environment that runs this test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", commands.replace("env/run ", "")],
        cwd=copy,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def listed(copy: Path) -> dict[str, bytes]:
    """Every file of the copy, except those that git ignores."""
    ignored = {"build", ".snakemake", ".ruff_cache", "__pycache__"}
    return {
        path.relative_to(copy).as_posix(): path.read_bytes()
        for path in copy.rglob("*")
        if path.is_file() and not ignored & set(path.relative_to(copy).parts)
    }


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git does not ignore, without results."""
    folder = tmp_path_factory.mktemp("contributing") / "hotpath"
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others"]
    listing = subprocess.run(
        [*command, "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("results/nvidia"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.long
def test_following_the_page_yields_a_study(copy: Path) -> None:
    before = listed(copy)
    study, variant, kind = map(section, ("A study", "A variant", "A kind of claim"))
    files = FILE.findall(study) + FILE.findall(variant) + FILE.findall(kind)
    for path, where, content in files:
        write(copy, path, where, content)
    run(copy, f"env/run ruff check kernels/{STUDY}; env/run ruff format --check kernels/{STUDY}")
    run(copy, f"env/run clang-format --dry-run -Werror kernels/{STUDY}/*.cpp kernels/{STUDY}/*.h")
    for commands in COMMANDS.findall(study):
        run(copy, commands)
    printed = "".join(run(copy, commands) for commands in COMMANDS.findall(variant))
    assert "every byte verified" in printed
    assert "host time from memory" in printed

    site = copy / "build" / "smoke" / "site"
    page = (site / "studies" / STUDY / "index.html").read_text()
    for name in ("steps", "cold"):
        assert f'data-spec="../../charts/{STUDY}/{name}.json"' in page
        assert "cpp_loop" in (site / "charts" / STUDY / f"{name}.json").read_text()
    assert 'data-column="host time"' in page
    claims = site / "evidence" / STUDY / "claims"
    assert re.search("holds .*at least 10", text_of(claims / "cpp_beats_python.html"))
    assert re.search("holds", text_of(claims / "python_waits_longer.html"))
    assert "Adding up bytes" in text_of(site / "index.html")

    table = re.findall(r"^\| `([^`]+)` \|", study, re.MULTILINE)
    assert set(table) == {path for path, *_ in FILE.findall(study)}
    after = listed(copy)
    touched = {path for path in after if before.get(path) != after[path]} | before.keys() - after
    assert touched == {path for path, *_ in files}
