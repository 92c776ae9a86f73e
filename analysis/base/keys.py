"""Typed keys of a file, with their meanings. The first fault becomes one clear error."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Final, TypeVar

import pydantic
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Strict, ValidationError

from analysis.base.errors import FieldError
from analysis.base.values import UTC_TIME, is_utc_time

T = TypeVar("T")

OTHERS: Final = ""
"""Alias of the field for all keys that no other field has."""


def key(meaning: str, default: Any = MISSING, **more: Any) -> Any:
    """A field that is a key of the file. `meaning` is its text on the reference page.

    A key without a default is required. `factory` makes a default that is mutable, `alias` is the
    key's name where the field has another one. All other arguments are kept as metadata.
    """
    made = {"default_factory": more.pop("factory")} if "factory" in more else {"default": default}
    return field(**made, metadata={"description": meaning, **more})


def keys_of(record: type) -> dict[str, Field[Any]]:
    """The fields of `record` that are keys of the file, by the key."""
    return {
        one.metadata.get("alias", one.name): one
        for one in fields(record)
        if "description" in one.metadata
    }


def is_required(one: Field[Any]) -> bool:
    """Whether the file has to have this key."""
    return one.default is MISSING and one.default_factory is MISSING


class Keys:
    """Base of a dataclass whose fields made by `key` are the keys of a mapping in a file."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> Any:
        # pydantic would reuse a schema with a reference, without the check.
        inner: Any = {**handler.resolve_ref_schema(handler(source))}
        inner.pop("ref", None)
        check: Any = BeforeValidator(lambda data: _with_known_keys(source, data))
        return check.__get_pydantic_core_schema__(source, lambda _: inner)


def _with_known_keys(record: type, data: Any) -> Any:
    """`data`, with all unknown keys under OTHERS if `record` has a field for these."""
    if not isinstance(data, Mapping):
        return data
    known = keys_of(record)
    others = {name: value for name, value in data.items() if name not in known}
    if others and OTHERS not in known:
        raise Fault(f"one of the keys {sorted(known)}", sorted(others, key=str))
    required = sorted(name for name, one in known.items() if name and is_required(one))
    if not set(required) <= set(data):
        raise Fault(f"the keys {required}", sorted(data, key=str))
    return (
        data
        if OTHERS not in known
        else {OTHERS: others, **{name: data[name] for name in data if name in known}}
    )


class Fault(ValueError):
    """A fault found by a check of a file's keys."""

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(expected)
        self.expected, self.got = expected, got


def only(test: Callable[[Any], bool], expected: str) -> BeforeValidator:
    """A check of a value of the file, before its type is checked."""
    return BeforeValidator(_refusal(test, expected))


def _refusal(test: Callable[[Any], bool], expected: str) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if not test(value):
            raise Fault(expected, value)
        return value

    return checked


def text_as(read: Callable[[str], object]) -> BeforeValidator:
    """Converts text of a command line: Snakemake leaves numbers and booleans in lists and mappings
    as text."""

    def typed(value: Any, info: pydantic.ValidationInfo) -> Any:
        if not (info.context and isinstance(value, str)):
            return value
        try:
            return read(value)
        except (ValueError, KeyError):
            return value

    return BeforeValidator(typed)


QUOTED: Final = "'([^']*)'"
NAME: Final = re.compile("[a-z][a-z0-9_]*")
"""Names of studies, variants, metrics and other keys."""

Text = Annotated[str, Strict()]
Sentence = Annotated[Text, pydantic.StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[Text, pydantic.Field(pattern=f"^{NAME.pattern}$", title="name")]
Natural = Annotated[int, Strict(), pydantic.Field(ge=0), text_as(int)]
Count = Annotated[int, Strict(), pydantic.Field(ge=1), text_as(int)]
Positive = Annotated[float, Strict(), pydantic.Field(gt=0), text_as(float)]
Boolean = Annotated[bool, Strict(), text_as({"true": True, "false": False}.__getitem__)]
UtcTime = Annotated[
    Text, only(lambda value: isinstance(value, str) and is_utc_time(value), UTC_TIME)
]
Maybe = Annotated[T | None, only(lambda value: value is not None, "a value, or no such key")]
"""A key that may be left out."""
Unique = Annotated[
    tuple[T, ...],
    AfterValidator(
        _refusal(lambda items: len(set(items)) == len(items), "items that differ from each other")
    ),
    pydantic.Field(json_schema_extra={"uniqueItems": True}),
]
"""A list without repeats."""


def read(record: type[T], data: Any, where: str, *, from_text: bool = False) -> T:
    """`data` as a `record`, a class of keys. FieldError for its first fault; `where` is the name of
    the file, or with `file: keys` the place of `data` in it.

    `from_text`: numbers and booleans may be text, as on a command line.
    """
    kind: type = record
    try:
        found: T = adapter(kind).validate_python(data, context=from_text or None)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise FieldError(*_in_words(fault, data, where)) from error
    return found


@cache
def adapter(record: type) -> pydantic.TypeAdapter[Any]:
    """Reads and writes mappings with the keys of `record`."""
    return pydantic.TypeAdapter(record)


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
    elif fault["type"] == "literal_error":
        expected = f"one of {re.findall(QUOTED, limits['expected'])}"
    path = ".".join(_names(fault["loc"], data))
    place = ("." if ": " in where else ": ").join(part for part in (where, path) if part)
    return place, expected, list(got) if isinstance(got, tuple) else got


_EXPECTED: Final[Mapping[str, str]] = {
    "bool_type": "type boolean",
    "int_type": "type integer",
    "float_type": "type number",
    "string_type": "type string",
    **dict.fromkeys(("tuple_type", "list_type"), "type array"),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "model_type"), "type object"),
    "finite_number": "a finite number",
    "string_pattern_mismatch": "text like {pattern}",
    "string_too_long": "at most {max_length} characters",
    "greater_than_equal": "a number of at least {ge}",
    "greater_than": "a number above {gt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "extra_forbidden": "no such key",
    "missing": "more items",
    **dict.fromkeys(("string_too_short", "too_short"), "something that is not empty"),
    "too_long": "at most {max_length} items",
}
"""Expected, in words, by the type of pydantic's errors."""


def _names(place: Sequence[Any], data: Any) -> Iterator[str]:
    """The keys that lead to `place` in `data`; entries of a list by their names, where given."""
    if place[-1:] == ("[key]",):
        place = place[:-2]
    for part in place:
        if part == OTHERS:
            continue
        values = dict(enumerate(data)) if isinstance(data, list | tuple) else data
        data = values.get(part) if isinstance(values, Mapping) else None
        ids = [data.get(one) for one in ("name", "id")] if isinstance(data, Mapping) else []
        named = next((one for one in ids if isinstance(one, str)), None)
        yield named if isinstance(part, int) and named else str(part)
