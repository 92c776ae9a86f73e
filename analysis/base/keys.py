"""Mappings in files, as pydantic types; their first fault becomes one clear error."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
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


def _is_utc_time(text: str) -> bool:
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
UtcTime = Annotated[str, only(_is_utc_time, "a UTC timestamp such as 2026-11-24T06:00:00Z")]
Unique = Annotated[
    tuple[T, ...],
    only(lambda items: len(set(items)) == len(items), "items that differ from each other"),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list without repeats."""
_UNKNOWN: Final = ("extra_forbidden", "unexpected_keyword_argument")
_WORDS: Final = {
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "model_type"), "a mapping"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("missing", "union_tag_not_found"), "a value"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
}
"""Words for what was expected, by the types of pydantic's errors. Other messages are pydantic's."""


def read(kind: type[T], data: Any, where: str) -> T:
    """`data` as a value of a pydantic type. FieldError for its first fault, an unknown key before
    any other; `where` is the name of the file, or with `file: keys` the place of `data` in it."""
    try:
        value: T = adapter(kind).validate_python(data)  # type: ignore[arg-type]
    except ValidationError as error:
        faults = error.errors(include_url=False)
        fault = next((fault for fault in faults if fault["type"] in _UNKNOWN), faults[0])
        names = _names(fault["loc"], data)
        place = ("." if ": " in where else ": ").join(filter(None, (where, ".".join(names))))
        raise FieldError(place, *_in_words(fault, kind)) from error
    return value


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Reads and writes values of a pydantic type."""
    return TypeAdapter(kind)


def _in_words(fault: Any, kind: Any) -> tuple[str, object]:
    """(expected, got) of a fault that pydantic found in a value of the type `kind`."""
    if isinstance(found := fault.get("ctx", {}).get("error"), Fault):
        return found.expected, list(found.got) if isinstance(found.got, tuple) else found.got
    if fault["type"] in _UNKNOWN:
        schema, key = adapter(kind).json_schema(), str(fault["loc"][-1])
        types = (one.get("properties", {}) for one in (schema, *schema.get("$defs", {}).values()))
        others = dict.fromkeys(name for names in types for name in names if name != key)
        nearest = get_close_matches(key, others, 1)
        return f"a known key, such as {nearest[0]!r}" if nearest else "a known key", key
    expected = re.sub(r"^.* should (be |have |match )?", "", fault["msg"])
    expected = "one of " * (fault["type"] == "literal_error") + expected
    got = None if fault["type"] == "missing" else fault["input"]
    return _WORDS.get(fault["type"]) or re.sub("^pattern ", "text like ", expected), got


def _names(place: Sequence[Any], data: Any) -> list[str]:
    """The keys that lead to `place` in `data`, entries of a list by their names, where given."""
    names = []
    for part in place[:-2] if place[-1:] == ("[key]",) else place:
        values = dict(enumerate(data)) if isinstance(data, list | tuple) else data
        data = values.get(part) if isinstance(values, Mapping) else None
        named = isinstance(part, int) and isinstance(data, Mapping)
        names.append(str((named and (data.get("name") or data.get("id"))) or part))
    return names
