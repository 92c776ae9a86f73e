// Threads that share one p4_final over host memory, each with separate marks in its memory.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "allocator.h"

namespace {

// Memory that can be written, so that two owners of one byte are seen.
class HeapSource : public MemorySource {
 public:
  void* allocate(int /*device*/, size_t bytes) override {
    counts_.reserved += bytes;
    return std::aligned_alloc(512, bytes);
  }
  void release(int /*device*/, void* ptr) override { std::free(ptr); }
  Event record(int /*device*/, Stream /*stream*/) override { return ++events_; }
  bool is_done(int /*device*/, Event event) override { return event % 3 != 0; }
  void wait(int /*device*/, Event /*event*/) override {}
  void recycle(int /*device*/, Event /*event*/) override {}
  SourceCounts counts(int /*device*/) const override { return counts_; }
  void reset_counts(int /*device*/) override {}

 private:
  SourceCounts counts_;
  Event events_ = 0;
};

struct Held {
  unsigned char* ptr;
  size_t size;
  unsigned char mark;
};

bool is_intact(const Held& held) {
  return held.ptr[0] == held.mark && held.ptr[held.size - 1] == held.mark;
}

}  // namespace

int main() {
  constexpr int kThreads = 4;
  constexpr int kOperations = 20000;
  HeapSource source;
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      std::vector<Held> live;
      const Place place{0, Stream(thread % 2)};  // two threads share a heap
      for (int i = 0; i < kOperations; ++i) {
        if (live.size() < 20 && random() % 2 == 0) {
          const size_t size = 1 + random() % 20000;
          auto* ptr = static_cast<unsigned char*>(allocator->allocate(size, place));
          live.push_back({ptr, size, static_cast<unsigned char>(thread * 50 + i % 50)});
          ptr[0] = ptr[size - 1] = live.back().mark;
        } else if (!live.empty()) {
          const size_t which = random() % live.size();
          faults += is_intact(live[which]) ? 0 : 1;
          if (random() % 4 == 0) {
            allocator->record_stream(live[which].ptr, {0, 7});
          }
          allocator->deallocate(live[which].ptr, place);
          live.erase(live.begin() + static_cast<long>(which));
        }
        if (i % 500 == 0) {
          allocator->statistics(0);
          allocator->trim(0, size_t{8} << 20);
        }
      }
      for (const Held& held : live) {
        faults += is_intact(held) ? 0 : 1;
        allocator->deallocate(held.ptr, place);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Statistics after = allocator->statistics(0);
  std::printf("%d faults, %zu B active\n", faults.load(), after.active);
  allocator->trim(0, 0);
  return faults == 0 && after.active == 0 && after.requested == 0 ? 0 : 1;
}
