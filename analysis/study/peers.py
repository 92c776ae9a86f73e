"""Packages with the operators that serving engines ship, and their selected releases."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from analysis import BUILD, ROOT
from analysis.base.errors import FieldError, require_known

FOLDER: Final = BUILD / "peers"
"""Where env/peers unpacks them, each in <name>-<version>."""

SELECTED: Final = "HOTPATH_PEERS"
"""Environment variable with releases to take instead of the pinned ones: `sglang==0.5.24 ...`."""


@cache
def releases() -> Mapping[str, str]:
    """The selected version of each package: that of env/peers.toml, unless SELECTED names
    another."""
    pins = tomllib.loads((ROOT / "env" / "peers.toml").read_text())
    versions = {name: str(entry["version"]) for name, entry in pins.items()}
    for word in os.environ.get(SELECTED, "").split():
        name, _, version = word.partition("==")
        require_known(SELECTED, name, sorted(versions))
        if not version:
            raise FieldError(SELECTED, f"{name}==VERSION", word)
        versions[name] = version
    return versions


def folder_of(package: str) -> Path:
    """The folder of the package's selected release, which need not be installed."""
    return FOLDER / f"{package}-{releases()[package]}"


def unmet(packages: Iterable[str]) -> str | None:
    """The reason why one of the packages cannot be used, or None."""
    missing = (name for name in packages if not folder_of(name).is_dir())
    return next((f"{n} {releases()[n]} is not installed (env/peers)" for n in missing), None)
