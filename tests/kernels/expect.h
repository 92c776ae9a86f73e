// The end of a test program that has failed, and a pool of which only rows in use take memory.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

inline void expect(bool holds, const std::string& what) {
  if (!holds) {
    std::printf("%s\n", what.c_str());
    std::fflush(stdout);
    std::_Exit(1);  // threads may wait for good
  }
}

template <class Error, class Call>
bool throws(const Call& call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

inline uint8_t* sparse_pool(size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  expect(made != MAP_FAILED, "no address space for the pool");
  return static_cast<uint8_t*>(made);
}
