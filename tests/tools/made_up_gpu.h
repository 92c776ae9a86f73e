// A runtime for the programs of tools/ without a GPU. Kernels of reach.cu take the time that a
// made-up GPU would need, which the environment describes in SI units: HELD translations of COVERS
// bytes, WALK seconds and DOUBLING more for each doubled pool, a link of LINK bytes per second.
#pragma once

#include <cmath>
#include <cstdlib>

#include "kernels_on_cpu.h"
#undef __CUDACC__

inline int __clzll(uint64_t number) { return __builtin_clzll(number); }

inline uint64_t tick() {
  static uint64_t ns = 0;
  return ns += 5000;
}

inline double given(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atof(text) : otherwise;
}

// A launch of reach.cu's gather, by its Walk.
template <class Walk>
void gather_on_made_up_gpu(const Walk& walk) {
  const double covers = given("COVERS", 65536), held = given("HELD", 4096), row = double(walk.row);
  const double places = double(walk.places), link = row / given("LINK", 50e9);
  const double needed = std::min(places, places * double(walk.stride) / covers);
  const double walk_s = given("WALK", 20e-9) + given("DOUBLING", 3e-9) * std::log2(needed / held);
  const double walks_s = (1 - held / needed) * walk_s * (1 + (row - 16) / covers);
  const double seconds = walk.turns != 0 && needed > held ? std::max(link, walks_s) : link;
  elapsed_ms = static_cast<float>(seconds * (1 << 18) * 1e3);
}
