// Copies of a list's pieces as a graph, built once: one call submits all of them.
#pragma once

#include "places.h"

class ListGraph : public ListMethod {
 public:
  // If `is_chain`, each copy waits for the previous one; else none waits.
  ListGraph(const Pieces& moved, bool is_chain) : ListMethod(moved) {
    cudaGraph_t graph = nullptr;
    check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    cudaGraphNode_t previous = nullptr;
    for (int64_t i = 0; i < pieces.count; ++i) {
      cudaGraphNode_t node = nullptr;
      const size_t waits_for = is_chain && i > 0 ? 1 : 0;
      check(cudaGraphAddMemcpyNode1D(&node, graph, &previous, waits_for, to_at(i), from_at(i),
                                     static_cast<size_t>(pieces.size), pieces.kind()),
            "cudaGraphAddMemcpyNode1D");
      previous = node;
    }
    check(cudaGraphInstantiate(&copies_, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  ~ListGraph() override { cudaGraphExecDestroy(copies_); }

  void launch(cudaStream_t stream) override {
    check(cudaGraphLaunch(copies_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t copies_ = nullptr;
};
