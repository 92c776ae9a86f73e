"""The page: its options exist, its examples are what the command prints and CI can run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis import ROOT
from tests.compare.test_command import files, run
from tests.repository import STUDIES

EXAMPLE = ROOT / "docs" / "assets" / "compare_example.txt"
PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")


def test_every_option_of_the_page_exists() -> None:
    command = [sys.executable, "-m", "analysis.compare", "--help"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    of_others = {"--jsonbin", "--from"}
    mentioned = set(re.findall(r"`(--[a-z-]+)", PAGE)) - of_others
    assert mentioned and all(option in known for option in mentioned)


def test_the_example_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files(Path("before"), {})
    files(Path("after"), {"3": 0.1, "7": 0.0492})
    _, printed, _ = run(capsys, "before", "after")
    assert printed == EXAMPLE.read_text(encoding="utf-8")


def test_the_example_of_ci_calls_the_gate() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    steps = yaml.safe_load(example)["jobs"]["gate"]["steps"]
    called = next(step["run"] for step in steps if "env/gate" in step.get("run", ""))
    for name in re.findall(r"([a-z0-9_]+/[a-z0-9_]+) ", called.partition("nvidia-h200")[2]):
        study, variant = name.split("/")
        assert STUDIES[study].variant(variant)
