"""The path of a sample: the files of the project that one marked host time passes until its bar."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis import ROOT
from analysis.measure.places import Place
from analysis.measure.publish import publish
from analysis.results.collect import collect
from analysis.results.tables.of_study import put_together, study_tables, to_csv
from analysis.results.tables.summary import summarise
from analysis.site.charts.steps import steps_chart
from analysis.site.charts.writing import write_charts
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.measure.studies import host, measure, plan_of, write_study

MARK: Final = 0.0123456
"""The host time, in s, of every launch of the marked variant."""
MARKED = f'''\
"""Fill at once, by a launcher whose clock shows the marked time."""

from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.measure.cell import PythonLauncher
from tests.results.test_trace import trace


def fill(out):
    out[:] = b"\\x01" * len(out)


class Launcher(PythonLauncher):
    def time_launch(self, stream, l2, l2_bytes):
        trace(Path(__file__).with_name("passed"))
        self.launch(stream)
        seconds = float.fromhex("{MARK.hex()}")
        return seconds, seconds
'''
WORKLOAD = '''\
"""Fill a buffer with ones."""

from analysis.measure.cell import Operation


class Workload:
    def __init__(self, constants, rng):
        self.out = bytearray()

    def prepare(self, case):
        self.out = bytearray(case.number("n") * 8)

    def bind(self, variant, module):
        return Bound(module, self.out)


class Bound(Operation):
    def __init__(self, module, out):
        self.out = out
        self.launcher = module.Launcher(lambda stream: module.fill(out))

    def poison(self):
        self.out[:] = bytes([0xA5]) * len(self.out)

    def check(self):
        return None if set(self.out) == {1} else "wrong"
'''
PAGE: Final = ROOT / "docs" / "architecture.md"
MAX_FILES: Final = 20
"""Maximum number of files that a host time passes, without those of `analysis/base`."""
SHAPES: Final = {
    "a round": "build/rounds/<machine>/…/round-00.json",
    "measuring": "results/<machine>/<study>/<run>.csv",
    "rule `summarise_study`": "build/tables/<study>/summary.csv",
    "rule `charts`": "build/charts/<study>/steps.json",
}
"""The file in which each process leaves the sample."""


def holds(value: object, depth: int = 3) -> bool:
    """Whether the marked time is in a value, or in a value that this has."""
    if isinstance(value, float):
        return value == MARK
    if isinstance(value, str):
        return f"{MARK}" in value
    if isinstance(value, pd.DataFrame | pd.Series | np.ndarray):
        is_small = value.size < 10_000  # as all tables of the study are
        return depth > 0 and is_small and holds(np.asarray(value, object).ravel().tolist(), 1)
    if isinstance(value, dict):
        return depth > 0 and any(holds(one, depth - 1) for one in value.values())
    if isinstance(value, list | tuple):
        return depth > 0 and any(holds(one, depth - 1) for one in value)
    return depth > 1 and is_dataclass(value) and holds([*vars(value).values()], depth - 1)


def trace(passed: Path) -> None:
    """From now on, note in the file `passed` the source of each function that gets or gives the
    marked time."""
    known: set[str] = set()

    def note(frame: FrameType, event: str, value: Any) -> None:
        file = frame.f_code.co_filename
        if file in known or event not in ("call", "return"):
            return
        is_ours = file.startswith((f"{ROOT}/analysis/", f"{passed.parent}/"))
        if is_ours and holds(value if event == "return" else [*frame.f_locals.values()]):
            known.add(file)
            with passed.open("a") as out:
                out.write(f"{file}\n")

    sys.setprofile(note)


@contextmanager
def traced(passed: Path) -> Iterator[None]:
    """`trace` within a block."""
    trace(passed)
    try:
        yield
    finally:
        sys.setprofile(None)


def path_of_a_sample(work: Path) -> tuple[dict[str, list[str]], list[str]]:
    """The files that the sample passes in each process, in order, and what each leaves."""
    folder = work / "fill"
    folder.mkdir()
    (folder / "workload.py").write_text(WORKLOAD)
    (folder / "marked.py").write_text(MARKED)
    study = write_study(folder, {"name": "marked"}, sizes={"payload_bytes": 0})
    studies = {study.name: study}
    place = Place(work / "results", "test-box", cuda="13.0")
    journal = measure(plan_of(study, place, rounds=2))
    left = [next(journal.folder.glob("round-*.json")).read_text()]
    passed = [folder / "passed", *(work / f"{number}" for number in range(3))]
    with traced(passed[1]):
        list(publish(journal, host()))
    left.append(next(place.folder.glob("*/*.csv")).read_text())
    with traced(passed[2]):
        found = collect(place.root, studies)
        left.append(to_csv("summary", summarise(found.samples, studies)))
    put_together(
        {study.name: study_tables(place.root, study.name, studies, {})},
        *({}, place.root, work / "build"),
    )
    with traced(passed[3]):
        facts = StudyFacts(load_inputs(work / "build", place.root, studies), study)
        write_charts({"steps": steps_chart(facts)}, work / "charts", {})
    left.append((work / "charts" / "steps.json").read_text())
    files = [dict.fromkeys(path.read_text().splitlines()) for path in passed]
    names = [
        [file.removeprefix(f"{ROOT}/").removeprefix(f"{work}/") for file in of] for of in files
    ]
    return dict(zip(SHAPES, names, strict=True)), left


def rows_of(path: Mapping[str, Sequence[str]]) -> str:
    """The rows of the table on the page."""
    lines = ["| process | files, in order | the sample leaves it in |", "|---|---|---|"]
    for process, files in path.items():
        shown = [f"`{file}`" for file in files if not file.startswith(("analysis/base/", "fill/"))]
        source = ["the variant's source"] * (files[0] == "fill/marked.py")
        lines.append(f"| {process} | {', '.join([*source, *shown])} | `{SHAPES[process]}` |")
    return "\n".join(lines)


def test_a_host_time_passes_few_files_in_four_shapes_under_one_name(tmp_path: Path) -> None:
    path, left = path_of_a_sample(tmp_path)
    files = {file for of in path.values() for file in of}
    assert len([file for file in files if not file.startswith("analysis/base/")]) <= MAX_FILES
    for text in left:
        assert f"{MARK}" in text and re.search(r"\bhost_time\b", text)
    assert rows_of(path) in PAGE.read_text(), "run python -m tests.results.test_trace"


if __name__ == "__main__":
    with TemporaryDirectory() as work:
        table = rows_of(path_of_a_sample(Path(work))[0])
    old = re.compile(r"\| process \| files, in order .*\n(\|.*\n?)*")
    PAGE.write_text(old.sub(lambda _: f"{table}\n", PAGE.read_text()))
