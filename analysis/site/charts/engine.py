"""What draws the charts in the browser: Vega and Vega-Lite as one script of the site."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import altair as alt
import vl_convert

from analysis.base.cli import fail_in_one_line, program

ENGINE: Final = ("vega.js",)


def write_engine(folder: Path) -> None:
    """Write ENGINE to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ENGINE[0]).write_text(_bundle())


@cache
def _bundle() -> str:
    """To bundle the script takes seconds."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)


def main() -> None:
    parser = program("analysis.site.charts.engine", __doc__)
    parser.add_argument("--out", type=Path, required=True, help="where it goes")
    write_engine(parser.parse_args().out)


if __name__ == "__main__":
    fail_in_one_line(main)
