// The CUDA driver with mapped pages and with streams that wait for each other.
#pragma once

#include "cuda_mapping.h"
#include "stream_order.h"

class CudaOrder : public CudaMapping, public StreamOrder {
 public:
  using CudaMapping::CudaMapping;

  void wait_for_event(int device, Stream stream, Event event) override {
    const OnDevice on(device);
    const auto handle = reinterpret_cast<cudaStream_t>(named(stream));
    const auto point = reinterpret_cast<cudaEvent_t>(event);  // made by DriverSource
    ::check(cudaStreamWaitEvent(handle, point, 0), "cudaStreamWaitEvent");
  }
};
