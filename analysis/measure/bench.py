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
from typing import Final

import numpy as np

from analysis.base.cli import at_least, fail_in_one_line, settings
from analysis.base.errors import FieldError, HotpathError, require_known
from analysis.base.expression import evaluate
from analysis.base.gpu import open_gpus, show_only
from analysis.measure.cores import use_cpus
from analysis.measure.machine_lock import whole_machine
from analysis.measure.places import find_places
from analysis.measure.rig import Bound, Rig
from analysis.study import Case, Study, Variant, case_id, discover
from analysis.study.config import load_config
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.modules import built_modules

PROGRAM: Final = "python -m analysis.measure.bench"
WARM_UP_LAUNCHES: Final = 2


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
    """The case that the command line asks for; it need not be in study.yaml. FieldError where it
    makes no payload."""
    values = {key: vars(arguments)[key] for key in arguments.keys}
    try:
        payload = evaluate(variant.payload, {**variant.constants, **values})
    except ValueError as error:
        raise FieldError("payload_bytes", f"a whole number ({error})", case_id(values)) from error
    if payload < 0:
        raise FieldError("payload_bytes", "a number of at least 0", payload)
    return Case(values, payload, "full")


def main(words: Sequence[str]) -> None:
    studies = discover()
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {PROGRAM} STUDY VARIANT [--help]; a study is one of {', '.join(studies)}")
        return
    require_known("study", words[0], sorted(studies))
    study = studies[words[0]]
    variant = study.variant(words[1] if len(words) > 1 else "")
    arguments = options(study, variant).parse_args(words[2:])
    case, config = case_of(variant, arguments), load_config(arguments.config)
    with ExitStack() as stack:
        stack.enter_context(whole_machine(config.busy, f"trying {study.name}/{variant.name}"))
        opened = stack.enter_context(open_gpus(config.gpus)) if variant.on_gpu else ()
        place = find_places(config, opened)[study.name]
        if unmet := place.unmet(variant):
            raise HotpathError(f"{study.name}/{variant.name}: {unmet}")
        if place.gpus:
            show_only(place.in_use([variant]))
        # As in a round.
        use_cpus(place.gpus[0].local_cpus() if place.gpus else os.sched_getaffinity(0))
        modules = built_modules(resolve_arch(config.arch, config.gpus, config.nvcc))
        rig = Rig(study, modules, np.random.default_rng(0), [variant])
        stream = 0
        if place.gpus:
            from analysis.measure import memory  # imports CUDA, which a machine may lack

            stream = memory.new_stream()
        bound = rig.bind(variant, case, stream)
        print(f"{study.name}/{variant.name} {case.id}\npayload: {case.payload_bytes} B")
        bound.poison_and_launch()
        if arguments.single_launch:
            return
        if wrong := bound.check():
            raise HotpathError(f"wrong output: {wrong}")
        print("output: every byte verified")
        for _ in range(WARM_UP_LAUNCHES):
            bound.launch()
        _report(study, bound, case, arguments.iters)


def _report(study: Study, bound: Bound, case: Case, launches: int) -> None:
    """Time and print every metric of the study's that the variant has here."""
    own_samples = bound.operation.own_samples(bound.stream, launches)
    seconds = {}
    if bound.variant.on_gpu and "gpu_time" in study.metrics:
        from analysis.measure import memory

        seconds["device"] = memory.device_seconds(bound.operation, bound.stream, launches)
    if "host_time" in study.metrics:
        times = bound.host_times(launches, warm=case.warm)
        seconds["host"] = statistics.median(taken["host_time"] for taken in times)
    for clock, latency in seconds.items():
        line = f"{clock}: latency {latency * 1e3:.4f} ms"
        if case.payload_bytes:
            rate = case.payload_bytes / latency
            line += f", throughput {rate / 1e9:.2f} GB/s = {rate / 2**30:.2f} GiB/s"
        print(line)
    for name, values in own_samples.items():
        require_known("own_samples", name, study.metrics)
        metric = study.metrics[name]
        print(f"{metric.label}: {metric.write(statistics.median(map(float, values)))}")


if __name__ == "__main__":
    fail_in_one_line(lambda: main(sys.argv[1:]))
