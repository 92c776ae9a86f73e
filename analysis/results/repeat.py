"""Would another run confirm the figures? The newest run of each machine against the others.

    python -m analysis.results.repeat results [--each]

For your results: measure at least four times, best on several hosts, and give the folder.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.statistics import CONFIDENCE, MIN_RUNS
from analysis.results.collect import collect
from analysis.results.tables.links import fit_links
from analysis.results.tables.repeatability import repeatability
from analysis.study import discover


def main() -> None:
    parser = program("analysis.results.repeat", __doc__)
    parser.add_argument(
        "results", type=Path, nargs="?", default=ROOT / "results", help="folder of the machines"
    )
    parser.add_argument(
        "--each", action="store_true", help="leave out each run in turn, not only the newest"
    )
    arguments = parser.parse_args()
    studies = discover()
    found = collect(arguments.results, studies)
    fits = fit_links(found.samples, found.machines, studies)
    tables: list[pd.DataFrame] = []
    while not tables or (arguments.each and not tables[-1].empty):
        newer = len(tables)
        tables.append(
            repeatability(
                found.samples, studies, found.published, found.machines, fits, newer=newer
            )
        )
    table = pd.concat(tables, ignore_index=True)
    if table.empty:
        raise HotpathError(
            f"{arguments.results}: expected more than {MIN_RUNS} fresh runs of a study on one"
            " machine, got none"
        )
    print(table.drop(columns=[] if arguments.each else "held_run").to_string(index=False))
    if arguments.each:
        shares = table.groupby(["machine", "study"])[["times", "times_inside"]].sum()
        print((shares["times_inside"] / shares["times"]).round(3).to_string())
    for what, column in (
        ("times", "times_inside"),
        ("times on any host", "on_any_host"),
        ("ratios", "ratios_inside"),
    ):
        inside, count = int(table[column].sum()), int(table[what.split()[0]].sum())
        print(
            f"{what}: {inside} of {count} in their {CONFIDENCE:.0%} interval ({inside / count:.1%})"
        )
    for what, of in (
        ("contradicted", "decided"),
        ("repeats_different", "repeats"),
        ("claims_flipped", "claims"),
    ):
        print(f"{what.replace('_', ' ')}: {int(table[what].sum())} of {int(table[of].sum())}")


if __name__ == "__main__":
    fail_in_one_line(main)
