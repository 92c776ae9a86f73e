"""Made-up results of any study, with a value of every metric in every case."""

import zlib
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.measure.profile.session import normalised
from analysis.results.model.terms import NAMES
from analysis.results.store.records import Counter
from analysis.results.tables.links import parameter_table
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Study, Variant
from tests.linked import KNOWN
from tests.roots import make_inputs, settled
from tests.synthetic import Sample, plausible, samples_of, set_capture, write_run

LOOK = {"copy_bytes_per_s": 1e10}
TIMES = ("host_time", "submit_time", "gpu_time")
FIT = pd.DataFrame(dict.fromkeys(("value", "ci_low", "ci_high"), KNOWN.values()), NAMES)
FIT = FIT.assign(cases=1, runs=1)
"""Known parameters as if fitted."""


def value_of(study: Study, variant: Variant, case: Case, metric: str) -> float:
    """A value in the metric's unit that depends on all of its arguments."""
    about = study.metrics[metric]
    spread = 1 + zlib.crc32(f"{variant.name}{case.id}{metric}".encode()) % 100 / 1000
    whole = plausible(variant, case, metric) * (0.1 if about.part_of else 1)
    return spread * {"s": whole, "1": 0.8, "B": 2e9, "B/s": 2e10}.get(about.unit, 3.0)


def samples(study: Study, variant: Variant, grid: str = "default") -> list[Sample]:
    """A sample of each metric in each case of the grid, in two rounds: of times, and of metrics
    that the variant's workload names, or none of the study's does."""
    names = {one.workload for one in study.variants}
    sources = {name: (study.folder / f"{name}.py").read_text() for name in names}
    naming = {m: {n for n, text in sources.items() if f'"{m}"' in text} for m in study.metrics}
    metrics = [
        metric
        for metric, found in naming.items()
        if metric in TIMES or not found or variant.workload in found
    ]
    times = samples_of(study, variant, noise=0.001, grid=grid, rounds=2)
    cases = {case.id: case for case in variant.cases}
    return [
        replace(
            one,
            metric=metric,
            unit=study.units[metric],
            value=value_of(study, variant, cases[one.case], metric) * (1 + one.round / 1000),
        )
        for one in times
        if one.metric == study.time_metrics[0]
        for metric in metrics
    ]


EVENTS = [
    (1, 9_001, None, "host call", "cudaLaunchKernel", None, 1),
    (2_001, 3_001, 7, "memcpy", "memcpy", 4096, 1),
    (4_001, 8_001, 7, "kernel", "_Z4copyv", None, 1),
]


def measured(study: Study, root: Path, grid: str = "default") -> StudyFacts:
    """The study on a machine that has measured, counted and traced everything of a grid."""
    results = root / "results"
    variants = [variant for variant in study.variants if variant.in_grid(grid)]
    found = [sample for variant in variants for sample in samples(study, variant, grid)]
    write_run(results, "box", study, found, conditions=[LOOK] * 5)
    names = {variant.name: dict[str, str]() for variant in variants}
    events = [event for name in names for event in normalised(name, EVENTS)]
    set_capture(results, "box", study, "timeline", names, events)
    counted = [
        Counter(name, study.headline, "kernel", "pcie__read_bytes.sum", "byte", 1e6)
        for name in names
    ]
    set_capture(results, "box", study, "counters", names, counted)
    inputs = settled(make_inputs(root, {study.name: study}))
    return StudyFacts(inputs.with_tables(model_parameters=parameter_table({"box": FIT})), study)


def without_results(facts: StudyFacts) -> StudyFacts:
    """The study before anybody has measured it."""
    empty = {name: table[:0] for name, table in facts.inputs.tables.items()}
    return StudyFacts(facts.inputs.with_tables(**empty), facts.study)
