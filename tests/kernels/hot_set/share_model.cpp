// Properties of the chosen share of misses in place. Ends with 1 and says which one is missing.
#include "share_model.h"

#include "../pool_gather/sparse_pool.h"

namespace {

constexpr int64_t kMib = int64_t{1} << 20;

ShareModel model(int64_t pool_mib, int64_t threads = 14, int fixed_32nds = kChosen) {
  return {pool_mib * kMib, kRowBytes, 180e-9F / static_cast<float>(threads), 10e-6F, fixed_32nds};
}

void expect_properties(int64_t pool_mib, int64_t rows) {
  const std::string what = std::to_string(rows) + " rows of " + std::to_string(pool_mib) + " MiB: ";
  const int64_t in_place = model(pool_mib).rows_in_place(rows);
  expect(in_place >= 0 && in_place <= rows, what + "a share beyond the rows");
  // Rounding may move a row.
  expect(model(2 * pool_mib).rows_in_place(rows) <= in_place + 1,
         what + "a larger pool has more of them in place");
  expect(model(pool_mib, 2).rows_in_place(rows) + 1 >= in_place,
         what + "with fewer threads, fewer are in place");
  expect(model(pool_mib, 14, 8).rows_in_place(rows) == rows / 4, what + "a given share is changed");
  if (pool_mib <= 512) {
    expect(in_place == rows, what + "within the reach of the TLB, some are packed");
  }
}

}  // namespace

int main() {
  for (const int64_t pool_mib : {1, 188, 512, 2048, 8192, 24576, 40960, 262144}) {
    for (const int64_t rows : {1, 2, 100, 300, 1500, 8000, 41000, 204800}) {
      expect_properties(pool_mib, rows);
    }
    expect(model(pool_mib).rows_in_place(0) == 0, "a share of no rows");
    expect(model(pool_mib).rows_in_place(2) == 2, "few rows wait for the CPU");
  }
  expect(model(40960).rows_in_place(41000) < 41000 / 2, "page walks are not avoided");
}
