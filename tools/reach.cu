// How much host memory does this GPU gather from at its link's rate, and what limits it beyond?
//   nvcc reach.cu && ./a.out [--json] [--pool-gib N] [--row-bytes N]
// Linux, sm_70 or later. Pins N GiB (default 16), but at most half of the free host memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
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

// The first number of a file, or the one after `key`; `missing` if there is none.
inline double number_in(const std::string& path, const std::string& key, double missing) {
  std::ifstream file(path);
  for (std::string word; !key.empty() && file >> word && word != key;) continue;
  double number;
  return file >> number && number >= 0 ? number : missing;
}

inline bool is_listed(const std::string& word, const std::string& list) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// A field of mountinfo, which has \040 for a blank.
inline std::string unescaped(std::string s) {
  for (size_t i = 0; (i = s.find('\\', i)) < s.size() && i + 3 < s.size(); ++i) {
    s.replace(i, 4, 1, char((s[i + 1] - '0') * 64 + (s[i + 2] - '0') * 8 + s[i + 3] - '0'));
  }
  return s;
}

// Bytes that this control group (version 2 if `v2`) and its ancestors leave, by each mount.
inline double left_up_from(const std::string& path, bool v2, const std::string& root) {
  double least = INFINITY;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string word, top, point, type, options;
    fields >> word >> word >> word >> top >> point;
    while (fields >> word && word != "-") continue;
    fields >> type >> word >> options;
    top = top == "/" ? "" : unescaped(top);
    if (type != (v2 ? "cgroup2" : "cgroup") || !(v2 || is_listed("memory", options)) ||
        (path + "/").compare(0, top.size() + 1, top + "/") != 0) {
      continue;
    }
    std::string below = path.substr(top.size());
    for (size_t end = below.size(); end != std::string::npos; end = below.rfind('/')) {
      below.resize(end);
      const std::string at = root + unescaped(point) + below + "/memory.";
      const double use = number_in(at + (v2 ? "current" : "usage_in_bytes"), "", 0);
      // The kernel drops these file pages before the group reaches its limit.
      const char* cache = v2 ? "inactive_file" : "total_inactive_file";
      const double needed = std::max(0.0, use - number_in(at + "stat", cache, 0));
      const double limit = number_in(at + (v2 ? "max" : "limit_in_bytes"), "", INFINITY);
      least = std::min(least, std::max(0.0, limit - needed));
    }
  }
  return least;
}

// Free host memory: the system's, or less if a control group limits this process.
inline double free_bytes(const std::string& root = "") {
  double least = number_in(root + "/proc/meminfo", "MemAvailable:", INFINITY) * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const size_t names = line.find(':') + 1, path = line.find(':', names) + 1;
    if (names == 0 || path == 0) continue;
    const bool v2 = path == names + 1;
    if (v2 || is_listed("memory", line.substr(names, path - 1 - names))) {
      least = std::min(least, left_up_from(line.substr(path), v2, root));
    }
  }
  return least;
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
  double limit = 16 * kGiB, covers = NAN, slow = 0;
  uint64_t row = 656;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--json") json = true;
    if (word == "--pool-gib") limit = std::atof(value.c_str()) * kGiB;
    if (word == "--row-bytes") row = std::min(256, std::max(8, std::atoi(value.c_str()) / 16)) * 16;
    const bool is_known = word == "--json" || word == "--pool-gib" || word == "--row-bytes";
    check(is_known || word[0] != '-' ? cudaSuccess : cudaErrorInvalidValue, argv[i]);
  }
  uint64_t bytes = uint64_t(std::min(limit, free_bytes() / 2)) >> 28 << 28;
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
