// CUDA's virtual memory: chunks on the host's NUMA node, side by side at one range of addresses.
#include "driver_call.h"
#include "operation.h"

namespace {

struct Calls {
  PFN_cuMemAddressReserve_v10020 reserve = driver_call("cuMemAddressReserve");
  PFN_cuMemAddressFree_v10020 free = driver_call("cuMemAddressFree");
  PFN_cuMemCreate_v10020 create = driver_call("cuMemCreate");
  PFN_cuMemRelease_v10020 release = driver_call("cuMemRelease");
  PFN_cuMemMap_v10020 map = driver_call("cuMemMap");
  PFN_cuMemUnmap_v10020 unmap = driver_call("cuMemUnmap");
  PFN_cuMemSetAccess_v10020 set_access = driver_call("cuMemSetAccess");
};

cudaError_t undone(CUresult status) {
  return status == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

// Maps new memory of `size` bytes at `at`, for the host and for the device.
void add(const Calls& calls, PinnedMemory& memory, CUdeviceptr at, size_t size, int device,
         int node) {
  CUmemAllocationProp kind = {};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node};
  CUmemGenericAllocationHandle handle = 0;
  check_driver(calls.create(&handle, size, &kind, 0), "cuMemCreate");
  memory.undo_later([=] { return undone(calls.release(handle)); });
  check_driver(calls.map(at, size, 0, handle, 0), "cuMemMap");
  memory.undo_later([=] { return undone(calls.unmap(at, size)); });
  CUmemAccessDesc access[2] = {};
  access[0].location = kind.location;
  access[1].location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_driver(calls.set_access(at, size, access, 2), "cuMemSetAccess");
}

}  // namespace

void pin(const Request& request, PinnedMemory& memory) {
  check(cudaFree(nullptr), "the context");
  const Calls calls;
  int device = 0, node = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, device), "the NUMA node");
  const size_t room = (memory.bytes() + kHugePage - 1) / kHugePage * kHugePage;
  CUdeviceptr start = 0;
  check_driver(calls.reserve(&start, room, kHugePage, 0, 0), "cuMemAddressReserve");
  memory.undo_later([=] { return undone(calls.free(start, room)); });
  memory.place(reinterpret_cast<void*>(start), request.chunk_bytes);
  for (size_t at = 0; at < room; at += request.chunk_bytes) {
    add(calls, memory, start + at, std::min(request.chunk_bytes, room - at), device, node);
  }
}
