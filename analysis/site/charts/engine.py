"""What draws the charts in the browser: Vega and Vega-Lite as one script of the site."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import altair as alt
import vl_convert

ENGINE: Final = ("vega.js",)


def write_engine(folder: Path) -> None:
    """Write ENGINE to `folder`."""
    (folder / ENGINE[0]).write_text(_bundle())


@cache
def _bundle() -> str:
    """To bundle the script takes seconds."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
