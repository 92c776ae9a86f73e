// Launches of thread block clusters.
#pragma once

#include <cuda_runtime.h>

#include <array>

#include "../common/check.h"

// How a kernel is launched: `blocks` in clusters of `cluster_blocks`, whose blocks run at the same
// time and access each other's shared memory.
struct ClusterLaunch {
  int blocks;
  int cluster_blocks;
  int threads;
  size_t shared_bytes;
  bool starts_early;  // before the previous kernel of the stream has ended
};

template <class... Parameters>
void launch_clusters(void (*kernel)(Parameters...), const ClusterLaunch& shape, cudaStream_t stream,
                     Parameters... arguments) {
  std::array<cudaLaunchAttribute, 2> attributes{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = static_cast<unsigned>(shape.cluster_blocks);
  attributes[0].val.clusterDim.y = 1;
  attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  launch.blockDim = dim3(static_cast<unsigned>(shape.threads));
  launch.dynamicSmemBytes = shape.shared_bytes;
  launch.stream = stream;
  launch.attrs = attributes.data();
  launch.numAttrs = shape.starts_early ? 2 : 1;
  check(cudaLaunchKernelEx(&launch, kernel, arguments...), "launch of clusters");
}
