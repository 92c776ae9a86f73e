"""Compares the timed code of Python files: their syntax trees without what is not timed.

Left out are docstrings, and what only verifies outputs: methods called `check`, unless something
else asks for one, and functions, constants and imports that nothing else mentions. A check runs
before the times are taken, and what it leaves in caches is flushed. Names do not matter where only
the timed files use them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from analysis.results.migrate.host_code import Different
from analysis.results.migrate.python_names import without_names
from analysis.results.migrate.python_renames import undo_renames

VERIFIES: Final = "check"
"""The method of an operation that verifies its output."""
ENTRY_POINTS: Final = {"Workload"}
"""Names that the engine imports from a study."""


def compare_python(
    old: Mapping[str, Path], new: Mapping[str, Path], moved: Callable[[str], str] = str
) -> bytes:
    """Compare files by name; returns what was compared. Raises Different with the first one that
    differs. `moved` gives the path that a file of `old` has today."""
    if old.keys() != new.keys():
        names = sorted(old.keys() ^ new.keys())
        raise Different(f"{names[0]}: it is timed in one of the two only")
    trees = _timed_trees(old, moved), _timed_trees(new)
    compared = _without_names(trees[0]), _without_names(trees[1])
    undo_renames(*compared)
    for name in compared[0]:
        bodies = compared[0][name].body, compared[1][name].body
        for statement, one, other in zip(trees[0][name].body, *bodies, strict=False):
            if ast.dump(one) != ast.dump(other):
                raise Different(f"{name}: {_named(statement)}")
        if len(bodies[0]) != len(bodies[1]):
            longer = max((tree[name].body for tree in trees), key=len)
            raise Different(f"{name}: {_named(longer[min(map(len, bodies))])}")
    return "\0".join(map(ast.dump, compared[0].values())).encode()


def _without_names(trees: Mapping[str, ast.Module]) -> dict[str, ast.Module]:
    return {
        name: without_names(trees[name], trees.values(), ENTRY_POINTS) for name in sorted(trees)
    }


def _named(statement: ast.stmt) -> str:
    return getattr(statement, "name", "") or ast.unparse(statement).splitlines()[0]


def _timed_trees(
    files: Mapping[str, Path], moved: Callable[[str], str] = str
) -> dict[str, ast.Module]:
    """The syntax trees of the files without the parts that are not timed."""
    trees = _trees(files, moved)
    for tree in trees.values():
        _drop_checks(tree)
    if VERIFIES in _mentioned(trees.values()):
        trees = _trees(files, moved)  # something else than a check asks for one, so it may be timed
    # Names that only a dropped part mentioned are dropped in turn.
    while True:
        mentioned = _mentioned(trees.values())
        sizes = [_drop_unmentioned(tree, mentioned) for tree in trees.values()]
        if not any(sizes):
            return trees


def _trees(files: Mapping[str, Path], moved: Callable[[str], str]) -> dict[str, ast.Module]:
    trees = {name: ast.parse(path.read_text()) for name, path in files.items()}
    for tree in trees.values():
        _drop_docstrings(tree)
        _gather_engine_imports(tree)
        _follow_moved_modules(tree, moved)
    return trees


def _gather_engine_imports(tree: ast.Module) -> None:
    """Import all names of the engine by one statement at the top, wherever they are imported, so
    that the engine's modules can move."""
    found = [node for node in ast.walk(tree) if _imports_engine(node)]
    names = {(each.name, each.asname) for node in found for each in node.names}  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and any(map(_imports_engine, body)):
            node.body = [each for each in body if not _imports_engine(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    aliases = [ast.alias(*name) for name in sorted(names, key=str)]
    if aliases:
        tree.body.insert(0, ast.ImportFrom("analysis", aliases, 0))


def _follow_moved_modules(tree: ast.Module, moved: Callable[[str], str]) -> None:
    """Import from the modules that files of other studies are today."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            today = moved(f"{node.module.replace('.', '/')}.py")
            node.module = today.removesuffix(".py").replace("/", ".")


def _imports_engine(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.ImportFrom)
        and node.level == 0
        and (node.module or "").partition(".")[0] == "analysis"
    )


def _drop_unmentioned(tree: ast.Module, mentioned: Collection[str]) -> int:
    """Drop what the file defines or imports and nothing mentions; how many of these there were."""
    kept: list[ast.stmt] = []
    dropped = 0
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [each for each in statement.names if _bound(each) in mentioned]
            dropped += len(statement.names) - len(names)
            statement.names = names
            kept += [statement] if names else []
        elif _defined(statement) <= ENTRY_POINTS | set(mentioned):
            kept.append(statement)
        else:
            dropped += 1
    tree.body = kept
    return dropped


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement gives something; empty for one that does anything else."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    if isinstance(statement, ast.Assign):
        targets = [each for each in statement.targets if isinstance(each, ast.Name)]
        return {each.id for each in targets} if len(targets) == len(statement.targets) else set()
    return set()


def _drop_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [s for s in body if not _is_only_a_string(s)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]


def _is_only_a_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _drop_checks(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body = [s for s in node.body if getattr(s, "name", "") != VERIFIES] or [ast.Pass()]


def _mentioned(trees: Iterable[ast.Module]) -> set[str]:
    """Every name that is read or asked for, also as a string; what defines one does not count."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.update(alias.name for alias in node.names)
    return found
