// The real driver with mapped pages, and streams that wait for each other.
#pragma once

#include "cuda_mapping.h"
#include "stream_order.h"

class CudaOrder : public CudaMapping, public StreamOrder {
 public:
  using CudaMapping::CudaMapping;

  void put_behind(int device, Stream stream, Event event) override {
    const OnDevice on(device);
    const auto handle = reinterpret_cast<cudaStream_t>(named(stream));
    const auto point = reinterpret_cast<cudaEvent_t>(event);  // as DriverSource makes them
    ::check(cudaStreamWaitEvent(handle, point, 0), "cudaStreamWaitEvent");
  }
};
