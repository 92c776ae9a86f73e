// The truth about an allocator's memory, kept apart from it: the owner of each byte, the streams
// that may still use it, and the graphs that will.
#pragma once

#include <iterator>
#include <list>
#include <memory>

#include "hostile.h"
#include "pooled_allocator.h"

constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

// Throws what was expected and what came.
inline void require(bool holds, const std::string& expected, const std::string& got) {
  if (!holds) {
    throw std::logic_error("expected " + expected + ", got " + got);
  }
}

// A program on a GPU: it allocates, works on streams, frees and captures. Throws std::logic_error
// if it gets memory that it must not have. Threads may act at once, each on separate allocations.
class Shadow {
 public:
  static constexpr int kDevice = 1;  // not 0, so that a call that ignores it is noticed

  struct Held {
    uintptr_t start;
    size_t bytes;
    Stream stream;
    HostileSource::Id id;  // of that stream
    std::set<HostileSource::Id> users;

    bool overlaps(const Held& other) const {
      return start < other.start + other.bytes && other.start < start + bytes;
    }
  };
  using Allocation = std::list<Held>::iterator;

  explicit Shadow(std::unique_ptr<HostileSource> made)
      : owned_(std::move(made)),
        source(*owned_),
        allocator(make_allocator(source)),
        pooled(dynamic_cast<PooledAllocator&>(*allocator)) {}

  // Throws OutOfMemory as the allocator does.
  Allocation allocate(size_t bytes, Stream stream = 0) {
    void* ptr = allocator->allocate(bytes, {kDevice, stream});
    const Lock lock(source.mutex);
    const HostileSource::Id id = source.id_of(stream);
    const Held held{reinterpret_cast<uintptr_t>(ptr), bytes, stream, id, {id}};
    require(held.start % 512 == 0, "512-byte alignment", "another");
    require(source.room_at(held.start) >= bytes, "memory of the driver", "none");
    for (const Held& other : held_) {
      require(!held.overlaps(other), "exclusive memory", "that of a live allocation");
    }
    check_freed(held);
    check_graphs(held);
    held_.push_back(held);
    return std::prev(held_.end());
  }

  // Gives `stream` work on the allocation.
  void use(Allocation allocation, Stream stream) {
    source.launch(stream);
    allocator->record_stream(reinterpret_cast<void*>(allocation->start), {kDevice, stream});
    const Lock lock(source.mutex);
    allocation->users.insert(source.id_of(stream));
  }

  void free(Allocation allocation) {
    const Held held = *allocation;
    {
      const Lock lock(source.mutex);
      HostileSource::Point until;
      for (const HostileSource::Id user : held.users) {
        until[user] = source.work.given(user);
      }
      freed_.emplace_back(held, until);
      held_.erase(allocation);
    }
    allocator->deallocate(reinterpret_cast<void*>(held.start), {kDevice, held.stream});
  }

  // Frees an allocation of `owner` that `user` still reads.
  void free_while_read(size_t bytes, Stream owner, Stream user) {
    const Allocation read = allocate(bytes, owner);
    use(read, user);
    free(read);
  }

  // Begins a graph, to which all allocations of `stream` belong until end_capture; graphs are
  // numbered from 0. Their memory is theirs until destroy_graph.
  size_t begin_capture(Stream stream, PoolId pool) {
    const Stream captured = source.identity(stream);
    pooled.begin_capture(kDevice, pool, [this, captured](Stream other) {
      return source.identity(other) == captured;
    });
    source.begin_capture(stream);
    const Lock lock(source.mutex);
    graphs_.push_back({pool, source.id_of(stream), true, true, {}});
    return graphs_.size() - 1;
  }

  void end_capture(size_t graph, Stream stream) {
    const PoolId pool = pool_after(graph, &Graph::is_captured);
    source.end_capture(stream);
    pooled.end_capture(kDevice, pool);
  }

  void destroy_graph(size_t graph) {
    pooled.release_pool(kDevice, pool_after(graph, &Graph::is_alive));
  }

  // Checks that blocks tile the driver's memory. Only without captures and other threads.
  void check_blocks() {
    size_t tiled = 0, used = 0;
    uintptr_t end = 0, segment = 0;
    for (const BlockInfo& block : allocator->snapshot(kDevice)) {
      require(block.ptr == (block.segment != segment ? block.segment : end),
              "a block that begins at the end of the previous one", "another");
      require(source.room_at(block.ptr) >= block.size, "a block with memory", "one without");
      segment = block.segment;
      end = block.ptr + block.size;
      tiled += block.size;
      used += block.state == BlockState::kUsed;
    }
    require(used == held_.size(), "as many used blocks as allocations", std::to_string(used));
    reserves(tiled);
  }

  // Finishes all work, frees and returns everything, and checks that nothing is left.
  void drain() {
    while (!held_.empty()) {
      free(held_.begin());
    }
    source.complete_all();
    source.failing_allocations = source.failing_releases = 0;
    allocator->trim(kDevice, 0);
    const Statistics left = allocator->statistics(kDevice);
    require(left.active == 0 && left.requested == 0, "nothing allocated", "some bytes left");
    reserves(0);
    require(source.events_alive() == 0, "every event recycled", "some left");
    require(source.reserved_ranges() <= 1, "no addresses of streams without memory", "some");
  }

  // Checks the number of bytes that are reserved.
  void reserves(size_t bytes) const {
    const size_t got = source.counts(kDevice).reserved;
    require(got == bytes, std::to_string(bytes) + " B reserved", std::to_string(got));
  }

 private:
  const std::unique_ptr<HostileSource> owned_;

 public:
  HostileSource& source;
  const std::unique_ptr<Allocator> allocator;
  PooledAllocator& pooled;

 private:
  using Lock = HostileSource::Lock;
  struct Graph {
    PoolId pool;
    HostileSource::Id stream;
    bool is_captured, is_alive;
    std::vector<Held> ranges;
  };

  // The pool of a graph for which this no longer holds.
  PoolId pool_after(size_t graph, bool Graph::* state) {
    const Lock lock(source.mutex);
    graphs_[graph].*state = false;
    return graphs_[graph].pool;
  }

  // Earlier work of the new owner's stream is finished before its later work begins.
  void check_freed(const Held& held) {
    freed_.remove_if([&](const auto& freed) { return source.work.is_reached(freed.second); });
    for (auto [other, until] : freed_) {
      until.erase(held.id);
      require(!held.overlaps(other) || source.work.is_before(until, source.work.behind(held.id)),
              "memory that no stream uses", "some that a stream still reads");
    }
  }

  void check_graphs(const Held& held) {
    const auto owner = std::find_if(graphs_.begin(), graphs_.end(), [&](const Graph& one) {
      return one.is_captured && one.stream == held.id;
    });
    for (const Graph& graph : graphs_) {
      const bool is_shared = owner != graphs_.end() && owner->pool == graph.pool;
      for (const Held& range : graph.ranges) {
        require(!graph.is_alive || is_shared || !held.overlaps(range),
                "memory that no graph writes", "some of a captured graph");
      }
    }
    if (owner != graphs_.end()) {
      owner->ranges.push_back(held);
    }
  }

  std::list<Held> held_;
  std::list<std::pair<Held, HostileSource::Point>> freed_;  // and the work that may still use it
  std::vector<Graph> graphs_;
};
