"""Reads plain files, YAML and JSON; what is wrong with a file becomes one clear error.

No link is followed, no device or pipe opened, and no more read than a limit.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

import yaml

from analysis.base.errors import HotpathError

LIMIT_BYTES: Final = 16 * 2**20
_KINDS: Final = {"-": "plain file", "d": "folder", "l": "link", "p": "pipe", "s": "socket"}


class _Loader(yaml.CSafeLoader):
    """Refuses a repeated key: YAML would silently keep the last value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"expected every key once, got {key.value!r} again"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
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

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise ValueError(f"every key once, got {max(keys, key=keys.count)!r} again")
        return dict(pairs)

    text = read_text(path, limit)
    try:
        data = json.loads(text, object_pairs_hook=members)
        # Control characters and halves of surrogates are escapes here, and other text is itself.
        again = json.dumps(data, ensure_ascii=False, allow_nan=False)
        if not again.isprintable() or "\\u00" in again:
            raise ValueError("expected text that can be shown")
    except (ValueError, RecursionError) as error:
        raise HotpathError(f"{path}: not valid JSON: {error}") from error
    return data


def read_bytes(path: Path, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a plain file; HotpathError if it is another kind of file or beyond `limit`."""
    try:
        status = require_kind(path, "-")
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


def require_kind(path: Path, kind: str) -> os.stat_result:
    """The status of a path; HotpathError unless it is of this kind: `-` a plain file, `d` a folder,
    neither of them through a link."""
    status = path.lstat()
    if (got := stat.filemode(status.st_mode)[0]) != kind:
        raise HotpathError(f"{path}: expected a {_KINDS[kind]}, got a {_KINDS.get(got, 'device')}")
    return status
