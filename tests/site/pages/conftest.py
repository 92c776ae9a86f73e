"""A machine with one variant of each verdict, and pages around it, for all tests of pages."""

from pathlib import Path

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import Page
from analysis.site.pages.staging import Staged
from analysis.study import discover
from tests.roots import make_inputs, make_root, settled
from tests.synthetic import at_rates, samples_of, write_machine, write_run


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
    write_run(results, "box", study, samples)
    return StudyFacts(settled(make_inputs(root)), study)


def page_in(site: Path, inputs: Inputs, *published: str, url: str = "studies/copy/") -> Page:
    """The page of the study `copy`, or another, in a site that publishes some machines."""
    studies = {name: StudyFacts(inputs, study) for name, study in inputs.studies.items()}
    staged = Staged(inputs, {JOURNEYS: [*studies]}, studies, {}, site, [*studies], published)
    return Page(staged, url, site, {"repository": ""})
