"""Mappings in files, as pydantic types; their first fault becomes one clear error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    WrapValidator,
)

from analysis.base.errors import FieldError

T = TypeVar("T")

KEYS: Final = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
"""Of a pydantic dataclass that is a mapping in a file. A docstring below a key is its meaning."""


class Fault(ValueError):
    """A fault found by a check of a file's keys."""

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(expected)
        self.expected, self.got = expected, got


def only(test: Callable[[Any], object], expected: str) -> AfterValidator:
    """A check of a value."""

    def checked(value: Any) -> Any:
        if not test(value):
            raise Fault(expected, value)
        return value

    return AfterValidator(checked)


def expects(expected: str) -> WrapValidator:
    """One error in words for a value that several types could have."""

    def checked(value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise Fault(expected, value) from None

    return WrapValidator(checked)


def is_utc_time(text: str) -> bool:
    """Whether `text` is a valid timestamp such as `2026-01-02T03:04:05Z`."""
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
    try:
        return bool(re.fullmatch(form, text, re.ASCII) and datetime.fromisoformat(text))
    except ValueError:
        return False


MAX_NUMBER: Final = 1e18
"""Upper bound of all measured numbers, in any unit."""
NAME: Final = re.compile("[a-z][a-z0-9_]*")
"""Names of studies, variants, metrics and other keys."""

Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, Field(pattern=f"^{NAME.pattern}$", title="name")]
Natural = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
UtcTime = Annotated[str, only(is_utc_time, "a UTC timestamp such as 2026-11-24T06:00:00Z")]
Unique = Annotated[
    tuple[T, ...],
    only(lambda items: len(set(items)) == len(items), "items that differ from each other"),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list without repeats."""


def read(kind: type[T], data: Any, where: str) -> T:
    """`data` as a value of a pydantic type. FieldError for its first fault; `where` is the name of
    the file, or with `file: keys` the place of `data` in it."""
    checked: Any = kind
    try:
        found: T = adapter(checked).validate_python(data)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        misspelt = (one for one in faults if _EXPECTED.get(one["type"]) == NO_KEY)
        fault = next(misspelt, faults[0])
        place, expected, got = _in_words(fault, data, where)
        if expected == NO_KEY:
            expected = f"one of {_known(checked, fault['loc'])}"
        raise FieldError(place, expected, got) from error
    return found


@cache
def adapter(kind: type) -> TypeAdapter[Any]:
    """Reads and writes values of a pydantic type."""
    return TypeAdapter(kind)


def _known(kind: Any, place: Sequence[int | str]) -> list[str]:
    """The keys of the mapping in a `kind` that has an unknown one at `place`."""
    found = [*_mappings(kind)]
    for part in map(str, place[:-1]):
        inner = [one for keys in found if part in keys for one in _mappings(keys[part].annotation)]
        tagged = [keys for keys in found if "kind" in keys and keys["kind"].default == part]
        found = inner or tagged or found  # else the index of an item, or the name of a value
    return list(dict.fromkeys(key for keys in found for key in keys))


def _mappings(kind: Any) -> Iterator[Mapping[str, Any]]:
    """The fields, by key, of every mapping that is a `kind` or a part of it."""
    if fields := getattr(kind, "__pydantic_fields__", None):
        yield {field.alias or name: field for name, field in fields.items()}
    for part in get_args(kind):
        yield from _mappings(part)


def _in_words(fault: Any, data: Any, where: str) -> tuple[str, str, object]:
    """(field, expected, got) of a fault that pydantic found in `data`."""
    got, limits = fault["input"], fault.get("ctx", {})
    known = _EXPECTED.get(fault["type"])
    expected = known.format(**limits) if known else fault["msg"]
    if isinstance(found := limits.get("error"), Fault):
        expected, got = found.expected, found.got
    elif isinstance(got, float) and not math.isfinite(got):
        expected = "a finite number"
    elif fault["type"] == "missing" and isinstance(got, Mapping):
        expected, got = "a value", None
    elif fault["type"] in ("literal_error", "union_tag_invalid"):
        words = re.findall("'([^']*)'", limits.get("expected") or limits["expected_tags"])
        expected, got = f"one of {words}", limits.get("tag", got)
    path = ".".join(_names(fault["loc"], data))
    place = ("." if ": " in where else ": ").join(part for part in (where, path) if part)
    return place, expected, list(got) if isinstance(got, tuple) else got


NO_KEY: Final = "no such key"
_EXPECTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bool_type", "bool_parsing"), "type boolean"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "type integer"),
    **dict.fromkeys(("float_type", "float_parsing"), "type number"),
    "string_type": "type string",
    **dict.fromkeys(("tuple_type", "list_type"), "type array"),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "model_type"), "type object"),
    "finite_number": "a finite number",
    "string_pattern_mismatch": "text like {pattern}",
    "string_too_long": "at most {max_length} characters",
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt:g}",
    "less_than_equal": "a number of at most {le:g}",
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), NO_KEY),
    "missing": "more items",
    "union_tag_not_found": "a value under kind",
    **dict.fromkeys(("string_too_short", "too_short"), "something that is not empty"),
    "too_long": "at most {max_length} items",
}
"""Expected, in words, by the type of pydantic's errors."""


def _names(place: Sequence[Any], data: Any) -> Iterator[str]:
    """The keys that lead to `place` in `data`; entries of a list by their names, where given."""
    if place[-1:] == ("[key]",):
        place = place[:-2]
    for part in place:
        if isinstance(data, Mapping) and data.get("kind") == part:
            continue  # the tag of a union
        values = dict(enumerate(data)) if isinstance(data, list | tuple) else data
        data = values.get(part) if isinstance(values, Mapping) else None
        ids = [data.get(one) for one in ("name", "id")] if isinstance(data, Mapping) else []
        named = next((one for one in ids if isinstance(one, str)), None)
        yield named if isinstance(part, int) and named else str(part)
