"""Machines of a cluster are measured in trees of their own and published together."""

import json
from pathlib import Path

import pytest
import yaml

from analysis.results.store.runs import read_runs
from tests.workflow.pipeline import copy_of_pipeline, succeed

MACHINES = [
    {"name": "small-box"},
    {"name": "large-box", "partition": "second", "constraint": "large", "gpus": 1, "runs": 2},
]
ASKED = {"slurm_partition": "second", "constraint": "large", "gpu": 1}
DESCRIBE = f"""
include: "Snakefile"


from snakemake.iocontainers import Wildcards

wildcards = Wildcards(fromdict={{"machine": "large-box", "run": "1"}})
resources = rules.measure_machine.rule.resources
asked = {{name: resources[name]._evaluator(wildcards) for name in {[*ASKED]}}}
Path("build/asked.json").write_text(json.dumps(asked))
"""


@pytest.mark.long
def test_one_command_measures_and_publishes_every_machine(tmp_path: Path) -> None:
    """Each run on this node, as under Slurm on one that is its own."""
    copy = copy_of_pipeline(tmp_path / "hotpath", alone=True)
    (copy / "Describe.smk").write_text(DESCRIBE)
    settings = ("machines=" + yaml.safe_dump(MACHINES, default_flow_style=True, width=999).strip(),)
    succeed(copy, "--dry-run", "--snakefile", "Describe.smk", "build", settings=settings)
    assert json.loads((copy / "build" / "asked.json").read_text()) == ASKED
    succeed(copy, "summary", settings=settings)
    summary = (copy / "build" / "summary.csv").read_text()
    for machine, count in (("small-box", 1), ("large-box", 2)):
        runs = [*read_runs(copy / "results" / machine / "calls", None)]
        statuses = {row.status for run in runs for row in run.rows if row.variant == "python"}
        assert (len(runs), statuses) == (count, {"ok"})
        assert f"\n{machine},calls,python," in summary
        # Each run was built and measured in a separate tree.
        for run in range(1, count + 1):
            tree = copy / "build" / "machines" / machine / str(run)
            assert [*tree.glob("build/modules/*/calls/compiled.so")]
            assert [path.name for path in (tree / "results").iterdir()] == [machine]
    # The checkout that started Snakemake measured nothing.
    assert not (copy / "build" / "rounds").exists()
