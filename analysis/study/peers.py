"""Packages with the operators that serving engines ship, and their pinned releases."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from analysis import BUILD, ROOT

FOLDER: Final = BUILD / "peers"
"""Where env/peers unpacks them, each in <name>-<version>."""


@cache
def releases() -> Mapping[str, str]:
    """The version of each package in env/peers.toml."""
    pins = tomllib.loads((ROOT / "env" / "peers.toml").read_text())
    return {name: str(entry["version"]) for name, entry in pins.items()}


def folder_of(package: str) -> Path:
    """The folder of the package's release, which need not be installed."""
    return FOLDER / f"{package}-{releases()[package]}"


def unmet(packages: Iterable[str]) -> str | None:
    """The reason why one of the packages cannot be used, or None."""
    missing = (name for name in packages if not folder_of(name).is_dir())
    return next((f"{n} {releases()[n]} is not installed (env/peers)" for n in missing), None)
