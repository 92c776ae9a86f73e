// Situations of hostile.cpp in which streams are captured into graphs.
#pragma once

#include <stdexcept>

#include "situations.h"

constexpr PoolId kFirst{0, 1}, kSecond{0, 2};

inline void a_free_inside_a_capture_is_seen_to_after_it(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  const auto read = gpu.allocate(4 * kMiB, 0);
  const size_t graph = gpu.begin_capture(stream, kFirst);
  gpu.use(read, stream);
  gpu.free(read);
  gpu.end_capture(graph, stream);
  miss(gpu, 0);
  gpu.destroy_graph(graph);
}

inline void a_free_of_another_stream_does_not_end_a_capture(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream(), user = gpu.source.create_stream();
  const size_t graph = gpu.begin_capture(stream, kFirst);
  for (int i = 0; i < 4; ++i) {
    free_while_read(gpu, 4 * kMiB, 0, user);
  }
  gpu.source.complete_all();
  gpu.source.destroy_stream(user);
  gpu.end_capture(graph, stream);
  miss(gpu, 0);
  gpu.destroy_graph(graph);
}

inline void a_capture_may_grow_the_heap(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  const size_t graph = gpu.begin_capture(stream, kFirst);
  gpu.allocate(64 * kMiB, stream);
  gpu.allocate(64 * kMiB, 0);
  gpu.end_capture(graph, stream);
  gpu.destroy_graph(graph);
}

inline void a_trim_does_not_end_a_capture(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  gpu.free(gpu.allocate(512 * kMiB, 0));
  const size_t graph = gpu.begin_capture(stream, kFirst);
  try {
    gpu.allocator->trim(Shadow::kDevice, 0);
  } catch (const std::runtime_error&) {
    // The caller may report it.
  }
  gpu.end_capture(graph, stream);
  gpu.destroy_graph(graph);
}

inline void a_temporary_of_a_graph_stays_its_own(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  gpu.free(gpu.allocate(4 * kMiB, stream));  // so that nobody has to ask the driver
  const size_t graph = gpu.begin_capture(stream, kFirst);
  gpu.free(gpu.allocate(4 * kMiB, stream));
  gpu.end_capture(graph, stream);
  gpu.allocator->trim(Shadow::kDevice, 0);
  gpu.allocate(4 * kMiB, stream);
  gpu.allocate(4 * kMiB, 0);
  gpu.destroy_graph(graph);
}

inline void graphs_of_two_pools_share_no_memory(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  gpu.free(gpu.allocate(4 * kMiB, stream));
  std::vector<size_t> graphs;
  for (const PoolId& pool : {kFirst, kSecond}) {
    graphs.push_back(gpu.begin_capture(stream, pool));
    gpu.free(gpu.allocate(4 * kMiB, stream));
    gpu.end_capture(graphs.back(), stream);
  }
  gpu.destroy_graph(graphs[0]);
  gpu.destroy_graph(graphs[1]);
}

inline void graphs_of_one_pool_share_memory(Shadow& gpu) {
  const Stream stream = gpu.source.create_stream();
  std::vector<size_t> graphs;
  for (int i = 0; i < 10; ++i) {
    graphs.push_back(gpu.begin_capture(stream, kFirst));
    gpu.free(gpu.allocate(64 * kMiB, stream));
    gpu.end_capture(graphs.back(), stream);
  }
  require(gpu.reserved() == 64 * kMiB, "64 MiB for all", mib(gpu.reserved()));
  for (const size_t graph : graphs) {
    gpu.destroy_graph(graph);
  }
}

inline void a_pool_that_nobody_made_is_refused(Shadow& gpu) {
  if (gpu.pooled == nullptr) {
    return;
  }
  const auto refused = [](auto call) {
    try {
      call();
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  };
  const auto all = [](Stream) { return true; };
  require(refused([&] { gpu.pooled->begin_capture(Shadow::kDevice, {0, 0}, all); }),
          "no pool refused", "a capture");
  require(refused([&] { gpu.pooled->end_capture(Shadow::kDevice, kFirst); }),
          "the end of nothing refused", "an end");
  require(refused([&] { gpu.pooled->release_pool(Shadow::kDevice, kFirst); }),
          "an unknown pool refused", "a release");
}
