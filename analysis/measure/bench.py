"""Run one variant by itself and print its latency and throughput.

    python -m analysis.measure.bench h2d_gather v3_loads_first --bs 128 --topk 2048 --iters 10
    ncu python -m analysis.measure.bench h2d_gather v3_loads_first --single-launch

The variant's case keys and the study's constants are its options; their defaults are the headline
case, or the variant's first one where it does not have that.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from analysis.base.cli import at_least, fail_in_one_line, settings
from analysis.base.errors import FieldError, HotpathError, require_known
from analysis.base.expression import evaluate
from analysis.measure.rig import Bound
from analysis.measure.trials import trials
from analysis.study import Case, CaseValue, Study, Variant, case_id, discover
from analysis.study.config import load_config

GIB = 2**30


def options(study: Study, variant: Variant) -> argparse.ArgumentParser:
    """The command line of a variant: its case keys and constants, and how often to launch."""
    parser = argparse.ArgumentParser(
        prog=f"python -m analysis.measure.bench {study.name} {variant.name}",
        description=variant.title,
    )
    values = default_case(study, variant).values
    for key, value in values.items():
        known = sorted({case[key] for case in variant.cases if key in case.values}, key=str)
        kind: dict[str, Any] = (
            {"choices": known} if isinstance(value, str) else {"type": at_least(0)}
        )
        parser.add_argument(_option(key), default=value, help=f"default: {value}", **kind)
    for key, number in study.constants.items():
        if key in values:
            continue  # a case key has the same name
        parser.add_argument(
            _option(key), type=at_least(1), help=f"default: {number}, or the variant's"
        )
    parser.add_argument("--iters", type=at_least(1), default=10, help="timed launches (10)")
    parser.add_argument("--warmup", type=at_least(0), default=2, help="launches before them (2)")
    parser.add_argument("--seed", type=at_least(0), default=0, help="of data and indices (0)")
    parser.add_argument(
        "--gpu", type=at_least(0), nargs="+", help="indices of the GPUs (the first, and free ones)"
    )
    parser.add_argument(
        "--config", type=settings, default={}, help="overrides of config.yaml, as JSON"
    )
    parser.add_argument(
        "--single-launch", action="store_true", help="launch once and stop, for a profiler"
    )
    return parser


def default_case(study: Study, variant: Variant) -> Case:
    """The study's headline case if the variant has it, else its first case."""
    return variant.case(study.headline) or variant.cases[0]


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def case_of(
    study: Study, variant: Variant, arguments: argparse.Namespace
) -> tuple[Case, dict[str, int]]:
    """The case and constants that the command line asks for; they need not be in study.yaml.
    FieldError where they make no payload."""
    values: dict[str, CaseValue] = {
        key: getattr(arguments, key) for key in default_case(study, variant).values
    }
    asked = {key: getattr(arguments, key) for key in study.constants}
    constants = {
        key: default if asked.get(key) is None else asked[key]
        for key, default in variant.constants.items()
    }
    try:
        payload = evaluate(variant.payload, {**constants, **values})
    except ValueError as error:
        raise FieldError("payload_bytes", f"a whole number ({error})", case_id(values)) from error
    if payload < 0:
        raise FieldError("payload_bytes", "a number of at least 0", payload)
    return Case(values, payload, "full"), constants


def main(words: Sequence[str]) -> None:
    studies = discover()
    parser = argparse.ArgumentParser(
        prog="python -m analysis.measure.bench",
        description="Run one variant by itself.",
        epilog="STUDY VARIANT --help lists what else can be chosen.",
    )
    parser.add_argument("study", help=f"one of {', '.join(sorted(studies))}")
    name = parser.parse_args(words[:1]).study
    require_known("study", name, sorted(studies))
    study = studies[name]
    names = argparse.ArgumentParser(
        prog=f"python -m analysis.measure.bench {study.name}",
        description=study.title,
        epilog="VARIANT --help lists what else can be chosen.",
    )
    names.add_argument("variant", choices=study.variant_names)
    variant = study.variant(names.parse_args(words[1:2]).variant)
    arguments = options(study, variant).parse_args(words[2:])
    case, constants = case_of(study, variant, arguments)
    named = {"gpu": arguments.gpu} if arguments.gpu else {}
    config = load_config({**named, **arguments.config})
    tried = replace(variant, constants=constants)
    purpose = f"trying {study.name}/{variant.name}"
    with trials(study, [tried], config, purpose, arguments.seed) as here:
        bound = here.bind(tried, case)
        print(f"{study.name}/{variant.name} {case.id}")
        print(f"payload: {case.payload_bytes} B")
        bound.poison_and_launch()
        if arguments.single_launch:
            return
        if wrong := bound.check():
            raise HotpathError(f"wrong output: {wrong}")
        print("output: every byte verified")
        _time(study, bound, case, arguments)


def _time(study: Study, bound: Bound, case: Case, arguments: argparse.Namespace) -> None:
    """Warm up, time and print every metric of the study's that the variant has here."""
    for _ in range(arguments.warmup):
        bound.launch()
    own_samples = bound.operation.own_samples(bound.stream, arguments.iters)
    if bound.variant.on_gpu and "gpu_time" in study.metrics:
        seconds = list(_device_seconds(bound, arguments.iters))
        report("device", statistics.mean(seconds), case)
    if "host_time" in study.metrics:
        seconds = [
            times["host_time"] for times in bound.host_times(arguments.iters, warm=case.warm)
        ]
        report("host", statistics.median(seconds), case)
    for name, values in own_samples.items():
        require_known("own_samples", name, study.metrics)
        middle = statistics.median(float(value) for value in values)
        metric = study.metrics[name]
        print(f"{metric.label}: {metric.write(middle)}")


def report(clock: str, seconds: float, case: Case) -> None:
    """Print latency in ms and, where bytes move, throughput in GB/s (1e9) and GiB/s (2^30)."""
    line = f"{clock}: latency {seconds * 1e3:.4f} ms"
    if case.payload_bytes:
        rate = case.payload_bytes / seconds
        line += f", throughput {rate / 1e9:.2f} GB/s = {rate / GIB:.2f} GiB/s"
    print(line)


def _device_seconds(bound: Bound, launches: int) -> Iterator[float]:
    """Seconds between two events around launches: one span of them all, as the write-ups measure;
    one span each where something must come before a launch that is not timed."""
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    operation, stream = bound.operation, bound.stream
    start, stop = cuda(cudart.cudaEventCreate()), cuda(cudart.cudaEventCreate())
    spans = [1] * launches if operation.reset else [launches]
    for count in spans:
        if operation.reset:
            operation.reset(stream)
        cuda(cudart.cudaEventRecord(start, stream))
        for _ in range(count):
            operation.launch(stream)
        cuda(cudart.cudaEventRecord(stop, stream))
        cuda(cudart.cudaEventSynchronize(stop))
        yield float(cuda(cudart.cudaEventElapsedTime(start, stop))) / 1e3 / count


if __name__ == "__main__":
    fail_in_one_line(lambda: main(sys.argv[1:]))
