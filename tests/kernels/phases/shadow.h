// What must be true of an allocator, kept apart from it: who owns each byte, which streams may
// still use it, and which graphs will.
#pragma once

#include <iterator>
#include <list>
#include <memory>

#include "hostile_pages.h"
#include "pooled_allocator.h"

// The parameters of the allocator: minimal, unless a test sets others.
#ifndef SOURCE
#define SOURCE HostileSource
#endif

// A violation: expected and got.
struct Fault : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& expected, const std::string& got) {
  if (!holds) {
    throw Fault("expected " + expected + ", got " + got);
  }
}

// A program on a GPU: it allocates, works on streams, frees, captures. Throws Fault where it gets
// memory that it must not. Several threads may act at once, each on separate allocations.
class Shadow {
 public:
  static constexpr int kDevice = 1;  // not 0, so that nobody forgets to pass it on

  struct Held {
    uintptr_t start;
    size_t bytes;
    Stream stream;
    HostileSource::Id id;  // of that stream
    std::set<HostileSource::Id> users;
  };
  using Allocation = std::list<Held>::iterator;

  explicit Shadow(size_t capacity)
      : source(capacity),
        allocator(make_allocator(source)),
        pooled(dynamic_cast<PooledAllocator*>(allocator.get())) {}

  // Throws OutOfMemory as the allocator does.
  Allocation allocate(size_t bytes, Stream stream) {
    void* ptr = allocator->allocate(bytes, {kDevice, stream});
    const Lock lock(mutex_);
    const HostileSource::Id id = source.id_of(stream);
    const Held held{reinterpret_cast<uintptr_t>(ptr), bytes, stream, id, {id}};
    require(held.start % 512 == 0, "512-byte alignment", "another");
    for (const Held& other : held_) {
      require(!overlap(held, other), "exclusive memory", "that of a live allocation");
    }
    check_freed(held);
    check_graphs(held);
    held_.push_back(held);
    return std::prev(held_.end());
  }

  // `stream` gets work on the allocation.
  void use(Allocation allocation, Stream stream) {
    source.launch(stream);
    allocator->record_stream(reinterpret_cast<void*>(allocation->start), {kDevice, stream});
    const Lock lock(mutex_);
    allocation->users.insert(source.id_of(stream));
  }

  void free(Allocation allocation) {
    void* ptr = reinterpret_cast<void*>(allocation->start);
    const Place place{kDevice, allocation->stream};
    {
      const Lock lock(mutex_);
      Freed freed{*allocation, {}};
      for (const HostileSource::Id user : allocation->users) {
        freed.until[user] = source.given(user);
      }
      freed_.push_back(freed);
      held_.erase(allocation);
    }
    allocator->deallocate(ptr, place);
  }

  // All that `stream` allocates until end_capture belongs to the graph that is captured, until that
  // is destroyed. Its graphs have numbers from 0.
  size_t begin_capture(Stream stream, PoolId pool) {
    if (pooled != nullptr) {
      const Stream captured = source.identity(stream);
      pooled->begin_capture(kDevice, pool, [this, captured](Stream other) {
        return source.identity(other) == captured;
      });
    }
    source.begin_capture(stream);
    const Lock lock(mutex_);
    graphs_.push_back({pool, source.id_of(stream), true, true, {}});
    return graphs_.size() - 1;
  }

  void end_capture(size_t graph, Stream stream) {
    {
      const Lock lock(mutex_);
      graphs_[graph].is_captured = false;
    }
    source.end_capture(stream);
    if (pooled != nullptr) {
      pooled->end_capture(kDevice, pool_of(graph));
    }
  }

  void destroy_graph(size_t graph) {
    {
      const Lock lock(mutex_);
      graphs_[graph].is_alive = false;
      graphs_[graph].ranges.clear();
    }
    if (pooled != nullptr) {
      pooled->release_pool(kDevice, pool_of(graph));
    }
  }

  // Everything is done, freed and returned: nothing may be left, in the driver or here.
  void drain() {
    while (!held_.empty()) {
      free(held_.begin());
    }
    source.complete_all();
    source.failing_allocations = 0;
    source.failing_releases = 0;
    source.lag = 0;
    allocator->trim(kDevice, 0);
    const Statistics left = allocator->statistics(kDevice);
    require(left.active == 0 && left.requested == 0, "nothing allocated", "some bytes left");
    require(source.counts(kDevice).reserved == 0, "all memory returned",
            std::to_string(source.counts(kDevice).reserved) + " B left");
    require(source.events_alive() == 0, "every event recycled", "some left");
  }

  size_t reserved() const { return source.counts(kDevice).reserved; }
  std::list<Held>& held() { return held_; }

  SOURCE source;
  const std::unique_ptr<Allocator> allocator;
  PooledAllocator* const pooled;  // nullptr where it is none

 private:
  using Lock = std::lock_guard<std::mutex>;
  struct Freed {
    Held held;
    HostileSource::Point until;
  };
  struct Graph {
    PoolId pool;
    HostileSource::Id stream;
    bool is_captured;
    bool is_alive;
    std::vector<Held> ranges;
  };

  PoolId pool_of(size_t graph) {
    const Lock lock(mutex_);
    return graphs_[graph].pool;
  }

  static bool overlap(const Held& a, const Held& b) {
    return a.start < b.start + b.bytes && b.start < a.start + a.bytes;
  }

  // Work that the new owner's stream was given before is done before what it is given from now on.
  void check_freed(const Held& held) {
    for (auto freed = freed_.begin(); freed != freed_.end();) {
      if (source.is_reached(freed->until)) {
        freed = freed_.erase(freed);
        continue;
      }
      if (overlap(held, freed->held)) {
        HostileSource::Point others = freed->until;
        others.erase(held.id);
        require(source.is_before(held.id, others), "memory that no stream uses",
                "some that a stream still reads");
      }
      ++freed;
    }
  }

  void check_graphs(const Held& held) {
    Graph* owner = nullptr;
    for (Graph& graph : graphs_) {
      if (graph.is_captured && graph.stream == held.id) {
        owner = &graph;
      }
    }
    for (const Graph& graph : graphs_) {
      const bool is_shared = owner != nullptr && owner->pool == graph.pool;
      for (const Held& range : graph.ranges) {
        require(!graph.is_alive || is_shared || !overlap(held, range),
                "memory that no graph writes", "some of a captured graph");
      }
    }
    if (owner != nullptr) {
      owner->ranges.push_back(held);
    }
  }

  std::mutex mutex_;
  std::list<Held> held_;
  std::list<Freed> freed_;
  std::vector<Graph> graphs_;
};
