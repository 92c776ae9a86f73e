"""Which tests are heavy: those of files that import a tool to compile, browse, run the pipeline or
build tables and pages, also by way of a helper or a fixture."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from analysis import ROOT

MARK = "heavy"
TOOLS = {
    *("analysis.site.facts.inputs", "playwright", "tests.compiled", "tests.roots"),
    *("tests.browser", "tests.workflow.pipeline", "vl_convert"),
}


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
