"""The reference of what a contributor writes and runs, from types, docstrings and parsers."""

from __future__ import annotations

import argparse
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup, escape
from pydantic.json_schema import GenerateJsonSchema

from analysis.base.keys import adapter
from analysis.base.quantities import listing
from analysis.site.interface import FILES, programs
from analysis.site.pages import __main__ as report
from analysis.site.pages.html import code, table, wide
from analysis.site.pages.page import macro
from analysis.study import Study
from analysis.study.access import NEEDED, OPTIONAL, READS, WORDS, Access
from analysis.study.claims.kinds import BOUNDS, KINDS, Bounded
from analysis.study.keys import StudyKeys

Schema = Mapping[str, Any]

HELP_COLUMNS: Final = 88

_TYPES: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
}
_LIMITS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "minItems": "at least {}",
}


class _KeySchema(GenerateJsonSchema):
    """Only the titles that a type was given."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(record: type) -> Schema:
    """The JSON schema of a mapping with the keys of `record`."""
    root = adapter(record).json_schema(schema_generator=_KeySchema)
    schema: Schema = _plain(root, root.pop("$defs", {}))
    return schema


def _plain(schema: Any, definitions: Schema) -> Any:
    """`schema` with references replaced by their definitions, without null where a key may be left
    out, and with the kinds of a comparison as one mapping."""
    if isinstance(schema, list):
        return [_plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return " ".join(schema.split()) if isinstance(schema, str) else schema
    if "$ref" in schema:
        schema = {**definitions[schema.pop("$ref").rpartition("/")[2]], **schema}
    schema = {name: _plain(part, definitions) for name, part in schema.items()}
    if isinstance(schema.get("default"), tuple | list | str) and not schema["default"]:
        del schema["default"]
    if "anyOf" in schema and schema.get("default", ...) is None:
        schema = {**schema.pop("anyOf")[0], **schema}
    if "discriminator" in schema:
        schema.pop("discriminator")
        compared: dict[str, Any] = {}
        for kind in schema.pop("oneOf"):
            compared |= kind["properties"]
        compared["kind"] = {"description": "What is compared.", "enum": list(KINDS)}
        about = "A kind, its subjects, and the threshold that its figure must meet."
        schema = {
            "title": "Comparison",
            "description": about,
            "type": "object",
            "properties": compared,
            "required": ["kind"],
            **schema,
        }
    return schema


def study_schema() -> Schema:
    """All keys of study.yaml, those of a `link` and of every kind of comparison among them."""
    schema = schema_of(StudyKeys)
    link = schema["properties"]["variants"]["items"]["properties"]["link"]
    keys = schema_of(Access)["properties"]
    values: dict[str, Schema] = {
        **{name: {"type": ["string", "integer"]} for name in keys},
        **{name: {"type": "string"} for name in WORDS},
        "reads": {"enum": READS},
    }
    link["title"], link["required"] = "Link", ["reads"]
    link["properties"] = {
        name: {"description": one["description"], **values[name]} for name, one in keys.items()
    }
    return schema


def schema_reference(schema: Schema, settings: Mapping[str, Any] | None = None) -> str:
    """A table of keys for every mapping that a schema describes; Markdown.

    Defaults are the schema's, or where `settings` are given, those.
    """
    places: dict[str, list[str]] = {}  # one mapping may be described for several places
    found: dict[str, Schema] = {}
    for path, mapping in _mappings(schema, ""):
        keys = repr(mapping["properties"])
        places.setdefault(keys, []).append(path)
        found.setdefault(keys, mapping)
    return "\n\n".join(
        _keys(mapping, places[keys], settings or {}) for keys, mapping in found.items()
    )


def _mappings(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """(path, schema) of every mapping with named keys, from the outside in."""
    if "properties" in schema:
        yield path, schema
    inner = [
        (f"{path}.{key}".strip("."), part) for key, part in schema.get("properties", {}).items()
    ]
    inner += [(f"{path}.<name>", part) for part in _values(schema)]
    if "items" in schema:
        inner.append((f"{path}[]", schema["items"]))
    for place, part in inner:
        yield from _mappings(part, place)


def _values(schema: Schema) -> list[Schema]:
    """Schemas of the values of a mapping whose keys the file names."""
    found = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    return [part for part in found if isinstance(part, dict)]


def _keys(mapping: Schema, places: list[str], settings: Mapping[str, Any]) -> str:
    required = mapping.get("required", [])
    rows = []
    for key, schema in mapping["properties"].items():
        defaults = [schema.get("default")]
        if settings and not any("[]" in place for place in places):
            defaults = [_at(settings, [*filter(None, place.split(".")), key]) for place in places]
        shown: str = Markup(", ".join(map(_value, defaults)))
        if key in required and not shown:
            shown = "required"
        rows.append([code(key), _type(schema), shown, _prose(schema["description"])])
    title = listing([f"`{place}`" for place in places if place])
    heading = [f"### {title}"] if title else []
    if len(places) == 1 and title and "description" in mapping:
        heading.append(mapping["description"])
    return "\n\n".join([*heading, wide(table(["key", "type", "default", "meaning"], rows))])


def _at(settings: Mapping[str, Any], path: list[str]) -> Any:
    """The setting at `path`; None where it is a mapping, whose keys have separate rows."""
    value: Any = settings
    for key in path:
        value = value[key]
    return None if isinstance(value, Mapping) else value


def _value(value: Any) -> str:
    if value is None:
        return ""
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def _type(schema: Schema) -> Markup:
    """A value of `schema`, in words; the values themselves where they are few."""
    if "title" in schema and "properties" not in schema:
        return Markup(escape(schema["title"]))
    if "enum" in schema:
        return Markup(", ".join(code(str(value)) for value in schema["enum"]))
    if "anyOf" in schema:
        return Markup(" or ".join(_type(option) for option in schema["anyOf"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = " or ".join(_kind(schema, kind) for kind in kinds)
    limits = [limit.format(schema[key]) for key, limit in _LIMITS.items() if key in schema]
    return Markup(f"{words}, {' and '.join(limits)}" if limits else words)


def _kind(schema: Schema, kind: str) -> str:
    if kind == "array":
        items = _type(schema["items"] if "items" in schema else schema["prefixItems"][0])
        return f"list of {items}s" if items.isalpha() else f"list of {items}"
    if kind == "object":
        values = [part for part in _values(schema) if "properties" not in part]
        return f"mapping of names to {_type(values[0])}" if values else "mapping"
    if kind == "string" and "pattern" in schema:
        return f"text like {code(schema['pattern'])}"
    return _TYPES[kind]


def _prose(text: str) -> Markup:
    """Plain text with `code` in it, as HTML."""
    parts = text.strip().split("`")
    return Markup(
        "".join(code(part) if index % 2 else escape(part) for index, part in enumerate(parts))
    )


@macro("columns")
def column_list(file: str) -> str:
    """The columns of a file of results or of a table, in their order.

    file: name of the file in the contract, such as `summary.csv`
    """
    return ", ".join(code(column) for column in FILES[file])


@macro()
def claim_kinds() -> str:
    """Every kind of comparison that a claim may make, with its keys."""
    rows = []
    for name, kind in KINDS.items():
        schema = schema_of(kind)
        keys = schema["properties"].keys() - {*BOUNDS, "kind"}
        needed = set(schema["required"]) - {"kind"}
        rows.append(
            [
                code(name),
                _codes(needed),
                _codes(keys - needed),
                _codes(BOUNDS) if issubclass(kind, Bounded) else "none",
                _prose((inspect.getdoc(kind) or "").replace("\n\n", " ").replace("\n", " ")),
            ]
        )
    return wide(table(["kind", "needs", "may have", "one of", "meaning"], rows))


@macro()
def link_keys() -> str:
    """The keys of a `link` for each way of reading host memory."""
    rows = [[code(reads), _codes(NEEDED[reads]), _codes(OPTIONAL[reads])] for reads in READS]
    return table(["reads", "needs", "may have"], rows)


def _codes(names: Iterable[str]) -> Markup:
    return Markup(", ".join(code(name) for name in sorted(names)))


def macro_reference(macros: Mapping[str, Callable[..., str]], given: Collection[str]) -> str:
    """Every macro with its arguments and docstring; `given` are annotations of what a page does not
    pass itself. Markdown."""
    return "\n\n".join(_macro(name, function, given) for name, function in sorted(macros.items()))


def _macro(name: str, function: Callable[..., str], given: Collection[str]) -> str:
    parameters = [
        str(parameter.replace(annotation=inspect.Parameter.empty))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation not in given
    ]
    meaning, _, arguments = (inspect.getdoc(function) or "").partition("\n\n")
    items = [
        f"- `{argument}`: {value}"
        for argument, _, value in (
            item.partition(": ") for item in arguments.replace("\n    ", " ").splitlines() if item
        )
    ]
    parts = [f"### `{name}({', '.join(parameters)})` {{#macro-{name}}}", meaning.replace("\n", " ")]
    return "\n\n".join([*parts, "\n".join(items)]).strip()


@macro("programs")
def program_reference(studies: Mapping[str, Study]) -> str:
    """The help text of each program of the package."""
    # A study with constants shows every sort of option.
    study = next(filter(lambda one: one.constants, studies.values()), next(iter(studies.values())))
    parsers = [*programs(study, study.variants[0]), report.command_line()]
    return "\n\n".join(_program(parser) for parser in parsers)


def _program(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = functools.partial(argparse.HelpFormatter, width=HELP_COLUMNS)
    name = parser.prog.split()[2]
    return f"### `python -m {name}`\n\n``` text\n{parser.format_help().strip()}\n```"
