// The path of variants that keep nothing between calls. They define its `unpack`.
#pragma once

#include "operator.h"

namespace {

// Waits for the GPU.
class StatelessPath : public Path {
 public:
  explicit StatelessPath(const Receive& receive) : receive_(receive) {}

  inline void unpack(cudaStream_t stream, PartTimer& timer) override;
  bool waits() const override { return true; }

 private:
  const Receive& receive_;
};

}  // namespace

std::unique_ptr<Path> make_path(const Receive& receive) {
  return std::make_unique<StatelessPath>(receive);
}
