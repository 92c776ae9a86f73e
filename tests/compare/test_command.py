"""The command: what A and B may name, exit codes, forms of the report, and errors."""

import io
import json
import random
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.compare import __main__ as command
from analysis.compare.report import as_text, compare
from analysis.compare.results import read_results
from analysis.compare.side import Row, Run, Side, run_of
from tests.compare.nvbench_files import write_nvbench
from tests.roots import make_root
from tests.synthetic import COPY, files_of, make_stale, write_machine


def files(folder: Path, slower: Mapping[str, float], runs: int = 3) -> Path:
    """A folder of NVBench files with 12 rows."""
    folder.mkdir()
    draw = np.random.default_rng(len(folder.name))
    for number in range(runs):
        rows = {}
        for name in map(str, range(12)):
            time = 1e-5 * (1 + slower.get(name, 0)) * np.exp(0.0003 * draw.standard_normal())
            rows["copy", name] = time * np.exp(0.001 * draw.standard_normal(50))
        write_nvbench(folder / f"{number}.json", rows)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as exit:
        patch.setattr(sys, "argv", ["compare", *map(str, arguments)])
        command.main()
    shown = capsys.readouterr()
    return int(exit.value.code or 0), shown.out, shown.err


def test_the_exit_code_is_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = files(tmp_path / "base", {})
    assert run(capsys, base, files(tmp_path / "equal", {}))[0] == 0
    assert run(capsys, base, files(tmp_path / "faster", {"3": -0.1}))[0] == 0
    code, out, _ = run(capsys, base, files(tmp_path / "slower", {"3": 0.1}))
    assert code == 1
    assert out.splitlines()[1].startswith("different, slower  +10.")
    once = files(tmp_path / "once", {"3": 0.0065}, runs=1)
    code, out, _ = run(capsys, base, once, "--margin", 1)
    assert code == 2
    assert "measure more runs" in out
    assert run(capsys, base, once)[0] == 0, "the margin is 5 % by default"


SELECTION = "expected @3, @-3 or the start of a run's time, such as @2026-11, got "
NO_SELECTION = "expected results of this project, for @ and --metric, got"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *((("--", given, "m"), given) for given in ("nowhere", "no/where@3", "--no-such-place")),
        *((("a" * length, "m"), "a" * 20) for length in (300, 1999, 5000)),
        *(
            ((f"m{which}", "m"), f"{SELECTION}{which!r}")
            for which in ("@", "@0", "@-0", "@nonsense", "@-1000", "@1.5", "@2026 11")
        ),
        (("files@1", "files"), NO_SELECTION),
        (("files/0.json@1", "files"), NO_SELECTION),
        (("files", "files", "--metric", "cpu_time"), NO_SELECTION),
        (("files", "files"), "expected rows of both sides, from different runs, got 12 of"),
        (("files", "files", "--json"), "expected rows of both sides, from different runs, got 12"),
        (("hostile.json", "files"), "states: expected a list"),
        (("m",), "B: expected another side, unless A is -, got None"),
    ],
)
def test_arguments_that_cannot_be_end_with_2_and_one_line(
    arguments: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files(Path("files"), {}, runs=1)
    Path("hostile.json").write_text('{"benchmarks": [{"name": "x", "states": 3}]}')
    Path("m").mkdir()
    code, _, error = run(capsys, *arguments)
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: ") and expected in error


def test_a_fault_of_the_command_is_not_called_slower(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fault() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(command, "main", fault)
    with pytest.raises(SystemExit) as exit:
        command.run()
    assert exit.value.code == 2


HOSTILE_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 3.5, 1e308, -1e308, 1e-320, 2**64, 10**400, "", "x", "1e308", "nan"),
    *("9" * 1999, "a" * 2001, "a/" * 999, "../" * 300, "/dev/zero", "\ud800", "\x00", [], {}, [[]]),
)


@pytest.mark.parametrize("seed", range(4))
def test_random_hostile_files_have_an_exit_code_and_no_traceback(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    a = files(tmp_path / "a", {}, runs=1) / "0.json"
    hostile = a.with_name("b.json")
    for _ in range(60):
        document = json.loads(a.read_text())
        for _ in range(draw.choice((1, 1, 3, 10))):
            container, key = draw.choice(list(places(document)))
            container[key] = draw.choice(HOSTILE_VALUES)
        hostile.write_text(json.dumps(document))
        code, out, error = run(capsys, *draw.choice([(a, hostile), (hostile, a)]))
        assert code in (0, 2) or "slower" in out
        assert error.count("\n") <= 1


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value in a document, as its container and key."""
    keys = document if isinstance(document, dict) else range(len(document))
    for key in keys:
        yield document, key
        if isinstance(document[key], (dict, list)):
            yield from places(document[key])


def side(rows: Mapping[str, list[Run]], absent: Mapping[Row, str] | None = None) -> Side:
    runs: dict[Row, list[Run]] = {("study", name, "time"): of_row for name, of_row in rows.items()}
    return Side("side", runs, dict(absent or {}))


def steady(count: int = 4, seconds: float = 1e-3) -> list[Run]:
    return [run_of([seconds] * 3, id=f"{seconds}-{n}") for n in range(count)]


def test_a_row_that_now_fails_is_a_regression() -> None:
    a = side({"x": steady(), "y": steady()})
    b = side({"x": steady(seconds=1.0001e-3)}, absent={("study", "y"): "failed: wrong output"})
    assert compare(a, b, 0.01).exit_code == 1
    b = side({"x": steady(seconds=1.0001e-3)})
    found = compare(a, b, 0.01)
    assert found.exit_code == 2
    assert "only in A, 1: study y time" in as_text(found)


def test_shared_runs_are_no_repetition() -> None:
    runs = steady(3)
    found = compare(side({"x": runs}), side({"x": runs}), 0.01)
    assert (found.same_runs, list(found.judged), found.exit_code) == (1, [], 2)
    newer = [*runs, *steady(2, seconds=2e-3)]
    (row,) = compare(side({"x": runs}), side({"x": newer}), 0.01).judged
    assert row.runs == (3, 2)
    assert row.direction == "slower"


RUNS = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Three runs on one machine, in a made-up repository."""
    root = make_root(tmp_path)
    for run in RUNS:
        write_machine(root / "results", "m", COPY, run=run, rounds=3)
    return root / "results" / "m"


def test_results_of_a_machine_and_their_runs(machine: Path) -> None:
    whole = read_results("all", machine)
    newest = read_results("newest", machine, "1")
    others = read_results("others", machine, "-1")
    rows = [row for row in newest.runs if row in others.runs]
    assert len(rows) > 20 and not whole.notes
    for row in rows:
        assert len(newest.runs[row]) == 1
        runs = [*others.runs[row], *newest.runs[row]]
        assert {one.id for one in runs} == {one.id for one in whole.runs[row]}
    began = newest.runs[rows[0]][0].id
    for which in (began, f"{began[:4]}-{began[4:6]}-{began[6:11]}:{began[11:13]}:{began[13:15]}"):
        assert read_results("one", machine, which).runs[rows[0]] == newest.runs[rows[0]]


def test_a_study_and_a_run_can_be_named(machine: Path) -> None:
    def runs_in(place: Path) -> set[str]:
        side = command.read(str(place))
        return {one.id for runs in side.runs.values() for one in runs}

    first, *_ = files_of(machine.parent, "m", "copy")
    assert len(runs_in(machine / "copy")) == len(RUNS)
    for file in (first, first.with_suffix(".json")):
        assert len(runs_in(file)) == 1
    write_machine(machine.parent, "other", COPY, run="2026-01-04T00:00:00Z", rounds=3)
    found = compare(read_results("a", machine), read_results("b", machine.parent / "other"))
    assert len(found.judged) > 20 and {row.row[0] for row in found.judged} == {""}


def test_code_that_has_changed_is_stale_and_damaged_files_are_named(
    machine: Path, tmp_path: Path
) -> None:
    assert not read_results("before", machine).stale
    oldest, *_, newest = files_of(machine.parent, "m", "copy")
    make_stale(newest, "bytewise")
    # Without studies, the code of the newest run counts.
    shutil.copytree(machine, tmp_path / "elsewhere" / "results" / "m")
    found = read_results("alone", tmp_path / "elsewhere" / "results" / "m")
    assert {len(runs) for row, runs in found.runs.items() if row[2] == "bytewise"} == {1}
    assert {len(runs) for row, runs in found.runs.items() if row[2] != "bytewise"} == {3}
    source = COPY.variant("bytewise").path.name
    with next(tmp_path.glob(f"kernels/copy/{source}")).open("a") as file:
        file.write("\nint another;\n")
    oldest.write_text("x")
    found = read_results("after", machine.parent)
    assert {row[2] for row in found.stale} >= {"bytewise"}
    assert [note.startswith("refused: ") for note in found.notes] == [True]
    assert {len(runs) for runs in found.runs.values()} == {2}


SAMPLES = "side,case,run,seconds\n" + "".join(
    f"{side},{case},{run},{seconds * (1 + run / 1e4)}\n"
    for side, seconds in (("old", 1e-3), ("new", 2e-3))
    for case in range(4)
    for run in range(4)
)


def test_samples_on_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(SAMPLES))
    code, out, _ = run(capsys, "-", "--json")
    rows = json.loads(out)["rows"]
    assert (code, len(rows), rows[0]["runs"]) == (1, 4, [4, 4])
    assert rows[0]["row"][1:] == ["seconds"] and rows[0]["ratio"] == pytest.approx(2)
    only_old = [line for line in SAMPLES.splitlines() if not line.startswith("new")]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(only_old)))
    code, out, _ = run(capsys, files(tmp_path / "a", {}), "-")
    assert code == 2 and "only in B, 4: 0 seconds; 1 seconds" in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "header: expected"),
        ("side,run\na,1", "header: expected different names, one of them seconds"),
        ("seconds,seconds\n1,2", "header: expected different names"),
        ("seconds\n1", "side: expected 2 sides, got 1"),
        ("side,seconds\na,1\nb,x", "line 3: seconds: expected a number from 1e-12"),
        ("side,seconds\na,1\nb,nan", "line 3: seconds: expected a number from 1e-12"),
        ("side,seconds\na,1\nb,1e308", "line 3: seconds: expected a number from 1e-12"),
        ("side,seconds\na,1\nb", "line 3: expected 2 cells"),
        ("side,seconds\na,1\nb,1,2", "line 3: expected 2 cells"),
        ('side,seconds\n"a,1', "expected CSV"),
        ("side,seconds\na,1\nb,1\nc,1", "side: expected 2 sides, got 3"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(
    text: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code, out, error = run(capsys, "-")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith("error: standard input: ") and expected in error


def test_the_help_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "--help")[1].splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
