// How much host memory does this GPU gather from at its link's rate, and what limits it beyond?
//   nvcc reach.cu && ./a.out [--json] [--pool-gib N] [--row-bytes N]
// Linux; sm_75 or later for CUDA 13. Pins N GiB (default 16), but at most half of the free host
// memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

constexpr double kMiB = 1 << 20, kGiB = 1 << 30;

struct Point {
  double pool, seconds, row_s;  // bytes; of a random read of 128 bytes from them; of one of a row
};

// A read takes the time of the link or that of its page walks, whichever is longer. Random reads
// miss with the share of the pool whose translations are not held, however the GPU evicts them.
// A walk takes longer with each doubling of the pool, because page tables leave the caches.
struct Fit {
  double reach = NAN, walk = NAN, doubling = NAN, error = NAN;  // bytes, s, s, relative RMS
  double walk_s(double pool) const { return walk + doubling * std::log2(pool / reach); }
  double read_s(double pool) const { return pool < reach ? 0 : (1 - reach / pool) * walk_s(pool); }
};

// Least squares over a grid of reaches. NAN if fewer than four points exceed the time of the link.
inline Fit fit_curve(const std::vector<Point>& curve, double link_s) {
  Fit best, fit;
  size_t first = 0;
  while (first < curve.size() && curve[first].seconds < 1.5 * link_s) ++first;
  if (first + 4 > curve.size()) return best;
  for (fit.reach = curve[first].pool / 16; fit.reach < curve[first].pool; fit.reach *= 1.005) {
    double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0, squares = 0;
    for (size_t i = first; i < curve.size(); ++i) {
      const double a = (1 - fit.reach / curve[i].pool) / curve[i].seconds;
      const double b = a * std::log2(curve[i].pool / fit.reach);
      aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
    }
    fit.doubling = std::max(0.0, (aa * b1 - ab * a1) / (aa * bb - ab * ab));
    fit.walk = std::max(0.0, (a1 - ab * fit.doubling) / aa);
    for (const Point& p : curve) {
      squares += std::pow(std::max(link_s, fit.read_s(p.pool)) / p.seconds - 1, 2);
    }
    fit.error = std::sqrt(squares / static_cast<double>(curve.size()));
    if (!(fit.error >= best.error)) best = fit;
  }
  return best;
}

// Free host memory, as kernels/common/memory_limit.h has it.
namespace memory_limit {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// A version of control groups: the type of its mounts, and the files of a group. `cache` is the key
// in memory.stat of the file pages that the kernel drops before a group reaches its limit.
struct Version {
  const char* mount_type;
  const char* limit;
  const char* use;
  const char* cache;
};

constexpr Version kV1{"cgroup", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                      "total_inactive_file"};
constexpr Version kV2{"cgroup2", "/memory.max", "/memory.current", "inactive_file"};

// The first number of a file, or the one after the word `key`; `missing` if there is none.
inline int64_t number_in(const std::string& path, const std::string& key, int64_t missing) {
  std::ifstream file(path);
  for (std::string word; !key.empty() && file >> word && word != key;) {
  }
  int64_t number = 0;
  return file >> number && number >= 0 ? number : missing;
}

inline bool is_listed(const std::string& word, const std::string& list) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// A field of mountinfo, which has \040 for a blank and \134 for a backslash.
inline std::string unescaped(std::string field) {
  for (size_t at = 0; (at = field.find('\\', at)) < field.size() && at + 3 < field.size(); ++at) {
    const int code = (field[at + 1] - '0') * 64 + (field[at + 2] - '0') * 8 + field[at + 3] - '0';
    field.replace(at, 4, 1, static_cast<char>(code));
  }
  return field;
}

// Bytes that the limit of one control group leaves to its processes.
inline int64_t left_in(const std::string& group, const Version& version) {
  const int64_t limit = number_in(group + version.limit, "", kUnlimited);
  const int64_t use = number_in(group + version.use, "", 0);
  const int64_t cache = number_in(group + "/memory.stat", version.cache, 0);
  return std::max<int64_t>(0, limit - std::max<int64_t>(0, use - cache));
}

// The least of the group `path` and of its ancestors. A mount has the groups below its root.
inline int64_t left_up_from(std::string path, const Version& version, const std::string& root) {
  int64_t least = kUnlimited;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string word, top, point, type, options;
    fields >> word >> word >> word >> top >> point;
    while (fields >> word && word != "-") {
    }
    fields >> type >> word >> options;
    top = top == "/" ? "" : unescaped(top);
    const bool has_memory = type == kV2.mount_type || is_listed("memory", options);
    const bool has_path = (path + "/").compare(0, top.size() + 1, top + "/") == 0;
    if (type != version.mount_type || !has_memory || !has_path) {
      continue;
    }
    std::string below = path.substr(top.size());
    for (size_t end = below.size(); end != std::string::npos; end = below.rfind('/')) {
      below.resize(end);
      least = std::min(least, left_in(root + unescaped(point) + below, version));
    }
  }
  return least;
}

// Bytes that this process may still allocate: the least of the memory that the system has available
// and of what each of the process's control groups leaves. Huge if neither is known. Page cache
// that the kernel can drop counts as free. No content of the files makes it throw. `root` is the
// root of the file system, for tests.
inline int64_t allocatable_bytes(const std::string& root = "") {
  const int64_t kib = number_in(root + "/proc/meminfo", "MemAvailable:", kUnlimited);
  int64_t least = std::min(kib, kUnlimited / 1024) * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  // hierarchy:controllers:path, where the path may have colons, too.
  for (std::string line; std::getline(groups, line);) {
    const size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) {
      continue;
    }
    const std::string names = line.substr(controllers, path - 1 - controllers);
    if (names.empty() || is_listed("memory", names)) {
      const Version& version = names.empty() ? kV2 : kV1;
      least = std::min(least, left_up_from(line.substr(path), version, root));
    }
  }
  return least;
}

}  // namespace memory_limit

using memory_limit::allocatable_bytes;

[[noreturn]] inline void refuse(const char* field, const char* expected, const std::string& got) {
  std::fprintf(stderr, "error: %s: expected %s, got %s\n", field, expected, got.c_str());
  std::exit(1);
}

// The number behind an option: from `least` to `most`, and a multiple of `step` unless that is 0.
inline double number(char** option, double least, double most, double step, const char* expected) {
  if (!option[1]) refuse(option[0], expected, "nothing");
  char* end;
  const double found = std::strtod(option[1], &end);
  const bool is_number = end != option[1] && !*end && found >= least && found <= most;
  if (!is_number || (step != 0 && std::fmod(found, step) != 0)) {
    refuse(option[0], expected, "'" + std::string(option[1]) + "'");
  }
  return found;
}

constexpr uint64_t kRows = 1 << 18;  // of a launch
// `lines` rows of `row` bytes at each of `places`, `stride` bytes apart. A hash of some `turns`
// draws the order of reads. A launch makes kRows of them, from `first` on.
struct Walk {
  uint64_t places, stride, row, turns = 3, lines = 1, first = 0;
};

// The byte offset of a read. Each row comes once.
__device__ uint64_t offset_of(const Walk& walk, uint64_t read) {
  const uint64_t total = walk.places * walk.lines, bits = 64 - __clzll(total);
  uint64_t x = (walk.first + read) % total;
  do {
    for (uint64_t turn = 0; turn < walk.turns; ++turn) {
      x = (x * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & ((1ull << bits) - 1);
      x ^= x >> (bits + 1) / 2;
    }
  } while (x >= total);
  const uint64_t place = x / walk.lines, pages = walk.stride < 4096 ? 1 : walk.stride / 4096;
  const uint64_t page = (place * 2654435761u >> 8) % pages;  // equal distances would share TLB sets
  return place * walk.stride + page * 4096 + x % walk.lines * walk.row;
}

#ifdef __CUDACC__
__global__ void fill(ulonglong2* pool) {
  const uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x;
  pool[i] = make_ulonglong2(i, ~i);
}

// A warp copies a row, with two loads of a lane in flight. Wrong bytes end the program.
__global__ void gather(const ulonglong2* pool, ulonglong2* out, Walk walk) {
  const uint64_t row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, vectors = walk.row / 16;
  const uint64_t from = offset_of(walk, row) / 16;
  for (uint64_t i = threadIdx.x % 32; i < vectors; i += 64) {
    const ulonglong2 one = __ldcs(pool + from + i);
    const ulonglong2 two = i + 32 < vectors ? __ldcs(pool + from + i + 32) : one;
    if (one.x != from + i || one.y != ~one.x || two.y != ~two.x) __trap();
    __stcs(out + row * vectors + i, one);
    if (i + 32 < vectors) __stcs(out + row * vectors + i + 32, two);
  }
}

void check(cudaError_t status, const char* what) {
  if (status) std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(status)), exit(1);
}

int main(int argc, char** argv) {
  bool json = false;
  double covers = NAN, slow = 0, limit = 16, row_bytes = 656;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") {
      json = true;
    } else if (word == "--pool-gib") {
      limit = number(argv + i++, 0.25, 1e6, 0, "a number of GiB from 0.25 to 1000000");
    } else if (word == "--row-bytes") {
      row_bytes = number(argv + i++, 128, 4096, 16, "a multiple of 16 from 128 to 4096");
    } else {
      refuse("argument", "--json, --pool-gib N or --row-bytes N", "'" + word + "'");
    }
  }
  const uint64_t row = uint64_t(row_bytes);
  const double free_bytes = double(allocatable_bytes());
  uint64_t bytes = uint64_t(std::min(limit * kGiB, free_bytes / 2)) >> 28 << 28;
  if (!bytes) refuse("free host memory", "512 MiB", std::to_string(int64_t(free_bytes)) + " B");
  cudaDeviceProp gpu;
  cudaEvent_t start, stop;
  ulonglong2 *pool, *out;
  check(cudaGetDeviceProperties(&gpu, 0), "GPU");
  for (cudaEvent_t* event : {&start, &stop}) check(cudaEventCreate(event), "event");
  check(cudaMalloc(&out, kRows * row + gpu.l2CacheSize), "GPU memory");
  while (bytes && cudaHostAlloc(&pool, bytes, 0)) bytes = bytes >> 29 << 28, cudaGetLastError();
  check(bytes ? cudaSuccess : cudaErrorMemoryAllocation, "256 MiB of host memory");
  fill<<<unsigned(bytes / 4096), 256>>>(pool);
  // Seconds of a read: the median of three launches, each of other rows and with an empty L2 cache.
  const auto timed = [&](Walk walk) {
    float ms[4];
    for (float& time : ms) {
      check(cudaMemsetAsync(out + kRows * row / 16, 0, gpu.l2CacheSize), "L2 cache");
      check(cudaEventRecord(start), "event");
      gather<<<kRows / 8, 256>>>(pool, out, walk);
      check(cudaGetLastError(), "gather");
      check(cudaEventRecord(stop), "event");
      check(cudaEventSynchronize(stop), "gather");
      check(cudaEventElapsedTime(&time, start, stop), "event");
      walk.first += kRows;
    }
    std::sort(ms + 1, ms + 4);  // the first one warms up
    return ms[2] / 1e3 / kRows;
  };
  double read_s = timed({bytes / 128, 128, 128, 0}), row_s = timed({bytes / row, row, row, 0});
  std::vector<Point> curve;
  for (double p = kGiB / 4; p < bytes / 1.1; p *= std::sqrt(2)) curve.push_back({p, 0, 0});
  curve.push_back({double(bytes), 0, 0});
  for (size_t i = 0; i < 5 * curve.size(); ++i) {  // five rounds
    Point& p = curve[i % curve.size()];
    p.seconds += timed({uint64_t(p.pool) / 128, 128, 128}) / 5;
    p.row_s += timed({uint64_t(p.pool) / row, row, row}) / 5;
  }
  const Fit fit = fit_curve(curve, read_s);
  // Fewer places in 1.6 times the reach stay slow while each translation has one of them.
  for (uint64_t stride = 4096; stride < fit.reach / 64; stride *= 2) {
    const double read = timed({uint64_t(1.6 * fit.reach) / stride, stride, 128, 3, 32});
    if (read < (slow = slow ? slow : (read + read_s) / 2)) break;
    covers = stride;
  }
  const auto put = [&](auto key, auto name, double x, double unit, auto of) {  // NAN is unknown
    if (json) std::printf(x == x ? "\"%s\": %.12g,\n" : "\"%s\": null,\n", key, x);
    if (!json) std::printf(x == x ? "%-20s %7.4g %s\n" : "%-20s unknown\n", name, x / unit, of);
  };
  std::printf(json ? "{\"gpu\": \"%s\",\n" : "%s\n", gpu.name);
  put("sm", "compute capability", gpu.major * 10 + gpu.minor, 10, "");
  put("host_page_tables", "host's page tables", gpu.pageableMemoryAccessUsesHostPageTables, 1, "");
  put("pool_bytes", "pinned host memory", bytes, kGiB, "GiB");
  put("held", "translations held", fit.reach / covers, 1, "");
  put("covers_bytes", "each of them covers", covers, 1024, "KiB");
  put("reach_bytes", "all of them cover", fit.reach, kMiB, "MiB");
  put("walks_per_s", "page walks", 1 / fit.walk_s(4 * fit.reach), 1e6, "million a second");
  put("walk_s", "a page walk takes", fit.walk, 1e-9, "ns just beyond the reach");
  put("doubling_s", "and for each doubling", fit.doubling, 1e-9, "ns more");
  put("fit_error", "error of this fit", fit.error, 0.01, "%");
  put("row_bytes", "rows gathered", row, 1, "B");
  std::printf(json ? "\"advice\": \"" : "\n");
  std::printf(fit.error < 0.1
                  ? "From %.3g GiB, rows below %.2g KiB wait for page walks; from %.3g MiB none do."
              : fit.error > 0 ? "Up to %.3g GiB, something else than page walks limits reads, too."
                              : "Up to %.3g GiB, the link limits reads; page walks cannot be seen.",
              bytes / kGiB, row / row_s * fit.walk_s(bytes) / 1024, fit.reach / kMiB);
  std::printf(json ? "\",\n\"pools\": [" : "\n\npool, GiB  GB/s  predicted  reads, 10^9/s");
  const double gib = json ? 1 : kGiB, giga = json ? 1 : 1e9;
  const char* line = json ? "%s\n[%.12g, %.6g, %.6g, %.6g]" : "%.0s\n%9.3g %5.3g %10.3g %14.3g";
  for (const Point& p : curve) {
    const double predicted_s = std::max(row_s, fit.read_s(p.pool) * (1 + (row - 16) / covers));
    std::printf(line, &p == &curve[0] ? "" : ",", p.pool / gib, row / p.row_s / giga,
                row / predicted_s / giga, 1 / p.seconds / giga);
  }
  std::printf(json ? "\n]}\n" : "\n");
}
#endif
