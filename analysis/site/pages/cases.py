"""Cases in words."""

from __future__ import annotations

from typing import Final

from analysis.base.quantities import whole
from analysis.study import Study, parse_case

UNITS: Final = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def case_phrase(study: Study, case: str) -> str:
    """A case for a sentence, such as `with 1,024 pieces of 28 KiB, idle stream`, in Markdown: by
    the study's `case_words`, and keys and values where it has none."""
    values = parse_case(case)
    words = []
    for name, template in study.case_words.items():
        key, has_value, value = name.partition("=")
        if key in values and (not has_value or str(values[key]) == value):
            words.append(_filled(template, values.pop(key)))
    if not words:
        return f"in case `{case}`"
    others = [f"`{key}={value}`" for key, value in values.items()]
    return f"with {', '.join([' '.join(words).replace(' ,', ','), *others])}"


def _filled(template: str, value: int | str) -> str:
    if not isinstance(value, int):
        return template.replace("{}", value)
    return template.replace("{}", whole(value)).replace("{bytes}", binary(value))


def binary(size: int) -> str:
    """A size such as `28 KiB`, in the largest unit of which it is a whole number."""
    for scale, unit in UNITS:
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{whole(size)} B"
