"""Duration of a measurement, from the newest default run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.results.store.keys import RunFile, Stages
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.measuring import measuring_section, stages_section


def changed(inputs: Inputs, **update: Any) -> Inputs:
    """The inputs with these keys in every run."""
    return replace(inputs, runs=[run.model_copy(update=update) for run in inputs.runs])


def test_the_slowest_study_comes_first_and_the_sum_last(two_machines: Inputs) -> None:
    seconds = {"copy": 7, "calls": 42}

    def lasting(run: RunFile) -> RunFile:
        end = f"2026-01-02T03:04:{5 + seconds.get(run.study, 1):02}Z"
        return run.model_copy(update={"start": "2026-01-02T03:04:05Z", "end": end})

    said = measuring_section(replace(two_machines, runs=list(map(lasting, two_machines.runs))))
    assert said.index(">calls<") < said.index("copy") < said.index(">all<")
    assert said.count("42.00 s") >= 2  # on either machine


def test_runs_of_other_grids_and_of_some_variants_do_not_count(two_machines: Inputs) -> None:
    for update in ({"grid": "full"}, {"asked": ["python"]}):
        said = measuring_section(changed(two_machines, **update))
        assert said == "No machine has a default run yet."


def test_stages_are_those_of_the_newest_run_that_recorded_them(two_machines: Inputs) -> None:
    assert stages_section(two_machines) == "No committed run has recorded its stages yet."
    stages = Stages(start=1.0, prepare=2.0, check=3.0, timing=40.0, recorded=10.0)
    said = stages_section(changed(two_machines, stages_s=stages))
    assert said.count(">all<") == len(two_machines.machines)
    assert "25%" in said
    assert "40.00 s" in said
