"""Mappings in files, as pydantic types; their first fault becomes one clear error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, TypeVar

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
    """`data` as a value of a pydantic type. FieldError for its first fault, an unknown key before
    any other; `where` is the name of the file, or with `file: keys` the place of `data` in it."""
    try:
        value: T = adapter(kind).validate_python(data)  # type: ignore[arg-type]
    except ValidationError as error:
        faults = error.errors(include_url=False)
        unknown = (fault for fault in faults if fault["type"] in _EXPECTED["no such key"])
        fault = next(unknown, faults[0])
        expected, got = _in_words(fault)
        path = ".".join(_names(fault["loc"], data))
        place = ("." if ": " in where else ": ").join(filter(None, (where, path)))
        got = list(got) if isinstance(got, tuple) else got
        raise FieldError(place, expected, got) from error
    return value


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Reads and writes values of a pydantic type."""
    return TypeAdapter(kind)


_EXPECTED: Final[Mapping[str, Sequence[str]]] = {
    "no such key": ("extra_forbidden", "unexpected_keyword_argument"),
    "a mapping": ("dict_type", "mapping_type", "dataclass_type", "model_type"),
    "a list": ("tuple_type", "list_type"),
    "a value": ("missing", "union_tag_not_found"),
    "a whole number": ("int_type", "int_parsing", "int_from_float"),
}
"""Words for what was expected, by the types of pydantic's errors. Other messages are pydantic's."""


def _in_words(fault: Any) -> tuple[str, object]:
    """(expected, got) of a fault that pydantic found."""
    if isinstance(found := fault.get("ctx", {}).get("error"), Fault):
        return found.expected, found.got
    words = next((words for words, kinds in _EXPECTED.items() if fault["type"] in kinds), "")
    expected = words or re.sub(r"^.* should (be |have |match )?", "", fault["msg"])
    expected = "one of " * (fault["type"] == "literal_error") + expected
    got = None if fault["type"] == "missing" else fault["input"]
    return re.sub("^pattern ", "text like ", expected), got


def _names(place: Sequence[Any], data: Any) -> Iterator[str]:
    """The keys that lead to `place` in `data`; entries of a list by their names, where given."""
    for part in place[:-2] if place[-1:] == ("[key]",) else place:
        if isinstance(data, Mapping) and data.get("kind") == part:
            continue  # the tag of a union
        values = dict(enumerate(data)) if isinstance(data, list | tuple) else data
        data = values.get(part) if isinstance(values, Mapping) else None
        named = isinstance(part, int) and isinstance(data, Mapping)
        yield str((named and (data.get("name") or data.get("id"))) or part)
