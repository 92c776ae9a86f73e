"""Operators that serving engines ship: compile them from their packages' sources, and load them.

python -m analysis.toolchain.peers STUDY VARIANT    load a shipped operator, or say why not
"""

import ast
import ctypes
import hashlib
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from analysis import ROOT
from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.study import Variant, find_study
from analysis.study.peers import FOLDER, folder_of, unmet
from analysis.toolchain.compilers import find_toolchain, output_of
from analysis.toolchain.modules import load_python

LOAD_LIMIT_S: Final = 300.0
HOPPER: Final = (9, 0)
VLLM_MACROS: Final = ("-DUSE_CUDA", "-DENABLE_FP8", "-DTORCH_TARGET_VERSION=0x020B000000000000ULL")
"""It uses the stable interface of torch 2.11."""
FFI_HEADERS: Final = ("container/tensor.h", "dtype.h", "error.h", "extra/c_env_api.h", "function.h")


def sglang_module(file: str, exports: Mapping[str, str]) -> Any:
    """The module of a kernel file of sglang's, compiled with the flags of its own compiler.

    exports: C++ expressions of the functions by their exported names, without parentheses
    """
    root, ffi = folder_of("sglang"), folder_of("apache-tvm-ffi") / "tvm_ffi"
    kernels = root / "sglang" / "kernels" / "jit"
    lines = [f"#include <tvm/ffi/{name}>" for name in FFI_HEADERS]
    lines += [f'#include "{kernels / "csrc" / "kvcacheio" / file}"', "namespace sglang {"]
    for name, function in exports.items():
        lines.append(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, ({function}));")
    includes = [ffi / "include", ffi / "3rdparty" / "dlpack" / "include", kernels / "include"]
    major, minor = _capability()
    flags = [f"-DSGL_CUDA_ARCH={major}{minor}0", *(f"-I{path}" for path in includes)]
    path = _compiled(file, [*lines, "}"], flags, [f"-L{ffi / 'lib'}", "-ltvm_ffi"])
    return _imported("tvm_ffi", ffi.parent).load_module(str(path))


def vllm_operators(file: str, names: Iterable[str], device: str) -> Any:
    """The operators `names` of a kernel file of vLLM's, as `torch.ops` has them.

    device: CUDA or CPU, where their first tensors lie
    """
    import torch

    csrc = folder_of("vllm") / "csrc"
    declared = (csrc / "torch_bindings.cpp").read_text()
    define, implement = [], []
    for name in names:
        found = re.search(rf'ops\.def\(\s*"{name}\(.*?\);', declared, re.DOTALL)
        if not found:
            raise HotpathError(f"vLLM: expected the operator {name} in {csrc.name}, got none")
        define.append(found[0])
        implement.append(f'ops.impl("{name}", TORCH_BOX(&{name}));')
    lines = [f'#include "{csrc / file}"', "#include <torch/csrc/stable/library.h>"]
    lines += ["STABLE_TORCH_LIBRARY_FRAGMENT(_C_cache_ops, ops) {", *define, "}"]
    lines += [f"STABLE_TORCH_LIBRARY_IMPL(_C_cache_ops, {device}, ops) {{", *implement, "}"]
    root = Path(torch.__file__).parent
    includes = [csrc, root / "include", root / "include/torch/csrc/api/include"]
    # The headers of cuBLAS, which vLLM's need, may lie beside torch only.
    includes += sorted(path.parent for path in root.parent.glob("nvidia/*/include/cublas_v2.h"))
    flags = [*VLLM_MACROS, *(word for path in includes for word in ("-isystem", str(path)))]
    libraries = ["-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-lc10_cuda"]
    return _operators(_compiled(file, lines, flags, [f"-L{root / 'lib'}", *libraries]))._C_cache_ops


def vllm_swap_kernel() -> Any:
    """vLLM's Triton kernel that copies blocks, and its default number of programs."""
    import triton
    import triton.language

    # Stand-ins for the two modules that its file imports; it uses only what they have here.
    vllm, utils = ModuleType("vllm"), ModuleType("vllm.triton_utils")
    vllm._custom_ops = None  # type: ignore[attr-defined]
    utils.tl, utils.triton = triton.language, triton  # type: ignore[attr-defined]
    sys.modules.setdefault("vllm", vllm)
    sys.modules.setdefault("vllm.triton_utils", utils)
    folder = folder_of("vllm") / "vllm" / "v1" / "kv_offload" / "cpu"
    module = _imported("swap_blocks_triton", folder)
    return module._swap_blocks_kernel, module.NUM_SMS


def sglang_engram_gather() -> Any:
    """sglang's function that gathers Engram rows, with a Triton kernel."""
    folder = folder_of("sglang") / "sglang" / "kernels" / "ops" / "embeddings"
    return _imported("engram_gather", folder).engram_gather


def vllm_engram_kernel() -> Any:
    """vLLM's Triton kernel that looks up Engram rows, cut out of its file, which imports vLLM."""
    file = folder_of("vllm") / "vllm" / "models" / "deepseek_v41" / "common" / "engram.py"
    text, name = file.read_text(), "_engram_lookup_kernel"
    nodes = ast.walk(ast.parse(text))
    kernel = next((n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == name), None)
    if kernel is None:
        raise HotpathError(f"vLLM: expected the kernel {name} in {file.name}, got none")
    first = min(line.lineno for line in kernel.decorator_list)
    lines = ["import triton", "import triton.language as tl", ""]
    # False but for AMD's GPUs.
    lines += ["_SORTED_IS_CONSTEXPR = tl.constexpr(False)", ""]
    source = "\n".join([*lines, *text.splitlines()[first - 1 : kernel.end_lineno], ""])
    digest = hashlib.sha256(source.encode()).hexdigest()
    path = FOLDER / "built" / f"engram_lookup_{digest[:16]}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(source)
    return getattr(_imported(partial.rename(path).stem, path.parent), name)


def sglang_kernel_operators() -> Any:
    """The operators of the sglang-kernel wheel, as `torch.ops` has them."""
    folder = folder_of("sglang-kernel") / "sgl_kernel" / "sm90"
    return _operators(folder / "common_ops.abi3.so").sgl_kernel


def flash_mla_operators() -> Any:
    """FlashMLA's operators, as the sglang-kernel wheel has them for `torch.ops`."""
    folder = folder_of("sglang-kernel") / "sgl_kernel"
    return _operators(folder / "flashmla_ops.abi3.so").sgl_kernel


def _compiled(file: str, lines: Iterable[str], flags: Sequence[str], link: Sequence[str]) -> Path:
    """The shared library of these lines of CUDA, which are compiled once; it has the name of
    `file`. HotpathError with the compiler's first error."""
    toolchain = find_toolchain()
    major, minor = _capability()
    arch = f"{major}{minor}{'a' * (major >= HOPPER[0])}"
    command = [str(toolchain.nvcc), f"-gencode=arch=compute_{arch},code=sm_{arch}", "-O3"]
    command += ["-std=c++20", "--expt-relaxed-constexpr", *flags, "-Xcompiler", "-fPIC", "-shared"]
    command += ["--no-device-link", *(f"-L{path}" for path in toolchain.libraries), *link]
    text = "\n".join([*lines, ""])
    key = hashlib.sha256("\0".join([*command, toolchain.version, text]).encode())
    path = FOLDER / "built" / f"{Path(file).stem}-{key.hexdigest()[:16]}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    source, partial = path.with_suffix(f".{os.getpid()}.cu"), path.with_suffix(f".{os.getpid()}")
    source.write_text(text)
    try:
        output_of([*command, "-o", str(partial), str(source)])
    except HotpathError as error:
        path.with_suffix(".log").write_text(str(error))
        first = re.search(r"\n(.*error.*)", str(error))
        reason = first[1].strip() if first else "see its log"
        raise HotpathError(f"{Path(file).stem} does not compile: {reason}") from error
    source.unlink()
    return partial.rename(path)


@cache
def _capability() -> tuple[int, int]:
    """The GPU's compute capability; without a GPU that of Hopper, to try whether it compiles."""
    import torch

    return torch.cuda.get_device_capability() if torch.cuda.is_available() else HOPPER


def _imported(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def _operators(library: Path) -> Any:
    """`torch.ops` with those of a library."""
    import torch

    # The libraries call the driver, but are not linked with it.
    ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    torch.ops.load_library(str(library))
    return torch.ops


def unusable(variant: Variant) -> str | None:
    """The reason why the packages of a variant cannot be used here, or None: one is not installed,
    does not compile or does not load. Each is loaded in a process of its own, once."""
    if variant.packages and not variant.is_compiled:  # else its packages are called elsewhere
        return _reasons(variant.path.parent.name)[variant.name]
    return unmet(variant.packages)


@cache
def _reasons(study: str) -> dict[str, str | None]:
    """Why shipped operators of a study do not load, by variant."""

    def reason(variant: Variant) -> str | None:
        if missing := unmet(variant.packages):
            return missing
        command = [sys.executable, "-m", "analysis.toolchain.peers", study, variant.name]
        try:
            subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_LIMIT_S, check=True
            )
        except subprocess.TimeoutExpired:
            return f"does not load within {LOAD_LIMIT_S:g} s"
        except subprocess.CalledProcessError as error:
            lines = error.stderr.strip().splitlines() or [f"exit code {error.returncode}"]
            return f"does not load: {lines[-1][:300]}"
        return None

    variants = [one for one in find_study(study).variants if one.packages and not one.is_compiled]
    with ThreadPoolExecutor() as threads:
        names = [one.name for one in variants]
        return dict(zip(names, threads.map(reason, variants), strict=True))


def main(study_name: str, variant_name: str) -> None:
    study = find_study(study_name)
    variant = study.variant(variant_name)
    load_python(study, variant.path.stem).load(**variant.options)


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
