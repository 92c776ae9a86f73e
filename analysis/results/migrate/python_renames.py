"""Undoes renames of classes, functions and attributes that a study defines.

Old and new names must correspond one to one in all timed files together. A name in a string must
stay, and so must one that the engine mentions, since it may be looked up from outside. Parameters
keep their names, too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from enum import Enum, auto
from functools import cache
from typing import Any, Final, NamedTuple

from analysis import ROOT

FIELDS: Final[Mapping[type[ast.AST], tuple[str, ...]]] = {
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
    ast.arg: ("arg",),
    ast.keyword: ("arg",),
    ast.FunctionDef: ("name",),
    ast.AsyncFunctionDef: ("name",),
    ast.ClassDef: ("name",),
    ast.MatchClass: ("kwd_attrs",),
    ast.alias: ("name",),
}
"""Fields that hold names, by the type of the node."""


class Kind(Enum):
    """The kinds of things that a name stands for."""

    MEMBER = auto()
    PARAMETER = auto()
    GLOBAL = auto()


class Place(NamedTuple):
    """Where a name stands: the field of a node, and the position in it if that is a list."""

    name: str
    node: ast.AST
    field: str
    position: int | None

    def rename(self, name: str) -> None:
        if self.position is None:
            setattr(self.node, self.field, name)
        else:
            getattr(self.node, self.field)[self.position] = name


def undo_renames(old: Mapping[str, ast.Module], new: Mapping[str, ast.Module]) -> None:
    """Give the trees in `new`, which have the keys of `old`, the old names if these are all that
    differs and each may change; otherwise leave them alone."""
    for key, tree in new.items():
        _align_imports(old[key], tree)
    if any(_shape(old[key]) != _shape(new[key]) for key in old):
        return
    places = [(_places(old[key]), _places(new[key])) for key in old]
    pairs = [pair for both in places for pair in zip(*both, strict=True)]
    names = {(before.name, after.name) for before, after in pairs}
    changed = {pair for pair in names if pair[0] != pair[1]}
    is_one_to_one = len(names) == len({one for one, _ in names}) == len({one for _, one in names})
    if is_one_to_one and all(_may_change(old, new, *pair) for pair in changed):
        for before, after in pairs:
            after.rename(before.name)


def _may_change(
    old: Mapping[str, ast.Module], new: Mapping[str, ast.Module], before: str, after: str
) -> bool:
    """Whether a name is of one kind, the files define it, and nothing else can look it up."""
    kinds = [_kinds(trees)[name] for trees, name in ((old, before), (new, after))]
    fixed = _engine_names() | _strings(old.values()) | _strings(new.values())
    return (
        kinds in ([{Kind.MEMBER}, {Kind.MEMBER}], [{Kind.GLOBAL}, {Kind.GLOBAL}])
        and before in _defined(old.values())
        and not {before, after} & fixed
        and not (before.startswith("__") or after.startswith("__"))
    )


def _kinds(trees: Mapping[str, ast.Module]) -> dict[str, set[Kind]]:
    """The kinds of places of each name."""
    found: dict[str, set[Kind]] = defaultdict(set)
    for tree in trees.values():
        members = {id(node) for part in ast.walk(tree) for node in _members(part)}
        for place in _places(tree):
            if isinstance(place.node, (ast.arg, ast.keyword)):
                kind = Kind.PARAMETER
            elif (
                isinstance(place.node, (ast.Attribute, ast.MatchClass)) or id(place.node) in members
            ):
                kind = Kind.MEMBER
            else:
                kind = Kind.GLOBAL
            found[place.name].add(kind)
    return found


def _members(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that define a member in the body of a class."""
    for statement in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            yield from (
                statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            )


def _align_imports(old: ast.Module, new: ast.Module) -> None:
    """Order imported names as in `old`, since a new name is sorted elsewhere."""
    imports = [[n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)] for tree in (old, new)]
    for before, after in zip(*imports, strict=False):
        kept = {each.name: each for each in after.names if each.name in _names(before)}
        others = iter([each for each in after.names if each.name not in kept])
        if len(before.names) == len(after.names) == len(_names(after)):
            after.names = [kept.get(each.name) or next(others) for each in before.names]


def _names(statement: ast.ImportFrom) -> set[str]:
    return {each.name for each in statement.names}


def _shape(tree: ast.Module) -> str:
    """The syntax tree without its names."""
    tree = deepcopy(tree)
    for place in _places(tree):
        place.rename("")
    return ast.dump(tree)


def _places(tree: ast.AST) -> list[Place]:
    return [place for node in ast.walk(tree) for place in _places_of(node)]


def _places_of(node: ast.AST) -> Iterator[Place]:
    for field in FIELDS.get(type(node), ()):
        value: Any = getattr(node, field)
        if isinstance(value, list):
            yield from (Place(name, node, field, index) for index, name in enumerate(value))
        elif value is not None:
            yield Place(value, node, field, None)


def _defined(trees: Collection[ast.Module]) -> set[str]:
    """Classes, functions and variables of the files, members of the classes, and attributes that
    are assigned."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            is_assigned = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            defining = [*_members(node), *([node] if is_assigned else [])]
            found.update(place.name for each in defining for place in _places_of(each))
        for statement in tree.body:
            found.update(place.name for place in _places_of(statement))
    return found


def _strings(trees: Collection[ast.AST]) -> set[str]:
    nodes = (node for tree in trees for node in ast.walk(tree))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


@cache
def _engine_names() -> frozenset[str]:
    """Names that the code which calls a study may look up in it: attributes, functions, keywords,
    imports and strings, but no private names."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "analysis/measure").rglob("*.py")]
    nodes = (node for tree in trees for node in ast.walk(tree))
    asked = (ast.Attribute, ast.keyword, ast.FunctionDef, ast.alias)
    found = {place.name for n in nodes if isinstance(n, asked) for place in _places_of(n)}
    return frozenset(name for name in found | _strings(trees) if not name.startswith("_"))
