"""What draws the charts in the browser: Vega as a script of the site, and the palettes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

import altair as alt
import vl_convert

from analysis.base.cli import fail_in_one_line, program
from analysis.site.charts.theme import palettes

ENGINE: Final = ("vega.js", "palettes.json")


def write_engine(folder: Path) -> None:
    """Write ENGINE to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(ENGINE, _texts(), strict=True):
        (folder / name).write_text(text)


@cache
def _texts() -> tuple[str, str]:
    """Those of ENGINE. To bundle the first takes seconds."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return bundle, json.dumps(palettes())


def main() -> None:
    parser = program("analysis.site.charts.engine", __doc__)
    parser.add_argument("--out", type=Path, required=True, help="where it goes")
    write_engine(parser.parse_args().out)


if __name__ == "__main__":
    fail_in_one_line(main)
