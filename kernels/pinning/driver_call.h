// Functions of the CUDA driver, looked up at run time, so that nothing links libcuda.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "../common/check.h"

// Converts to the type of the function.
struct DriverCall {
  void* address;

  template <class Function>
  operator Function() const {
    return reinterpret_cast<Function>(address);
  }
};

// The driver's function of this name, as of CUDA 10.2. Throws std::runtime_error if there is none.
inline DriverCall driver_call(const char* name) {
  DriverCall call = {nullptr};
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &call.address, 10020, cudaEnableDefault, &found),
        name);
  if (found != cudaDriverEntryPointSuccess) {
    throw std::runtime_error(std::string(name) + ": expected in the driver, got none");
  }
  return call;
}

inline void check_driver(CUresult status, const char* what) {
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": the driver's error " + std::to_string(status));
  }
}
