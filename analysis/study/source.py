"""The code that a result depends on: a hash of a variant's sources and of its flags.

The sources are the variant's file, the study's bindings and workload, and every file that these
include or import from the repository, at any depth. The engine, `analysis`, is not among them: what
of it can change a figure counts by METHOD_VERSION.

Comments, docstrings, white space, paths and the architecture are not part of the hash. It is
therefore the same on every machine and does not change when the code is reformatted.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeGuard

from analysis.study import Study, Variant
from analysis.study.peers import releases

ENGINE: Final = "analysis"
CPP_SUFFIXES: Final = (".cpp", ".cu", ".h")

_LOOSE_SPACE = re.compile(
    r"(?<![\w\0]) (?=[\w\0])"  # before a word (or a string, held as \0) that follows a non-word
    r"|(?<=[\w\0]) (?![\w\0])"  # after a word that a non-word follows
    r"|(?<=[^-+<>&|=*/%!^]) (?=\W)"  # after a character that cannot begin a longer operator
    r"| $"
)
_CPP_TOKEN = re.compile(
    r"//(?:\\\n|[^\n])*\n?|/\*.*?\*/"  # comments
    r'|R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\])*"'  # strings
    r"|(?:(?<=\bu8)|(?<![0-9a-fA-F]))'(?:\\.|[^'\\])+'",  # characters, but no 1'000
    re.DOTALL,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def source_files(study: Study, variant: Variant) -> list[Path]:
    """The files that a result depends on: the variant's file, the study's workload and bindings,
    and all files of the repository, except the engine, that they include or import."""
    roots = [variant.path, study.folder / f"{variant.workload}.py"]
    if variant.is_compiled and study.bindings:
        roots.append(study.bindings)
    return _closure(roots, study.root)


def study_files(study: Study) -> list[Path]:
    """All files in the study's folder, and all files of the repository, except the engine, that
    they include or import."""
    files = (path for path in sorted(study.folder.rglob("*.*")) if path.is_file())
    return _closure([path for path in files if "__pycache__" not in path.parts], study.root)


def included_files(path: Path) -> list[Path]:
    """A C++ file and all files that it includes, from any folder."""
    return _closure([path], path.parent)


def bindings_files(study: Study) -> list[Path]:
    """The study's bindings and all files that they include; none without them."""
    return included_files(study.bindings) if study.bindings else []


def module_files(study: Study, variant: Variant) -> list[Path]:
    """The C++ and CUDA files that a module is compiled from."""
    return list(dict.fromkeys([*included_files(variant.path), *bindings_files(study)]))


def used_macros(
    path: Path, macros: Mapping[str, int | str], flags: Iterable[str] = ()
) -> dict[str, int | str]:
    """Constants and options whose macros a C++ file names, or a file that it includes, a flag or
    another option."""
    texts = [*map(_text, included_files(path)), *flags, *map(str, macros.values())]
    used = frozenset().union(*map(_words, texts))
    return {name: value for name, value in macros.items() if name.upper() in used}


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def _closure(roots: Iterable[Path], repository: Path) -> list[Path]:
    """`roots` and all files that they include or import, each once, in the order of first use."""
    found: dict[Path, None] = {}

    def add(paths: Iterable[Path]) -> None:
        for path in paths:
            if path not in found and path.is_file():
                found[path] = None
                add(_used_files(path, _text(path), repository))

    add(roots)
    return list(found)


def _text(path: Path) -> str:
    status = path.stat()
    return _read(path, status.st_ino, status.st_mtime_ns, status.st_size)


@cache
def _read(path: Path, *version: int) -> str:
    """The text of a file that has not changed since: most variants share most of their files."""
    return path.read_text("utf-8", "surrogateescape")


@cache
def _used_files(path: Path, text: str, repository: Path) -> list[Path]:
    """Where the files may lie that `path` includes or imports.

    Only a module has a file, but an import does not say whether a name is that of a module.
    """
    if path.suffix in CPP_SUFFIXES:
        return [(path.parent / name).resolve() for name in _INCLUDE.findall(text)]
    used: dict[Path, None] = {}
    for node in ast.walk(_parsed(text)) if path.suffix == ".py" else ():
        folder, modules = repository, list[str]()
        if isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not _is_of_engine(node):
            folder = path.parents[node.level - 1] if node.level else repository
            modules = [f"{node.module or ''}.{name.name}" for name in node.names]
        for module in modules:
            base = folder
            for part in module.strip(".").split("."):
                base /= part
                used |= dict.fromkeys((base.with_suffix(".py"), base / "__init__.py"))
                if not base.is_dir():
                    break  # the other parts are names in a module, or of another project
    return list(used)


def fingerprint(study: Study, variant: Variant) -> str:
    """SHA-256 in hex of the variant's sources and of the settings in study.yaml that affect its
    times.

    These are flags, constants, options, role (a ceiling moves contiguous bytes), host_work, clock
    and the versions of packages.
    """
    settings = [*_compile_settings(variant), variant.role, variant.host_work, variant.clock]
    if variant.packages:
        settings.append({name: releases()[name] for name in variant.packages})
    return _hash(source_files(study, variant), settings)


def compiled_fingerprint(study: Study, variant: Variant) -> str:
    """SHA-256 in hex of the input of a variant's machine code: C++ and CUDA tokens, and settings of
    the compilers."""
    return _hash(module_files(study, variant), _compile_settings(variant))


def _compile_settings(variant: Variant) -> list[object]:
    return [list(variant.flags), dict(variant.constants), dict(variant.options)]


def _hash(files: Iterable[Path], settings: object) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"\0{path.name}\0".encode())
        normal = normalise_python if path.suffix == ".py" else normalise_cpp
        digest.update(normal(_text(path)).encode("utf-8", "surrogateescape"))
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


@cache
def _parsed(text: str) -> ast.Module:
    """The syntax tree. A text that is no Python counts as it is: it stops only its study, when a
    round imports it."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.parse(f"unparsed = {text!r}")


@cache
def normalise_cpp(text: str) -> str:
    """`text` without comments and without insignificant white space.

    White space is significant in literals, between two words or two operators, and in and after
    preprocessor directives, where a space can change a macro.
    """
    literals: list[str] = []

    def kept(found: re.Match[str]) -> str:
        if found[0].startswith(("//", "/*")):
            return "\n" if found[0].endswith("\n") else " "  # of a line comment, the line's end
        literals.append(found[0])
        return f"\0{len(literals) - 1}\0"

    lines = []
    for line in _CPP_TOKEN.sub(kept, text).replace("\\\n", " ").splitlines():
        if words := " ".join(line.split()):
            lines.append(f"\n{words}\n" if words.startswith("#") else f"{words} ")
    squeezed = "".join(
        part if part.startswith("\n#") else _LOOSE_SPACE.sub("", part)
        for part in re.split(r"(\n#.*\n)", "".join(lines))
    )
    return re.sub("\0(\\d+)\0", lambda found: literals[int(found[1])], squeezed)


@cache
def normalise_python(text: str) -> str:
    """The syntax tree of `text` without docstrings.

    A statement that is only a string has no effect, so it counts as a docstring. Of imports from
    the engine only the names remain, so that its modules can move.
    """
    module = _parsed(text)
    imports = [node for node in ast.walk(module) if _is_of_engine(node)]
    names = {f"{name.name} as {name.asname}" for node in imports for name in node.names}
    return "\n".join([*sorted(names), _written(module.body)])


def _is_of_engine(node: object) -> TypeGuard[ast.ImportFrom]:
    """Whether `node` is a `from analysis.… import …`; studies import nothing as a whole module."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.level == 0
        and f"{node.module}.".startswith(f"{ENGINE}.")
    )


def _written(node: object) -> str:
    """A part of a syntax tree as text, which is the same in every version of Python."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return ""
        case ast.ImportFrom() if _is_of_engine(node):
            return ""
        case list():
            return f"[{','.join(filter(None, map(_written, node)))}]"
        case ast.AST():
            # Newer versions have more fields, which are empty in programs for older ones.
            fields = [
                f"{name}={_written(value)}"
                for name, value in ast.iter_fields(node)
                if value is not None and value != []
            ]
            return f"{type(node).__name__}({','.join(fields)})"
    return repr(node)
