"""The registry of tables: every CSV file under build/ that is made of samples.

A new table is a class of rows, a function that makes it, and an entry here; docs/contract.md lists
its columns. Other modules and the workflow find its name, columns and file by the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from analysis.results.tables import rows

if TYPE_CHECKING:
    import pandas as pd

PACKAGE: Final = "analysis.results.tables"


@dataclass(frozen=True)
class Table:
    """A table with rows of the class `row`.

    `maker` is `module:function` in this package; it is imported only to make the table. Its
    arguments are the attributes `needs` of analysis.results.tables.of_study.Material.
    `is_offered`: the site has the file for download. `is_of_machines`: its rows are of no study,
    so that those of the studies are not joined.
    """

    row: type[Any]
    maker: str
    needs: tuple[str, ...]
    is_offered: bool = False
    is_of_machines: bool = False

    @cached_property
    def columns(self) -> list[str]:
        return rows.columns(self.row)

    def make(self, material: object) -> pd.DataFrame:
        maker = resolve_name(f"{PACKAGE}.{self.maker}")
        table: pd.DataFrame = maker(*(getattr(material, need) for need in self.needs))
        return table


TABLES: Final[Mapping[str, Table]] = {
    "summary": Table(rows.SummaryRow, "summary:summarise", ("samples", "studies"), is_offered=True),
    "ratios": Table(rows.RatioRow, "ratios:ratios", ("ratios_by_round",), is_offered=True),
    "repeats": Table(
        rows.RepeatRow, "repeats:repeat_table", ("samples", "ratios_by_round", "studies")
    ),
    "repeatability": Table(
        rows.RepeatabilityRow,
        "repeatability:repeatability",
        ("samples", "ratios_by_round", "studies"),
    ),
    "runs": Table(rows.RunRow, "summary:runs", ("samples",)),
    "rounds": Table(rows.RoundRow, "rounds:rounds", ("samples", "studies")),
    "skipped": Table(rows.SkippedRow, "summary:skipped", ("samples",), is_offered=True),
    "claims": Table(rows.ClaimRow, "claims:of_claims", ("judged",), is_offered=True),
    "claim_parts": Table(rows.ClaimPartRow, "claims:of_parts", ("judged",), is_offered=True),
    "model": Table(
        rows.ModelRow,
        "model:model_table",
        ("summary", "fits", "machines", "studies"),
        is_offered=True,
    ),
    "model_parameters": Table(
        rows.ParameterRow,
        "model:parameter_table",
        ("fits",),
        is_offered=True,
        is_of_machines=True,
    ),
    "model_counters": Table(
        rows.CounterRow, "counters:counter_table", ("counters", "machines", "studies")
    ),
}
"""Every table by its name; the file is `<name>.csv`."""
