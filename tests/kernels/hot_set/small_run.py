"""A few small steps of variants on the GPU, for compute-sanitizer, after a build of the study:

    compute-sanitizer --tool racecheck python -m tests.kernels.hot_set.small_run table_lru

Without a name, it runs all compiled variants. With `--smallest`, racecheck takes one and a half
minutes for a variant with graphs, and with more steps many.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.modules import built_modules, load_module
from kernels.hot_set.traces import Shape
from tests.kernels.hot_set import on_gpu

SHAPE = Shape(requests=2, topk=64, slots=96, context_rows=512, steps=4)
SMALLEST = replace(SHAPE, requests=1, topk=32, steps=1)
TRACES = ("twice", "all_new")


def main() -> int:
    """1 if a step of a variant is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [variant.name for variant in on_gpu.VARIANTS if variant.is_compiled]
    parser.add_argument("variants", metavar="VARIANT", nargs="*", help=", ".join(names))
    parser.add_argument("--smallest", action="store_true", help="a step of one request, one trace")
    arguments = parser.parse_args()
    shape, traces = (SMALLEST, TRACES[:1]) if arguments.smallest else (SHAPE, TRACES)
    settings = [on_gpu.Setting(trace, shape, share_32nds=on_gpu.EQUAL_SHARE) for trace in traces]
    chosen = arguments.variants or names
    if unknown := set(chosen) - set(names):
        parser.error(f"VARIANT: expected one of {', '.join(names)}, got {', '.join(unknown)}")
    modules = built_modules(resolve_arch("auto", [0]))
    is_right = True
    with on_gpu.pinned_pool() as pool:
        for name in chosen:
            variant = on_gpu.HOT_SET.variant(name)
            module = load_module(modules, on_gpu.HOT_SET, variant)
            for setting in settings:
                operation = on_gpu.bound(variant, module, pool, setting)
                wrong = on_gpu.first_difference(operation, 0, shape.steps)
                print(f"{name}, {setting.trace}: {wrong or 'right'}", flush=True)
                is_right = is_right and wrong is None
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
