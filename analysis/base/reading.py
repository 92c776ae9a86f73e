"""Reads plain files, YAML and JSON; what is wrong with a file becomes one clear error.

No link is followed, no device or pipe opened, and no more read than a limit.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, Final

import yaml

from analysis.base.errors import HotpathError

LIMIT_BYTES: Final = 16 * 2**20

_SafeLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader of yaml.safe_load, or a much faster one if PyYAML has its C library."""


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Refuses a repeated key: YAML would silently keep the last value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        first = {key.value: key for key in reversed(keys)}
        if repeated := [key for key in keys if first[key.value] is not key]:
            problem = f"expected every key once, got {repeated[0].value!r} again"
            mark = repeated[0].start_mark
            raise yaml.constructor.ConstructorError(None, None, problem, mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """The parsed file. HotpathError names the file if it cannot be read or parsed."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML names the text, and has a line for each place in it.
        message = " ".join(str(error).replace('"<unicode string>", ', "").split())
        raise HotpathError(f"{path}: not valid YAML: {message}") from error


def read_json(path: Path, limit: int = LIMIT_BYTES) -> Any:
    """The parsed file. HotpathError names the file, and where it is no JSON the line; an object
    with a key twice, a number that is not finite and text that cannot be shown are none either."""
    text = read_text(path, limit)
    try:
        data = json.loads(
            text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite
        )
        _refuse_hidden(data)
    except (ValueError, RecursionError) as error:
        raise HotpathError(f"{path}: not valid JSON: {error}") from error
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"every key once, got {max(keys, key=keys.count)!r} again")
    return members


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"expected a finite number, got {text}")
    return value


def _refuse_hidden(data: Any) -> None:
    """ValueError for text within `data` that cannot be shown."""
    if isinstance(data, str) and not data.replace("\n", "").replace("\t", "").isprintable():
        raise ValueError(f"expected text that can be shown, got {data!r}")
    if isinstance(data, dict | list):
        for part in (*data, *(data.values() if isinstance(data, dict) else ())):
            _refuse_hidden(part)


def read_bytes(path: Path, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a plain file; HotpathError if it is another kind of file or beyond `limit`."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise HotpathError(f"{path}: expected a plain file, got {_kind(status)}")
        if status.st_size > limit:
            raise HotpathError(f"{path}: expected at most {limit} bytes, got {status.st_size}")
        # If the file was replaced meanwhile: follow no link and wait for no pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """The UTF-8 text of a plain file; HotpathError as of `read_bytes`, or for another encoding."""
    return decoded(path, read_bytes(path, limit))


def decoded(path: Path, content: bytes) -> str:
    """`content` as text; HotpathError with file and line where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise HotpathError(f"{path}: line {line}: not UTF-8") from error


def require_folder(path: Path) -> None:
    """HotpathError unless `path` is a folder and no link to one."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise HotpathError(f"{path}: expected a folder, got {_kind(status)}")


def _kind(status: os.stat_result) -> str:
    """The kind of file, in words."""
    kinds = {"-": "a plain file", "d": "a folder", "l": "a link", "p": "a pipe", "s": "a socket"}
    return kinds.get(stat.filemode(status.st_mode)[0], "a device")
