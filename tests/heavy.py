"""Which tests are heavy: those of files that import a tool to compile, browse, run the pipeline or
build tables and pages, also by way of a helper or a fixture.

A test without the mark fails where it starts a compiler, a browser or Snakemake.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from analysis import ROOT

MARK = "heavy"
TOOLS = {
    *("analysis.site.facts.inputs", "playwright", "tests.compiled", "tests.roots"),
    *("tests.workflow.pipeline", "vl_convert"),
}
COMPILER_OR_BROWSER = re.compile(r"(.*/)?((g|c|clang)\+\+|gcc|cc|nvcc|chromium\S*|google-chrome)")
ASKS = {"--version", "-V", "--dryrun", "--list-gpu-arch", "-MM"}
"""Arguments with which a compiler compiles nothing."""


@cache
def is_heavy(file: Path) -> bool:
    """True if a file of tests, or one that it imports from tests/, imports one of TOOLS."""
    statements = [*ast.walk(ast.parse(file.read_text()))]
    modules = {one.module for one in statements if isinstance(one, ast.ImportFrom) and one.module}
    modules |= {a.name for one in statements if isinstance(one, ast.Import) for a in one.names}
    packages = {module.split(".")[0] for module in modules}
    helpers = (
        ROOT.joinpath(*m.split(".")).with_suffix(".py") for m in modules if m[:6] == "tests."
    )
    return bool(TOOLS & (modules | packages)) or any(is_heavy(h) for h in helpers if h.exists())


def mark_heavy(item: pytest.Item) -> None:
    """Add the mark to a test that is heavy."""
    fixtures = vars(item).get("_fixtureinfo").name2fixturedefs.values()  # type: ignore[union-attr]
    files = {Path(each.func.__code__.co_filename) for one in fixtures for each in one}
    ours = {file for file in files if file.is_relative_to(ROOT / "tests")}
    if item.get_closest_marker("gpu") or any(map(is_heavy, {item.path, *ours})):
        item.add_marker(MARK)


_unmarked: list[str] = []
"""The running test, if it must start nothing heavy."""


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if _unmarked and event == "subprocess.Popen":
        words = arguments[1]
        command = [*map(str, words)] if isinstance(words, list | tuple) else [str(words)]
        is_compiler = COMPILER_OR_BROWSER.fullmatch(command[0])
        if (is_compiler and not ASKS & {*command}) or command[1:3] == ["-m", "snakemake"]:
            test = _unmarked.pop()
            pytest.fail(f"{test} is not marked `{MARK}`, and starts {command}", pytrace=False)


def install_guard() -> None:
    """Watch all processes that tests start later."""
    sys.addaudithook(_watch)


@contextmanager
def guarded(item: pytest.Item) -> Iterator[None]:
    """Fail a test without the mark that starts a heavy process."""
    _unmarked[:] = [] if item.get_closest_marker(MARK) else [item.nodeid]
    try:
        yield
    finally:
        _unmarked.clear()
