"""Run one variant by itself and print its latency and throughput.

    python -m analysis.bench h2d_gather v3_loads_first --bs 128 --topk 2048 --iters 10 --warmup 2
    ncu python -m analysis.bench h2d_gather v3_loads_first --single-launch

The variant's case keys and the study's constants are its options; their defaults are the headline
case, or the variant's first one where it does not have that.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis.cli import fail_in_one_line
from analysis.config import BUILD
from analysis.errors import FieldError, HotpathError
from analysis.expression import evaluate
from analysis.gpu import open_gpu
from analysis.measure.cell import Operation
from analysis.measure.needs import Provision
from analysis.measure.round import host_times
from analysis.modules import load_module, load_python
from analysis.study import Case, CaseValue, Study, Variant, discover
from analysis.toolchain.compilers import find_toolchain, resolve_arch

GIB = 2**30


def options(study: Study, variant: Variant) -> argparse.ArgumentParser:
    """The command line of a variant: its case keys and constants, and how often to launch."""
    parser = argparse.ArgumentParser(
        prog=f"python -m analysis.bench {study.name} {variant.name}", description=variant.title
    )
    for key, value in default_case(study, variant).values.items():
        known = sorted({case[key] for case in variant.cases if key in case.values}, key=str)
        kind: dict[str, Any] = {"choices": known} if isinstance(value, str) else {"type": _count}
        parser.add_argument(_option(key), default=value, help=f"default: {value}", **kind)
    for key, number in study.constants.items():
        parser.add_argument(_option(key), type=_count, help=f"default: {number}, or the variant's")
    parser.add_argument("--iters", type=_count, default=10, help="timed launches (10)")
    parser.add_argument("--warmup", type=_count, default=2, help="launches before them (2)")
    parser.add_argument("--seed", type=int, default=0, help="of data and indices (0)")
    parser.add_argument("--gpu", type=int, default=0, help="index of the GPU (0)")
    parser.add_argument(
        "--single-launch", action="store_true", help="launch once and stop, for a profiler"
    )
    return parser


def default_case(study: Study, variant: Variant) -> Case:
    """The study's headline, where the variant has it, else the first of its cases."""
    return next((case for case in variant.cases if case.id == study.headline), variant.cases[0])


def _option(key: str) -> str:
    return "--" + key.replace("_", "-")


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, got {text}")
    return value


def case_of(
    study: Study, variant: Variant, arguments: argparse.Namespace
) -> tuple[Case, dict[str, int]]:
    """The case and constants that the command line asks for; they need not be in study.yaml."""
    values: dict[str, CaseValue] = {
        key: getattr(arguments, key) for key in default_case(study, variant).values
    }
    asked = {key: getattr(arguments, key) for key in study.constants}
    constants = {
        key: own if asked[key] is None else asked[key] for key, own in variant.constants.items()
    }
    payload = evaluate(variant.payload, {**constants, **values})
    return Case(values, payload, "full"), constants


def main(words: Sequence[str]) -> None:
    studies = discover()
    if not words or words[0] not in studies:
        raise FieldError("study", f"one of {sorted(studies)}", words[0] if words else "nothing")
    study = studies[words[0]]
    names = argparse.ArgumentParser(
        prog=f"python -m analysis.bench {study.name}",
        description=study.title,
        epilog="VARIANT --help lists what else can be chosen.",
    )
    names.add_argument("variant", choices=study.variant_names)
    variant = study.variant(names.parse_args(words[1:2]).variant)
    arguments = options(study, variant).parse_args(words[2:])
    case, constants = case_of(study, variant, arguments)
    toolchain = find_toolchain()
    if variant.on_gpu:
        with open_gpu(arguments.gpu) as gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu.uuid
            unmet = Provision(gpu, toolchain.version).unmet(variant)
    else:
        unmet = Provision(None, toolchain.version, libfabric=toolchain.libfabric is not None).unmet(
            variant
        )
    if unmet:
        raise HotpathError(f"{study.name}/{variant.name}: {unmet}")
    module = load_module(BUILD / "modules" / resolve_arch("auto", arguments.gpu), study, variant)
    workload = load_python(study, "workload").Workload(
        constants, np.random.default_rng(arguments.seed)
    )
    workload.prepare(case)
    operation: Operation = workload.bind(variant, module)
    stream, wait = _stream(variant)
    print(f"{study.name}/{variant.name} {case.id}")
    print(f"payload: {case.payload_bytes} B")
    operation.poison()
    operation.launch(stream)
    wait()
    if arguments.single_launch:
        return
    if wrong := operation.check():
        raise HotpathError(f"wrong output: {wrong}")
    print("output: every byte verified")
    if operation.settle:
        operation.settle()
    for _ in range(arguments.warmup):
        operation.launch(stream)
    wait()
    if variant.on_gpu:
        report("device", _device_seconds(operation, stream, arguments.iters), case)
    times = host_times(operation, stream, wait, arguments.iters, variant.host_work)
    host = sorted(each["host_time"] for each in times)
    report("host", host[len(host) // 2], case)


def report(clock: str, seconds: float, case: Case) -> None:
    """Print latency in ms and, where bytes move, throughput in GB/s (1e9) and GiB/s (2^30)."""
    line = f"{clock}: latency {seconds * 1e3:.4f} ms"
    if case.payload_bytes:
        rate = case.payload_bytes / seconds
        line += f", throughput {rate / 1e9:.2f} GB/s = {rate / GIB:.2f} GiB/s"
    print(line)


def _stream(variant: Variant) -> tuple[int, Callable[[], None]]:
    if not variant.on_gpu:
        return 0, lambda: None
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda, synchronize

    stream = int(cuda(cudart.cudaStreamCreate()))
    return stream, lambda: synchronize(stream)


def _device_seconds(operation: Operation, stream: int, iters: int) -> float:
    """Mean seconds of `iters` launches between two events, as the write-ups measure."""
    from cuda.bindings import runtime as cudart

    from analysis.measure.memory import cuda

    start, stop = cuda(cudart.cudaEventCreate()), cuda(cudart.cudaEventCreate())
    cuda(cudart.cudaEventRecord(start, stream))
    for _ in range(iters):
        operation.launch(stream)
    cuda(cudart.cudaEventRecord(stop, stream))
    cuda(cudart.cudaEventSynchronize(stop))
    return float(cuda(cudart.cudaEventElapsedTime(start, stop))) / 1e3 / iters


if __name__ == "__main__":
    fail_in_one_line(lambda: main(sys.argv[1:]))
