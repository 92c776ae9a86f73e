"""Submissions to spoil, and what is wrong with each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from analysis.results.store import METHOD_VERSION
from analysis.results.store.submission import FORMAT, SUBMISSION_LIMIT_BYTES
from analysis.results.store.submitted import code_digest, content_digest
from analysis.study.source import fingerprint
from tests.repository import STUDIES

STUDY: Final = "h2d_gather"
VARIANT: Final = "v3_loads_first"
HOSTILE: Final = "hostile"
SCRIPT: Final = "<script>hit(1)</script>"
FUTURE: Final = "2999-01-01T00:00:00Z"

Content = dict[str, Any]


def whole(name: str = HOSTILE) -> Content:
    """A submission of one variant, a parameter and the output of reach."""
    study = STUDIES[STUDY]
    variant = study.variant(VARIANT)
    case = study.shown_case(variant)
    seconds = case.payload_bytes / 48e9
    figures = {
        metric: {
            "unit": "s",
            "median": seconds,
            "low": seconds * 0.9,
            "high": seconds * 1.1,
            "by_run": [seconds * 0.99, seconds, seconds * 1.01],
            "hosts": 2,
        }
        for metric in ("gpu_time", "host_time")
    }
    content = {
        "format": FORMAT,
        "name": name,
        "measured": "2026-11-24T06:10:00Z",
        "method_version": METHOD_VERSION,
        "code": {"commit": "0" * 40, "dirty": False, "sha256": ""},
        "machine": {
            "gpu": "NVIDIA H200",
            "arch": "sm_90",
            "sms": 132,
            "driver": "580.159.04",
            "pcie_generation": 5,
            "pcie_width": 16,
            "cpu": "Intel(R) Xeon(R) Processor",
            "kernel": "6.18.44",
            "libraries": {"numpy": "2.5.5"},
        },
        "runs": [
            {"run": f"2026-11-24T06:0{minute}:00Z", "host": minute // 2 + 1} for minute in range(3)
        ],
        "studies": {
            STUDY: {
                VARIANT: {
                    "source_sha256": fingerprint(study, variant),
                    "case": case.id,
                    "payload_bytes": case.payload_bytes,
                    "figures": figures,
                }
            }
        },
        "parameters": {
            "link_rate": {"unit": "B/s", "value": 59e9, "low": 58e9, "high": 60e9, "runs": 3},
            "walk": {"unit": "s", "value": 8e-9, "low": None, "high": None, "runs": 3},
        },
        "reach": {
            "gpu": "NVIDIA H200",
            "sm": 90,
            "host_page_tables": 0,
            "pool_bytes": 40 * 2**30,
            "held": 8192.0,
            "covers_bytes": 2**21,
            "reach_bytes": 8192.0 * 2**21,
            "walks_per_s": 1.2e8,
            "walk_s": 8e-9,
            "doubling_s": 1e-9,
            "fit_error": 0.02,
            "row_bytes": 656,
            "advice": "Keep the pool within 16 GiB.",
            "pools": [[2**30, 48e9, 48e9, 3.9e8], [40 * 2**30, 20e9, 20e9, 2.9e7]],
        },
    }
    return digested(content)


def digested(content: Content) -> Content:
    """The submission with the digests of its content."""
    content["code"]["sha256"] = code_digest(content["studies"])
    content["sha256"] = content_digest(content)
    return content


def write(folder: Path, content: Content, file: str | None = None) -> Path:
    """The submission as a file of `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (file or f"{content['name']}.json")
    path.write_text(json.dumps(content))
    return path


@dataclass(frozen=True)
class Hostile:
    """A change of a submission, and a part of the line that refuses it.

    `of_content` changes the content, whose digests then fit; `of_file` what is at the path.
    """

    says: str
    of_content: Callable[[Content], object] | None = None
    of_file: Callable[[Path], object] | None = None
    file: str = f"{HOSTILE}.json"
    keeps_digest: bool = False

    def write(self, folder: Path) -> None:
        content = whole()
        if self.of_content is not None:
            self.of_content(content)
            if not self.keeps_digest:
                digested(content)
        path = write(folder, content, self.file)
        if self.of_file is not None:
            self.of_file(path)


def put(*place: str | int, value: object) -> Callable[[Content], object]:
    """A change that sets the value at a place."""

    def change(content: Content) -> None:
        inner: Any = content
        for part in place[:-1]:
            inner = inner[part]
        inner[place[-1]] = value

    return change


def in_figure(key: str, value: object, metric: str = "gpu_time") -> Callable[[Content], object]:
    return put("studies", STUDY, VARIANT, "figures", metric, key, value=value)


def as_text(old: str, new: str) -> Callable[[Path], object]:
    """A change of the file's text."""
    return lambda path: path.write_text(path.read_text().replace(old, new, 1))


def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
    """Something else in the place of the file."""

    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def timed(seconds: float) -> Callable[[Content], object]:
    """All figures of a time at this value."""

    def change(content: Content) -> None:
        figure = content["studies"][STUDY][VARIANT]["figures"]["gpu_time"]
        figure |= {"median": seconds, "low": None, "high": None, "by_run": [seconds] * 3}

    return change


def renamed(*place: str, new: str) -> Callable[[Content], object]:
    """A key under another name."""

    def change(content: Content) -> None:
        inner: Any = content
        for part in place[:-1]:
            inner = inner[part]
        inner[new] = inner.pop(place[-1])

    return change


def _nested(opening: str, closing: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(opening * 20_000 + closing * 20_000)


def _only(*kept: str) -> Callable[[Content], object]:
    """A submission without its studies, parameters and reach, but for those `kept`."""

    def change(content: Content) -> None:
        for key in {"studies", "parameters"} - {*kept}:
            content[key] = {}
        content["reach"] = content["reach"] if "reach" in kept else None

    return change


_OF_VARIANT = ("studies", STUDY, VARIANT)
_GPU = ("machine", "gpu")
_JSON = "not valid JSON"
_WHICH = "text like"

FILES: Final[Mapping[str, Hostile]] = {
    "1 TiB": Hostile("expected at most 200000 bytes", of_file=lambda p: os.truncate(p, 2**40)),
    "a byte too much": Hostile(
        f"expected at most {SUBMISSION_LIMIT_BYTES} bytes",
        of_file=lambda p: p.write_text(" " * (SUBMISSION_LIMIT_BYTES + 1)),
    ),
    "empty": Hostile(_JSON, of_file=lambda p: p.write_text("")),
    "truncated": Hostile(_JSON, of_file=lambda p: p.write_text(p.read_text()[:500])),
    "no JSON": Hostile(_JSON, of_file=lambda p: p.write_text("name: hostile")),
    "no UTF-8": Hostile("not UTF-8", of_file=lambda p: p.write_bytes(b'{"name": "\xff"}')),
    "a list": Hostile("expected type object", of_file=lambda p: p.write_text("[]")),
    "null": Hostile("expected type object", of_file=lambda p: p.write_text("null")),
    "nested lists": Hostile(_JSON, of_file=_nested("[", "]")),
    "nested objects": Hostile(_JSON, of_file=_nested('{"a":', "1}")),
    "a key twice": Hostile("every key once", of_file=as_text("{", '{"format": 1, ')),
    "a variant twice": Hostile(
        "every key once", of_file=as_text(f'"{VARIANT}": {{', f'"{VARIANT}": {{}}, "{VARIANT}": {{')
    ),
    "NaN": Hostile(
        "expected a finite number", of_file=as_text('"median": ', '"median": NaN, "b":')
    ),
    "Infinity": Hostile("finite number", of_file=as_text('"low": ', '"low": -Infinity, "b":')),
    "1e999": Hostile("finite number", of_file=as_text('"high": ', '"high": 1e999, "b":')),
    "5000 digits": Hostile(_JSON, of_file=as_text('"sms": 132', f'"sms": {"9" * 5000}')),
    "NUL": Hostile("text that can be shown", of_file=as_text("NVIDIA", "\\u0000")),
    "half a character": Hostile("text that can be shown", of_file=as_text("NVIDIA", "\\ud800")),
    "a link": Hostile("got a link", of_file=instead(lambda p: p.symlink_to("/etc/passwd"))),
    "a link to nothing": Hostile("got a link", of_file=instead(lambda p: p.symlink_to("gone"))),
    "a folder": Hostile("got a folder", of_file=instead(Path.mkdir)),
    "a pipe": Hostile("got a pipe", of_file=instead(os.mkfifo)),
    "samples": Hostile("expected <name>.json", file="hostile.csv"),
    "two suffixes": Hostile("expected <name>.json", file="hostile.html.json"),
    "capitals": Hostile("name: expected 'HOSTILE'", file="HOSTILE.json"),
    "markup as a file": Hostile("that of the file", file="<b>x<b>.json"),
    "a line break as a file": Hostile("that of the file", file="a\nb.json"),
    "another file's name": Hostile("name: expected 'other'", file="other.json"),
}
"""Files that no content can be read from, or with a wrong name."""

KEYS: Final[Mapping[str, Hostile]] = {
    "a path as a name": Hostile(_WHICH, put("name", value="../../etc/passwd")),
    "markup as a name": Hostile(_WHICH, put("name", value=SCRIPT)),
    "a reserved name": Hostile("anything but", put("name", value="published")),
    "a name of 10,000 characters": Hostile("at most 100 char", put("name", value="a" * 10_000)),
    "an unknown key": Hostile("colour: expected no such key", put("colour", value="green")),
    "an unknown fact": Hostile("serial: expected no such", put("machine", "serial", value="1")),
    "a format to come": Hostile("at most 1", put("format", value=FORMAT + 1)),
    "a format as text": Hostile("type integer", put("format", value="1")),
    "a method to come": Hostile(
        f"at most {METHOD_VERSION}", put("method_version", value=METHOD_VERSION + 1)
    ),
    "measured in 2999": Hostile("not lie in the future", put("measured", value=FUTURE)),
    "run in 2999": Hostile("not lie in the future", put("runs", 0, "run", value=FUTURE)),
    "no time": Hostile("a UTC timestamp", put("measured", value="yesterday")),
    "a host's name": Hostile("machine.host", put("machine", "host", value="login01")),
    "a kernel's suffix": Hostile("a version", put("machine", "kernel", value="6.8.0-login01")),
    "a UUID": Hostile("identifier", put(*_GPU, value="GPU-3f2a9c1e-77aa-4b1c-9d3e-0123456789ab")),
    "a serial number": Hostile("identifier", put(*_GPU, value="NVIDIA H200 1654922003877")),
    "a MAC address": Hostile("identifier", put("machine", "cpu", value="0cc47aab12cd")),
    "markup": Hostile("machine.gpu", put(*_GPU, value=SCRIPT)),
    "an event handler": Hostile("machine.cpu", put("machine", "cpu", value='" onload="hit(1)')),
    "a template": Hostile("machine.cpu", put("machine", "cpu", value="{{ 7 * 7 }}")),
    "Markdown": Hostile("machine.cpu", put("machine", "cpu", value="[x](javascript:hit)")),
    "markup as a package": Hostile("libraries", put("machine", "libraries", SCRIPT, value="1")),
    "a run twice": Hostile("every run once", put("runs", 1, "run", value="2026-11-24T06:00:00Z")),
    "host 0": Hostile("at least 1", put("runs", 0, "host", value=0)),
    "a commit's path": Hostile("code.commit", put("code", "commit", value="../../main")),
    "another digest": Hostile("sha256: expected", put("sha256", value="0" * 64), keeps_digest=True),
    "figures edited later": Hostile(
        "sha256: expected", put("parameters", "walk", "value", value=9e-9), keeps_digest=True
    ),
    "another digest of the code": Hostile(
        "code.sha256: expected",
        lambda c: c.update(
            sha256=content_digest(c | {"code": c["code"] | {"sha256": "0" * 64}}),
            code=c["code"] | {"sha256": "0" * 64},
        ),
        keeps_digest=True,
    ),
    "a short digest": Hostile("source_sha256", put(*_OF_VARIANT, "source_sha256", value="ab12")),
}
"""Wrong keys, names, versions and digests."""

FIGURES: Final[Mapping[str, Hostile]] = {
    "a path as a study": Hostile("studies", renamed("studies", STUDY, new="../../docs")),
    "markup as a variant": Hostile("studies", renamed(*_OF_VARIANT, new=SCRIPT)),
    "markup as a metric": Hostile(
        "figures", renamed(*_OF_VARIANT, "figures", "gpu_time", new=SCRIPT)
    ),
    "markup as a case": Hostile("case", put(*_OF_VARIANT, "case", value=f"bs={SCRIPT}")),
    "an unknown case": Hostile("case: expected one of", put(*_OF_VARIANT, "case", value="bs=7")),
    "an unknown metric": Hostile(
        "expected one of", renamed(*_OF_VARIANT, "figures", "gpu_time", new="op_time")
    ),
    "another payload": Hostile("payload_bytes", put(*_OF_VARIANT, "payload_bytes", value=1)),
    "a negative payload": Hostile("at least 0", put(*_OF_VARIANT, "payload_bytes", value=-1)),
    "an unknown unit": Hostile("unit: expected one of", in_figure("unit", "ms")),
    "the unit of a rate": Hostile("expected unit 's'", in_figure("unit", "B/s")),
    "a negative time": Hostile("at least 0", timed(-1.0)),
    "no time at all": Hostile("expected a time from", timed(0.0)),
    "a femtosecond": Hostile("expected a time from", timed(1e-15)),
    "a year": Hostile("expected a time from", timed(3e7)),
    "above the rate of memory": Hostile("every GPU's memory", timed(1e-9)),
    "above the rate of the link": Hostile("the rate of the link", timed(2e-3)),
    "one fast run": Hostile(
        "the rate of the link",
        lambda c: in_figure("by_run", [2e-3, *_times(c)[1:]])(c),
    ),
    "a median that is none": Hostile("that of by_run", in_figure("median", 1.0)),
    "no run": Hostile("not empty", in_figure("by_run", [])),
    "1000 runs": Hostile("at most 100 items", in_figure("by_run", [3e-3] * 1000)),
    "more runs than listed": Hostile(
        "at most 3 runs", lambda c: in_figure("by_run", [*_times(c), _times(c)[1], _times(c)[1]])(c)
    ),
    "more hosts than runs": Hostile("one a run", in_figure("hosts", 4)),
    "more hosts than listed": Hostile("at most 2 hosts", in_figure("hosts", 3)),
    "an interval elsewhere": Hostile("an interval around", in_figure("low", 1.0)),
    "half an interval": Hostile("both ends", in_figure("low", None)),
    "a figure as a list": Hostile(
        "type object", put(*_OF_VARIANT, "figures", "gpu_time", value=[])
    ),
    "101 studies": Hostile(
        "at most 100 items",
        lambda c: c["studies"].update({f"s{n}": c["studies"][STUDY] for n in range(101)}),
    ),
    "no figure": Hostile("figures of a study", _only()),
}
"""Wrong figures of a variant."""

PARAMETERS: Final[Mapping[str, Hostile]] = {
    "a link that is too fast": Hostile(
        "the rate of the link",
        lambda c: c["parameters"]["link_rate"].update(value=65e9, low=None, high=None),
    ),
    "a negative rate": Hostile("at least 0", put("parameters", "link_rate", "value", value=-1.0)),
    "another unit": Hostile("expected unit 's'", put("parameters", "walk", "unit", value="1")),
    "a walk of a second": Hostile("less than 1 s", put("parameters", "walk", "value", value=1.0)),
    "an unknown parameter": Hostile("expected one of", renamed("parameters", "walk", new="colour")),
    "reach of another GPU": Hostile("of the machine", put("reach", "gpu", value="NVIDIA A100")),
    "reach above the link": Hostile(
        "the rate of the link", put("reach", "pools", 0, 1, value=1e12)
    ),
    "pool above the link": Hostile("pools.1", put("reach", "pools", 1, 1, value=1e12)),
    "reach that is no product": Hostile("held times", put("reach", "reach_bytes", value=1e15)),
    "pool of three figures": Hostile("pools.0", put("reach", "pools", 0, value=[1, 2, 3])),
    "no pools": Hostile("reach.pools", put("reach", "pools", value=[])),
    "advice in two lines": Hostile("advice", put("reach", "advice", value="a\nb")),
    "1,000 pools": Hostile("at most 100 items", put("reach", "pools", value=[[1.0] * 4] * 1000)),
}
"""Wrong parameters, and wrong output of reach."""


def _times(content: Content) -> list[float]:
    found: list[float] = content["studies"][STUDY][VARIANT]["figures"]["gpu_time"]["by_run"]
    return found


ALL: Final[Mapping[str, Hostile]] = {**FILES, **KEYS, **FIGURES, **PARAMETERS}
