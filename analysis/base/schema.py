"""Read YAML and JSON and check it against a schema; the first fault becomes one clear error."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError, best_match

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.reading import read_text
from analysis.base.records import utc_time

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


# JSON accepts 1.0 as an integer; for a count that is a mistake.
_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("utc-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or bool(utc_time(value))


@cache
def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(SCHEMAS / f"{name}.schema.yaml")
    return schema


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


def check(
    data: Any, name: str, where: str, definitions: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Raise FieldError for the most relevant fault; `where` is the file's name.

    `definitions` replace those of the schema `name` that only code knows.
    """
    for path, number in _floats(data):
        # No bound in a schema refuses these.
        if not math.isfinite(number):
            raise FieldError(f"{where}: {path}", "a finite number", number)
    schema = _schema(name)
    if definitions:
        schema = schema | {"$defs": schema["$defs"] | definitions}
    error = best_match(_Validator(schema, format_checker=_FORMATS).iter_errors(data))
    while error is not None and error.parent is not None and error.parent.validator == "oneOf":
        error = error.parent  # all that is allowed, not what was nearest to it
    if error is not None:
        raise FieldError(_field(error, where), *_fault(error))


_READ: Final[Mapping[str, Callable[[str], object]]] = {
    "integer": int,
    "number": float,
    "boolean": {"true": True, "false": False}.__getitem__,
}
"""How text is read where a schema has one of these types."""


def with_types(data: Any, name: str) -> Any:
    """`data` with text as what the schema `name` has at its place, where it can be read so.

    Snakemake leaves numbers in a list or a mapping of its command line as text, and knows `true`
    and `false` with a capital letter only.
    """
    return _with_types(data, _schema(name), _schema(name)["$defs"])


def _with_types(data: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    options = schema.get("oneOf", [schema])

    def part(key: str, default: Any) -> Any:
        return next((option[key] for option in options if key in option), default)

    if isinstance(data, dict):
        known = part("properties", {})
        return {key: _with_types(v, known.get(key, {}), definitions) for key, v in data.items()}
    if isinstance(data, list):
        return [_with_types(value, part("items", {}), definitions) for value in data]
    for read in (_READ[option["type"]] for option in options if option.get("type") in _READ):
        if isinstance(data, str):
            with suppress(ValueError, KeyError):
                return read(data)
    return data


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
    "const": "{!r}",
    "pattern": "text like {}",
    "format": "a UTC timestamp such as 2026-11-24T06:00:00Z",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} keys",
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number above {}",
    "uniqueItems": "items that differ from each other",
    **dict.fromkeys(("minItems", "minLength", "minProperties"), "something that is not empty"),
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
        case "not":
            return f"anything but {rule.get('const', rule)!r}", got
        case "oneOf":
            return " or ".join(_plain(option) for option in rule), got
    expected = _EXPECTED.get(str(error.validator))
    return expected.format(rule) if expected else error.message, got


def _plain(schema: dict[str, Any]) -> str:
    if "title" in schema:
        return str(schema["title"])
    words = {"integer": "a whole number", "string": "a name"}[schema["type"]]
    if "minimum" in schema:
        words += f" of at least {schema['minimum']}"
    if "pattern" in schema:
        words += f" like {schema['pattern']}"
    return words
