"""Measured rates over the size of the pool, as a drawing."""

from __future__ import annotations

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Drawing

from .pool_sizes import pool_sizes


def drawings(facts: StudyFacts) -> dict[str, Drawing | None]:
    return {"pool_sizes": pool_sizes(facts)}
