"""Host code of variants, linked with a CUDA runtime that has no GPU."""

import ctypes
import importlib.util
import re
from pathlib import Path
from typing import Any

from analysis.study import Study
from analysis.toolchain.compile import defines
from analysis.toolchain.modules import COMPILED_NAME
from tests.compiled import QUICK, bindings_object, host_flags, object_file, program, toolchain

HERE = Path(__file__).parent
YIELDING = f"-include{HERE / 'yielding.h'}"
QUIET = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
LAUNCH = re.compile(r"(\w+(?:<[^<>]*>)?)<<<(.+?), (\w+)(?:, 0, (\w+))?>>>\(((?s:.*?))\);")


def on_cpu() -> list[str]:
    """Flags for sources whose kernels are functions of the host."""
    return [f"-I{HERE}", f"-isystem{toolchain().include}", *QUIET]


def launches_as_calls(text: str) -> str:
    """CUDA source with its launches as calls of kernels_on_cpu.h."""

    def call(found: re.Match[str]) -> str:
        kernel, blocks, threads, stream, arguments = found.groups("nullptr")
        return f"launch_on_cpu({blocks}, {threads}, {stream}, [=] {{ {kernel}({arguments}); }});"

    return LAUNCH.sub(call, text)


def runtime(*flags: str) -> Path:
    """The object of the runtime, compiled once for all programs with these flags of sanitizers."""
    settings = ["-std=c++17", "-O1", "-fPIC", "-pthread", f"-isystem{toolchain().include}", *flags]
    return object_file(HERE / "cudart.cpp", HERE, settings)


def stubbed(
    study: Study, name: str, *flags: str, source: Path | None = None, bindings: Study | None = None
) -> Any:
    """The module of a variant, or of another source of it whose kernels are functions of the host,
    with these flags, with the runtime, and the bindings of its study or of another. Its `runtime`
    has the functions of the runtime."""
    variant = study.variant(name)
    # Unoptimised, kernels would take longer than the compiler.
    settings = [*host_flags("-O1" if source else QUICK), "-shared", YIELDING, *variant.flags]
    settings += [*flags, *defines(study.constants)]
    # Of functions that several objects have, the first one's are linked: those that yield.
    sources = source or variant.path, runtime(), bindings_object(bindings or study, QUICK)
    out = program(f"{name}.so", sources, study.folder, settings, "-pthread")
    spec = importlib.util.spec_from_file_location(f"{out}.{COMPILED_NAME}", out)
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.runtime = ctypes.CDLL(module.__file__)
    return module
