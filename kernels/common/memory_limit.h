// Host memory that this process may still allocate: the system's, or less in a container.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

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
