"""The files that a code host and contributors' tools read."""

from __future__ import annotations

import re

import yaml

from analysis import ROOT


def programs(commands: list[str]) -> set[str]:
    """The commands up to their first option or path, as `ruff check`."""
    return {re.split(r" [-.>A-Z]", command)[0] for command in commands}


def test_every_linter_of_the_check_is_a_hook() -> None:
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    hooks = programs([hook["entry"].removeprefix("env/run ") for hook in repository["hooks"]])
    check = (ROOT / "env" / "check").read_text()
    linters = r"^(?:  xargs )?((?:ruff|mypy|lint-imports|deptry|snakefmt|clang-format)\b.*)"
    assert hooks == programs(re.findall(linters, check, re.MULTILINE))


def test_first_page_for_contributors_has_no_broken_link() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path, heading in re.findall(r"\]\(([^):]+?)(?:#([\w-]+))?\)", text):
        titles = re.findall(r"^#+ (.+)$", (ROOT / path).read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
        assert not heading or heading in slugs, f"{path}#{heading}"
