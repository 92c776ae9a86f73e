"""The settings of study.yaml for the compilation of a variant and of its bindings."""

from __future__ import annotations

import re
from typing import Final

from analysis.study import Study, Variant
from analysis.study.source import bindings_files
from analysis.toolchain.compile import CompileSettings

SHARED_BINDINGS: Final = "bindings"


def variant_settings(variant: Variant) -> CompileSettings:
    """Settings of the variant's file."""
    return CompileSettings({**variant.constants, **variant.options}, variant.flags, variant.needs)


def bindings_settings(study: Study, variant: Variant | None = None) -> CompileSettings:
    """Settings of the study's shared bindings, or of the variant's separate bindings if it has some
    (see `bindings_name`)."""
    if variant is not None and bindings_name(study, variant) != SHARED_BINDINGS:
        return variant_settings(variant)
    # Shared bindings include no package of a single variant.
    needs = {need for each in study.variants for need in each.needs}
    return CompileSettings(study.constants, needs=sorted(needs & {"libfabric"}))


def bindings_name(study: Study, variant: Variant) -> str:
    """Name, without suffix, of the object file with the variant's bindings.

    SHARED_BINDINGS, unless the files of the bindings use a constant or option that differs from the
    study's constants.
    """
    macros = variant_settings(variant).macros
    changed = {name.upper() for name in macros if study.constants.get(name) != macros[name]}
    is_used = changed and any(
        changed.intersection(re.findall(r"\w+", path.read_text())) for path in bindings_files(study)
    )
    return f"{variant.name}.{SHARED_BINDINGS}" if is_used else SHARED_BINDINGS
