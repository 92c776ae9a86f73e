"""The page: its options exist, its example of CI is valid, its figures are those of the table."""

import csv
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from analysis import ROOT
from analysis.site.pages import comparers
from analysis.site.pages.comparers import EXAMPLE, FOUND, LIMIT, TABLE, comparers_table, verdict
from tests.compare.test_command import files, run
from tests.repository import STUDIES

PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")


def test_every_option_of_the_page_exists() -> None:
    command = [sys.executable, "-m", "analysis.compare", "--help"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    of_others = {"--jsonbin", "--threshold-diff", "--from"}
    mentioned = set(re.findall(r"`(--[a-z-]+)", PAGE)) - of_others
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
        assert STUDIES[study].variant(variant)


@pytest.mark.parametrize("arguments", [[], ["main", "my-box"]])
def test_the_gate_needs_its_arguments(arguments: list[str]) -> None:
    done = subprocess.run([ROOT / "env" / "gate", *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stderr[:15]) == (2, "usage: env/gate")


def figures() -> dict[str, list[dict[str, str]]]:
    """The rows of the table by their files."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["files"])
    return {name: list(found) for name, found in groupby(rows, lambda row: row["files"])}


def at_default(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [r for r in rows if (r["comparer"], r["setting"]) == ("hotpath", "0.95")]


def least_strict(rows: Sequence[dict[str, str]], comparer: str) -> dict[str, str]:
    """The least strict setting whose tables keep the rate, one run a side."""
    kept = [
        row
        for row in rows
        if (row["comparer"], row["runs"]) == (comparer, "1")
        and int(row["false_tables"]) <= LIMIT * int(row["tables"])
    ]
    return min(kept, key=lambda row: float(row["setting"]))


def test_this_comparer_keeps_its_rate() -> None:
    found = figures()
    assert sum(int(row["rows"]) for rows in found.values() for row in at_default(rows)) >= 300
    for rows in found.values():
        assert at_default(rows)
        for row in at_default(rows):
            assert int(row["false_tables"]) <= LIMIT * int(row["tables"])


def test_the_page_says_whether_a_rate_is_exceeded() -> None:
    for name, rows in figures().items():
        (row,) = (row for row in at_default(rows) if row["runs"] == "1")
        is_exceeded = int(row["false_tables"]) > LIMIT * int(row["tables"])
        assert bool(re.search(rf"{re.escape(name)}(?![-\w])", verdict())) == is_exceeded


def test_on_one_host_more_runs_help_more_than_another_comparer() -> None:
    of_one_host = [rows for name, rows in figures().items() if name.startswith("identical")]
    assert of_one_host
    for rows in of_one_host:
        ours = least_strict(rows, "hotpath")
        robust = least_strict(rows, "nvbench-compare-robust")
        several = next(row for row in at_default(rows) if row["runs"] == "3")
        assert float(several["found_5"]) > max(float(robust["found_5"]), float(ours["found_5"]))


def test_between_hosts_this_comparer_finds_no_less() -> None:
    between_hosts = [rows for name, rows in figures().items() if name.startswith("results")]
    assert between_hosts
    for rows in between_hosts:
        single = next(row for row in at_default(rows) if row["runs"] == "1")
        for other in rows:
            is_script = other["comparer"] != "hotpath"
            if is_script and int(other["false_tables"]) <= int(single["false_tables"]):
                assert all(float(single[c]) >= float(other[c]) for c in FOUND[1:]), other


def test_the_verdict_counts_files_where_this_comparer_finds_no_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "files,runs,comparer,setting,tables,rows,false_rows,false_tables,"
    lines = [header + ",".join(FOUND)]
    for name, alarms, ours, script in (("a", 1, 0.5, 0.4), ("b, c", 2, 0.5, 0.6)):
        lines += [
            f'"{name}",1,hotpath,0.5,20,100,9,9,1,1,1,1',  # has too many false alarms
            f'"{name}",1,hotpath,0.95,20,100,{alarms},{alarms},0,{ours},1,0',
            f'"{name}",1,hotpath,0.99,20,100,0,0,0,{ours},1,0',
            f'"{name}",1,nvbench-compare-robust,0.005,20,100,0,0,0,{script},1,1',
        ]
    monkeypatch.setattr(comparers, "TABLE", tmp_path / "figures.csv")
    comparers.TABLE.write_text("\n".join(lines))
    assert verdict() == (
        "By default, 3 of 40 tables of unchanged programs have a false alarm; the rate is exceeded "
        "for b, c. With one run a side and at equal false alarms, this comparer finds no fewer "
        "slow-downs than either script: of 2 % in 1, of 5 % in 2, of 10 % in 0 of the 2 sets of "
        "files."
    )


def test_the_spread_has_every_set_of_identical_kernels() -> None:
    shown = comparers.spread_table()
    names = [name for name in figures() if name.startswith("identical")]
    assert names and all(name in shown for name in names)


def test_the_tables_have_every_comparer() -> None:
    for at in ("default", "equal"):
        assert all(
            name in comparers_table(at)
            for name in ("hotpath", "nvbench-compare-legacy", "nvbench-compare-robust")
        )
