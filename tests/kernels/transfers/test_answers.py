"""Which call to use: measured times by situation, the command that answers, and the file."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.advise import main, measured
from analysis.base.errors import HotpathError
from analysis.results.answers.question import Question, Situation, questions_of, situations
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.transfers.charts import map_table
from tests.repository import STUDIES
from tests.synthetic import measured_row, write_machine

TRANSFERS = STUDIES["transfers"]


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """A time per piece, or once for a kernel, and the rate of the link."""
    size, count = int(case.values.get("size", 1)), int(case.values.get("count", 1))
    calls = 1 if "gather" in variant.name else count
    return 5e-6 + 1e-6 * calls + size * count / 50e9


def test_the_command_answers_in_lines_and_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("loop", "packed", "list_loop", "list_gather")
    settings: Any = {"variants": [TRANSFERS.variant(f"pinned_{name}") for name in names]}
    settings |= {"rounds": 4, "seconds": plausible, "grid": "default"}
    write_machine(tmp_path / "results", "box", TRANSFERS, **settings)
    known: dict[str, list[Situation]] = {}

    def measured_once(question: Question, *of: Any) -> list[Situation]:
        return known.get(question.name) or known.setdefault(question.name, measured(question, *of))

    monkeypatch.setattr("analysis.advise.measured", measured_once)
    monkeypatch.setattr("analysis.advise.discover", lambda: {**STUDIES})

    def advise(words: str) -> list[str]:
        command = ["advise", *words.split(), "--results", str(tmp_path / "results")]
        monkeypatch.setattr("sys.argv", command)
        main()
        return capsys.readouterr().out.replace("\u202f", ",").splitlines()

    first, use, takes, where, time, *ways = advise("pieces --size 4KiB --count 256")
    assert first.startswith("box: 256 × 4 KiB, direction to the device, on the device scattered")
    assert use.startswith("Use our copy kernel on all SMs: ") and use.endswith(" GB/s.")
    assert (takes, where) == ("It takes all SMs.", "Measured: 256 × 4 KiB.")
    assert time.startswith("Interpolated: ")
    assert [line.split()[0] for line in ways] == ["pinned_list_gather", "pinned_list_loop"]
    _, use, _, where, *_ = advise("pieces --size 4KiB --count 1000")
    assert " GB/s to " in use and where == "Measured: 256 × 4 KiB; 4,096 × 4 KiB."
    (line,) = advise("pieces --size 4096 --count 1000 --json")
    found = json.loads(line)
    assert (found["way"], found["count"]) == ("pinned_list_gather", 1000)
    assert [*found["seconds"]] == ["pinned_list_gather", "pinned_list_loop"]
    (line,) = advise("pieces --size 4096 --count 100000 --json")
    assert json.loads(line)["way"] is None and "nearest" in json.loads(line)["reason"]
    for words, message in (
        ("pieces --size 8KiB --count 9999", "box.*not measured: .* The nearest measured cell: "),
        ("pieces --size 1001 --count 16", "box.*All measured sizes are multiples of 16 B"),
        ("block --size 4KiB --memory registered", "box.*memory registered: not measured: 4 KiB$"),
        ("pieces --size 4KiB --count 2KiB", "--count: expected a whole .*, got '2KiB'"),
        ("pieces --size 4KiB", "--count: expected a whole .*, got ''"),
        (
            "block --size 4KiB --machine nosuch",
            r"--machine: expected one of \['box'\], got 'nosuch'",
        ),
    ):
        with pytest.raises(HotpathError, match=f"^{message}"):
            advise(words)
    files = f"--export {tmp_path}/answers.json --summary {tmp_path}/summary.json"
    assert advise(f"pieces {files}") == []
    file = json.loads((tmp_path / "answers.json").read_text())
    assert (file["format"], file["machine"]) == ("hotpath-answers", "box")
    wanted = {"direction": "h2d", "device": "scattered", "stream": "idle", "machine": "box"}
    (table,) = (one for one in file["tables"] if one["where"] == wanted)
    (by_count,) = (inner for low, high, inner in table["spans"] if low <= 4096 <= high)
    (place,) = (inner for low, high, inner in by_count if low <= 256 <= high)
    answer = table["answers"][place]
    assert (answer["way"], answer["cells"]) == ("pinned_list_gather", [[4096, 256]])
    brief = json.loads((tmp_path / "summary.json").read_text())
    assert (brief["format"], brief["agree_within_5_percent"]) == ("hotpath-answers-summary", 1)


def summary(seconds: float) -> pd.DataFrame:
    """A summary in which every variant that moves pieces takes as long."""
    rows = [
        {"machine": "box", "study": "transfers", "variant": variant.name, "case": case.id}
        for variant in TRANSFERS.variants
        for case in variant.cases
        if {"direction", "count"} <= case.values.keys() and "streams" not in case.values
    ]
    table = pd.DataFrame(rows).assign(metric="host_time", unit="s", verified=1, stale=0)
    table = table.assign(median=seconds, ci_low=seconds, ci_high=seconds)
    return table.assign(by_run=f"{seconds}|{2 * seconds}")


def asked(name: str, table: pd.DataFrame) -> dict[tuple[str, ...], Situation]:
    """The situations of a question of this study, by their choices."""
    (question,) = (one for one in questions_of(TRANSFERS) if one.name == name)
    found = situations(question, {**STUDIES}, TRANSFERS, table)
    return {tuple(here.where.values()): here for here in found}


def test_no_time_is_shorter_than_the_link_needs() -> None:
    link, case = STUDIES["link_calibration"], "bytes=262144"
    row = measured_row(link, "copy_engine", case, "gpu_time", 262144 / 50e9)
    table = pd.concat([summary(1e-9), pd.DataFrame([vars(row)])])
    block = asked("block", table)["h2d", "pinned"]
    assert block.link == pytest.approx(50e9)
    assert {round(1e6 * time) for time in block.times[(2**24,)].values()} == {336}
    assert block.times[(1,)]["pinned_loop"] == 1e-9
    anywhere = asked("block", table)["h2d", "any"]
    known, found = set(anywhere.times[(2**24,)]), anywhere.answer((2**24,))
    assert {"pageable_loop", "pinned_loop"} <= known and "write_combined_loop" not in known
    assert found is not None and found.way == "pageable_loop"
    assert "Its runs differ by up to 2.00×." in anywhere.lines(found)
    pieces = asked("pieces", table)["h2d", "scattered", "idle"]
    assert pieces.answer((528, 16)) and not pieces.answer((520, 16))


def test_held_out_cells_take_no_part_in_answers() -> None:
    pieces = asked("pieces", summary(1e-6))["h2d", "scattered", "idle"]
    assert pieces.held_out and not pieces.held_out.keys() & pieces.times.keys()


def test_ways_of_moving_are_no_ways_of_timing() -> None:
    some = ("pageable_loop", "pinned_loop", "pinned_list_batch", "pinned_list_gather_8")
    (question, *_) = questions_of(TRANSFERS)
    assert [way for way in question.ways if way in (*some, "pinned_nvbandwidth")] == [*some]


def test_the_map_has_fresh_and_checked_ways_with_a_second_best(tmp_path: Path) -> None:
    case = "size=4096,count=256,direction=h2d"
    seconds = {"pinned_loop": 3e-4, "pinned_gather": 1e-4, "pageable_loop": 9e-4}
    known = [measured_row(TRANSFERS, name, case, "host_time", s) for name, s in seconds.items()]
    table = pd.DataFrame([vars(row) for row in known])
    nothing = load_inputs(tmp_path, tmp_path, {"transfers": TRANSFERS})

    def mapped(**columns: int) -> pd.DataFrame:
        made = nothing.with_tables(summary=table.assign(**columns))
        return map_table(StudyFacts(made, TRANSFERS))

    found = mapped()[["memory", "variant", "short", "loop"]].to_numpy().tolist()
    assert found == [[kind, "pinned_gather", "100.0 µs", "3.00×"] for kind in ("any", "pinned")]
    assert mapped(stale=1).empty and mapped(verified=0).empty
