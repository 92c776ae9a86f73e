// The truth about an allocator's memory, kept apart from it: the owner of each byte, the streams
// that may still use it, and the graphs that will.
#pragma once

#include <iterator>
#include <list>
#include <memory>

#include "hostile.h"
#include "pooled_allocator.h"

constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;

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
    char* start;
    size_t bytes;
    Stream stream;
    StreamWork::Id id;  // of that stream
    std::set<StreamWork::Id> users;

    bool overlaps(const Held& other) const {
      return start < other.start + other.bytes && other.start < start + bytes;
    }
  };
  struct Captured {
    PoolId pool;
    StreamWork::Id stream;  // that is captured, or kEnded
    std::vector<Held> ranges;
  };
  using Allocation = std::list<Held>::iterator;
  using Graph = std::list<Captured>::iterator;

  explicit Shadow(std::unique_ptr<HostileSource> made)
      : owned_(std::move(made)),
        source(*owned_),
        allocator(make_allocator(source)),
        pooled(dynamic_cast<PooledAllocator&>(*allocator)) {}

  // Throws OutOfMemory as the allocator does.
  Allocation allocate(size_t bytes, Stream stream = 0) {
    auto* ptr = static_cast<char*>(allocator->allocate(bytes, {kDevice, stream}));
    const Lock lock(source.mutex);
    const StreamWork::Id id = source.id_of(stream);
    const Held held{ptr, bytes, stream, id, {id}};
    require(reinterpret_cast<uintptr_t>(ptr) % 512 == 0, "512-byte alignment", "another");
    require(source.room_at(ptr) >= bytes, "memory of the driver", "none");
    for (const Held& other : held_) {
      require(!held.overlaps(other), "exclusive memory", "that of a live allocation");
    }
    check_freed(held);
    check_graphs(held);
    return held_.insert(held_.end(), held);
  }

  // Gives `stream` work on the allocation.
  void use(Allocation allocation, Stream stream) {
    source.launch(stream);
    allocator->record_stream(allocation->start, {kDevice, stream});
    const Lock lock(source.mutex);
    allocation->users.insert(source.id_of(stream));
  }

  void free(Allocation allocation) {
    const Held held = *allocation;
    {
      const Lock lock(source.mutex);
      StreamWork::Point until;
      for (const StreamWork::Id user : held.users) {
        until[user] = source.work.given(user);
      }
      freed_.emplace_back(held, until);
      held_.erase(allocation);
    }
    allocator->deallocate(held.start, {kDevice, held.stream});
  }

  // Frees an allocation of `owner` that `user` still reads.
  void free_while_read(size_t bytes, Stream owner, Stream user) {
    const Allocation read = allocate(bytes, owner);
    use(read, user);
    free(read);
  }

  // Begins a graph, to which all allocations of `stream` belong until end_capture. Their memory is
  // the graph's until destroy_graph.
  Graph begin_capture(Stream stream, PoolId pool) {
    const Stream captured = source.identity(stream);
    pooled.begin_capture(kDevice, pool, [this, captured](Stream other) {
      return source.identity(other) == captured;
    });
    source.begin_capture(stream);
    const Lock lock(source.mutex);
    return graphs_.insert(graphs_.end(), {pool, source.id_of(stream), {}});
  }

  void end_capture(Graph graph, Stream stream) {
    {
      const Lock lock(source.mutex);
      graph->stream = kEnded;
    }
    source.end_capture(stream);
    pooled.end_capture(kDevice, graph->pool);
  }

  void destroy_graph(Graph graph) {
    const PoolId pool = graph->pool;
    {
      const Lock lock(source.mutex);
      graphs_.erase(graph);
    }
    pooled.release_pool(kDevice, pool);
  }

  // Finishes all work, frees and returns everything, and checks that nothing is left.
  void drain() {
    while (!held_.empty()) {
      free(held_.begin());
    }
    source.work.finish_all();
    source.failing_allocations = source.failing_releases = 0;
    allocator->trim(kDevice, 0);
    const Statistics left = allocator->statistics(kDevice);
    require(left.active == 0 && left.requested == 0, "nothing allocated", "some bytes left");
    reserves(0);
    require(source.events_alive() == 0, "every event recycled", "some left");
    require(source.ranges.size() <= 1, "no addresses of streams without memory", "some");
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
  static constexpr StreamWork::Id kEnded = ~StreamWork::Id{0};

  // Earlier work of the new owner's stream is finished before its later work begins.
  void check_freed(const Held& held) {
    freed_.remove_if([&](const auto& freed) { return source.work.is_reached(freed.second); });
    for (auto [other, until] : freed_) {
      until.erase(held.id);
      require(!held.overlaps(other) || source.work.is_reached(until, source.work.end_of(held.id)),
              "memory that no stream uses", "some that a stream still reads");
    }
  }

  // Graphs of one pool share its memory.
  void check_graphs(const Held& held) {
    const auto owner = std::find_if(graphs_.begin(), graphs_.end(),
                                    [&](const Captured& graph) { return graph.stream == held.id; });
    for (const Captured& graph : graphs_) {
      const bool is_shared = owner != graphs_.end() && owner->pool == graph.pool;
      for (const Held& range : graph.ranges) {
        require(is_shared || !held.overlaps(range), "memory that no graph writes", "a graph's");
      }
    }
    if (owner != graphs_.end()) {
      owner->ranges.push_back(held);
    }
  }

  std::list<Held> held_;
  std::list<std::pair<Held, StreamWork::Point>> freed_;  // and the work that may still use it
  std::list<Captured> graphs_;
};
