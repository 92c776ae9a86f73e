"""The reference of what a contributor writes and runs, from schemas, docstrings and parsers."""

from __future__ import annotations

import argparse
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING
from typing import Any, Final

from markupsafe import Markup, escape

from analysis.base.quantities import listing
from analysis.base.schema import SCHEMAS, read_yaml
from analysis.site.interface import FILES, programs
from analysis.site.pages import __main__ as report
from analysis.site.pages.html import code, table
from analysis.study import Study
from analysis.study.access import NEEDED, OPTIONAL
from analysis.study.claims import comparison_schema
from analysis.study.claims.comparison import BOUNDS, KINDS, Bounded

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


def study_schema() -> Schema:
    """What a study.yaml may say, the keys of claims included."""
    schema = read_yaml(SCHEMAS / "study.schema.yaml")
    comparison = schema["$defs"]["comparison"] | comparison_schema()
    return {**schema, "$defs": schema["$defs"] | {"comparison": comparison}}


def config_schema() -> Schema:
    """What a config.yaml may say."""
    schema: Schema = read_yaml(SCHEMAS / "config.schema.yaml")
    return schema


def schema_reference(schema: Schema, settings: Mapping[str, Any] | None = None) -> str:
    """A table of keys for every mapping that a schema describes; Markdown.

    Defaults are the schema's, or where `settings` are given, those.
    """
    places: dict[int, list[str]] = {}  # one mapping may be described for several places
    found: dict[int, Schema] = {}
    for path, mapping in _mappings(schema, schema, ""):
        places.setdefault(id(mapping["properties"]), []).append(path)
        found.setdefault(id(mapping["properties"]), mapping)
    return "\n\n".join(
        _keys(schema, mapping, places[key], settings or {}) for key, mapping in found.items()
    )


def resolved(root: Schema, schema: Schema) -> Schema:
    """`schema` with what it refers to; its own description and default come first."""
    if "$ref" not in schema:
        return schema
    target: Schema = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}


def _mappings(root: Schema, schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """(path, schema) of every mapping with named keys, from the outside in."""
    schema = resolved(root, {"$ref": schema["$ref"]} if "$ref" in schema else schema)
    if "properties" in schema:
        yield path, schema
    inner = [
        (f"{path}.{key}".strip("."), part) for key, part in schema.get("properties", {}).items()
    ]
    if isinstance(schema.get("additionalProperties"), dict):
        inner.append((f"{path}.<name>", schema["additionalProperties"]))
    if "items" in schema:
        inner.append((f"{path}[]", schema["items"]))
    for place, part in inner:
        yield from _mappings(root, part, place)


def _keys(root: Schema, mapping: Schema, places: list[str], settings: Mapping[str, Any]) -> str:
    required = mapping.get("required", [])
    rows = []
    for key, part in mapping["properties"].items():
        schema = resolved(root, part)
        defaults = [schema.get("default")]
        if settings and not any("[]" in place for place in places):
            defaults = [_at(settings, [*filter(None, place.split(".")), key]) for place in places]
        shown: str = Markup(", ".join(map(_value, defaults)))
        if key in required and not shown:
            shown = "required"
        rows.append([code(key), _type(root, schema), shown, _prose(schema["description"])])
    title = listing([f"`{place}`" for place in places if place])
    heading = [f"### {title}"] if title else []
    if title and "description" in mapping:
        heading.append(mapping["description"])
    return "\n\n".join([*heading, _wide(table(["key", "type", "default", "meaning"], rows))])


def _wide(inner: str) -> Markup:
    """A table whose last column is prose, which stays readable on a narrow screen."""
    return Markup(f'<div class="hp-prose">{inner}</div>')


def _at(settings: Mapping[str, Any], path: list[str]) -> Any:
    """The setting at `path`; None where it is a mapping, whose keys have rows of their own."""
    value: Any = settings
    for key in path:
        value = value[key]
    return None if isinstance(value, Mapping) else value


def _value(value: Any) -> str:
    if value is None:
        return ""
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def _type(root: Schema, schema: Schema) -> Markup:
    """What a value of `schema` is, in words; the values themselves where they are few."""
    schema = resolved(root, schema)
    if "title" in schema:
        return Markup(escape(schema["title"]))
    if "enum" in schema:
        return Markup(", ".join(code(str(value)) for value in schema["enum"]))
    if "oneOf" in schema:
        return Markup(" or ".join(_type(root, option) for option in schema["oneOf"]))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = " or ".join(_kind(root, schema, kind) for kind in kinds)
    limits = [limit.format(schema[key]) for key, limit in _LIMITS.items() if key in schema]
    return Markup(f"{words}, {' and '.join(limits)}" if limits else words)


def _kind(root: Schema, schema: Schema, kind: str) -> str:
    if kind == "array":
        items = _type(root, schema["items"])
        return f"list of {items}s" if items.isalpha() else f"list of {items}"
    if kind == "object":
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and "properties" not in resolved(root, values):
            return f"mapping of names to {_type(root, values)}"
        return "mapping"
    if kind == "string" and "pattern" in schema:
        return f"text like <code>{escape(schema['pattern'])}</code>"
    return _TYPES[kind]


def _prose(text: str) -> Markup:
    """Plain text with `code` in it, as HTML."""
    parts = text.strip().split("`")
    return Markup(
        "".join(code(part) if index % 2 else escape(part) for index, part in enumerate(parts))
    )


def column_list(file: str) -> str:
    """The columns of a file as the code has them, in their order."""
    return ", ".join(code(column) for column in FILES[file])


def claim_kinds() -> str:
    """Every kind of comparison: its keys, its bound and what it compares."""
    rows = []
    for name, kind in KINDS.items():
        needed = [key for key, field in kind.keys().items() if field.default is MISSING]
        rows.append(
            [
                code(name),
                _codes(needed),
                _codes(kind.keys().keys() - needed),
                _codes(BOUNDS) if issubclass(kind, Bounded) else "none",
                _prose((inspect.getdoc(kind) or "").replace("\n\n", " ").replace("\n", " ")),
            ]
        )
    return _wide(table(["kind", "needs", "may have", "one of", "meaning"], rows))


def link_keys() -> str:
    """Which keys of a `link` go with each way of reading."""
    rows = [[code(reads), _codes(NEEDED[reads]), _codes(OPTIONAL[reads])] for reads in NEEDED]
    return table(["reads", "needs", "may have"], rows)


def _codes(names: Iterable[str]) -> Markup:
    return Markup(", ".join(code(name) for name in sorted(names)))


def macro_reference(macros: Mapping[str, Callable[..., str]], given: tuple[type, ...]) -> str:
    """Every macro with its arguments and docstring; `given` are types of what a page does not
    pass itself. Markdown."""
    return "\n\n".join(_macro(name, function, given) for name, function in sorted(macros.items()))


def _macro(name: str, function: Callable[..., str], given: tuple[type, ...]) -> str:
    names = {kind.__name__ for kind in given}
    parameters = [
        str(parameter.replace(annotation=inspect.Parameter.empty))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.annotation not in names
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


def program_reference(studies: Mapping[str, Study]) -> str:
    """What `--help` says of every program; of the one that runs a variant, for some variant."""
    # A study with constants shows every sort of option.
    study = next(filter(lambda one: one.constants, studies.values()), next(iter(studies.values())))
    parsers = [*programs(study, study.variants[0]), report.command_line()]
    return "\n\n".join(_program(parser) for parser in parsers)


def _program(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = functools.partial(argparse.HelpFormatter, width=HELP_COLUMNS)
    name = parser.prog.split()[2]
    return f"### `python -m {name}`\n\n``` text\n{parser.format_help().strip()}\n```"
