"""The page: its options exist, its example of CI is valid, its figures are those of the table."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis import ROOT
from analysis.site.pages.comparers import EXAMPLE, FOUND, LIMIT, TABLE, comparers_table
from tests.compare.test_command import files, run

PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")


def test_every_option_of_the_page_exists() -> None:
    command = [sys.executable, "-m", "analysis.compare", "--help"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    mentioned = set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--jsonbin", "--threshold-diff"}
    assert mentioned and all(option in known for option in mentioned)


def test_the_example_is_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files(Path("before"), {})
    files(Path("after"), {"3": 0.1, "7": 0.0085})
    _, printed, _ = run(capsys, "before", "after")
    assert printed == EXAMPLE.read_text(encoding="utf-8")


def test_the_example_of_ci_calls_the_gate() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    steps = yaml.safe_load(example)["jobs"]["gate"]["steps"]
    called = next(step["run"] for step in steps if "env/gate" in step.get("run", ""))
    for name in re.findall(r"([a-z0-9_]+/[a-z0-9_]+) ", called.partition("nvidia-h200")[2]):
        study, variant = name.split("/")
        assert f"- name: {variant}\n" in (ROOT / "kernels" / study / "study.yaml").read_text()


@pytest.mark.parametrize("arguments", [[], ["main", "my-box"]])
def test_the_gate_needs_its_arguments(arguments: list[str]) -> None:
    done = subprocess.run([ROOT / "env" / "gate", *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr[:15]) == (2, "usage: env/gate")


def test_this_comparer_keeps_its_rate_and_finds_no_less() -> None:
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    files = {row["files"] for row in rows}
    assert sum(int(row["rows"]) for row in rows if row["setting"] == "0.95") >= 300
    for name in files:
        of_files = [row for row in rows if row["files"] == name]
        default = [r for r in of_files if (r["comparer"], r["setting"]) == ("hotpath", "0.95")]
        assert default
        for row in default:
            assert int(row["false_tables"]) <= LIMIT * int(row["tables"])
        single = next(row for row in default if row["runs"] == "1")
        for other in of_files:
            is_script = other["comparer"] != "hotpath"
            if is_script and int(other["false_tables"]) <= int(single["false_tables"]):
                assert all(float(single[c]) >= float(other[c]) for c in FOUND[1:]), other


def test_the_tables_have_every_comparer() -> None:
    for at in ("default", "equal"):
        assert all(
            name in comparers_table(at)
            for name in ("hotpath", "nvbench-compare-legacy", "nvbench-compare-robust")
        )
