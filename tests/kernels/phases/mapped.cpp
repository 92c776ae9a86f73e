// Random actions over a source that maps pages, everything checked after each: allocator_mapped
//
// Ends with 0 where every allocation has exclusive, mapped memory, blocks tile what is
// mapped, and all of it goes back.
#include <cstdio>
#include <random>

#include "host_source.h"
#include "mapping.h"
#include "pooled_allocator.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

// Ranges far apart on one device; its memory is `capacity` bytes, segments and pages together.
class MappedSource : public HostSource, public Mapping {
 public:
  explicit MappedSource(size_t capacity) : HostSource(capacity) {}

  char* reserve(int /*device*/) override {
    next_ += size_t{1} << 38;
    ranges_[next_];
    return next_;
  }

  bool extend(int device, char* range, size_t bytes) override {
    if (counts(device).reserved + bytes > capacity()) {
      return false;
    }
    ranges_.at(range).push_back(bytes);
    return true;
  }

  size_t shrink(int /*device*/, char* range, size_t keep) override {
    std::vector<size_t>& pieces = ranges_.at(range);
    while (!pieces.empty() && mapped(range) - pieces.back() >= keep) {
      pieces.pop_back();
    }
    return mapped(range);
  }

  void drop(int /*device*/, char* range) override { ranges_.erase(range); }

  SourceCounts counts(int device) const override {
    SourceCounts all = HostSource::counts(device);
    for (const auto& [range, pieces] : ranges_) {
      all.reserved += mapped(range);
    }
    return all;
  }

  // Mapped bytes from `address` on.
  size_t room_at(uintptr_t address) {
    for (const auto& [range, pieces] : ranges_) {
      const auto start = reinterpret_cast<uintptr_t>(range);
      if (address >= start && address < start + mapped(range)) {
        return start + mapped(range) - address;
      }
    }
    for (const auto& [start, size] : ranges(0)) {
      if (address >= start && address < start + size) {
        return start + size - address;
      }
    }
    return 0;
  }

  size_t range_count() const { return ranges_.size(); }

 private:
  size_t mapped(char* range) const {
    size_t sum = 0;
    for (const size_t bytes : ranges_.at(range)) {
      sum += bytes;
    }
    return sum;
  }

  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 44);
  std::map<char*, std::vector<size_t>> ranges_;
};

struct Live {
  void* ptr;
  size_t bytes;
  Stream stream;
};

void require(bool holds, const char* what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

void check_heap(Allocator& allocator, MappedSource& source, const std::vector<Live>& live) {
  size_t tiled = 0, used = 0;
  uintptr_t end = 0, segment = 0;
  for (const BlockInfo& block : allocator.snapshot(0)) {
    require(block.segment != segment ? block.ptr == block.segment : block.ptr == end,
            "a block that does not begin where the one before it ends");
    require(source.room_at(block.ptr) >= block.size, "a block without memory");
    segment = block.segment;
    end = block.ptr + block.size;
    tiled += block.size;
    used += block.state == BlockState::kUsed;
  }
  require(used == live.size(), "another number of live blocks");
  require(tiled == source.counts(0).reserved, "memory that is in no block");
}

// Memory for a batch that grows comes from where the last one was.
void grows_in_place() {
  MappedSource source(8 * kGiB);
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  size_t most = 0;
  for (size_t mib = 16; mib < 32; ++mib) {
    std::vector<void*> held;
    for (int i = 0; i < 8; ++i) {
      held.push_back(allocator->allocate(mib * kMiB, {0, 0}));
    }
    for (void* ptr : held) {
      allocator->deallocate(ptr, {0, 0});
    }
    most = 8 * (mib * kMiB);
  }
  require(source.counts(0).reserved == most, "more reserved than the largest step needs");
}

// The first pages are as many as a segment has, so that what is freed there can fit again.
void begins_with_a_segment() {
  MappedSource source(kGiB);
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  allocator->allocate(3 * kMiB, {0, 0});
  require(source.counts(0).reserved == 20 * kMiB, "no first piece of 20 MiB");
  allocator->set_limit(0, 24 * kMiB);
  allocator->allocate(3 * kMiB, {0, 1});
  require(source.counts(0).reserved == 24 * kMiB, "more than there is room for");
}

// Free blocks between others are used before the end of the range, however well that fits.
void takes_the_end_last() {
  MappedSource source(kGiB);
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  void* before = allocator->allocate(64 * kMiB, {0, 0});
  allocator->allocate(2 * kMiB, {0, 0});
  allocator->deallocate(allocator->allocate(32 * kMiB, {0, 0}), {0, 0});
  allocator->deallocate(before, {0, 0});
  require(allocator->allocate(32 * kMiB, {0, 0}) == before, "the end taken where a hole fits");
}

void random_actions(unsigned seed) {
  MappedSource source(512 * kMiB);
  std::vector<Live> live;
  const std::unique_ptr<Allocator> allocator = make_allocator(source);
  std::mt19937 random(seed);
  for (int i = 0; i < 600; ++i) {
    const unsigned action = random() % 16;
    if (action < 8) {
      const size_t bytes = 1 + random() % (size_t{1} << (10 + random() % 17));
      const Stream stream = random() % 3;
      try {
        void* ptr = allocator->allocate(bytes, {0, stream});
        const auto start = reinterpret_cast<uintptr_t>(ptr);
        require(source.room_at(start) >= bytes, "an allocation without memory");
        for (const Live& one : live) {
          const auto other = reinterpret_cast<uintptr_t>(one.ptr);
          require(other + one.bytes <= start || start + bytes <= other, "memory given out twice");
        }
        live.push_back({ptr, bytes, stream});
      } catch (const OutOfMemory&) {
      }
    } else if (action < 14 && !live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      if (action == 13) {
        source.enqueue(0, 3);
        allocator->record_stream(live.back().ptr, {0, 3});
      }
      allocator->deallocate(live.back().ptr, {0, live.back().stream});
      live.pop_back();
    } else if (action == 14) {
      source.complete(0, 3, 1 + random() % 3);
    } else {
      allocator->trim(0, size_t(random() % 256) << 20);
    }
    check_heap(*allocator, source, live);
  }
  for (const Live& one : live) {
    allocator->deallocate(one.ptr, {0, one.stream});
  }
  allocator->trim(0, 0);
  require(source.counts(0).reserved == 0, "memory that was not returned");
  require(source.range_count() <= 1, "addresses of streams without memory");
}

}  // namespace

int main() {
  try {
    begins_with_a_segment();
    grows_in_place();
    takes_the_end_last();
    for (unsigned seed = 0; seed < 200; ++seed) {
      random_actions(seed);
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
