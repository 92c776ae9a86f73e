"""The files that a code host and contributors' tools read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis import ROOT

FORMS = [ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml" for name in ("claim", "results")]
LINK = re.compile(r"\]\(([^):]+?)(?:#([\w-]+))?\)")
INPUTS = {"input", "textarea", "dropdown", "checkboxes"}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def programs(commands: list[str]) -> set[str]:
    """The commands up to their first option or path, as `ruff check`."""
    return {re.split(r" [-.>A-Z]", command)[0] for command in commands}


def test_every_linter_of_the_check_is_a_hook() -> None:
    [repository] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    entries = [hook["entry"] for hook in repository["hooks"]]
    assert all(entry.startswith("env/run ") for entry in entries)
    hooks = programs([entry.removeprefix("env/run ") for entry in entries])
    check = (ROOT / "env" / "check").read_text()
    linters = r"^(?:  xargs )?((?:ruff|mypy|lint-imports|deptry|snakefmt|clang-format)\b.*)"
    assert hooks == programs([found[1] for found in re.finditer(linters, check, re.MULTILINE)])


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_form_has_each_question_once(path: Path) -> None:
    form = read(path)
    assert form["name"] and form["description"]
    inputs = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in inputs} <= INPUTS
    for names in (
        [part["id"] for part in inputs],
        [part["attributes"]["label"] for part in inputs],
    ):
        assert len(set(names)) == len(names) > 3
    assert any(part.get("validations", {}).get("required") for part in inputs)


def test_hosted_tests_are_those_of_every_commit() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "ci.yml")
    assert {"run": ".ci/run"} in workflow["jobs"]["test"]["steps"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_first_page_for_contributors_has_no_broken_link() -> None:
    links = LINK.findall((ROOT / "CONTRIBUTING.md").read_text())
    assert len(links) > 5
    for path, heading in links:
        text = (ROOT / path).read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}
        assert not heading or heading in slugs, f"{path}#{heading}"
