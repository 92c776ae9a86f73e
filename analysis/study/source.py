"""The code that a result depends on: a hash over the tokens of a variant's sources and its flags.

Comments, docstrings, white space, paths and the architecture are not part of it. The hash is
therefore the same on every machine and does not change when the code is reformatted.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pygments.lexer import include
from pygments.lexers.c_cpp import CppLexer
from pygments.token import Comment, String, Text

from analysis.study import Study, Variant

_LOOSE_SPACE = re.compile(
    r"(?<![\w\0]) (?=[\w\0])"  # before a word (or a string, held as \0) that follows a non-word
    r"|(?<=[\w\0]) (?![\w\0])"  # after a word that a non-word follows
    r"|(?<=[^-+<>&|=*/%!^]) (?=\W)"  # after a character that cannot begin a longer operator
    r"| $"
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_IMPORT = re.compile(r"^from \.(\w+) import ", re.MULTILINE)


def source_files(study: Study, variant: Variant) -> list[Path]:
    """The variant's file, the study's bindings and workload, and the files of the study that they
    include: headers, and Python files imported as `from .other import ...`.
    """
    return _sources(study, variant, leave_out=())


def bindings_files(study: Study) -> list[Path]:
    """The study's bindings and all files that they include, from any folder; none without them."""
    return with_includes(study.bindings) if study.bindings else []


def with_includes(path: Path) -> list[Path]:
    """The file, and the project's files that it includes, directly or not."""
    return list(_with_includes(path, set()))


def timed_files(study: Study, variant: Variant) -> list[Path]:
    """Files that a result depends on: sources and other timed files, without files of tests."""
    return [*_sources(study, variant, leave_out=study.tests), *variant.timed]


def _sources(study: Study, variant: Variant, leave_out: Collection[Path]) -> list[Path]:
    roots = [variant.path, study.folder / f"{variant.workload}.py"]
    if variant.is_compiled and study.bindings:
        roots.append(study.bindings)
    found: dict[Path, None] = {}
    for root in roots:
        if root.exists():
            found.update(dict.fromkeys(_with_includes(root, set(leave_out))))
    return list(found)


def _with_includes(path: Path, seen: set[Path]) -> Iterator[Path]:
    if path in seen:
        return
    seen.add(path)
    yield path
    for file in _included(path, path.stat().st_mtime_ns):
        if file.exists():
            yield from _with_includes(file, seen)


@cache
def _included(path: Path, _modified: int) -> list[Path]:
    """Files that `path` includes or imports, if they may belong to a study."""
    text = path.read_text()
    if path.suffix == ".py":
        names = [f"{name}.py" for name in _IMPORT.findall(text)]
    else:
        names = _INCLUDE.findall(text)
    return [(path.parent / name).resolve() for name in names]


def fingerprint(study: Study, variant: Variant) -> str:
    """SHA-256 in hex of the variant's tokens and of the settings in study.yaml that affect its
    times.

    These are flags, constants, options, role (a ceiling moves contiguous bytes), host_work and
    clock.
    """
    settings = [*_compile_settings(variant), variant.role, variant.host_work, variant.clock]
    settings += [dict(variant.options)] if variant.options else []  # older hashes have no options
    return _hash(timed_files(study, variant), settings)


def compiled_fingerprint(study: Study, variant: Variant) -> str:
    """SHA-256 in hex of the input of a variant's machine code: C++ and CUDA tokens, and settings of
    the compilers."""
    files = [path for path in source_files(study, variant) if path.suffix != ".py"]
    return _hash(files, [*_compile_settings(variant), dict(variant.options)])


def _compile_settings(variant: Variant) -> list[object]:
    return [list(variant.flags), dict(variant.constants)]


def _hash(files: Iterable[Path], settings: object) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"\0{path.name}\0".encode())
        digest.update(_tokens(path, path.stat().st_mtime_ns).encode())
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


@cache
def _tokens(path: Path, _modified: int) -> str:
    text = path.read_text()
    return normalise_python(text) if path.suffix == ".py" else normalise_cpp(text)


class CoarseCpp(CppLexer):  # type: ignore[misc]
    """Splits C++ into comments, strings, directives and a few large tokens. Every command computes
    hashes first, and this takes a tenth of the time of a full lexer."""

    tokens: ClassVar = {
        "root": [
            # Words that no literal continues, operators, and space that no directive follows.
            (r"([\w$]+(?![\w$'\"])|[^\w$\s/\"'#\\]|[ \t]+(?![ \t#/])|\n(?!\s*[#/]))+", Text),
            include("whitespace"),
            include("statements"),
            (r"[{};]", Text),
        ]
    }


def normalise_cpp(text: str) -> str:
    """`text` without comments and without insignificant white space.

    White space is significant in string literals, between two words or two operators, and in and
    after preprocessor directives, where a space can change a macro.
    """
    strings: list[str] = []

    def held(literal: str) -> str:
        strings.append(literal)
        return f"\0{len(strings) - 1}\0"

    def kept(kind: Any, value: str) -> str:
        if kind in Comment and kind not in (Comment.Preproc, Comment.PreprocFile):
            return "\n" if value.endswith("\n") else " "  # line comments include the line's end
        return held(value) if kind in String else value

    code = "".join(kept(kind, value) for kind, value in CoarseCpp().get_tokens(text))
    lines = []
    for line in code.replace("\\\n", " ").splitlines():
        words = " ".join(line.split())
        if not words:
            continue
        lines.append(f"\n{words}\n" if words.startswith("#") else f"{words} ")
    squeezed = "".join(_squeeze(part) for part in re.split(r"(\n#.*\n)", "".join(lines)))
    return re.sub("\0(\\d+)\0", lambda found: strings[int(found[1])], squeezed)


def _squeeze(code: str) -> str:
    """Drop every space that does not separate two words or two operators."""
    if code.startswith("\n#"):
        return code
    return _LOOSE_SPACE.sub("", code)


def normalise_python(text: str) -> str:
    """`text` as logical lines of tokens with their indentation, without comments and docstrings.

    A statement that consists only of strings has no effect, so it counts as a docstring. Of
    imports from the engine only the names remain, so that its modules can move.
    """
    lines = text.splitlines(keepends=True)
    depth, f_strings = 0, 0
    statement: list[str] = []
    only_strings = True
    statements = []
    from_engine: set[str] = set()
    begin = (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            begin = token.start if f_strings == 0 else begin
            f_strings += 1
        elif name == "FSTRING_END":
            f_strings -= 1
            if f_strings == 0:
                only_strings = False
                statement.append(_between(lines, begin, token.end))
        elif f_strings or name in ("COMMENT", "NL", "ENDMARKER"):
            continue
        elif name in ("INDENT", "DEDENT"):
            depth += 1 if name == "INDENT" else -1
        elif name == "NEWLINE":
            if statement[:2] == ["from", "analysis"]:
                from_engine.update(_imported_names(statement))
            elif not only_strings:
                statements.append(f"{depth}:{' '.join(statement)}")
            statement, only_strings = [], True
        else:
            is_plain_string = name == "STRING" and token.string[0] not in "fF"
            only_strings = only_strings and is_plain_string
            statement.append(token.string)
    return "\n".join([*sorted(from_engine), *statements])


def _imported_names(statement: Sequence[str]) -> list[str]:
    """The names that the tokens of a `from … import …` bind, as `name` or `name as other`."""
    names = " ".join(statement[statement.index("import") + 1 :]).strip("() ")
    return [f"engine: {name.strip()}" for name in names.split(",") if name.strip()]


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The source from one (row, column) to another; rows count from 1."""
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    middle = lines[start[0] : end[0] - 1]
    return lines[start[0] - 1][start[1] :] + "".join(middle) + lines[end[0] - 1][: end[1]]
