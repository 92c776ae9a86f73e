"""The table of questions that engines' developers have asked, with measured answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd
from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, fresh_figures, machines_by_evidence
from analysis.api.quantities import quantity, runs_phrase


@dataclass(frozen=True)
class Part:
    """A figure of an answer: its words, its variant and metric, and keys of its case. A rate, if
    `bytes_of` names keys whose product is the number of bytes."""

    words: str
    variant: str
    metric: str
    case: Mapping[str, int | str]
    bytes_of: Sequence[str] = ()


@dataclass(frozen=True)
class Question:
    """A question, the thread that asks it, what was measured by which study, and the answer."""

    asked: str
    thread: str
    measured: str
    study: str
    parts: Sequence[Part]


def _row_sizes(variant: str, whose: str) -> list[Part]:
    case = {"rows": 262144, "pool_mib": 188}
    names = {656: variant, 640: f"{variant}_640", 576: f"{variant}_576"}
    return [
        Part(
            f"{whose} {size} B",
            name,
            "gpu_time",
            {**case, "row_bytes": size},
            ["rows", "row_bytes"],
        )
        for size, name in names.items()
    ]


def _fragments() -> list[Part]:
    case: dict[str, int | str] = {
        "direction": "h2d",
        "host": "scattered",
        "device": "scattered",
        "busy": 0,
    }
    return [
        Part(
            f"{words}, {count // 128} each",
            variant,
            "host_time",
            {**case, "size": size, "count": count},
            ["size", "count"],
        )
        for variant, words in (("pinned_list_batch", "call"), ("pinned_list_gather", "kernel"))
        for size, count in ((131072, 128), (65536, 256), (32768, 512))
    ]


def _pages() -> list[Part]:
    case = {"rows": 32768, "pool_mib": 188}
    return [
        Part(f"{words}, {rows}", variant, "gpu_time", {**case, "layout": f"pages_{rows}"})
        for rows in (1, 4, 16, 64, 128)
        for variant, words in (("sglang_tma", "TMA"), ("sglang_pages", "registers"))
    ]


def _waits() -> list[Part]:
    return [
        Part(
            f"{chunk} MiB{words}",
            "copy_behind",
            "small_behind",
            {"behind_mib": 1024, "chunk_mib": chunk, "between": between},
        )
        for chunk in (1024, 256, 32, 4, 1)
        for between, words in (("nothing", ""), ("kernels", " and kernels"))
    ]


def _thresholds() -> list[Part]:
    names = {"rmm_async": "maximum", "rmm_async_released": "0"}
    return [
        Part(f"{words}, {what}", name, "op_time", {"pattern": pattern, "after": "wait"})
        for pattern, what in (("hot_pair", "4 KiB"), ("transformer_training", "4 to 320 MB"))
        for name, words in names.items()
    ]


def _pinned() -> list[Part]:
    return [
        Part(f"{mib:,} MiB", "torch_pinned", metric, {"mib": mib, "beside": "nobody"})
        for mib in (1024, 1025)
        for metric in ("held_bytes", "host_time")
    ] + [Part("1,025 MiB in chunks", "chunks", "host_time", {"mib": 1025, "beside": "nobody"})]


QUESTIONS: Final = (
    Question(
        "Are rows whose starts are no multiples of 64 bytes slower?",
        "sgl-project/sglang/pull/37617",
        "262,144 rows from 188 MiB by sglang's copy of planned rows, with four blocks, and by ours",
        "pool_gather",
        [*_row_sizes("sglang_planned", "sglang"), *_row_sizes("loads_first", "ours")],
    ),
    Question(
        "What do more fragments of the same bytes cost?",
        "vllm-project/vllm/pull/57342",
        "16 MiB: 128 pieces in one, two or four fragments each, by one batched call or a kernel",
        "transfers",
        _fragments(),
    ),
    Question(
        "Is TMA with four blocks faster than registers with two?",
        "sgl-project/sglang/pull/40278",
        "32,768 rows of 656 bytes from 188 MiB, by the rows of a page",
        "pool_gather",
        _pages(),
    ),
    Question(
        "What does the release threshold of cudaMallocAsync cost?",
        "pytorch/pytorch/issues/188110",
        "an allocation or free after a wait for the GPU, by threshold and sizes",
        "fragmentation",
        _thresholds(),
    ),
    Question(
        "What does PyTorch pin for a request just above a power of two?",
        "vllm-project/vllm/issues/53042",
        "bytes that its allocator holds, and time to pin, beside registration in chunks",
        "pinning",
        _pinned(),
    ),
    Question(
        "How long does a small copy wait behind a large one?",
        "meta-pytorch/torchrec/pull/4339",
        "4 KiB behind 1 GiB to the device, in pieces of this size, and with kernels between them",
        "duplex",
        _waits(),
    ),
)


def upstream(facts: StudyFacts) -> PageTable:
    """A row for each question and machine that has measured all of its answer. Questions of studies
    that the site lacks have none."""
    rows = []
    for question in QUESTIONS:
        if question.study not in facts.inputs.studies:
            continue
        of = StudyFacts(facts.inputs, facts.inputs.studies[question.study])
        found = fresh_figures(of, *{part.metric for part in question.parts})
        for machine in machines_by_evidence(of):
            here = found[found["machine"] == machine]
            figures = [_figure(here, part) for part in question.parts]
            if not all(len(figure) for figure in figures):
                continue
            answer = [
                f"{part.words}: {_write(figure, part)}"
                for part, figure in zip(question.parts, figures, strict=True)
            ]
            least = pd.concat(figures)[["runs", "hosts"]].min()
            asked = Markup('<a href="https://github.com/{}">{}</a>')
            row = [asked.format(question.thread, question.asked), question.measured]
            row += [facts.inputs.called(machine), "; ".join(answer), runs_phrase(*map(int, least))]
            rows.append(row)
    columns = ["question", "measured", "machine", "answer", "runs"]
    return PageTable(columns, rows, "No machine has measured an answer yet.", may_be_empty=True)


def _figure(found: pd.DataFrame, part: Part) -> pd.DataFrame:
    """The row of a part's figure; none without it."""
    rows = found[(found["variant"] == part.variant) & (found["metric"] == part.metric)]
    for key, value in part.case.items():
        rows = rows[rows[key] == value]
    return rows[:1]


def _write(figure: pd.DataFrame, part: Part) -> str:
    """A figure in words."""
    (row,) = figure.to_dict("records")
    if not part.bytes_of:
        return str(row["short"])
    size = math.prod(int(row[key]) for key in part.bytes_of)
    return quantity(size / row["median"], "B/s")
