"""The settings of study.yaml for the compilation of a variant and of its bindings."""

from __future__ import annotations

import re
from typing import Final

from analysis.study import Study, Variant
from analysis.study.source import bindings_files
from analysis.toolchain.compile import Settings

SHARED_BINDINGS: Final = "bindings"
WORD: Final = re.compile(r"\w+")


def variant_settings(variant: Variant) -> Settings:
    """The settings of the variant's file."""
    macros: dict[str, int | str] = {**variant.constants, **variant.options}
    return Settings(macros, variant.flags, variant.needs)


def bindings_settings(study: Study, variant: Variant | None = None) -> Settings:
    """The settings of the bindings that the study's variants share, or of the variant's bindings if
    it does not share them (see `bindings_name`)."""
    if variant is not None and bindings_name(study, variant) != SHARED_BINDINGS:
        return variant_settings(variant)
    needs = {need for each in study.variants for need in each.needs}
    return Settings(study.constants, needs=sorted(needs & {"libfabric"}))


def bindings_name(study: Study, variant: Variant) -> str:
    """Name, without suffix, of the object file with the variant's bindings.

    SHARED_BINDINGS, unless the files of the bindings use a constant or option that differs from the
    study's constants.
    """
    settings = {**variant.constants, **variant.options}
    changed = {name for name, value in settings.items() if study.constants.get(name) != value}
    macros = {name.upper() for name in changed}
    is_used = macros and any(
        macros.intersection(WORD.findall(path.read_text())) for path in bindings_files(study)
    )
    return f"{variant.name}.{SHARED_BINDINGS}" if is_used else SHARED_BINDINGS
