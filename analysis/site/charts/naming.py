"""Machines by the names that pages have for them, wherever a chart shows one. Its data and its
choices keep the names of folders, and so do files and addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from analysis.site.charts.columns import encodings

FIELDS: Final = ("machine", "against")
"""Columns of machines."""
CALLED: Final = "_called"
"""What ends the name of a column of the same in the words of pages."""
LABELLED: Final = {
    "facet": "header",
    **dict.fromkeys(("x", "y"), "axis"),
    **dict.fromkeys(("color", "fill", "stroke", "shape", "strokeDash"), "legend"),
}
"""What has the labels of a channel."""


def name_machines(document: dict[str, Any], names: Mapping[str, str]) -> None:
    """Have the headers, axes, legends, tooltips and selects of a Vega-Lite `document` say `names`
    of machines."""
    known = json.dumps(dict(names), ensure_ascii=False)
    calculated = document.setdefault("transform", [])
    for channel, encoding in [("facet", document.get("facet", {})), *encodings(document)]:
        field = encoding.get("field")
        if field not in FIELDS:
            continue
        if channel == "tooltip":
            named = f"{field}{CALLED}"
            encoding.update(field=named, title=encoding.get("title", field))
            called = {"calculate": f"{known}[datum.{field}] || datum.{field}", "as": named}
            if called not in calculated:
                calculated.insert(0, called)
        elif (guide := LABELLED.get(channel)) and encoding.setdefault(guide, {}) is not None:
            encoding[guide]["labelExpr"] = f"{known}[datum.label] || (datum.label)"
    for one in document.get("params", []):
        bind = one.get("bind")
        if isinstance(bind, dict) and bind.get("input") == "select":
            labels = bind.get("labels") or bind["options"]
            bind["labels"] = [names.get(label, label) for label in labels]
