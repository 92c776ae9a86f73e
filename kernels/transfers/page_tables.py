"""The table of the page: all ways by size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from analysis.api.charts import PageTable, StudyFacts

from .ways_table import ways_table

TABLES: Final[Mapping[str, Callable[[StudyFacts], PageTable]]] = {"ways": ways_table}
