"""Macros that the pages of before still use; they go with these pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analysis.base.errors import require_known
from analysis.base.quantities import digits, listing, with_interval
from analysis.site.facts.basis import basis_phrase, in_few, is_enough
from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, Comparison
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import figure as data_of
from analysis.site.pages.html import gap
from analysis.site.pages.page import macro
from analysis.study import CaseValue, case_id, parse_case

MISSING: Final = gap("an unknown rate (not measured yet)")


@macro("rate")
def rate(facts: StudyFacts, variant: str, clock: str = "host_time", **keys: CaseValue) -> str:
    """A payload rate such as `48 GB/s`, on the machine with most evidence.

    variant: its name
    clock: name of the time metric
    keys: values of keys of the case that differ from the headline case
    """
    row = _find(facts, variant, clock, keys)
    if row is None:
        return MISSING
    payload = facts.study.payloads[variant, row.case]
    notes = [in_few(row.runs, row.hosts)] if not is_enough(row.runs, row.hosts) else []
    notes += ["stale"] * bool(row.stale)
    shown = data_of(f"{digits(payload / row.median / 1e9, 2)} GB/s", row)
    return with_interval(shown, "; ".join(notes))


@macro("based_on")
def based_on(facts: StudyFacts, variant: str, clock: str = "host_time", **keys: CaseValue) -> str:
    """The basis of that rate, such as `H200 over PCIe 5 x16; 7 runs, 7 hosts`.

    variant: its name
    clock: name of the time metric
    keys: as of `rate`
    """
    row = _find(facts, variant, clock, keys)
    if row is None:
        return MISSING
    described = facts.inputs.machines[row.machine]
    generation, width = (described.get(key) for key in ("pcie_generation", "pcie_width"))
    over = f" over PCIe {generation} x{width}" if generation and width else ""
    return f"{facts.inputs.called(row.machine)}{over}; {basis_phrase(row)}"


@macro("has_results", may_be_empty=True)
def has_results(facts: StudyFacts) -> str:
    """`yes` if a machine has measured the study; else empty. Chooses sections."""
    return "yes" if facts.machines else ""


@macro("on_two_machines")
def on_two_machines(comparison: Comparison, facts: StudyFacts, variant: str, clock: str) -> str:
    """A sentence that compares the rates of a variant on the two machines with most evidence.

    variant: its name
    clock: name of the time metric
    """
    payload = facts.study.shown_case(facts.study.variant(variant)).payload_bytes
    subjects = {one.machine: one for one in comparison.machines}
    order = [subjects[machine] for machine in machines_by_evidence(facts) if machine in subjects]
    if not order[1:]:
        return ""
    first, second, *_ = order
    for ratio in comparison.ratios(first, second):
        of = ratio.of
        if (of.study, of.variant.name, of.metric) == (facts.study.name, variant, clock):
            names = [comparison.called(one) for one in (first, second)]
            rates = [payload / one.seconds / 1e9 for one in (of, ratio.against)]
            figures = listing(
                [f"{digits(r)} GB/s on {name}" for r, name in zip(rates, names, strict=True)]
            )
            return f"{_COMPARED[ratio.verdict].format(*names)}: {figures}."
    return ""


_COMPARED: Final = {
    FASTER: "{0} is faster than {1}",
    SLOWER: "{0} is slower than {1}",
    EQUAL: "{0} and {1} are " + EQUAL,
    UNCLEAR: "No difference found between {0} and {1}",
}
"""Beginnings of a sentence by the verdict on the first machine."""


def _find(
    facts: StudyFacts, variant: str, clock: str, keys: Mapping[str, CaseValue]
) -> MeasuredRow | None:
    """The figure of the headline case with these `keys`, on the machine with most evidence."""
    require_known("variant", variant, facts.study.variant_names)
    wanted = {**parse_case(facts.study.headline), **keys}
    cases = facts.study.variant(variant).cases
    found = next((case.id for case in cases if case.values == wanted), "")
    if not found:
        require_known(f"case of {variant}", case_id(wanted), [case.id for case in cases])
    machine = next(iter(machines_by_evidence(facts)), "")
    return facts.figures.find(machine, variant, found, clock)
