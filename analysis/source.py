"""Which code a result belongs to: a hash over the tokens of a variant's sources and its flags.

Comments, docstrings and white space do not count, nor do paths or the architecture, so the hash
is the same on every machine and survives a reformatting.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, String

from analysis.study import Study, Variant

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def source_files(study: Study, variant: Variant) -> list[Path]:
    """The variant's file, the study's bindings and workload, and every header they include."""
    roots = [variant.path, study.folder / "workload.py"]
    if variant.is_compiled and study.bindings:
        roots.append(study.bindings)
    found: dict[Path, None] = {}
    for root in roots:
        if root.exists():
            found.update(dict.fromkeys(_with_includes(root)))
    return list(found)


def _with_includes(path: Path) -> Iterator[Path]:
    yield path
    if path.suffix == ".py":
        return
    for name in _INCLUDE.findall(path.read_text()):
        header = (path.parent / name).resolve()
        if header.exists():
            yield from _with_includes(header)


def fingerprint(study: Study, variant: Variant) -> str:
    """SHA-256 in hex of the variant's tokens, and of its flags and constants in study.yaml."""
    digest = hashlib.sha256()
    for path in source_files(study, variant):
        digest.update(f"\0{path.name}\0".encode())
        digest.update(_tokens(path, path.stat().st_mtime_ns).encode())
    settings = [list(variant.flags), dict(variant.constants)]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


@cache
def _tokens(path: Path, _modified: int) -> str:
    text = path.read_text()
    return normalise_python(text) if path.suffix == ".py" else normalise_cpp(text)


def normalise_cpp(text: str) -> str:
    """`text` without comments and without white space outside string literals."""
    return "".join(
        value if kind in String else "".join(value.split())
        for kind, value in _lex(CppLexer(), text)
    )


def normalise_python(text: str) -> str:
    """`text` without comments, docstrings and blank lines; indentation stays, it has meaning."""
    kept = "".join(value for _, value in _lex(PythonLexer(), text))
    lines = (line.rstrip() for line in kept.splitlines())
    return "\n".join(
        f"{len(line) - len(line.lstrip())}:{''.join(line.split())}" for line in lines if line
    )


def _lex(lexer: Lexer, text: str) -> Iterator[tuple[Any, str]]:
    for kind, value in lexer.get_tokens(text):
        is_comment = kind in Comment and kind not in (Comment.Preproc, Comment.PreprocFile)
        if not is_comment and kind not in String.Doc:
            yield kind, value
