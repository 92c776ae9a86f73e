"""A machine with one variant of each verdict, for all tests of pages."""

from __future__ import annotations

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.roots import make_inputs, make_root, settled
from tests.synthetic import add_run, at_rates, provenance_of, samples_of, write_machine


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = make_root(tmp_path_factory.mktemp("measured"))
    study = discover(root)["copy"]
    # One speed for each verdict: v1 faster, v2 the same, v3 slower, v4 unclear.
    speed = dict(zip(study.variant_names, (1.0, 4.0, 4.0, 2.0, 2.0), strict=False))
    seconds = at_rates(speed)
    steps = study.with_role("step")
    results = root / "results"
    write_machine(results, "box", study, variants=study.variants, seconds=seconds, noise=1e-4)
    samples = samples_of(study, steps[4], seconds=seconds, noise=0.2)
    add_run(results, "box", "copy", steps[4].name, samples, provenance_of(study, steps[4]))
    return StudyFacts(settled(make_inputs(root)), study)
