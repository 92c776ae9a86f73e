"""Run one variant by itself and print its latency and throughput.

    python -m analysis.measure.bench h2d_gather v3_loads_first --bs 128 --topk 2048 --iters 10
    ncu python -m analysis.measure.bench h2d_gather v3_loads_first --single-launch

The variant's case keys are its options; their defaults are the headline case, or the variant's
first one where it does not have that.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from analysis.base.cli import at_least, fail_in_one_line, settings
from analysis.base.errors import HotpathError, require_known
from analysis.base.expression import evaluate
from analysis.base.gpu import open_gpus, show_only
from analysis.measure.cell import Cell, Operation
from analysis.measure.cpu import use_cpus
from analysis.measure.machine import whole_machine
from analysis.measure.plan import find_places
from analysis.measure.round import Bench, RoundJob
from analysis.study import Case, Study, Variant, discover
from analysis.study.config import load_config
from analysis.toolchain.compilers import resolve_arch
from analysis.toolchain.modules import built_modules

PROGRAM: Final = "python -m analysis.measure.bench"


def options(study: Study, variant: Variant) -> argparse.ArgumentParser:
    """The command line of a variant: its case keys, and how often to launch."""
    name = f"{PROGRAM} {study.name} {variant.name}"
    parser = argparse.ArgumentParser(prog=name, description=variant.title)
    default = variant.case(study.headline) or variant.cases[0]
    for key, value in default.values.items():
        known = sorted({str(case[key]) for case in variant.cases if key in case.values})
        kind = {"type": at_least(0)} if isinstance(value, int) else {"choices": known}
        option = "--" + key.replace("_", "-")
        parser.add_argument(option, **kind, default=value, help=f"default: {value}")
    parser.add_argument("--iters", type=at_least(1), default=10, help="timed launches (10)")
    parser.add_argument("--single-launch", action="store_true", help="once, for a profiler")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    parser.set_defaults(keys=list(default.values))
    return parser


def case_of(variant: Variant, arguments: argparse.Namespace) -> Case:
    """The case that the command line asks for, which need not be in study.yaml: it has the metrics
    of the default one. FieldError where it makes no payload."""
    values = {key: vars(arguments)[key] for key in arguments.keys}
    payload = evaluate(variant.payload, {**variant.constants, **values})
    default = variant.case(variant.headline) or variant.cases[0]
    return replace(default, values=values, payload_bytes=payload, samples=None)


def main(words: Sequence[str]) -> None:
    studies = discover()
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {PROGRAM} STUDY VARIANT [--help]; a study is one of {', '.join(studies)}")
        return
    require_known("study", words[0], sorted(studies))
    study = studies[words[0]]
    variant = study.variant(words[1] if len(words) > 1 else "")
    arguments = options(study, variant).parse_args(words[2:])
    cell, config = Cell(variant, case_of(variant, arguments)), load_config(arguments.config)
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, f"trying {study.name}/{variant.name}"))
        gpus = stack.enter_context(open_gpus(config.gpus)) if variant.on_gpu else ()
        place = find_places(config, gpus)[study.name]
        if unmet := place.unmet(variant):
            raise HotpathError(f"{study.name}/{variant.name}: {unmet}")
        show_only(gpus := place.in_use([variant]))
        use_cpus(gpus[0].local_cpus() if gpus else os.sched_getaffinity(0))  # as in a round
        modules = built_modules(resolve_arch(config.arch, config.gpus, config.nvcc))
        grid = replace(config.grid, samples=arguments.iters, sample_budget_s=1e9)
        job = RoundJob(study, [variant], grid, "", 0, modules, (), Path())
        bench, stream = Bench(job, gpus, tell=lambda visit: None), 0
        if gpus:
            from analysis.measure import memory  # imports CUDA, which a machine may lack

            stream = memory.new_stream()

        def time_device(operation: Operation, count: int) -> None:
            cell.values.append(("gpu_time", memory.device_seconds(operation, stream, count)))

        print(f"{cell}\npayload: {cell.case.payload_bytes} B")
        if arguments.single_launch:
            bench.rig.bind(variant, cell.case, stream).poison_and_launch()
            return
        bench.measure(cell, stream, time_device)
    if why := cell.skipped or cell.failure:
        raise HotpathError(f"skipped: {why}" if cell.skipped else f"wrong output: {why}")
    print("output: every byte verified")
    for name, metric in study.metrics.items():
        if values := [value for key, value in cell.values if key == name]:
            median = statistics.median(values)
            line = f"{metric.label}: {metric.write(median)}"
            if cell.case.payload_bytes and name in ("gpu_time", "host_time"):
                rate = cell.case.payload_bytes / median
                line += f", throughput {rate / 1e9:.2f} GB/s = {rate / 2**30:.2f} GiB/s"
            print(line)


if __name__ == "__main__":
    fail_in_one_line(lambda: main(sys.argv[1:]))
