"""The reference of what a contributor writes and runs, from types, docstrings and parsers.

python -m analysis.site.pages.reference    write the JSON schemas of study.yaml and config.yaml
"""

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup
from pydantic.json_schema import GenerateJsonSchema

from analysis import ROOT
from analysis.base.cli import fail_in_one_line
from analysis.base.keys import adapter
from analysis.site.interface import FILES
from analysis.site.pages.html import code, fenced, prose, table
from analysis.site.pages.page import MACROS, Page, macro
from analysis.study.access import READS, WORDS, Access
from analysis.study.claims.claim import BOUNDS
from analysis.study.claims.kinds import KINDS
from analysis.study.config import Settings
from analysis.study.keys import StudyKeys

Schema = Mapping[str, Any]

PROSE: Final = Markup('<div class="hp-prose">{}</div>')
"""Of a table whose last column is prose, which stays readable on a narrow screen."""
_LIMITS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


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
    """`schema` with references replaced by their definitions, and without null where a key may be
    left out."""
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
    return schema


def study_schema() -> Schema:
    """All keys of study.yaml, those of a `link` and of every kind of comparison among them."""
    schema = schema_of(StudyKeys)
    link = schema["properties"]["variants"]["items"]["properties"]["link"]
    keys = schema_of(Access)["properties"]
    values: dict[str, Schema] = {
        **{name: {"type": ["string", "integer"]} for name in keys},
        **{name: {"type": "string"} for name in WORDS},
        "reads": {"enum": [*READS]},
    }
    link["title"], link["required"] = "Link", ["reads"]
    link["properties"] = {
        name: {"description": one["description"], **values[name]} for name, one in keys.items()
    }
    return schema


@macro
def keys(page: Page, file: str) -> str:
    """Every key of a file that contributors write, with its type and meaning.

    file: `study.yaml` or `config.yaml`
    """
    return schema_reference(study_schema() if file == "study.yaml" else schema_of(Settings))


def schema_reference(schema: Schema) -> str:
    """A table of keys for every mapping that a schema describes, each once; Markdown."""
    shown: dict[str, str] = {}
    for path, mapping in _mappings(schema, ""):
        rows = [
            {
                "key": code(key),
                "type": _type(part),
                "default": _default(part, is_required=key in mapping.get("required", [])),
                "meaning": prose(part["description"]),
            }
            for key, part in mapping["properties"].items()
        ]
        heading = f"### `{path}`\n\n" if path else ""
        shown.setdefault(str(mapping["properties"]), heading + PROSE.format(table(rows)))
    return "\n\n".join(shown.values())


def _mappings(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """(path, schema) of every mapping with named keys, from the outside in."""
    keys = schema.get("properties", {})
    if keys:
        yield path, schema
    inner = [(f"{path}.{key}".strip("."), one) for key, one in keys.items()]
    inner += [(f"{path}.<name>", one) for one in _values(schema)]
    inner += [(f"{path}[]", schema["items"])] if "items" in schema else []
    for place, part in inner:
        yield from _mappings(part, place)


def _values(schema: Schema) -> list[Schema]:
    """Schemas of the values of a mapping whose keys the file names."""
    found = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    return [part for part in found if isinstance(part, dict)]


def _default(schema: Schema, *, is_required: bool) -> str:
    value = "required" if is_required else schema.get("default")
    return "" if value is None else code(str(value).lower() if isinstance(value, bool) else value)


def _type(schema: Schema) -> str:
    """A value of `schema`, in the words of JSON Schema, or the values that it lists."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    kind = schema["type"]
    if kind == "array":
        return f"list of {_type(schema.get('items') or schema['prefixItems'][0])}"
    if kind == "object":
        inner = [_type(part) for part in _values(schema) if "properties" not in part]
        return f"mapping of {inner[0]}" if inner else "mapping"
    words = schema.get("title") or " or ".join([kind] if isinstance(kind, str) else kind)
    limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
    return ", ".join([words, *limits])


@macro
def columns(page: Page, file: str) -> str:
    """The columns of a file of results or of a table, in their order.

    file: name of the file in the contract, such as `summary.csv`
    """
    return ", ".join(code(column) for column in FILES[file])


@macro
def claim_kinds(page: Page) -> Markup:
    """Every kind of comparison that a claim may make, with its keys."""
    rows = (
        {
            "kind": code(name),
            "needs": ", ".join(sorted(kind.needs)),
            "may have": ", ".join(sorted({"case", "in_each", *kind.may_have})),
            "one of": ", ".join(BOUNDS) if kind.is_bounded else "none",
            "meaning": prose(kind.about),
        }
        for name, kind in KINDS.items()
    )
    return PROSE.format(table(rows))


@macro
def link_keys(page: Page) -> Markup:
    """The keys of a `link` for each way of reading host memory."""
    return table(
        {
            "reads": code(reads),
            "needs": ", ".join(sorted(needed)),
            "may have": ", ".join(sorted(optional)),
        }
        for reads, (needed, optional) in READS.items()
    )


@macro
def macro_list(page: Page) -> str:
    """Every macro with its arguments, as on this page."""
    parts = []
    for name, function in sorted(MACROS.items()):
        _, *parameters = inspect.signature(function).parameters.values()
        written = ", ".join(str(one.replace(annotation=one.empty)) for one in parameters)
        about = fenced(inspect.getdoc(function) or "", "text")
        parts.append(f"### `{name}({written})` {{#macro-{name}}}\n\n{about}")
    return "\n\n".join(parts)


def schemas() -> dict[str, str]:
    """The text of each file, by its name in config/."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found = {"study": study_schema(), "config": schema_of(Settings)}
    texts = {name: json.dumps({**draft, **one}, indent=1) for name, one in found.items()}
    return {f"{name}.schema.json": f"{text}\n" for name, text in texts.items()}


def main() -> None:
    for name, text in schemas().items():
        (ROOT / "config" / name).write_text(text)


if __name__ == "__main__":
    fail_in_one_line(main)
