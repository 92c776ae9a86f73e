// Protocol between a running kernel and the threads that pack missing rows for it. All of it lies
// in pinned host memory, and every word carries the number of its launch, so nothing is reset.
#pragma once

#include <cstdint>

#include "../common/launch_flag.h"
#include "../common/rows.h"

// A launch number in the upper half, a value in the lower one, padded as a LaunchFlag.
struct alignas(64) LaunchValue {
  uint64_t word;
};

// Requests are numbered from 0 in each launch. The CPU packs those in [first, end) in pieces, from
// the last one on; the kernel reads the others in place. A kernel may read further ones in place,
// from `first` on, until it meets the CPU. Each side claims requests before it begins them. Both
// may claim the same ones, which are then copied twice.
struct MissRequests {
  uint64_t* rows;            // [max_rows], by the kernel: launch number, then row of the pool
  LaunchValue* first;        // by the kernel
  LaunchValue* end;          // by the kernel
  LaunchValue* in_place;     // by the kernel: it has claimed requests below
  LaunchValue* by_cpu;       // by the CPU: it has claimed requests from here on
  const uint8_t* staging;    // [ring_rows] packed rows
  const LaunchFlag* packed;  // [pieces], by the CPU
  LaunchFlag* read;          // [pieces], by the kernel: the piece's ring slot is free
  int64_t ring_rows;
  uint32_t launch_id;
};

HOST_DEVICE inline uint64_t tagged(uint32_t launch_id, uint32_t value) {
  return uint64_t{launch_id} << 32 | value;
}

// How the requests that the CPU packs divide into pieces, the same on both sides. Row 0 of the
// pieces is the last request. Few requests make small pieces, so that
// all threads have some; many make large ones, so that flags cost little.
struct Pieces {
  static constexpr int64_t kMinRows = 8;
  static constexpr int64_t kMaxRows = 64;
  static constexpr int64_t kPieces = 1024;  // of a launch, within the limits of a piece

  int64_t rows;        // of all pieces
  int64_t piece_rows;  // of a piece; the last one may have fewer
  int64_t count;
  int64_t ring_pieces;  // that fit in the ring

  HOST_DEVICE Pieces(int64_t rows, int64_t ring_rows) : rows(rows) {
    piece_rows = rows / kPieces;
    piece_rows = piece_rows < kMinRows ? kMinRows : piece_rows > kMaxRows ? kMaxRows : piece_rows;
    count = (rows + piece_rows - 1) / piece_rows;
    ring_pieces = ring_rows / piece_rows;
  }

  // Place of a row in the ring, in rows.
  HOST_DEVICE int64_t ring_row(int64_t row) const { return row % (ring_pieces * piece_rows); }

  HOST_DEVICE static int64_t max_count(int64_t max_rows) { return max_rows / kMinRows + 1; }
};
