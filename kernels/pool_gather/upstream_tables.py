"""The table of questions that engines' developers have asked, with measured answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import quantity, runs_phrase

LISTED: Final = "direction=h2d,host=scattered,device=scattered,busy=0"
GATHER: Final = "bs=128,topk=2048,draw=with_replacement"
POOL: Final = "pool_mib=188,layout"
BEHIND: Final = "size=4096,behind_mib=1024"


class Part(NamedTuple):
    """A figure of an answer, with its words."""

    words: str
    variant: str
    metric: str
    case: str


class Question(NamedTuple):
    """A question, the thread that asks it, and what the parts of a study answer. Their times become
    payload rates if they are `rates`."""

    asked: str
    thread: str
    measured: str
    study: str
    parts: Sequence[Part]
    rates: bool = True


ROWS: Final = (
    "Are rows whose starts are no multiples of 64 bytes slower?",
    "sgl-project/sglang/pull/37617",
)
QUESTIONS: Final = (
    Question(
        *ROWS,
        "262,144 rows from 188 MiB by our kernel, by the bytes of a row",
        "h2d_gather",
        [
            Part("656", "v3_loads_first", "gpu_time", GATHER),
            Part("640", "v3_row_640", "gpu_time", GATHER),
            Part("672", "v3_row_672", "gpu_time", GATHER),
        ],
    ),
    Question(
        *ROWS,
        "262,144 rows from 188 MiB by sglang's copy of planned rows, by the bytes of a row",
        "pool_gather",
        [
            Part(size, name, "gpu_time", f"rows=262144,{POOL}=scattered,row_bytes={size}")
            for size, name in (
                ("656", "sglang_planned"),
                ("640", "sglang_planned_640"),
                ("576", "sglang_planned_576"),
            )
        ],
    ),
    Question(
        "What do more fragments of the same bytes cost?",
        "vllm-project/vllm/pull/57342",
        "16 MiB as 128 pieces in one, two or eight fragments each, from an idle stream",
        "transfers",
        [
            Part(f"{words}, {n // 128}", name, "host_time", f"size={2**24 // n},count={n},{LISTED}")
            for name, words in (
                ("pinned_list_batch", "one call"),
                ("pinned_list_gather", "a kernel"),
            )
            for n in (128, 256, 1024)
        ],
    ),
    Question(
        "Is TMA with four blocks faster than registers with two?",
        "sgl-project/sglang/pull/40278",
        "sglang's copies of 262,144 single rows from 188 MiB, and of 32,768 in pages of such rows",
        "pool_gather",
        [
            Part(f"{what}, {words}", name, "gpu_time", case)
            for what, case in (
                ("single", f"rows=262144,{POOL}=scattered"),
                *((f"pages of {n}", f"rows=32768,{POOL}=pages_{n}") for n in (1, 4, 16, 64, 128)),
            )
            for name, words in (("sglang_tma", "TMA"), ("sglang_pages", "registers"))
        ],
    ),
    Question(
        "What does the release threshold of cudaMallocAsync cost?",
        "pytorch/pytorch/issues/188110",
        "an allocation or free after the host has waited for the GPU, by threshold",
        "fragmentation",
        [
            Part(f"{what}, {words}", name, "op_time", f"pattern={pattern},after=wait")
            for pattern, what in (("hot_pair", "4 KiB"), ("transformer_training", "4 to 320 MB"))
            for name, words in (("rmm_async", "maximum"), ("rmm_async_released", "0"))
        ],
        rates=False,
    ),
    Question(
        "What does PyTorch pin for a request just above a power of two?",
        "vllm-project/vllm/issues/53042",
        "bytes that its allocator takes, and the time",
        "pinning",
        [
            Part(f"{mib} MiB", "torch_pinned", metric, f"mib={mib},beside=nobody")
            for mib in (1024, 1025)
            for metric in ("held_bytes", "host_time")
        ],
        rates=False,
    ),
    Question(
        "How long does a small copy wait behind a large one?",
        "meta-pytorch/torchrec/pull/4339",
        "4 KiB to the device, alone and behind 1 GiB on another stream, by the MiB of its pieces,"
        " and with kernels between them",
        "duplex",
        [
            Part("alone", "copy_behind", "small_alone", f"{BEHIND},chunk_mib=1024,between=nothing"),
            *(
                Part(
                    f"{mib}{words}",
                    "copy_behind",
                    "small_behind",
                    f"{BEHIND},chunk_mib={mib},between={between}",
                )
                for mib in (1024, 256, 32, 4, 1)
                for between, words in (("nothing", ""), ("kernels", " with kernels"))
            ),
        ],
        rates=False,
    ),
)


def upstream(facts: StudyFacts) -> PageTable:
    """A row for each question and machine with a part of its answer, or one that says that there is
    none. Questions of studies that the site lacks have no row."""
    rows = []
    for question in QUESTIONS:
        if question.study not in facts.inputs.studies:
            continue
        of = StudyFacts(facts.inputs, facts.inputs.studies[question.study])
        link = Markup('<a href="https://github.com/{}">{}</a>')
        about = [link.format(question.thread, question.asked), question.measured]
        answers = [_answer(of, machine, question) for machine in machines_by_evidence(of)]
        found = [answer for answer in answers if answer] or [["none", "not measured yet", "none"]]
        rows += [[*about, *answer] for answer in found]
    columns = ["question", "measured", "machine", "answer", "runs"]
    return PageTable(columns, rows, "No machine has measured an answer yet.")


def _answer(facts: StudyFacts, machine: str, question: Question) -> list[str]:
    """The machine, the measured figures of a question, and the least number of their runs; empty
    without a figure."""
    texts, runs = [], []
    for part in question.parts:
        row = facts.find(machine, part.variant, part.case, part.metric)
        if row is None or row.stale:
            continue
        value, unit = row.median, row.unit
        if question.rates:
            value, unit = facts.study.payloads[part.variant, part.case] / value, "B/s"
        texts.append(f"{part.words}: {quantity(value, unit)}")
        runs.append((row.runs, row.hosts))
    if not texts:
        return []
    return [facts.inputs.called(machine), "; ".join(texts), runs_phrase(*min(runs))]
