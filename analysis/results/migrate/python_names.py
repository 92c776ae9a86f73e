"""Syntax trees in which names do not matter: those of local variables, and those of functions and
constants that only one file uses.

Parameters, classes and attributes keep their names, which other files may use: python_renames.py
compares these.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Final

INSPECTORS: Final = {"locals", "vars", "eval", "exec", "globals"}
"""Functions that can see the name of a variable."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_names(
    tree: ast.Module, others: Iterable[ast.Module], entry_points: Collection[str]
) -> ast.Module:
    """A copy of `tree` with numbers for names that only it uses.

    `others` are the trees of all timed files, which may use its functions; `entry_points` are names
    that something else uses.
    """
    tree = deepcopy(tree)
    bound = set(_module_names(tree))
    for function in _outermost_functions(tree):
        _rename(function, _numbered("local", _local_names(function, bound | set(dir(builtins)))))
    _rename(tree, _numbered("global", _file_names(tree, {*entry_points, *_asked_for(others)})))
    return tree


def _numbered(kind: str, names: Iterable[str]) -> dict[str, str]:
    return {name: f"{kind} {number}" for number, name in enumerate(dict.fromkeys(names))}


def _rename(tree: ast.AST, names: Mapping[str, str]) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, Function):
            node.name = names.get(node.name, node.name)


def _outermost_functions(tree: ast.Module | ast.ClassDef) -> Iterator[Function]:
    """Functions and methods that are not in another function."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _outermost_functions(node)


def _local_names(function: Function, taken: Collection[str]) -> list[str]:
    """Variables of the function and those in it, in the order of their first use."""
    nodes = list(ast.walk(function))
    used = [node.id for node in nodes if isinstance(node, ast.Name)]
    if INSPECTORS & set(used) or any(isinstance(node, ast.ClassDef) for node in nodes):
        return []
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and _is_stored(node)}
    kept = {*taken, *(name for node in nodes for name in _bound_otherwise(node))}
    return [name for name in used if name in stored - kept]


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _bound_otherwise(node: ast.AST) -> Iterator[str]:
    """Names that a node binds or declares and that is no ast.Name."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (Function, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""


def _module_names(tree: ast.Module) -> Iterator[str]:
    """Names that the file itself defines or imports, anywhere outside of its functions."""
    for statement in tree.body:
        if isinstance(statement, (Function, ast.ClassDef)):
            yield statement.name
        else:
            for node in ast.walk(statement):
                yield from _bound_otherwise(node)
                if isinstance(node, ast.Name) and _is_stored(node):
                    yield node.id
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


def _file_names(tree: ast.Module, kept: Collection[str]) -> list[str]:
    """Functions and constants of the file, in their order, that nothing else asks for."""
    defined: list[str] = []
    for statement in tree.body:
        if isinstance(statement, Function):
            defined.append(statement.name)
        elif isinstance(statement, ast.Assign):
            defined += [each.id for each in statement.targets if isinstance(each, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            defined.append(statement.target.id)
    inner = {name for part in tree.body for name in _inner_names(part)}
    return [name for name in defined if name not in kept and name not in inner]


def _inner_names(statement: ast.stmt) -> Iterator[str]:
    """Names that are bound inside a function or class of the file, or by another statement than a
    definition, so that they may hide one of the file."""
    is_definition = isinstance(statement, (ast.Assign, ast.AnnAssign))
    for node in ast.walk(statement):
        if node is statement and isinstance(node, Function):
            continue
        yield from _bound_otherwise(node)
        if isinstance(node, ast.Name) and _is_stored(node) and not is_definition:
            yield node.id


def _asked_for(trees: Iterable[ast.Module]) -> Iterator[str]:
    """Names that a file imports from another one of the study, or asks for as an attribute or by a
    string."""
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
