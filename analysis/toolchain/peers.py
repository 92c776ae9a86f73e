"""Operators that serving engines ship: compile them from their packages' sources, and load them.

python -m analysis.toolchain.peers STUDY VARIANT    load a shipped operator, or say why not
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from analysis import ROOT
from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.study import Study, Variant, find_study
from analysis.study.peers import FOLDER, folder_of, unmet
from analysis.toolchain.compilers import compiling, find_toolchain
from analysis.toolchain.modules import load_python

BUILT: Final = FOLDER / "built"
LOAD_LIMIT_S: Final = 300.0
HOPPER: Final = (9, 0)
VLLM_MACROS: Final = ("-DUSE_CUDA", "-DENABLE_FP8", "-DTORCH_TARGET_VERSION=0x020B000000000000ULL")
"""It uses the stable interface of torch 2.11."""
FFI_HEADERS: Final = (
    "container/tensor.h",
    "dtype.h",
    "error.h",
    "extra/c_env_api.h",
    "function.h",
)


def sglang_module(file: str, exports: Mapping[str, str]) -> Any:
    """The module of a kernel file of sglang's, compiled with the flags of its own compiler.

    exports: C++ expressions of the functions by their exported names, without parentheses
    """
    root, ffi = folder_of("sglang"), folder_of("apache-tvm-ffi") / "tvm_ffi"
    kernels = root / "sglang" / "kernels" / "jit"
    text = "".join(f"#include <tvm/ffi/{name}>\n" for name in FFI_HEADERS)
    text += f'#include "{kernels / "csrc" / "kvcacheio" / file}"\nnamespace sglang {{\n'
    for name, function in exports.items():
        text += f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, ({function}));\n"
    includes = [ffi / "include", ffi / "3rdparty" / "dlpack" / "include", kernels / "include"]
    major, minor = _capability()
    flags = ["-std=c++20", "--expt-relaxed-constexpr", f"-DSGL_CUDA_ARCH={major}{minor}0"]
    flags += [f"-I{path}" for path in includes]
    path = _compiled(Path(file).stem, f"{text}}}\n", flags, [f"-L{ffi / 'lib'}", "-ltvm_ffi"])
    tvm_ffi = _imported("tvm_ffi", ffi.parent)
    return tvm_ffi.load_module(str(path))


def vllm_operators(file: str, names: Iterable[str], device: str) -> Any:
    """The operators `names` of a kernel file of vLLM's, as `torch.ops` has them.

    device: CUDA or CPU, where their first tensors lie
    """
    import torch

    csrc = folder_of("vllm") / "csrc"
    declared = (csrc / "torch_bindings.cpp").read_text()
    define, implement = "", ""
    for name in names:
        found = re.search(rf'ops\.def\(\s*"{name}\(.*?\);', declared, re.DOTALL)
        if not found:
            raise HotpathError(f"vLLM: expected the operator {name} in {csrc.name}, got none")
        define += f"  {found[0]}\n"
        implement += f'  ops.impl("{name}", TORCH_BOX(&{name}));\n'
    text = (
        f'#include "{csrc / file}"\n#include <torch/csrc/stable/library.h>\n'
        f"STABLE_TORCH_LIBRARY_FRAGMENT(_C_cache_ops, ops) {{\n{define}}}\n"
        f"STABLE_TORCH_LIBRARY_IMPL(_C_cache_ops, {device}, ops) {{\n{implement}}}\n"
    )
    root = Path(torch.__file__).parent
    includes = [csrc, root / "include", root / "include/torch/csrc/api/include"]
    # The headers of cuBLAS, which vLLM's need, may lie beside torch only.
    includes += sorted(path.parent for path in root.parent.glob("nvidia/*/include/cublas_v2.h"))
    flags = ["-std=c++20", "--expt-relaxed-constexpr", *VLLM_MACROS]
    flags += [word for path in includes for word in ("-isystem", str(path))]
    libraries = ["-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-lc10_cuda"]
    path = _compiled(Path(file).stem, text, flags, [f"-L{root / 'lib'}", *libraries])
    _load_library(path)
    return torch.ops._C_cache_ops


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


def sglang_kernel_operators() -> Any:
    """The operators of the sglang-kernel wheel, as `torch.ops` has them."""
    import torch

    _load_library(folder_of("sglang-kernel") / "sgl_kernel" / "sm90" / "common_ops.abi3.so")
    return torch.ops.sgl_kernel


def flash_mla_operators() -> Any:
    """FlashMLA's operators, as the sglang-kernel wheel has them for `torch.ops`."""
    import torch

    _load_library(folder_of("sglang-kernel") / "sgl_kernel" / "flashmla_ops.abi3.so")
    return torch.ops.sgl_kernel


def _compiled(name: str, text: str, flags: Sequence[str], link: Sequence[str]) -> Path:
    """The shared library of this CUDA code, which is compiled once. HotpathError with the
    compiler's first error."""
    toolchain = find_toolchain()
    command = [str(toolchain.nvcc), *_target(), "-O3", *flags]
    command += ["-Xcompiler", "-fPIC", "-shared", "--no-device-link"]
    command += [*(f"-L{path}" for path in toolchain.libraries), *link]
    key = "\0".join([*command, toolchain.version, text])
    path = BUILT / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if path.exists():
        return path
    BUILT.mkdir(parents=True, exist_ok=True)
    source, partial = path.with_suffix(f".{os.getpid()}.cu"), path.with_suffix(f".{os.getpid()}")
    source.write_text(text)
    done = subprocess.run(
        [*command, "-o", str(partial), str(source)],
        env=compiling(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        printed = f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        path.with_suffix(".log").write_text(printed)
        errors = re.findall(r".*error.*", done.stderr) or [f"exit code {done.returncode}"]
        raise HotpathError(f"{name} does not compile: {errors[0].strip()}")
    source.unlink()
    partial.rename(path)
    return path


def _target() -> list[str]:
    major, minor = _capability()
    suffix = "a" if major >= HOPPER[0] else ""
    arch = f"{major}{minor}{suffix}"
    return [f"-gencode=arch=compute_{arch},code=sm_{arch}"]


@cache
def _capability() -> tuple[int, int]:
    """The GPU's compute capability; without a GPU that of Hopper, to try whether it compiles."""
    import torch

    return torch.cuda.get_device_capability() if torch.cuda.is_available() else HOPPER


def _imported(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def _load_library(path: Path) -> None:
    import torch

    # The libraries call the driver, but are not linked with it.
    ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    torch.ops.load_library(str(path))


def unusable(variant: Variant) -> str | None:
    """The reason why the packages of a variant cannot be used here, or None: one is not installed,
    does not compile or does not load. Each is loaded in a process of its own, once."""
    reason = unmet(variant.packages)
    if reason or not variant.packages or variant.is_compiled:  # its packages are called elsewhere
        return reason
    return _reasons(variant.path.parent.name)[variant.name]


@cache
def _reasons(study: str) -> Mapping[str, str | None]:
    """Why shipped operators of a study do not load, by variant."""
    variants = [one for one in find_study(study).variants if one.packages and not one.is_compiled]
    with ThreadPoolExecutor() as threads:
        reasons = list(threads.map(lambda one: _try(study, one), variants))
    return {one.name: reason for one, reason in zip(variants, reasons, strict=True)}


def _try(study: str, variant: Variant) -> str | None:
    if reason := unmet(variant.packages):
        return reason
    command = [sys.executable, "-m", "analysis.toolchain.peers", study, variant.name]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"does not load within {LOAD_LIMIT_S:g} s"
    if not done.returncode:
        return None
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return f"does not load: {lines[-1][:300]}"


def load(study: Study, variant: Variant) -> None:
    """Load a shipped operator by the function `load` of the variant's file."""
    load_python(study, variant.path.stem).load(**variant.options)


def main() -> None:
    parser = program("analysis.toolchain.peers", __doc__)
    parser.add_argument("study")
    parser.add_argument("variant")
    arguments = parser.parse_args()
    study = find_study(arguments.study)
    load(study, study.variant(arguments.variant))


if __name__ == "__main__":
    fail_in_one_line(main)
