"""Operators that serving engines ship; imports PyTorch."""

from analysis.toolchain.peers import (
    flash_mla_operators,
    sglang_engram_gather,
    sglang_kernel_operators,
    sglang_module,
    vllm_engram_kernel,
    vllm_operators,
    vllm_swap_kernel,
)
