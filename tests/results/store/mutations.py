"""Named faults of a machine's results, and their expected treatment."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Final

from analysis.results.store.samples import to_text
from tests.results.store.changes import (
    PAYLOAD,
    STUDY,
    VALUES,
    VARIANT,
    Change,
    also_skipped,
    cell,
    column,
    content,
    huge,
    in_turn,
    link_to,
    machine_json,
    moved,
    pipe,
    provenance,
    raw,
    renamed,
    repeated_row,
    table,
    valueless,
    widen,
    without_values,
)


@dataclass(frozen=True)
class Mutation:
    """`refused` is the folder that must be left out, as seen from the machine's, with `says` in the
    reason; None where the change is harmless."""

    change: Change
    refused: str | None
    says: str = ""


ROWS: Final = {
    "case unknown": cell("case", "calls=101"),
    "case with markup": cell("case", "calls=<script>"),
    "case empty": cell("case", ""),
    "case with a template": cell("case", "calls={{7}}"),
    "metric unknown": column("cpu_time [s]"),
    "metric with markup": column("<b> [s]"),
    "metric empty": column(" [s]"),
    "metric of two lines": column("host\ntime [s]"),
    "metric twice": column("gpu_time [s]"),
    "metric twice in two units": column("gpu_time [B]"),
    "unit of another": column("host_time [B]"),
    "unit with a prefix": column("host_time [ms]"),
    "unit with markup": column("host_time [<s>]"),
    "unit missing": column("host_time"),
    "unit with a template": column("host_time [{{ 7 }}]"),
    "value zero": cell(VALUES, "0"),
    "value zero with decimals": cell(VALUES, "0.000"),
    "value negative": cell(VALUES, "-1e-6"),
    "value nan": cell(VALUES, "nan"),
    "value infinite": cell(VALUES, "inf"),
    "value overflowing": cell(VALUES, "1e999"),
    "value underflowing": cell(VALUES, "1e-999"),
    "value too small": cell(VALUES, "1e-300"),
    "value too large": cell(VALUES, "1e300"),
    "value with underscores": cell(VALUES, "1_0"),
    "value in other digits": cell(VALUES, "\u0663"),
    "value with a space": cell(VALUES, " 1"),
    "value in hex": cell(VALUES, "0x1p-3"),
    "values apart by two spaces": cell(VALUES, "1e-6  1e-6"),
    "values apart by a bar": cell(VALUES, "1e-6|1e-6"),
    "values apart by a tab": cell(VALUES, "1e-6\t1e-6"),
    "values that end in a space": cell(VALUES, "1e-6 "),
    "values of which one is zero": cell(VALUES, "1e-6 0 1e-6"),
    "values of which one is nan": cell(VALUES, "1e-6 nan"),
    "values of which one is too large": cell(VALUES, "1e-6 1e300"),
    "values by the hundred thousand": cell(VALUES, " ".join(["1e-6"] * 100_000)),
    "value with a comma": cell(VALUES, "1,5"),
    "values missing": table(f"{VARIANT}.csv", without_values),
    "value with markup": cell(VALUES, PAYLOAD),
    "run unknown": cell("run", "2026-01-09T03:04:05Z"),
    "run that is no time": cell("run", "yesterday"),
    "run on the 30th of February": cell("run", "2026-02-30T03:04:05Z"),
    "round beyond the last": cell("round", "64"),
    "round negative": cell("round", "-1"),
    "round with a fraction": cell("round", "0.5"),
    "round in other digits": cell("round", "\u0661"),
    "round of many digits": cell("round", "1" * 5000),
    "round of a case twice": table(f"{VARIANT}.csv", repeated_row),
    "round of a case measured and skipped": table(f"{VARIANT}.csv", also_skipped),
    "verified maybe": cell("verified", "2"),
    "verified as a word": cell("verified", "true"),
    "status unknown": cell("status", "fine"),
    "status with markup": cell("status", PAYLOAD),
    "status unknown without a value": valueless("fine", "because"),
    "status with markup and no value": valueless(PAYLOAD, "because"),
    "status skipped with a value": cell("status", "skipped"),
    "reason of what is ok": cell("reason", "because"),
    "reason missing": valueless("skipped", ""),
    "reason of two lines": valueless("skipped", "one\ntwo"),
    "reason with a carriage return": valueless("skipped", "one\rtwo"),
    "reason with NUL": valueless("skipped", "one\0two"),
    "reason with an escape": valueless("skipped", "\x1b[31mred"),
    "reason that turns around": valueless("skipped", "abc\u202edef"),
    "throttle with markup": cell("throttle", "<img>"),
    "throttle with a link": cell("throttle", "javascript:hit(1)"),
    "clock infinite": cell("sm_mhz", "inf"),
    "clock as a word": cell("sm_mhz", "high"),
    "start of the cell missing": cell("started_at", ""),
    "start of the cell at hour 25": cell("started_at", "2026-01-02T25:04:05Z"),
    "start of the cell in another zone": cell("started_at", "2026-01-02T03:04:05+01:00"),
    "column missing": table(f"{VARIANT}.csv", lambda rows: [row.pop() for row in rows]),
    "column more": table(f"{VARIANT}.csv", widen),
    "columns in another order": table(f"{VARIANT}.csv", lambda rows: rows[0].reverse()),
    "cell more": table(f"{VARIANT}.csv", lambda rows: rows[2].append("1")),
    "blank line": table(f"{VARIANT}.csv", lambda rows: rows.insert(2, [])),
    "no header": table(f"{VARIANT}.csv", lambda rows: rows.pop(0)),
    "header twice": table(f"{VARIANT}.csv", lambda rows: rows.insert(2, rows[0])),
    "empty samples": content(f"{VARIANT}.csv", b""),
    "samples that are no text": content(f"{VARIANT}.csv", bytes(range(256))),
    "samples with a mark of byte order": content(f"{VARIANT}.csv", b"\xef\xbb\xbfstudy\n"),
    "a quote that does not end": content(f"{VARIANT}.csv", to_text([]).encode() + b'\n"'),
    "a field of megabytes": valueless("skipped", "x" * 2**20),
    "samples without a row": content(f"{VARIANT}.csv", to_text([]).encode()),
}
"""Faults of the samples."""

PROVENANCE: Final = {
    "study of another": provenance(lambda d: d.update(study="copy")),
    "study missing": provenance(lambda d: d.pop("study")),
    "study as null": provenance(lambda d: d.update(study=None)),
    "variant of another": provenance(lambda d: d.update(variant="python")),
    "variant up a folder": provenance(lambda d: d.update(variant="../kernel")),
    "variant with markup": provenance(lambda d: d.update(variant="<b>")),
    "variant missing": provenance(lambda d: d.pop("variant")),
    "checksum of another": provenance(lambda d: d.update(samples_sha256="0" * 64)),
    "checksum as a list": provenance(lambda d: d.update(samples_sha256=[])),
    "checksum missing": provenance(lambda d: d.pop("samples_sha256")),
    "commit as a list": provenance(lambda d: d.update(commit=["a", "b"])),
    "commit with markup": provenance(lambda d: d.update(commit=PAYLOAD)),
    "commit of two lines": provenance(lambda d: d.update(commit="abc\nint main() {}")),
    "commit missing": provenance(lambda d: d.pop("commit")),
    "dirty as a word": provenance(lambda d: d.update(dirty="<b>no</b>")),
    "source as a number": provenance(lambda d: d.update(source_sha256=7)),
    "source in capitals": provenance(lambda d: d.update(source_sha256="A" * 64)),
    "method as a word": provenance(lambda d: d.update(method_version="2")),
    "method as a truth": provenance(lambda d: d.update(method_version=True)),
    "rounds missing": provenance(lambda d: d.pop("rounds")),
    "rounds as a word": provenance(lambda d: d.update(rounds="many")),
    "fewer rounds than samples have": provenance(lambda d: d.update(rounds=1)),
    "start on the 31st of June": provenance(lambda d: d.update(start="2026-06-31T00:00:00Z")),
    "end as null": provenance(lambda d: d.update(end=None)),
    "end before the start": provenance(lambda d: d.update(end="2026-01-01T00:00:00Z")),
    "a run in the future": provenance(lambda d: d.update(end="2999-01-01T00:00:00Z")),
    "an unknown key": provenance(lambda d: d.update({PAYLOAD: PAYLOAD})),
    "memory of a run as a word": provenance(lambda d: d["machine"].update(memory_bytes="much")),
    "watts of a run as a word": provenance(lambda d: d["machine"].update(power_limit_w="700")),
    "clock of a run as a word": provenance(lambda d: d["machine"].update(max_sm_mhz="1980")),
    "run with markup": provenance(lambda d: d.update(run=PAYLOAD)),
    "run of the samples gone": provenance(lambda d: d.update(run="2026-01-05T03:04:05Z")),
    "grid unknown": provenance(lambda d: d.update(grid="huge")),
    "command as a list": provenance(lambda d: d.update(command=["rm"])),
    "command of a megabyte": provenance(lambda d: d.update(command="x" * 2**20)),
    "compiler as a word": provenance(lambda d: d.update(compiler=PAYLOAD)),
    "compiler nested": provenance(lambda d: d.update(compiler={"cxx": {"a": {"b": 1}}})),
    "captures as a list": provenance(lambda d: d.update(captures=[])),
    "captures of an unknown kind": provenance(lambda d: d.update(captures={"<b>": {}})),
    "capture as null": provenance(lambda d: d["captures"].update(ncu=None)),
    "capture without status": provenance(lambda d: d["captures"]["ncu"].pop("status")),
    "status of a capture as a list": provenance(lambda d: d["captures"]["ncu"].update(status=[])),
    "case of a capture with markup": provenance(lambda d: d["captures"]["ncu"].update(case="<b>")),
    "time of a capture that was not": provenance(
        lambda d: d["captures"]["ncu"].update(at="2026-13-01T00:00:00Z")
    ),
    "bounds as a list": provenance(lambda d: d.update(bounds=["0123456789ab"])),
    "bounds as null": provenance(lambda d: d.update(bounds=None)),
    "bound as a number": provenance(lambda d: d.update(bounds={"it": 1})),
    "bound as a list": provenance(lambda d: d.update(bounds={"it": ["0123456789ab"]})),
    "bound that is no digest": provenance(lambda d: d.update(bounds={"it": "0123456789AB"})),
    "bound of a megabyte": provenance(lambda d: d.update(bounds={"it": "0" * 2**20})),
    "bound of a claim with markup": provenance(lambda d: d.update(bounds={"<b>": "0" * 12})),
    "bounds of a profile as a word": provenance(
        lambda d: d["captures"]["ncu"].update(bounds="0123456789ab")
    ),
    "disturbed as a word": provenance(lambda d: d.update(disturbed="yes")),
    "disturbed for a number": provenance(lambda d: d.update(disturbed=[{"round": 0, "why": [1]}])),
    "unmet as a list": provenance(lambda d: d.update(unmet=[1])),
    "machine of a run as a list": provenance(lambda d: d.update(machine=[])),
    "machine of a run without its GPU": provenance(lambda d: d.update(machine={})),
    "host as a list": provenance(lambda d: d["machine"].update(host=["a"])),
    "runs as null": provenance(lambda d: d.update(runs=None)),
    "runs as words": provenance(lambda d: d.update(runs=["a"])),
    "runs without their keys": provenance(lambda d: d.update(runs=[{}])),
    "an earlier run wrong": provenance(lambda d: d["runs"][0].update(commit=[])),
    "a run twice": provenance(lambda d: d["runs"].append(d["runs"][0])),
    "a run without samples": provenance(
        lambda d: d["runs"].append(d["runs"][0] | {"run": "2025-01-01T00:00:00Z"})
    ),
    "provenance as a list": raw(f"{VARIANT}.json", b"[]"),
    "provenance that is no JSON": raw(f"{VARIANT}.json", b"{"),
    "provenance nested deeply": raw(f"{VARIANT}.json", b"[" * 100_000 + b"]" * 100_000),
    "provenance that is no text": raw(f"{VARIANT}.json", b"\xff\xfe{}"),
    "a key twice": raw(f"{VARIANT}.json", b'{"run": 1, "run": 2}'),
    "a number of many digits": raw(f"{VARIANT}.json", b'{"rounds": ' + b"1" * 5000 + b"}"),
    "a number that overflows": raw(f"{VARIANT}.json", b'{"energy_j": 1e999}'),
    "a number that is none": provenance(lambda d: d.update(energy_j=float("nan"))),
    "half a character": provenance(lambda d: d.update(command="\ud800")),
    "a control character": provenance(lambda d: d.update(command="\u0002wzxhzdk:0\u0003")),
}
"""Faults of the provenance."""

COUNTERS, TIMELINE = f"{VARIANT}.ncu.csv", f"{VARIANT}.timeline.csv"
TELEMETRY = f"{VARIANT}.telemetry.csv"
CAPTURES: Final = {
    "counter that is none": cell("value", "nan", COUNTERS, 2),
    "counter below 0": cell("value", "-1", COUNTERS, 2),
    "counter too large": cell("value", "1e300", COUNTERS, 2),
    "counter of a case with markup": cell("case", "<b>", COUNTERS, 2),
    "counter of two lines": cell("kernel", "a\nb", COUNTERS, 2),
    "counters of other columns": cell("unit", "units", COUNTERS, 1),
    "counters that are no text": raw(COUNTERS, b"\xff"),
    "event of another kind": cell("kind", PAYLOAD, TIMELINE, 2),
    "event that ends before": cell("end", "-1", TIMELINE, 2),
    "event before the start": cell("start", "-1", TIMELINE, 2),
    "event at infinity": cell("end", "inf", TIMELINE, 2),
    "event of too many bytes": cell("bytes", "1" * 400, TIMELINE, 2),
    "timeline without a row that is whole": raw(TIMELINE, b"start,end"),
    "reading at no time": cell("time", "2026-02-29T00:00:00Z", TELEMETRY, 2),
    "reading of no run": cell("run", PAYLOAD, TELEMETRY, 2),
    "reading that is none": cell("power_w", "nan", TELEMETRY, 2),
    "reading of a round with a fraction": cell("round", "1.5", TELEMETRY, 2),
    "reading of half a GPU": cell("gpu", "0.5", TELEMETRY, 2),
    "reading of a case with markup": cell("case", "<b>", TELEMETRY, 2),
    "reading with a reason that is none": cell("throttle", "<b>", TELEMETRY, 2),
    "telemetry of other columns": cell("time", "when", TELEMETRY, 1),
}
"""Faults of captures."""

SAMPLES, JSON = f"{STUDY}/{VARIANT}.csv", f"{STUDY}/{VARIANT}.json"
FILES: Final = {
    "samples changed": lambda machine: (machine / SAMPLES).open("a").write("x"),
    "samples cut": lambda machine: os.truncate(machine / SAMPLES, 700),
    "samples gone": lambda machine: (machine / SAMPLES).unlink(),
    "samples huge": lambda machine: os.truncate(machine / SAMPLES, 15 * 2**20),
    "samples a link": moved(SAMPLES),
    "samples a link to a device": link_to(SAMPLES, "/dev/zero"),
    "samples a link to nothing": link_to(SAMPLES, "nowhere"),
    "samples a link to themselves": link_to(SAMPLES, f"{VARIANT}.csv"),
    "samples a pipe": pipe(SAMPLES),
    "samples a folder": lambda machine: ((machine / SAMPLES).unlink(), (machine / SAMPLES).mkdir()),
    "provenance gone": lambda machine: (machine / JSON).unlink(),
    "provenance a link": moved(JSON),
    "provenance a pipe": pipe(JSON),
    "counters a link to a secret": link_to(f"{STUDY}/{COUNTERS}", "/etc/passwd"),
    "timeline a pipe": pipe(f"{STUDY}/{TIMELINE}"),
    "a link to a secret": link_to(f"{STUDY}/{VARIANT}.secret", "/etc/passwd"),
    "a page": lambda machine: (machine / STUDY / f"{VARIANT}.html").write_text(PAYLOAD),
    "a script": lambda machine: (machine / STUDY / f"{VARIANT}.js").write_text("hit(1)"),
    "a hidden file": lambda machine: (machine / STUDY / ".kernel.csv").write_text(""),
    "a folder within": lambda machine: (machine / STUDY / "inner").mkdir(),
    "a variant with braces": renamed(SAMPLES, f"{STUDY}/{{variant}}.csv"),
    "a variant with markup": renamed(SAMPLES, f"{STUDY}/<b>.csv"),
    "a variant of two lines": renamed(SAMPLES, f"{STUDY}/a\nb.csv"),
    "captures of a variant that was not measured": renamed(
        f"{STUDY}/{COUNTERS}", f"{STUDY}/other.ncu.csv"
    ),
    "samples of another variant": lambda machine: [
        shutil.copy(machine / STUDY / f"{VARIANT}.{kind}", machine / STUDY / f"python.{kind}")
        for kind in ("csv", "json")
    ],
}
"""Faults of the files of a study."""

DESCRIPTION: Final = {
    "machine.json gone": lambda machine: (machine / "machine.json").unlink(),
    "machine.json a link": moved("machine.json"),
    "machine.json a pipe": pipe("machine.json"),
    "machine.json a list": lambda machine: (machine / "machine.json").write_text("[]"),
    "machine.json empty": lambda machine: (machine / "machine.json").write_text(""),
    "machine.json huge": huge("machine.json"),
    "GPU missing": machine_json(lambda d: d.pop("gpu")),
    "GPU as a list": machine_json(lambda d: d.update(gpu=["a"])),
    "GPU of a megabyte": machine_json(lambda d: d.update(gpu="x" * 2**20)),
    "GPU with half a character": machine_json(lambda d: d.update(gpu="\udc80")),
    "SMs as a word": machine_json(lambda d: d.update(sms="132")),
    "SMs below 1": machine_json(lambda d: d.update(sms=-1)),
    "SMs beyond any": machine_json(lambda d: d.update(sms=10**30)),
    "a fact with markup for a name": machine_json(lambda d: d.update({"<b>": 1})),
    "facts nested": machine_json(lambda d: d.update(a={"b": {"c": 1}})),
    "memory as a word": machine_json(lambda d: d.update(memory_bytes="much")),
    "watts as a word": machine_json(lambda d: d.update(power_limit_w="700")),
    "clock as a word": machine_json(lambda d: d.update(max_sm_mhz="1980")),
    "a fact that nobody knows": machine_json(lambda d: d.update(colour="green")),
    "a fact beyond any": machine_json(lambda d: d.update(memory_bytes=10**400)),
    "too many bytes in all": lambda machine: os.truncate(
        machine / STUDY / "python.csv", 17 * 2**20
    ),
}
"""Faults of a machine's description and its folder."""

HARMLESS: Final = {
    "nothing": lambda _machine: None,
    "commit unknown": provenance(lambda d: d.update(commit=None, dirty=None)),
    "reason with markup": valueless("skipped", PAYLOAD),
    "GPU with markup": machine_json(lambda d: d.update(gpu=PAYLOAD)),
    "facts with markup": machine_json(lambda d: d.update(cpu=PAYLOAD, libraries={"a": PAYLOAD})),
    "GPU unknown": machine_json(lambda d: d.update(gpu=None)),
    "compiler with markup": provenance(lambda d: d.update(compiler={"cxx": PAYLOAD})),
    "command with markup": provenance(lambda d: d.update(command=PAYLOAD, unmet=PAYLOAD)),
    "host with markup": provenance(lambda d: d["machine"].update(host=PAYLOAD)),
    "disturbed with markup": provenance(
        lambda d: d.update(disturbed=[{"round": 0, "why": [PAYLOAD]}])
    ),
    "status of a capture with markup": provenance(
        lambda d: d["captures"].update(
            ncu={"status": f"not captured: {PAYLOAD}"}, timeline={"status": PAYLOAD}
        )
    ),
    "kernel with markup": cell("kernel", PAYLOAD, COUNTERS, 2),
    "counter with markup": cell("metric", PAYLOAD, COUNTERS, 2),
    "event with markup": cell("name", PAYLOAD, TIMELINE, 2),
    "a half written file": lambda machine: (machine / STUDY / ".kernel.csv.partial").write_text(
        "s"
    ),
    "a file without a row": lambda machine: (machine.parent / "README.md").write_text(PAYLOAD),
}
"""Changes that are no fault, or that are shown unchanged."""

MUTATIONS: Final = {
    **{name: Mutation(change, STUDY, f"{SAMPLES}: ") for name, change in ROWS.items()},
    **{name: Mutation(change, STUDY, f"{STUDY}/{VARIANT}.") for name, change in PROVENANCE.items()},
    **{name: Mutation(change, STUDY, f"{STUDY}/{VARIANT}.") for name, change in CAPTURES.items()},
    **{name: Mutation(change, STUDY, f"{STUDY}/") for name, change in FILES.items()},
    **{name: Mutation(change, "", "") for name, change in DESCRIPTION.items()},
    **{name: Mutation(change, None) for name, change in HARMLESS.items()},
    "study a link": Mutation(moved(STUDY), STUDY, "expected a folder, got a link"),
    "study a pipe": Mutation(
        in_turn(lambda machine: shutil.rmtree(machine / STUDY), pipe(STUDY)),
        STUDY,
        "expected a folder, got a pipe",
    ),
    "study a file": Mutation(
        lambda machine: (machine / "notes.txt").write_text(""), "notes.txt", "expected a name"
    ),
    "study with braces": Mutation(renamed(STUDY, "{calls}"), "{calls}", "expected a name"),
    "study with markup": Mutation(renamed(STUDY, "<b>"), "<b>", "expected a name"),
    "study under the name of another": Mutation(
        renamed(STUDY, "copy"), "copy", "json: study, variant: expected "
    ),
}
"""Every mutation by its name."""
