"""Sources of the variants, as downloads beside their samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.site.facts.inputs import Inputs, VariantKey
from analysis.study import Variant


def stage_sources(
    inputs: Inputs, files: Mapping[VariantKey, list[str]], data: Path
) -> dict[VariantKey, list[str]]:
    """Put the source of every variant with samples beside them; `files` with its name added.

    The copy is today's file. It begins with the commit measured, and its name says `changed` where
    the hash in the provenance is not today's.
    """
    staged = {}
    for key, names in files.items():
        machine, study, name = key
        known = inputs.studies.get(study)
        if known is None or name not in known.variant_names:
            staged[key] = names
            continue
        variant, is_current = known.variant(name), inputs.is_current(key)
        state = "source" if is_current else "source-changed"
        file = data / machine / study / f"{name}.{state}{variant.path.suffix}"
        origin = _origin(inputs.provenance[key], variant, is_current)
        file.write_text(origin + variant.path.read_text())
        staged[key] = [*names, file.name]
    return staged


def _origin(provenance: Mapping[str, Any], variant: Variant, is_current: bool) -> str:
    mark = "#" if variant.path.suffix == ".py" else "//"
    dirty = " with changes" if provenance.get("dirty") else ""
    changed = "stale: this file or one that it includes has changed since"
    since = "unchanged since" if is_current else changed
    return f"{mark} Measured at commit {provenance['commit'] or 'unknown'}{dirty}; {since}.\n"
