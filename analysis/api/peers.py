"""Operators that serving engines ship; imports PyTorch."""

from analysis.toolchain.peers import (
    flash_mla_operators,
    sglang_kernel_operators,
    sglang_module,
    vllm_operators,
    vllm_swap_kernel,
)
