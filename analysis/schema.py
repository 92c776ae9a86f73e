"""Read a YAML file and check it against its schema; the first fault becomes one clear error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from analysis import ROOT
from analysis.errors import FieldError, HotpathError

SCHEMAS = ROOT / "workflow" / "schemas"


# The same as yaml.safe_load, in a fraction of the time where PyYAML has its C library.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# JSON accepts 1.0 as an integer; for a count that is a mistake.
_Validator = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


@cache
def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(SCHEMAS / f"{name}.schema.yaml")
    return schema


def read_yaml(path: Path) -> Any:
    """The parsed file. HotpathError names the file if it cannot be read or parsed."""
    try:
        return yaml.load(path.read_text(), Loader=_Loader)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise HotpathError(f"{path}: not valid YAML: {error}") from error


def check(
    data: Any, name: str, where: str, definitions: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Raise FieldError for the most relevant fault; `where` is the file's name.

    `definitions` stand in for those of the schema `name` that only code can tell.
    """
    schema = _schema(name)
    if definitions:
        schema = schema | {"$defs": schema["$defs"] | definitions}
    error = best_match(_Validator(schema).iter_errors(data))
    if error is not None:
        raise FieldError(_field(error, where), *_fault(error))


def _field(error: ValidationError, where: str) -> str:
    return ": ".join([where, ".".join(str(part) for part in error.absolute_path)]).rstrip(": ")


_EXPECTED: Final[Mapping[str, str]] = {
    "type": "type {}",
    "enum": "one of {}",
    "const": "{!r}",
    "pattern": "text like {}",
    "minimum": "a number of at least {}",
    "maximum": "a number of at most {}",
    "exclusiveMinimum": "a number above {}",
    "uniqueItems": "items that differ from each other",
    **dict.fromkeys(("minItems", "minLength", "minProperties"), "something that is not empty"),
}
"""What a keyword of our schemas expects, in words."""


def _fault(error: ValidationError) -> tuple[str, object]:
    """(expected, got) in words, for the schema keywords that our schemas use."""
    got: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "additionalProperties" if isinstance(rule, bool):
            known = sorted(schema.get("properties", {}))
            return f"one of the keys {known}", sorted(set(got) - set(known))
        case "required":
            return f"the keys {sorted(rule)}", sorted(got)
        case "not":
            return f"anything but {rule.get('const', rule)!r}", got
        case "oneOf":
            return " or ".join(_plain(option) for option in rule), got
    expected = _EXPECTED.get(str(error.validator))
    return expected.format(rule) if expected else error.message, got


def _plain(schema: dict[str, Any]) -> str:
    words = {"integer": "a whole number", "string": "a name"}[schema["type"]]
    if "minimum" in schema:
        words += f" of at least {schema['minimum']}"
    if "pattern" in schema:
        words += f" like {schema['pattern']}"
    return words
