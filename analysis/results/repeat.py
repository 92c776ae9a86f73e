"""Would another run confirm the figures? Each run of each machine against the others.

    python -m analysis.results.repeat results

For your results: measure at least four times, best on several hosts, and give the folder.
"""

from __future__ import annotations

from pathlib import Path

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.statistics import CONFIDENCE, MIN_RUNS
from analysis.results.collect import collect
from analysis.results.tables.ratios import ratios_by_round
from analysis.results.tables.repeatability import repeatability
from analysis.study import discover


def main() -> None:
    parser = program("analysis.results.repeat", __doc__)
    parser.add_argument(
        "results", type=Path, nargs="?", default=ROOT / "results", help="folder of the machines"
    )
    arguments = parser.parse_args()
    studies = discover()
    samples = collect(arguments.results, studies).samples
    table = repeatability(samples, ratios_by_round(samples, studies), studies)
    if table.empty:
        raise HotpathError(
            f"{arguments.results}: expected more than {MIN_RUNS} fresh runs of a study on one"
            " machine, got none"
        )
    print(table.to_string(index=False))
    for what in ("times", "ratios"):
        inside, count = int(table[f"{what}_inside"].sum()), int(table[what].sum())
        print(f"{what}: {inside} of {count} in their {CONFIDENCE:.0%} interval")
    for what, of in (("contradicted", "decided"), ("repeats_different", "repeats")):
        print(f"{what.replace('_', ' ')}: {int(table[what].sum())} of {int(table[of].sum())}")


if __name__ == "__main__":
    fail_in_one_line(main)
