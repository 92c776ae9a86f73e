// Sizes of live blocks by address, for pools whose callers pass the size with each free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Open addressing with linear probing: a pair of put and take costs a few nanoseconds, which a
// table that allocates its entries would not. For one thread.
class SizeTable {
 public:
  // Adds a block that is not in the table; `ptr` is not null.
  void put(void* ptr, size_t size) {
    if (2 * ++count_ > entries_.size()) {
      grow();
    }
    insert({ptr, size});
  }

  // Removes a block; its size, or 0 if the table does not have it.
  size_t take(void* ptr) {
    size_t hole = home(ptr);
    while (entries_[hole].ptr != ptr) {
      if (entries_[hole].ptr == nullptr) {
        return 0;
      }
      hole = next(hole);
    }
    const size_t size = entries_[hole].size;
    --count_;
    // Closes the gap: an entry moves into the hole unless its home lies behind the hole.
    for (size_t i = next(hole); entries_[i].ptr != nullptr; i = next(i)) {
      const size_t from_home = (i - home(entries_[i].ptr)) & mask();
      if (from_home >= ((i - hole) & mask())) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    }
    entries_[hole] = {};
    return size;
  }

 private:
  struct Entry {
    void* ptr = nullptr;
    size_t size = 0;
  };

  size_t mask() const { return entries_.size() - 1; }
  size_t next(size_t i) const { return (i + 1) & mask(); }

  size_t home(const void* ptr) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return (reinterpret_cast<uintptr_t>(ptr) * kGolden >> 32) & mask();
  }

  void insert(Entry entry) {
    size_t i = home(entry.ptr);
    while (entries_[i].ptr != nullptr) {
      i = next(i);
    }
    entries_[i] = entry;
  }

  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.ptr != nullptr) {
        insert(entry);
      }
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1024);  // a power of two
  size_t count_ = 0;
};
