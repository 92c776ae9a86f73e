"""Only kernels with unchanged instructions are proved the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.results.migrate.device_code import DeviceCode
from analysis.results.migrate.host_code import Different
from tests.compiled import kept, run, toolchain

KERNEL = """
namespace NAME {
constexpr int kWarp = 32;
struct Rows {
  const int4* from;
  int4* to;
  long count;
};
__device__ inline int lane() { return threadIdx.x % kWarp; }
extern "C" __global__ void __launch_bounds__(BLOCK) NAME(const Rows rows) {
  __shared__ int4 held[HELD];
  const long row = (static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (row >= rows.count) return;
  const int4* from = rows.from + row * 64;
  int4* to = rows.to + row * 64;
  int4 loaded[2];
#pragma unroll UNROLL
  for (int turn = 0; turn < 2; ++turn) loaded[turn] = LOAD(from + turn * kWarp + lane());
  held[lane()] = loaded[0];
  __syncwarp();
  STORES
  to[2 * kWarp + lane()].x = row + OFFSET;
}
}  // namespace NAME
"""
IN_ORDER = """
  to[lane()] = held[kWarp - 1 - lane()];
  to[kWarp + lane()] = loaded[1];
"""
USUAL = {"OFFSET": "3", "BLOCK": "256", "HELD": "32", "UNROLL": "2", "LOAD": "__ldcs",
         "STORES": IN_ORDER}  # fmt: skip
CHANGES: dict[str, dict[str, str]] = {
    "same_but_renamed": {},
    "same_with_comments": {"STORES": f"// in order{IN_ORDER}"},
    "same_with_a_named_count": {"HELD": "kWarp"},
    "lost_hint": {"LOAD": "*"},
    "other_hint": {"LOAD": "__ldcg"},
    "no_unrolling": {"UNROLL": "1"},
    "other_stores": {"STORES": IN_ORDER.replace("loaded[1]", "loaded[0]")},
    "other_element": {"STORES": IN_ORDER.replace("- 1 -", "- 2 -")},
    "more_shared_memory": {"HELD": "64"},
    "other_constant": {"OFFSET": "4"},
    "other_block": {"BLOCK": "128"},
    "more_blocks_on_an_sm": {"BLOCK": "256, 8"},
    "blocks_in_a_cluster": {"BLOCK": "256) __cluster_dims__(2"},
    "barrier_of_the_block": {"STORES": f"__syncthreads();{IN_ORDER}"},
    "fence": {"STORES": f"__threadfence();{IN_ORDER}"},
}


def source(name: str, changed: dict[str, str]) -> str:
    text = KERNEL.replace("NAME", name)
    for word, value in (USUAL | changed).items():
        text = text.replace(word, value)
    return text


VARIABLES = """
__constant__ int table[4] = {1, 2, 3, 4};
__device__ long before = 5;
__device__ long first = 6;
__device__ long second = 6;
extern "C" __global__ void reader(long* to, int n) {
  to[n] = table[n] * first;
  switch (n) {
    case 0: to[1] += 2; break;
    case 1: to[7] *= 3; break;
    case 2: to[5] ^= to[3]; break;
    case 3: to[0] = 9; break;
    case 4: to[2] /= to[8]; break;
  }
}
"""
OTHER_VARIABLES = {
    "another constant in a table": ("3, 4}", "3, 5}"),
    "another value to begin with": ("first = 6", "first = 7"),
    "another variable": ("* first", "* second"),
    "another alignment": ("__device__ long first", "__device__ alignas(64) long first"),
    "cases of a switch that change places": ("case 1: to[7] *= 3; break;\n    case 2: to[5]",
                                             "case 2: to[7] *= 3; break;\n    case 1: to[5]"),
}  # fmt: skip


@pytest.fixture(scope="module")
def code() -> DeviceCode:
    """All changed kernels in one object, with the originals."""
    names = {"usual": {}, **CHANGES}
    return compiled("\n".join(source(name, changed) for name, changed in names.items()))


def compiled(text: str) -> DeviceCode:
    def make(folder: Path) -> None:
        (folder / "kernels.cu").write_text(text)
        flags = ["-gencode=arch=compute_90,code=sm_90", "-lineinfo", "-O3"]
        command = [str(toolchain().nvcc), *flags, "-c", str(folder / "kernels.cu")]
        run(*command, "-o", str(folder / "kernels.o"))

    return DeviceCode(kept("migrated-kernels", [text], make) / "kernels.o")


@pytest.mark.parametrize("name", CHANGES)
def test_kernel_is_the_same_exactly_if_its_machine_code_is(code: DeviceCode, name: str) -> None:
    if name.startswith("same"):
        assert code.compare("usual", code, name)
    else:
        with pytest.raises(Different, match="usual"):
            code.compare("usual", code, name)


def test_removed_kernel_is_named(code: DeviceCode) -> None:
    with pytest.raises(Different, match="gone: no machine code of that name"):
        code.compare("usual", code, "gone")


def test_a_variable_may_have_another_name() -> None:
    renamed = VARIABLES.replace("table", "factors").replace("second", "other")
    assert compiled(VARIABLES).compare("reader", compiled(renamed), "reader")


@pytest.mark.parametrize(
    "change",
    [
        *("another variable", "cases of a switch that change places"),
        *(
            pytest.param(f"another {what}", marks=pytest.mark.long)
            for what in ("constant in a table", "value to begin with", "alignment")
        ),
    ],
)
def test_data_of_a_kernel_count(change: str) -> None:
    old, new = OTHER_VARIABLES[change]
    assert VARIABLES.count(old) == 1
    with pytest.raises(Different):
        compiled(VARIABLES).compare("reader", compiled(VARIABLES.replace(old, new)), "reader")
