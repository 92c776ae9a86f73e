// The CUDA driver with pages that are mapped on demand.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <map>

#include "cuda_streams.h"
#include "mapping.h"

// The driver's virtual-memory calls, resolved at run time, so that nothing links libcuda.
struct MappingCalls {
  PFN_cuMemAddressReserve_v10020 reserve;
  PFN_cuMemAddressFree_v10020 free;
  PFN_cuMemCreate_v10020 create;
  PFN_cuMemRelease_v10020 release;
  PFN_cuMemMap_v10020 map;
  PFN_cuMemUnmap_v10020 unmap;
  PFN_cuMemSetAccess_v10020 set_access;

  // Throws std::runtime_error where the driver lacks one of them.
  MappingCalls() {
    find(reserve, "cuMemAddressReserve");
    find(free, "cuMemAddressFree");
    find(create, "cuMemCreate");
    find(release, "cuMemRelease");
    find(map, "cuMemMap");
    find(unmap, "cuMemUnmap");
    find(set_access, "cuMemSetAccess");
  }

 private:
  template <typename Call>
  static void find(Call& call, const char* name) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    constexpr unsigned kSince = 10020;
    check(cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result), name);
    if (result != cudaDriverEntryPointSuccess) {
      throw std::runtime_error(std::string(name) + ": the driver does not have it");
    }
    call = reinterpret_cast<Call>(found);
  }
};

class CudaMapping : public CudaStreams, public Mapping {
 public:
  explicit CudaMapping(DriverSource& driver) : CudaStreams(driver) {}

  ~CudaMapping() override {
    for (int device = 0; device < kMaxDevices; ++device) {
      while (!devices_[size_t(device)].ranges.empty()) {
        drop(device, devices_[size_t(device)].ranges.begin()->first);
      }
    }
  }

  void* allocate(int device, size_t bytes) override {
    void* ptr = CudaStreams::allocate(device, bytes);
    note_peak(device);
    return ptr;
  }

  void* allocate_in_capture(int device, size_t bytes) override {
    void* ptr = CudaStreams::allocate_in_capture(device, bytes);
    note_peak(device);
    return ptr;
  }

  char* reserve(int device) override {
    const OnDevice on(device);
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    Range range;
    range.size = (total + kPage - 1) / kPage * kPage;
    CUdeviceptr start = 0;
    check(calls().reserve(&start, range.size, 0, 0, 0), "cuMemAddressReserve");
    char* ptr = reinterpret_cast<char*>(start);
    devices_.at(size_t(device)).ranges.emplace(ptr, range);
    return ptr;
  }

  bool extend(int device, char* start, size_t bytes) override {
    const OnDevice on(device);
    Device& state = devices_.at(size_t(device));
    Range& range = state.ranges.at(start);
    ++state.maps;
    if (bytes > range.size - range.mapped) {
      return false;
    }
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
    CUmemGenericAllocationHandle piece = 0;
    const CUresult created = calls().create(&piece, bytes, &properties, 0);
    if (created == CUDA_ERROR_OUT_OF_MEMORY) {
      return false;
    }
    check(created, "cuMemCreate");
    const CUdeviceptr end = address(start + range.mapped);
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (const CUresult mapped = calls().map(end, bytes, 0, piece, 0); mapped != CUDA_SUCCESS) {
      calls().release(piece);
      check(mapped, "cuMemMap");
    }
    if (const CUresult set = calls().set_access(end, bytes, &access, 1); set != CUDA_SUCCESS) {
      calls().unmap(end, bytes);
      calls().release(piece);
      check(set, "cuMemSetAccess");
    }
    range.pieces.push_back({piece, bytes});
    range.mapped += bytes;
    state.mapped += bytes;
    note_peak(device);
    return true;
  }

  size_t shrink(int device, char* start, size_t keep) override {
    const OnDevice on(device);
    Device& state = devices_.at(size_t(device));
    Range& range = state.ranges.at(start);
    const auto fits = [&] { return range.mapped - range.pieces.back().bytes >= keep; };
    if (!range.pieces.empty() && fits()) {
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    while (!range.pieces.empty() && fits()) {
      check(drop_last(state, start, range), "cuMemUnmap");
    }
    return range.mapped;
  }

  // Ignores errors: the driver may already be unloaded.
  void drop(int device, char* start) override {
    Device& state = devices_.at(size_t(device));
    Range& range = state.ranges.at(start);
    if (!range.pieces.empty()) {
      int before = 0;
      cudaGetDevice(&before);
      cudaSetDevice(device);
      cudaDeviceSynchronize();
      cudaSetDevice(before);
    }
    while (!range.pieces.empty()) {
      drop_last(state, start, range);
    }
    calls().free(address(start), range.size);
    state.ranges.erase(start);
  }

  SourceCounts counts(int device) const override {
    const Device& state = devices_.at(size_t(device));
    SourceCounts all = CudaStreams::counts(device);
    all.reserved += state.mapped;
    all.peak_reserved = state.peak;
    all.allocations += state.maps;
    all.frees += state.unmaps;
    return all;
  }

  void reset_counts(int device) override {
    CudaStreams::reset_counts(device);
    Device& state = devices_.at(size_t(device));
    state.maps = state.unmaps = state.peak = 0;
    note_peak(device);
  }

 private:
  struct Piece {
    CUmemGenericAllocationHandle handle;
    size_t bytes;
  };
  struct Range {
    size_t size = 0;
    size_t mapped = 0;
    std::vector<Piece> pieces;
  };
  struct Device {
    std::map<char*, Range> ranges;
    size_t mapped = 0, peak = 0;
    uint64_t maps = 0, unmaps = 0;
  };

  static const MappingCalls& calls() {
    static const MappingCalls all;
    return all;
  }
  static CUdeviceptr address(char* ptr) { return reinterpret_cast<CUdeviceptr>(ptr); }

  static void check(cudaError_t status, const char* what) { ::check(status, what); }
  static void check(CUresult status, const char* what) {
    if (status != CUDA_SUCCESS) {
      throw std::runtime_error(std::string(what) + ": error " + std::to_string(int(status)));
    }
  }

  static CUresult drop_last(Device& state, char* start, Range& range) {
    const Piece last = range.pieces.back();
    const CUdeviceptr at = address(start + range.mapped - last.bytes);
    const CUresult unmapped = calls().unmap(at, last.bytes);
    calls().release(last.handle);  // freed with its last mapping
    range.pieces.pop_back();
    range.mapped -= last.bytes;
    state.mapped -= last.bytes;
    ++state.unmaps;
    return unmapped;
  }

  void note_peak(int device) {
    Device& state = devices_.at(size_t(device));
    state.peak = std::max(state.peak, CudaStreams::counts(device).reserved + state.mapped);
  }

  std::array<Device, kMaxDevices> devices_;
};
