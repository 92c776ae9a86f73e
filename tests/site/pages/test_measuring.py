"""Duration of a measurement, from the provenance of the newest default run."""

from __future__ import annotations

from dataclasses import replace

from analysis.site.facts.inputs import Inputs
from analysis.site.pages.measuring import measuring_section, stages_section


def test_the_slowest_study_comes_first_and_the_sum_last(two_machines: Inputs) -> None:
    seconds = {"copy": 7, "calls": 42}
    provenance = {
        key: entry
        | {
            "grid": "default",
            "start": "2026-01-02T03:04:05Z",
            "end": f"2026-01-02T03:04:{5 + seconds.get(key[1], 1):02}Z",
            "runs": [],
        }
        for key, entry in two_machines.provenance.items()
    }
    said = measuring_section(replace(two_machines, provenance=provenance))
    assert said.index(">calls<") < said.index("copy") < said.index(">all<")
    assert said.count("42.00 s") >= 2  # on either machine


def test_runs_of_other_grids_do_not_count(two_machines: Inputs) -> None:
    full = {key: entry | {"grid": "full", "runs": []} for key, entry in
            two_machines.provenance.items()}  # fmt: skip
    said = measuring_section(replace(two_machines, provenance=full))
    assert said == "No machine has a default run yet."


def test_stages_are_those_of_the_newest_run_that_recorded_them(two_machines: Inputs) -> None:
    assert stages_section(two_machines) == "No committed run has recorded its stages yet."
    stages = {"start": 1.0, "prepare": 2.0, "check": 3.0, "timing": 40.0, "recorded": 10.0}
    provenance = {
        key: entry | {"stages_s": stages, "runs": []}
        for key, entry in two_machines.provenance.items()
    }
    said = stages_section(replace(two_machines, provenance=provenance))
    assert said.count(">all<") == len(two_machines.machines)
    assert "25%" in said
    assert "40.00 s" in said
