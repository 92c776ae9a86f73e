"""build/rounds.csv: figures round by round, beside what the host gave at the moment."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from analysis.results.collect import KEY, chosen, fresh
from analysis.results.tables.rows import RoundRow, columns
from analysis.study import Study

ROUND_COLUMNS = columns(RoundRow)


def rounds(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The median of each time of every variant in its shown case, a row a round around which it is
    known how fast the host was, in ROUND_COLUMNS."""
    shown = {
        (study.name, variant.name, study.shown_case(variant).id)
        for study in studies.values()
        for variant in study.subjects
    }
    good = fresh(chosen(samples))
    cells = zip(*(good[name].tolist() for name in ("study", "variant", "case")), strict=True)
    is_shown = pd.Series([cell in shown for cell in cells], index=good.index, dtype=bool)
    good = good[is_shown & (good["unit"] == "s") & good["core_copies"].notna()]
    found = good.groupby([*KEY, "run", "round"], sort=False).agg(
        median=("value", "median"), core_copies=("core_copies", "first")
    )
    return found.reset_index()[ROUND_COLUMNS]
