"""The path of a sample: the files of the project that one marked host time passes until its bar."""

import re
import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis import ROOT
from analysis.measure.journal import publish
from analysis.measure.plan import Place
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
MARKED = '''\
"""Fill at once, by a launcher whose clock shows the marked time."""

from pathlib import Path

from analysis.measure.cell import PythonLauncher
from tests.results.test_trace import MARK, trace


def fill(out):
    out[:] = b"\\x01" * len(out)


def time_launch(launcher, stream, l2, l2_bytes):
    trace(Path(__file__).with_name("passed"))
    launcher.launch(stream)
    return MARK, MARK


PythonLauncher.time_launch = time_launch
'''
PAGE: Final = ROOT / "docs" / "architecture.md"
MAX_FILES: Final = 20
"""Maximum number of files that a host time passes, without those of `analysis/base`."""
SHAPES: Final = {
    "a round": "build/rounds/<machine>/…/round-00.json",
    "measuring": "results/<machine>/<study>/<run>.csv",
    "rule `summarise`": "build/summary.csv",
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
    if is_dataclass(value):
        return depth > 1 and holds(vars(value), depth - 1)
    within = [*value.values()] if isinstance(value, dict) else value
    return (
        isinstance(within, list | tuple) and depth > 0 and any(holds(v, depth - 1) for v in within)
    )


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


def test_a_host_time_passes_few_files_in_four_shapes_under_one_name(tmp_path: Path) -> None:
    folder, passed = tmp_path / "fill", [tmp_path / f"{number}" for number in range(3)]
    folder.mkdir()
    (folder / "marked.py").write_text(MARKED)
    study = write_study(folder, {"name": "marked"}, sizes={"payload_bytes": 0})
    studies = {study.name: study}
    place = Place(tmp_path / "results", "test-box", cuda="13.0")
    journal = measure(plan_of(study, place, rounds=2))
    left = [next(journal.folder.glob("round-*.json")).read_text()]
    trace(passed[0])
    list(publish(journal, host()))
    sys.setprofile(None)
    left.append(next(place.folder.glob("*/*.csv")).read_text())
    trace(passed[1])
    found = collect(place.root, studies)
    left.append(to_csv("summary", summarise(found.samples, studies)))
    sys.setprofile(None)
    texts = {study.name: study_tables(place.root, study.name, studies, {})}
    put_together(texts, {}, place.root, tmp_path / "build")
    trace(passed[2])
    facts = StudyFacts(load_inputs(tmp_path / "build", place.root, studies), study)
    write_charts({"steps": steps_chart(facts)}, tmp_path / "charts", {})
    sys.setprofile(None)
    left.append((tmp_path / "charts" / "steps.json").read_text())
    for text in left:
        assert f"{MARK}" in text and re.search(r"\bhost_time\b", text)
    rows, every = "", set()
    for (process, shape), path in zip(SHAPES.items(), [folder / "passed", *passed], strict=True):
        names = dict.fromkeys(path.read_text().replace(f"{ROOT}/", "").splitlines())
        files = [f"`{name}`" for name in names if not name.startswith(("analysis/base/", "/"))]
        source = ["the variant's source"] * (process == "a round")
        rows += f"| {process} | {', '.join([*source, *files])} | `{shape}` |\n"
        every |= {*files}
    assert len(every) < MAX_FILES
    assert rows in PAGE.read_text(), "put these rows on the page"
