"""The publication check: does the finished site have everything that its samples give?

It reads the tables and the pages, and finds gaps that no reader would notice: a claim without
evidence, a missing prediction, a rate that no link carries, two values of one figure. A chart
without numbers stops its stage.
"""

from collections.abc import Collection
from pathlib import Path

from analysis.site.check.pages import page_faults
from analysis.site.check.tables import Fault as Fault
from analysis.site.check.tables import added, behind, table_faults
from analysis.site.facts.inputs import Inputs


def find_faults(site: Path, inputs: Inputs) -> list[Fault]:
    """All faults of the finished `site`, which was built from `inputs`."""
    return sorted({*table_faults(inputs), *page_faults(site, inputs)})


def fatal(faults: Collection[Fault], published: Collection[str], inputs: Inputs) -> list[Fault]:
    """The faults that stop a build: those of `published` machines and, where no other machine has
    results, those of no machine. A study whose results are of other code lacks what it likes, and
    any study its variants that a machine's runs do not know yet."""
    is_ours = bool(inputs.machines) and {*inputs.machines} <= {*published}
    late, new = behind(inputs), added(inputs)

    def stops(fault: Fault) -> bool:
        if not (fault.machine in published if fault.machine else is_ours):
            return False
        if (fault.machine, fault.study, fault.part) in new:
            return False
        waiting = {study for machine, study in late if fault.machine in ("", machine)}
        return fault.study not in waiting if fault.study else not waiting

    return [one for one in faults if stops(one)]
