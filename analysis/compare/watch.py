"""The history of a machine from git, as a page with a chart for each variant.

    python -m analysis.compare.watch results/nvidia-h200 --out watch.html

Every run that was ever committed is a point. Lines mark changes of the driver and the code; the
colour of a point is its host.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.compare.results import PREFERRED
from analysis.results.store.provenance import read_provenance

WIDTH_PX, HEIGHT_PX = 640, 140
_PAGE: Final = Markup(
    "<!doctype html><meta charset=utf-8><title>{title}</title>"
    "<style>body{{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto}}h2{{margin:1.5em 0 0}}"
    "</style><h1>{title}</h1><p>Median of each run. Colours are hosts; dashed lines mark a changed"
    " driver or changed code.</p>{charts}"
)


class Point(NamedTuple):
    """One run of one case: `seconds` of `metric`."""

    run: str
    seconds: float
    metric: str
    host: str
    driver: str
    code: str


def history(folder: Path) -> dict[str, list[Point]]:
    """All committed runs in the most frequent case of each variant, by its path, oldest first."""
    points: dict[str, dict[tuple[str, str], Point]] = {}
    for commit, name in _versions(folder):
        provenance, samples = (_shown(folder, commit, f"{name}{end}") for end in (".json", ".csv"))
        try:
            entry = json.loads(provenance)
            machine, run = entry["machine"], entry["run"]
            for case, metric, seconds in _medians(samples, run):
                about = (str(machine.get("host")), str(machine.get("driver")))
                point = Point(run, seconds, metric, *about, entry["source_sha256"])
                points.setdefault(name, {})[case, run] = point
        except (ValueError, LookupError, TypeError, AttributeError, csv.Error):
            continue  # a version with an older form of these files
    code = {name: _code_of_runs(folder / f"{name}.json") for name in points}
    return {
        name: [p._replace(code=code[name].get(p.run, p.code)) for p in _of_one_case(found)]
        for name, found in sorted(points.items())
    }


def _code_of_runs(provenance: Path) -> dict[str, str]:
    """The hash of the code of each kept run: a refactoring may have renewed it since."""
    newest = read_provenance(provenance)
    return {entry["run"]: entry["source_sha256"] for entry in (newest, *newest["runs"])}


def _of_one_case(found: Mapping[tuple[str, str], Point]) -> list[Point]:
    ((case, _),) = Counter(case for case, _ in found).most_common(1)
    return sorted(point for (of, _), point in found.items() if of == case)


def _versions(folder: Path) -> Iterator[tuple[str, str]]:
    """Every commit, oldest first, and variant whose samples it changed."""
    log = _git(
        folder, "log", "--reverse", "--format=commit %H", "--name-only", "--relative", "--", "."
    )
    commit = ""
    for line in log.splitlines():
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
        elif line.count("/") == line.count(".csv") == line.count(".") and (folder / line).exists():
            yield commit, line.removesuffix(".csv")


def _shown(folder: Path, commit: str, name: str) -> str:
    try:
        return _git(folder, "show", f"{commit}:./{name}")
    except HotpathError:
        return ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise HotpathError(f"{folder}: expected a folder with a history in git")
    return done.stdout.decode(errors="replace")


def _medians(samples: str, run: str) -> Iterator[tuple[str, str, float]]:
    """Case, metric and median over rounds of the preferred time, in one run."""
    rows = [row for row in csv.DictReader(io.StringIO(samples)) if row["run"] == run]
    for case, of_case in groupby(
        sorted(rows, key=lambda row: row["case"]), lambda row: row["case"]
    ):
        rounds = list(of_case)
        for metric in PREFERRED:
            cells = [row.get(f"{metric} [s]") for row in rounds]
            medians = [float(np.median(list(map(float, cell.split())))) for cell in cells if cell]
            if medians:
                yield case, metric, float(np.median(medians))
                break


def changes(points: Sequence[Point]) -> list[tuple[str, str]]:
    """First run after each change of driver or code, and what changed."""
    return [
        (new.run, " and ".join(what))
        for old, new in pairwise(points)
        if (
            what := [
                name for name in ("driver", "code") if getattr(old, name) != getattr(new, name)
            ]
        )
    ]


def chart(points: Sequence[Point]) -> str:
    """The chart of one variant, as SVG."""
    import altair
    import vl_convert

    alt: Any = altair

    rows = [{"run": p.run, "us": p.seconds * 1e6, "host": p.host} for p in points]
    marks = [{"run": run, "change": what} for run, what in changes(points)]
    x: Any = alt.X("run:T", title=None)
    drawn: Any = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True)
        .encode(
            x,
            alt.Y("us:Q", title=f"{points[0].metric}, µs", scale=alt.Scale(zero=False)),
            alt.Color("host:N"),
        )
    )
    if marks:
        lines: Any = alt.Chart(alt.Data(values=marks))
        drawn += lines.mark_rule(strokeDash=[4, 3]).encode(x)
        drawn += lines.mark_text(align="left", dx=3, y=8).encode(x, text="change:N")
    drawn = drawn.properties(width=WIDTH_PX, height=HEIGHT_PX)
    return str(vl_convert.vegalite_to_svg(drawn.to_dict()))


def main() -> None:
    parser = ArgumentParser(prog="python -m analysis.compare.watch", description=__doc__)
    parser.add_argument("folder", type=Path, help="a machine's results in a checkout")
    parser.add_argument("--out", type=Path, default=Path("watch.html"))
    arguments = parser.parse_args()
    found = history(arguments.folder)
    if not found:
        raise HotpathError(f"{arguments.folder}: expected committed results of a machine")
    charts = Markup("").join(
        Markup("<h2>{}</h2>{}").format(name, Markup(chart(points)))
        for name, points in found.items()
    )
    title = escape(f"History of {arguments.folder.resolve().name}")
    arguments.out.write_text(_PAGE.format(title=title, charts=charts), encoding="utf-8")


if __name__ == "__main__":
    fail_in_one_line(main)
