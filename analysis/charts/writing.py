"""A chart as the page reads it: a Vega-Lite file, and its data as a CSV file beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from analysis.charts.theme import Chart


def write_chart(chart: Chart, folder: Path, name: str, url: str) -> pd.DataFrame:
    """Write `<name>.json` and `<name>.csv` to `folder` and return the data.

    The specification is checked against Vega-Lite's schema. It refers to the CSV as `url`/name.csv,
    which the page resolves from the root of the site.
    """
    data = chart.data
    assert isinstance(data, pd.DataFrame), f"{name}: a chart's data must be a table"
    document = chart.to_dict()
    inline = document["data"]["name"]
    del document["datasets"][inline]
    table_format = {"type": "csv", "parse": _types(data)}
    document["data"] = {"url": f"{url}/{name}.csv", "format": table_format}
    folder.mkdir(parents=True, exist_ok=True)
    data.to_csv(folder / f"{name}.csv", index=False, float_format="%.7g")
    (folder / f"{name}.json").write_text(json.dumps(document))
    return data


def _types(data: pd.DataFrame) -> dict[str, str]:
    return {
        str(name): "number" if pd.api.types.is_numeric_dtype(data[name]) else "string"
        for name in data.columns
    }
