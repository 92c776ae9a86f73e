"""Missing results in words, at the end of the home page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import whole
from analysis.site.check import Fault
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.html import code, element, folded, plain, table

CLAIM: Final = "claim "
"""How the part of a fault about a claim begins."""
INTRODUCTION: Final = (
    "What is newer than a machine's last run has no result there. The command of each row, run on"
    " such a machine, measures only what is missing."
)


def gaps(faults: Sequence[Fault], inputs: Inputs) -> Markup:
    """A folded section: a row for each machine and study, with what fills its gaps; below it,
    folded, each of the `faults`."""
    lines = (element("li", plain(str(fault))) for fault in faults)
    every = folded("Each of them, as the check words it", element("ul", *lines, class_="hp-faults"))
    title = element("summary", element("h2", f"What is missing: {len(faults)}", id="faults"))
    content = element("p", INTRODUCTION), table(_rows(faults, inputs)), every
    return element("details", title, *content, class_="hp-section")


def _rows(faults: Sequence[Fault], inputs: Inputs) -> Iterator[dict[str, object]]:
    """Cells of a machine and study: how many of its variants, claims and pages lack something."""

    def place(fault: Fault) -> tuple[str, str]:
        return fault.machine, fault.study

    for (machine, name), group in groupby(sorted(faults, key=place), place):
        of_place = list(group)
        study = inputs.studies.get(name)
        known = {*study.variant_names} if study else set()
        absent = [fault for fault in of_place if fault.what.endswith("got none")]
        variants = {fault.part for fault in absent if fault.part in known}
        is_whole = any(not fault.part and fault.machine for fault in of_place)
        claims = {fault.part for fault in of_place if fault.part.startswith(CLAIM)}
        others = [one for one in of_place if one.part and one.part not in variants | claims]
        chosen = f" 'studies=[\"{name}\"]'" if name else ""
        command = f"env/run snakemake --cores 8 --config machine={machine}{chosen}"
        yield {
            "machine": inputs.called(machine) if machine else "none alone",
            "study": study.title if study else "several",
            "variants without a result": "all" if is_whole else whole(len(variants)),
            "claims without evidence": whole(len(claims)),
            "other faults": whole(len(others)),
            "what fills them": code(command) if machine else "a change of the page or the study",
        }
