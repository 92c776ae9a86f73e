"""Charts of the allocators: against PyTorch by pattern, and beside the printed ratios."""

from __future__ import annotations

import altair as alt
import pandas as pd

from allocator.pattern_charts import speeds
from analysis.api.charts import Chart, StudyFacts, dot_chart, log_scale
from analysis.api.quantities import ratio

PHASES = {
    "p1_exact_cache": "first: exact sizes",
    "p3_block_pool": "third: segments",
    "p4_final": "fourth: streams and limits",
    "p5_dropin": "fifth: PyTorch's features",
}
"""Phases that are drawn, and their names."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speeds` and `journey`, as far as measured."""
    return {"speeds": speeds(facts, PHASES), "journey": journey(facts)}


def journey(facts: StudyFacts) -> Chart | None:
    """The printed ratios and those measured at the same layer."""
    rows = []
    for claim in facts.study.claims:
        test, layer = claim.tests[0] if claim.tests else None, "pattern=storage."
        if test is None or test.kind != "speedup" or not test.of.startswith("published_"):
            continue
        if len(claim.tests) > 1 or not test.case.startswith(layer):
            continue
        phase = facts.study.variant(test.of).title.removeprefix("In Python: ")
        row = f"{phase}: {test.case.removeprefix(layer)}"
        for found in facts.verdicts.by_claim.get(claim.id, []):
            called = facts.inputs.called(found.machine)
            rows += [(row, "printed", found.published), (row, called, found.measured)]
    table = pd.DataFrame(rows, columns=["phase", "source", "ratio"])
    table = table.dropna(subset="ratio").drop_duplicates(["phase", "source"])
    return dot_chart(
        table.assign(label=table["ratio"].map(ratio)),
        alt.X("ratio:Q", scale=log_scale(), title="PyTorch's time over the phase's"),
        "phase",
        [],
        "PyTorch's time over that of each phase in Python.",
        {"phase": "phase", "source": "source", "label": "ratio"},
        by="source",
    )
