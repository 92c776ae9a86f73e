"""Read YAML and JSON and check it against a schema; the first fault becomes one clear error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.reading import read_text
from analysis.base.records import utc_time

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMAS = ROOT / "workflow" / "schemas"


_SafeLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""As of yaml.safe_load, but taking a fraction of the time where PyYAML has its C library."""


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Refuses a repeated key: YAML would silently keep the last value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._flat: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Called before keys are merged into a node, which may then be there twice, and again."""
        if node not in self._flat:
            self._flat.add(node)
            keys = [key.value for key, _ in node.value]
            if again := next((key for key in keys if keys.count(key) > 1), None):
                problem = f"expected every key once, got {again!r} again"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        super().flatten_mapping(node)


@cache
def _first_fault(name: str) -> Callable[[Any], ValidationError | None]:
    """A function that finds the most relevant fault by the schema `name`."""
    # Only programs that read results need these modules, which take long to import.
    from jsonschema import Draft202012Validator, FormatChecker, validators
    from jsonschema.exceptions import best_match

    formats = FormatChecker(formats=())
    formats.checks("utc-time", raises=ValueError)(
        lambda value: not isinstance(value, str) or bool(utc_time(value))
    )
    # JSON accepts 1.0 as an integer; for a count that is a mistake.
    integers = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    kind = validators.extend(Draft202012Validator, type_checker=integers)  # type: ignore[no-untyped-call]
    checker = kind(read_yaml(SCHEMAS / f"{name}.schema.yaml"), format_checker=formats)
    return lambda data: best_match(checker.iter_errors(data))


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; yaml.YAMLError if it is invalid."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> Any:
    """The parsed file. HotpathError names the file if it cannot be read or parsed."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # PyYAML names the text, and has a line for each place in it.
        said = " ".join(str(error).replace('"<unicode string>", ', "").split())
        raise HotpathError(f"{path}: not valid YAML: {said}") from error


def read_json(path: Path) -> Any:
    """The parsed file. HotpathError names the file, and where it is no JSON the line; an object
    with a key twice, a number that is not finite and text that cannot be shown are none either."""
    text = read_text(path)
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


def check(data: Any, name: str, where: str) -> None:
    """Raise FieldError for the most relevant fault; `where` is the file's name."""
    for path, number in _floats(data):
        # No bound in a schema refuses these.
        if not math.isfinite(number):
            raise FieldError(f"{where}: {path}", "a finite number", number)
    if error := _first_fault(name)(data):
        raise FieldError(_field(error, where), *_fault(error))


def _floats(data: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number that is no integer, with the keys that lead to it."""
    if isinstance(data, float):
        yield path, data
    elif isinstance(data, dict | list):
        for name, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _floats(part, f"{path}.{name}".lstrip("."))


def _field(error: ValidationError, where: str) -> str:
    return ": ".join([where, ".".join(str(part) for part in error.absolute_path)]).rstrip(": ")


_EXPECTED: Final[Mapping[str, str]] = {
    "type": "type {}",
    "enum": "one of {}",
    "pattern": "text like {}",
    "format": "a UTC timestamp such as 2026-11-24T06:00:00Z",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} keys",
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number above {}",
}
"""The expectation of each schema keyword, in words."""


def _fault(error: ValidationError) -> tuple[str, object]:
    """(expected, got) in words, for the schema keywords that our schemas use."""
    got: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "additionalProperties" if isinstance(rule, bool):
            known = sorted(schema.get("properties", {}))
            return f"one of the keys {known}", sorted(set(got) - set(known), key=str)
        case "required":
            return f"the keys {sorted(rule)}", sorted(got, key=str)
    expected = _EXPECTED.get(str(error.validator))
    return expected.format(rule) if expected else error.message, got
