"""A guided tour of the code: files to read first, and the path of one sample to its bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from analysis import ROOT
from analysis.site.pages.differences import highlighted
from analysis.site.pages.drawings import Drawing, figure
from analysis.site.pages.fragments import Place
from analysis.site.pages.html import code, link, listed
from analysis.site.pages.page import macro
from analysis.site.pages.svg import LETTER_PX, Canvas

LANGUAGES: Final = {".py": "python", ".cu": "cuda", ".yaml": "yaml", ".md": "markdown"}
"""Lexers by suffix. The Snakefile has none, and is close to Python."""

READING: Final = {
    "Snakefile": "the targets that a user can request",
    "kernels/h2d_gather/study.yaml": "what a study declares: metrics, cases, claims, variants",
    "kernels/h2d_gather/v3_loads_first.cu": "one variant: one idea in one file",
    "kernels/h2d_gather/workload.py": "inputs of the study, and the check of every output byte",
    "analysis/measure/rig.py": "how one variant is bound, checked and timed",
    "analysis/results/tables/summary.py": "how samples become medians and intervals",
    "analysis/site/charts/steps.py": "how medians become the first chart of a page",
    "docs/studies/h2d_gather.md": "the page, with macros in place of figures",
}
"""Files in the order in which a newcomer should read them, and what each shows."""


@dataclass(frozen=True)
class Process:
    """A process that a sample passes: the files that handle it, each with what it does.

    `writes` is the file in which the sample leaves the process; empty for the last one.
    """

    title: str
    stops: tuple[tuple[str, str], ...]
    writes: str = ""


PATH: Final = (
    Process(
        "Process of one round",
        (
            ("kernels/h2d_gather/v3_loads_first.cu", "copies the rows on the GPU"),
            ("kernels/h2d_gather/bindings.cpp", "makes the kernel a Python function"),
            ("kernels/h2d_gather/workload.py", "calls it with the inputs of the case"),
            ("analysis/measure/rig.py", "times the call and the wait, in s"),
            ("analysis/measure/round.py", "collects the samples of all cells"),
        ),
        "build/rounds/<machine>/…/round-00.csv",
    ),
    Process(
        "Measuring process",
        (("analysis/measure/publish.py", "joins the rounds and describes the run"),),
        "results/<machine>/<study>/<run>.csv",
    ),
    Process(
        "Rule summarise_study",
        (
            ("analysis/results/collect.py", "checks all results, collects samples"),
            ("analysis/results/tables/summary.py", "computes medians and intervals"),
        ),
        "build/tables/<study>/summary.csv",
    ),
    Process(
        "Rule charts",
        (
            ("analysis/site/facts/inputs.py", "reads the tables"),
            ("analysis/site/facts/points.py", "lists the points of the charts"),
            ("analysis/site/charts/steps.py", "describes bars and intervals"),
            ("analysis/site/charts/writing.py", "writes data and specification"),
        ),
        "build/charts/<study>/steps.csv",
    ),
    Process(
        "Rule report, then the browser",
        (
            ("analysis/site/pages/chart_figures.py", "embeds the chart in the page"),
            ("docs/assets/charts.js", "draws the bar"),
        ),
    ),
)
"""The path of one host time, from its kernel to its bar."""

_TITLE: Final = "The path of one host time, from its kernel to its bar"
_WIDE_PX: Final = 480
"""From this width on, a file and what it does share a line."""
_FILES: Final = 41
"""Letters of the longest file, and the number before it."""


@macro()
def reading_list(place: Place) -> Markup:
    """The files that a newcomer should read first, each with a link to its text."""
    items = (
        link(place.root + _code_page(place, path), code(path)) + f": {shown}."
        for path, shown in READING.items()
    )
    return listed("ol", items)


@macro()
def sample_path() -> Markup:
    """A picture of the path of one sample, from its kernel to its bar."""
    stops = sum(len(process.stops) for process in PATH)
    files = sum(bool(process.writes) for process in PATH)
    caption = (
        f"{stops} stops and {files} files, from the kernel at the top to the bar at the bottom."
        " Boxes are processes. S marks a serialisation: a file through which the sample passes from"
        " one process to the next."
    )
    return figure(Drawing(_TITLE, _description(), _draw), "sample-path", caption)


def _code_page(place: Place, path: str) -> str:
    """Write a page with the text of a file of the repository; its path in the site."""
    file = ROOT / path
    content = highlighted(file.read_text(), LANGUAGES.get(file.suffix, "python"))
    address = f"code/{path}.html"
    place.write_page(address, path, content)
    return address


def _description() -> str:
    """The picture in words."""
    sentences = []
    number = 0
    for index, process in enumerate(PATH, 1):
        for file, does in process.stops:
            number += 1
            sentences.append(f"{number}: {file} {does}.")
        if process.writes:
            sentences.append(f"S{index}: {process.writes}.")
    return " ".join(sentences)


def _draw(canvas: Canvas) -> None:
    is_wide = canvas.width >= _WIDE_PX
    row_px = 22 if is_wide else 34
    y, number = 1.0, 0
    for index, process in enumerate(PATH, 1):
        top = y
        canvas.words(8, y + 16, process.title, "quiet")
        y += 24
        for file, does in process.stops:
            number += 1
            canvas.words(30, y + 12, str(number), "name", "end")
            canvas.words(38, y + 12, file, "name")
            if is_wide:
                canvas.words(38 + _FILES * LETTER_PX * 1.15, y + 12, does, "quiet")
            else:
                canvas.words(38, y + 26, does, "quiet")
            y += row_px
        canvas.box(0, top, canvas.width, y + 4 - top, "outline")
        y += 4
        if process.writes:
            canvas.arrow(18, y, 18, y + 40, "second")
            canvas.words(38, y + 25, f"S{index} {process.writes}", "name")
            y += 42
