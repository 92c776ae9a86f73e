"""Reads YAML and JSON; what is wrong with a file becomes one clear error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from analysis.base.errors import HotpathError
from analysis.base.reading import LIMIT_BYTES, read_text
from analysis.base.values import MAX_NUMBER

_SafeLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of yaml.safe_load, or a much faster one if PyYAML has its C library."""


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Refuses a repeated key: YAML would silently keep the last value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._flat: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Called before keys are merged into a node, which may then be there twice, and again."""
        if node not in self._flat:
            self._flat.add(node)
            found: set[str] = set()
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if key.value in found:
                    problem = f"expected every key once, got {key.value!r} again"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                found.add(key.value)
        super().flatten_mapping(node)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Python refuses thousands of digits, without the place in the file."""
        if len(node.value) <= _MAX_DIGITS:
            value: int = super().construct_yaml_int(node)
            if abs(value) <= MAX_NUMBER:
                return value
        problem = (
            f"expected a number of at most {MAX_NUMBER:g}, got one of {len(node.value)} digits"
        )
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_MAX_DIGITS: Final = 100


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; yaml.YAMLError if it is invalid."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> Any:
    """The parsed file. HotpathError names the file if it cannot be read or parsed."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML names the text, and has a line for each place in it.
        said = " ".join(str(error).replace('"<unicode string>", ', "").split())
        raise HotpathError(f"{path}: not valid YAML: {said}") from error


def read_json(path: Path, limit: int = LIMIT_BYTES) -> Any:
    """The parsed file. HotpathError names the file, and where it is no JSON the line; an object
    with a key twice, a number that is not finite and text that cannot be shown are none either."""
    text = read_text(path, limit)
    try:
        data = json.loads(
            text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite
        )
        for word in _texts(data):
            if not word.replace("\n", "").replace("\t", "").isprintable():
                raise ValueError(f"expected text that can be shown, got {word!r}")
    except (ValueError, RecursionError) as error:
        raise HotpathError(f"{path}: not valid JSON: {error}") from error
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"every key once, got {max(keys, key=keys.count)!r} again")
    return members


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"expected a finite number, got {text}")
    return value


def _texts(data: Any) -> Iterator[str]:
    """Every text within, keys too."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        yield from data
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value)
