"""Options of a variant as arguments of its module."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from analysis.api.study import Variant


def with_options(variant: Variant, module: Any, **more: Any) -> Any:
    """The variant's module, whose `bind` takes the variant's options as well, or `more` instead."""
    return SimpleNamespace(bind=partial(module.bind, **{**variant.options, **more}))
