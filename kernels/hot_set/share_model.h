// Share of the missing rows that the SMs read in place while the CPU packs the others.
#pragma once

#include <cmath>
#include <cstdint>

#include "operator.h"

// The SMs start at once. A row in place takes a page walk or its time on the link, whichever is
// longer. The first packed rows arrive later; then a row takes the threads' time to pack it, which
// depends on the host and is measured. All rows share the link. If it binds, a range of shares
// takes the same time, and the middle one is chosen; otherwise both sides end together. The walks
// are those of the study `translation`, in the form of analysis/results/model/translation.py for
// streaming reads.
struct ShareModel {
  float entries;       // translations that cover the pool
  float link_row_s;    // a row on the link
  float packed_row_s;  // a row by all threads that pack
  float head_start_s;  // of the reads in place
  int fixed_32nds;     // a given share instead, or kChosen

  static constexpr float kEntryBytes = 65536;     // memory that one translation covers
  static constexpr float kEntriesPerRegion = 32;  // in an entry of the level above
  static constexpr float kRegionsPerLine = 8;     // entries of that level in a line of L2
  static constexpr float kHeldEntries = 9062;     // calibrated on an H200, as all below
  static constexpr float kHeldRegions = 480;
  static constexpr float kWalkS = 19.5e-9F;
  static constexpr float kRegionWalkS = 6.7e-9F;
  static constexpr float kTableMissS = 10.1e-9F;
  static constexpr float kMinGain = 1.03F;        // for which the CPU takes part
  static constexpr float kLinkBytesPerS = 44e9F;  // of packed rows beside rows in place

  ShareModel(int64_t pool_bytes, int row_bytes, float packed_row_s, float head_start_s,
             int fixed_32nds)
      : entries(static_cast<float>(pool_bytes) / kEntryBytes),
        link_row_s(static_cast<float>(row_bytes) / kLinkBytesPerS),
        packed_row_s(packed_row_s),
        head_start_s(head_start_s),
        fixed_32nds(fixed_32nds) {}

  // Tests for a pool from which the SMs read at the rate of the link.
  HOST_DEVICE bool is_within_reach() const { return entries <= kHeldEntries; }

  // Expected number of distinct `places` that `visits` to random ones hit.
  HOST_DEVICE static float visited(float places, float visits) {
    return -places * expm1f(-visits / places);
  }

  // Time of one of `rows` rows in place.
  HOST_DEVICE float row_in_place_s(float rows) const {
    const float held = fminf(kHeldEntries, visited(entries, 2 * rows));
    const float walks = 1 - fminf(held / entries, 1.0F);
    const float regions = entries / kEntriesPerRegion;
    const float elsewhere = fmaxf(1 - kHeldRegions / regions, 0.0F);
    const float touched = fmaxf(rows * walks, 1.0F);
    const float first = visited(entries, touched) / touched;
    const float first_above = visited(regions / kRegionsPerLine, touched) / touched;
    const float walk_s = kWalkS + kRegionWalkS * elsewhere + kTableMissS * (first + first_above);
    return fmaxf(walks * walk_s, link_row_s);
  }

  HOST_DEVICE int64_t rows_in_place(int64_t rows) const {
    if (fixed_32nds != kChosen) {
      return rows * fixed_32nds / 32;
    }
    if (is_within_reach()) {
      return rows;
    }
    const auto count = static_cast<float>(rows);
    const float in_place_s = row_in_place_s(count);
    const float balanced_s =
        in_place_s * (head_start_s + count * packed_row_s) / (in_place_s + packed_row_s);
    const float early = head_start_s / in_place_s;  // rows in place before the first packed one
    const float link_s = head_start_s + fmaxf(count - early, 0.0F) * link_row_s;
    const float seconds = fmaxf(balanced_s, link_s);
    if (in_place_s * count <= kMinGain * seconds) {
      return rows;
    }
    const float most = seconds / in_place_s;
    const float least = fmaxf(count - (seconds - head_start_s) / packed_row_s, 0.0F);
    return static_cast<int64_t>((least + most) / 2);
  }
};
