// A source that behaves like a driver and its streams at their worst: memory runs out and is not
// taken back, streams lag, end, and come back under the same handle, and inside a capture most
// calls are refused.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host_source.h"
#include "mapping.h"
#include "stream_order.h"
#include "stream_source.h"

constexpr Stream kPerThread = 2;  // cudaStreamPerThread: a different stream in each thread

// The work of streams. Each piece of work may wait for points in the work of other streams.
class StreamWork {
 public:
  using Id = uint64_t;                   // of a stream; unlike its handle, never used twice
  using Point = std::map<Id, uint64_t>;  // number of finished pieces of each of these streams

  // The default stream, 0, waits for all blocking streams.
  void add(Id id, bool is_blocking) { streams_[id] = {0, is_blocking, {{id, 0}}, {}}; }
  bool is_blocking(Id id) const { return streams_.at(id).is_blocking; }
  uint64_t given(Id id) const { return streams_.at(id).end.at(id); }
  const Point& behind(Id id) const { return streams_.at(id).end; }

  // Enqueues a piece of work that waits for `point`, which end_of returned.
  void give(Id id, const Point& point = {}) {
    Work& work = streams_.at(id);
    ++work.end[id];
    if (!point.empty()) {
      work.waits.emplace(given(id), point);
      merge(work.end, point);
    }
  }

  // All work that is finished when the stream's is.
  Point end_of(Id id) const {
    Point point = streams_.at(id).end;
    for (const auto& [other, work] : streams_) {
      if (id == 0 && work.is_blocking) {
        merge(point, work.end);
      }
    }
    return point;
  }

  bool is_reached(const Point& point) const { return is_before(point, {}); }

  // Whether `point` is reached when `end` is.
  bool is_before(const Point& point, const Point& end) const {
    return std::all_of(point.begin(), point.end(), [&](const auto& part) {
      const auto behind = end.find(part.first);
      return streams_.at(part.first).done >= part.second ||
             (behind != end.end() && behind->second >= part.second);
    });
  }

  // Finishes the next `count` pieces, unless one has to wait.
  void complete(Id id, uint64_t count) {
    Work& work = streams_.at(id);
    for (; count > 0 && work.done < given(id); --count, ++work.done) {
      const auto wait = work.waits.find(work.done + 1);
      if (wait != work.waits.end() && !is_reached(wait->second)) {
        return;
      }
    }
  }

  void reach(const Point& point) {
    for (const auto& [id, position] : point) {
      streams_.at(id).done = std::max(streams_.at(id).done, position);
    }
  }

  void finish_all() {
    for (auto& [id, work] : streams_) {
      work.done = given(id);
    }
  }

 private:
  struct Work {
    uint64_t done;
    bool is_blocking;
    Point end;                        // all work that is finished when this stream's is
    std::map<uint64_t, Point> waits;  // by the number of the piece
  };

  static void merge(Point& point, const Point& other) {
    for (const auto& [id, position] : other) {
      point[id] = std::max(point[id], position);
    }
  }

  std::map<Id, Work> streams_;
};

// One device, whatever the index. Programs and allocators may call it from several threads. It
// throws std::logic_error where the real driver would end the process, or do something that nobody
// asked.
class HostileSource : public StreamSource {
 public:
  using Id = StreamWork::Id;
  using Point = StreamWork::Point;
  using Lock = std::lock_guard<std::recursive_mutex>;

  explicit HostileSource(size_t capacity) : capacity_(capacity) { work.add(0, true); }

  void* allocate(int device, size_t bytes) override {
    const Lock lock(mutex);
    refuse_in_capture("cudaMalloc");
    return allocate_in_capture(device, bytes);
  }

  void* allocate_in_capture(int /*device*/, size_t bytes) override {
    const Lock lock(mutex);
    return reserves(bytes) ? memory_.allocate(kOnly, bytes) : nullptr;
  }

  void release(int /*device*/, void* ptr) override {
    const Lock lock(mutex);
    refuse_in_capture("cudaFree");
    if (failing_releases > 0) {
      --failing_releases;
      throw std::runtime_error("cudaFree: unspecified launch failure");
    }
    const auto found = memory_.ranges(kOnly).find(reinterpret_cast<uintptr_t>(ptr));
    unreserve(found == memory_.ranges(kOnly).end() ? 0 : found->second);
    memory_.release(kOnly, ptr);
  }

  Event record(int /*device*/, Stream stream) override {
    const Lock lock(mutex);
    const Id id = live(stream, "cudaEventRecord");
    const Capture capture = capture_of_id(id);
    if (capture == Capture::kRefused) {
      invalidate("cudaEventRecord in the default stream");
      throw std::runtime_error("cudaEventRecord: operation would make the legacy stream depend");
    }
    events_[++last_event_] = {work.end_of(id), capture == Capture::kCaptured};
    return last_event_;
  }

  bool is_done(int /*device*/, Event event) override {
    const Lock lock(mutex);
    return work.is_reached(uncaptured(event, "cudaEventQuery"));
  }

  void wait(int /*device*/, Event event) override {
    const Lock lock(mutex);
    ++counts_.event_waits;
    work.reach(uncaptured(event, "cudaEventSynchronize"));
  }

  void recycle(int /*device*/, Event event) override {
    const Lock lock(mutex);
    events_.erase(event);
  }

  // The identity of a per-thread default stream is odd, which no handle is.
  Stream identity(Stream stream) override {
    const Lock lock(mutex);
    return stream == kPerThread ? Stream(2 * live(stream, "a call") + 1) : stream;
  }

  Capture capture_of(int /*device*/, Stream stream) override {
    const Lock lock(mutex);
    return capture_of_id(live(stream, "cudaStreamIsCapturing"));
  }

  SourceCounts counts(int /*device*/) const override {
    const Lock lock(mutex);
    return counts_;
  }

  void reset_counts(int /*device*/) override {}

  // Actions of a program.

  // The handle of the stream that ended last comes back first.
  Stream create_stream() {
    const Lock lock(mutex);
    if (ended_.empty()) {
      ended_.push_back(next_handle_ += 64);
    }
    const Stream handle = ended_.back();
    ended_.pop_back();
    work.add(handles_[handle] = ++last_id_, false);
    return handle;
  }

  // The stream's earlier work is still finished.
  void destroy_stream(Stream stream) {
    const Lock lock(mutex);
    live(stream, "cudaStreamDestroy");
    handles_.erase(stream);
    ended_.push_back(stream);
  }

  void launch(Stream stream) {
    const Lock lock(mutex);
    const Id id = live(stream, "a launch");
    if (capturing_.count(id) == 0) {  // else the graph has the work
      work.give(id);
    }
  }

  void complete(Stream stream, uint64_t count) {
    const Lock lock(mutex);
    work.complete(id_of(stream), count);
  }

  void complete_all() {
    const Lock lock(mutex);
    work.finish_all();
  }

  // In global mode, as PyTorch captures, or in relaxed mode, which forbids nothing.
  void begin_capture(Stream stream, bool is_relaxed = false) {
    const Lock lock(mutex);
    capturing_[live(stream, "cudaStreamBeginCapture")] = !is_relaxed;
  }

  // Throws std::logic_error if a forbidden call has ended the capture.
  void end_capture(Stream stream) {
    const Lock lock(mutex);
    capturing_.erase(live(stream, "cudaStreamEndCapture"));
    if (!invalid_.empty() && capturing_.empty()) {
      throw std::logic_error("cudaStreamEndCapture: the capture was ended by " +
                             std::exchange(invalid_, ""));
    }
  }

  Id id_of(Stream stream) {
    const Lock lock(mutex);
    return live(stream, "a test");
  }
  bool is_idle(Stream stream) {
    const Lock lock(mutex);
    return work.is_reached({{id_of(stream), work.given(id_of(stream))}});
  }
  size_t events_alive() const { return events_.size(); }

  // Bytes of memory from `address` on.
  size_t room_at(uintptr_t address) {
    const Lock lock(mutex);
    for (const auto& [start, bytes] : ranges()) {
      if (address >= start && address < start + bytes) {
        return start + bytes - address;
      }
    }
    return 0;
  }
  virtual size_t reserved_ranges() const { return 0; }

  StreamWork work;
  mutable std::recursive_mutex mutex;  // of all state

  // The next `count` calls fail.
  std::atomic<uint64_t> failing_allocations{0}, failing_releases{0};

 protected:
  // Memory by its start.
  virtual std::map<uintptr_t, size_t> ranges() { return memory_.ranges(kOnly); }

  // False if a test wants a failure, or for lack of memory.
  bool reserves(size_t bytes) {
    ++counts_.allocations;
    if (failing_allocations > 0) {
      --failing_allocations;
      return false;
    }
    if (bytes > capacity_ || counts_.reserved > capacity_ - bytes) {
      return false;
    }
    counts_.reserved += bytes;
    counts_.peak_reserved = std::max(counts_.peak_reserved, counts_.reserved);
    return true;
  }

  // Like the driver, waits for the device.
  void unreserve(size_t bytes) {
    ++counts_.frees;
    counts_.reserved -= bytes;
    work.finish_all();
  }

  void refuse_in_capture(const std::string& call) {
    if (std::any_of(capturing_.begin(), capturing_.end(), [](auto& one) { return one.second; })) {
      invalidate(call);
      throw std::runtime_error(call + ": operation not permitted when stream is capturing");
    }
  }

  void give_wait(Stream stream, Event event) {
    const Id id = live(stream, "cudaStreamWaitEvent");
    const Recorded& recorded = events_.at(event);
    if (recorded.is_captured || capture_of_id(id) != Capture::kNone) {
      invalidate("cudaStreamWaitEvent");
      throw std::runtime_error("cudaStreamWaitEvent: dependency created on uncaptured work");
    }
    work.give(id, recorded.point);
  }

 private:
  static constexpr int kOnly = 0;  // the only device

  struct Recorded {
    Point point;
    bool is_captured = false;
  };

  const Point& uncaptured(Event event, const std::string& call) {
    refuse_in_capture(call);
    const Recorded& recorded = events_.at(event);
    if (recorded.is_captured) {
      throw std::runtime_error(call + ": operation not permitted on a captured event");
    }
    return recorded.point;
  }

  Id live(Stream stream, const std::string& call) {
    if (stream == 0) {
      return 0;
    }
    if (stream == kPerThread) {
      thread_local std::map<uint64_t, Id> ids;
      const auto [found, is_new] = ids.try_emplace(serial_, last_id_ + 1);
      if (is_new) {
        work.add(++last_id_, true);
      }
      return found->second;
    }
    if (stream % 2 == 1) {
      // Only a thread itself can name its default stream; for others the device's default stream,
      // which waits for it, has to do.
      return live(kPerThread, call) == stream / 2 ? stream / 2 : 0;
    }
    const auto found = handles_.find(stream);
    if (found == handles_.end()) {
      throw std::logic_error(call + " of a stream that has ended: segmentation fault");
    }
    return found->second;
  }

  Capture capture_of_id(Id id) const {
    const bool is_waited_for =
        std::any_of(capturing_.begin(), capturing_.end(),
                    [&](const auto& other) { return work.is_blocking(other.first); });
    return capturing_.count(id) > 0   ? Capture::kCaptured
           : id == 0 && is_waited_for ? Capture::kRefused
                                      : Capture::kNone;
  }

  void invalidate(const std::string& call) { invalid_ = invalid_.empty() ? call : invalid_; }

  static inline std::atomic<uint64_t> sources_{0};
  const uint64_t serial_ = ++sources_;
  const size_t capacity_;
  SourceCounts counts_;
  HostSource memory_{SIZE_MAX};  // addresses, which come back
  std::map<Stream, Id> handles_;
  std::vector<Stream> ended_;
  Stream next_handle_ = 0x10000;
  std::map<Id, bool> capturing_;  // and whether in global mode
  std::string invalid_;           // the call that ended the captures under way
  std::map<Event, Recorded> events_;
  Event last_event_ = 0;
  Id last_id_ = 0;
};

// The source with mapped pages, in ranges far apart. Segments and pages share the capacity.
class HostilePages : public HostileSource, public Mapping {
 public:
  using HostileSource::HostileSource;

  char* reserve(int /*device*/) override {
    const Lock lock(mutex);
    refuse_in_capture("cuMemAddressReserve");
    next_ += size_t{1} << 38;
    ranges_[next_];
    return next_;
  }

  bool extend(int /*device*/, char* range, size_t bytes) override {
    const Lock lock(mutex);
    refuse_in_capture("cuMemCreate");
    return reserves(bytes) && (ranges_.at(range).push_back(bytes), true);
  }

  size_t shrink(int /*device*/, char* range, size_t keep) override {
    const Lock lock(mutex);
    refuse_in_capture("cuMemUnmap");
    std::vector<size_t>& pieces = ranges_.at(range);
    while (!pieces.empty() && mapped(pieces) - pieces.back() >= keep) {
      unreserve(pieces.back());
      pieces.pop_back();
    }
    return mapped(pieces);
  }

  void drop(int device, char* range) override {
    shrink(device, range, 0);
    const Lock lock(mutex);
    ranges_.erase(range);
  }

  size_t reserved_ranges() const override { return ranges_.size(); }

 private:
  std::map<uintptr_t, size_t> ranges() override {
    auto found = HostileSource::ranges();
    for (const auto& [range, pieces] : ranges_) {
      found[reinterpret_cast<uintptr_t>(range)] = mapped(pieces);
    }
    return found;
  }

  static size_t mapped(const std::vector<size_t>& pieces) {
    return std::accumulate(pieces.begin(), pieces.end(), size_t{0});
  }

  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 44);
  std::map<char*, std::vector<size_t>> ranges_;  // the mapped pieces of each
};

// The source with pages, whose streams wait for each other on the device.
class HostileOrder : public HostilePages, public StreamOrder {
 public:
  using HostilePages::HostilePages;

  void wait_for_event(int /*device*/, Stream stream, Event event) override {
    const Lock lock(mutex);
    give_wait(stream, event);
  }
};
