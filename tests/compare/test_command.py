"""The command: what A and B may name, exit codes, forms of the report, errors, page and package."""

import io
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from analysis.compare import __main__ as command
from analysis.compare.report import as_text, compare
from analysis.compare.side import Row, Run, Side, run_of
from tests.compare.nvbench_files import write_nvbench
from tests.repository import STUDIES
from tests.roots import make_root
from tests.synthetic import COPY, files_of, make_stale, write_machine

PAGE = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
Command = Callable[..., tuple[int, str, str]]


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


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run the command on these arguments: its exit code and both outputs."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["compare", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as exit:
            command.main()
        shown = capsys.readouterr()
        return int(exit.value.code or 0), shown.out, shown.err

    return run


def test_the_exit_code_is_the_verdict_as_in_the_example_of_the_page(run: Command) -> None:
    base = files(Path("before"), {})
    assert run(base, files(Path("equal"), {}))[0] == 0
    assert run(base, files(Path("faster"), {"3": -0.1}))[0] == 0
    code, out, _ = run(base, files(Path("after"), {"3": 0.1, "7": 0.0492}))
    example = ROOT / "docs" / "assets" / "compare_example.txt"
    assert code == 1 and out == example.read_text(encoding="utf-8")
    once = files(Path("once"), {"3": 0.0065}, runs=1)
    code, out, _ = run(base, once, "--margin", 1)
    assert code == 2 and "measure more runs" in out
    assert run(base, once)[0] == 0, "the margin is 5 % by default"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        *((("--", given, "m"), given) for given in ("no/where", "--no-such-place")),
        *((("a" * length, "m"), "a" * 20) for length in (300, 5000)),
        (("files", "files", "--metric", "cpu_time"), "results of this project, for --metric, got"),
        (("files", "files", "--json"), "rows of both sides, from different runs, got 12 of"),
        (("hostile.json", "files"), "states: expected a list"),
        (("m",), "B: expected another side, unless A is -, got None"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: tuple[str, ...], expected: str, run: Command
) -> None:
    files(Path("files"), {}, runs=1)
    Path("hostile.json").write_text('{"benchmarks": [{"name": "x", "states": 3}]}')
    Path("m").mkdir()
    code, _, error = run(*arguments)
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: ") and expected in error


def test_a_fault_of_the_command_is_not_called_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "main", lambda: 1 / 0)
    with pytest.raises(SystemExit) as exit:
        command.run()
    assert exit.value.code == 2


def side(absent: Mapping[Row, str] | None = None, **rows: list[Run]) -> Side:
    runs: dict[Row, list[Run]] = {("study", name, "time"): of_row for name, of_row in rows.items()}
    return Side("side", runs, dict(absent or {}))


def steady(count: int = 4, seconds: float = 1e-3) -> list[Run]:
    return [run_of([seconds] * 3, id=f"{seconds}-{n}") for n in range(count)]


def test_a_row_that_now_fails_is_a_regression_and_shared_runs_are_no_repetition() -> None:
    a, new = side(x=steady(), y=steady()), steady(seconds=1.0001e-3)
    failed: dict[Row, str] = {("study", "y"): "failed: wrong output"}
    assert compare(a, side(failed, x=new), 0.01).exit_code == 1
    found = compare(a, side(x=new), 0.01)
    assert found.exit_code == 2 and "only in A, 1: study y time" in as_text(found)
    found = compare(side(x=steady()), side(x=steady()), 0.01)
    assert (found.same_runs, len(found.judged), found.exit_code) == (1, 0, 2)
    newer = [*steady(), *steady(2, seconds=2e-3)]
    judged = compare(side(x=steady()), side(x=newer), 0.01).judged
    assert judged[["runs", "direction"]].to_numpy().tolist() == [[(4, 2), "slower"]]


def test_results_are_all_machines_one_a_study_or_a_run_of_todays_code(tmp_path: Path) -> None:
    results = make_root(tmp_path) / "results"
    machine = results / "m"
    for day in (1, 2, 3):
        write_machine(results, "m", COPY, run=f"2026-01-0{day}T00:00:00Z", rounds=3)

    def read(path: Path) -> Side:
        return command.read(str(path))

    def counts(side: Side) -> set[int]:
        return {len(runs) for runs in side.runs.values()}

    whole = read(machine)
    assert len(whole.runs) > 20 and not whole.notes and not whole.absent
    assert whole.runs == read(machine / "copy").runs == read(results).runs and counts(whole) == {3}
    oldest, *_, newest = files_of(results, "m", "copy")
    assert counts(read(oldest)) == {1}
    write_machine(results, "other", COPY, run="2026-01-04T00:00:00Z", rounds=3)
    judged = compare(whole, read(results / "other")).judged
    assert len(judged) > 20 and {*judged["row"].str[0]} == {""}
    make_stale(newest, "bytewise")
    source = COPY.variant("vectors").path.name
    with next(tmp_path.glob(f"kernels/copy/{source}")).open("a") as file:
        file.write("\nint another;\n")
    oldest.write_text("x")
    found = read(machine)
    assert {row[2] for row, why in found.absent.items() if why.startswith("stale")} == {"vectors"}
    assert [note.startswith("refused: ") for note in found.notes] == [True]
    assert {len(runs): row[2] for row, runs in found.runs.items()}[1] == "bytewise"


SAMPLES = "side,case,run,seconds\n" + "".join(
    f"{side},{case},{run},{seconds * (1 + run / 1e4)}\n"
    for side, seconds in (("old", 1e-3), ("new", 2e-3))
    for case in range(4)
    for run in range(4)
)


def test_samples_on_standard_input(run: Command) -> None:
    code, out, _ = run("-", "--json", stdin=SAMPLES)
    rows = json.loads(out)["rows"]
    assert (code, len(rows), rows[0]["runs"]) == (1, 4, [4, 4])
    assert rows[0]["row"][1:] == ["seconds"] and rows[0]["ratio"] == pytest.approx(2)
    only_old = "\n".join(line for line in SAMPLES.splitlines() if not line.startswith("new"))
    code, out, _ = run(files(Path("a"), {}), "-", stdin=only_old)
    assert code == 2 and "only in B, 4: 0 seconds; 1 seconds" in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "header: expected"),
        ("seconds,seconds\n1,2", "header: expected different names, one of them seconds"),
        ("seconds\n1", "side: expected 2 sides, got 1"),
        *(
            (f"side,seconds\na,1\nb,{time}", "line 3: seconds: expected a number from 1e-12")
            for time in ("x", "nan", "1e308")
        ),
        ("side,seconds\na,1\nb", "line 3: expected 2 cells"),
        ('side,seconds\n"a,1', "expected CSV"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(text: str, expected: str, run: Command) -> None:
    code, out, error = run("-", stdin=text)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith("error: standard input: ") and expected in error


def test_the_page_names_options_of_the_help_and_variants(run: Command) -> None:
    shown = run("--help")[1]
    assert len(lines := shown.splitlines()) <= 24 and max(map(len, lines)) <= 100
    mentioned = set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--jsonbin", "--from"}
    assert mentioned and all(option in shown for option in mentioned)
    (gate,) = re.findall(r"env/gate \"origin.*", PAGE)
    for study, variant in re.findall(r" ([a-z0-9_]+)/([a-z0-9_]+)", gate.partition("h200")[2]):
        assert STUDIES[study].variant(variant)


_PRINT_FILES = """
import sys, analysis.compare.__main__
for module in [*sys.modules.values()]:
    print(getattr(module, "__file__", None))
"""
OF_OTHERS = {
    *("annotated_types", "charset_normalizer", "pydantic_core", "typing_extensions"),
    *("dateutil", "typing_inspection", "yaml"),
}


def test_the_package_declares_or_contains_all_its_imports() -> None:
    command = [sys.executable, "-c", _PRINT_FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = [Path(file) for file in done.stdout.splitlines()]
    package = ROOT / "env" / "compare" / "pyproject.toml"
    about = tomllib.loads(package.read_text())
    wheel = about["tool"]["hatch"]["build"]["targets"]["wheel"]
    parts = [(package.parent / source).resolve() for source in wheel["force-include"]]
    for file in imported:
        assert not file.is_relative_to(ROOT / "analysis") or {file, *file.parents} & {*parts}, file
    places = [file.parts for file in imported if "site-packages" in file.parts]
    names = {place[place.index("site-packages") + 1].partition(".")[0] for place in places}
    declared = {text.partition(">")[0] for text in about["project"]["dependencies"]}
    assert {name for name in names if not name.startswith("_")} <= declared | OF_OTHERS
