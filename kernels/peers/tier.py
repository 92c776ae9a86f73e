"""Rates with the peer's memory as a tier between local and host memory, from measured rates."""

from __future__ import annotations

from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import Chart, Select, StudyFacts, line_chart
from analysis.api.model import PREDICTED

PEER: Final = "pulled"
HOST: Final = "from_host"
SHARES: Final = np.linspace(0, 1, 41)
AFTER: Final = "in turn"
AT_ONCE: Final = "at once, at best"


def tier(points: pd.DataFrame) -> pd.DataFrame:
    """Rates in GB/s of rows that lie partly in the peer's memory and partly in host memory, by the
    peer's share: read one after the other, or at once over both links.

    A row per machine, case, way and share, where rows of one size and number were measured from
    both.
    """
    rates = points.pivot_table(index=["machine", "case"], columns="variant", values="rate")
    if not {PEER, HOST} <= set(rates.columns):
        return pd.DataFrame()
    found = []
    both = rates[[PEER, HOST]].dropna().reset_index()
    for row in both.to_dict("records"):
        by_peer, by_host = SHARES / row[PEER], (1 - SHARES) / row[HOST]
        for way, seconds in (
            (AFTER, by_peer + by_host),
            (AT_ONCE, np.maximum(by_peer, by_host)),
        ):
            values = {"machine": row["machine"], "case": row["case"], "way": way}
            found.append(pd.DataFrame({"share": SHARES, "rate": 1 / seconds}).assign(**values))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def tier_chart(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The rate over the peer's share, a line a way, in one case."""
    rows = tier(points)
    if rows.empty:
        return None
    rows = rows[rows["case"].isin(sorted(rows["case"].unique())[:8])]
    x = alt.X("share:Q", title="share in the peer's memory", axis=alt.Axis(format=".0%"))
    y = alt.Y("rate:Q", title="payload, GB/s")
    drawing, rows = line_chart(
        rows.assign(state=PREDICTED), x, y, "way", (AFTER, AT_ONCE), by=["machine", "case"]
    )
    description = (
        f"{facts.study.title}: computed rate of rows that lie in the peer's memory and in the"
        " host's, by the share of the first."
    )
    columns = {"way": "way", "share": "share", "rate": "GB/s", "case": "case"}
    select = Select("case", "case", facts.study.headline)
    return Chart(drawing, rows.sort_values("case"), description, columns, [select])
