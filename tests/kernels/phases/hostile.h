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

  // Whether `point` is reached now, or when `end` is.
  bool is_reached(const Point& point, const Point& end = {}) const {
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

// One device, whatever the index, for a program of one source. Programs and allocators may call it
// from several threads. It throws std::logic_error where the real driver would end the process, or
// do something that nobody asked.
class HostileSource : public StreamSource {
 public:
  using Id = StreamWork::Id;
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
    const size_t reserved = memory_.counts(kOnly).reserved;
    memory_.release(kOnly, ptr);
    unreserve(reserved - memory_.counts(kOnly).reserved);
  }

  Event record(int /*device*/, Stream stream) override {
    const Lock lock(mutex);
    const Id id = id_of(stream);
    if (capture_of(kOnly, stream) == Capture::kRefused) {
      invalidate("cudaEventRecord in the default stream");
      throw std::runtime_error("cudaEventRecord: operation would make the legacy stream depend");
    }
    events_[++last_event_] = {work.end_of(id), capturing_.count(id) > 0};
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
    return stream == kPerThread ? Stream(2 * id_of(stream) + 1) : stream;
  }

  Capture capture_of(int /*device*/, Stream stream) override {
    const Lock lock(mutex);
    const Id id = id_of(stream);
    if (capturing_.count(id) > 0) {
      return Capture::kCaptured;
    }
    const bool is_waited_for =
        std::any_of(capturing_.begin(), capturing_.end(),
                    [&](const auto& other) { return work.is_blocking(other.first); });
    return id == 0 && is_waited_for ? Capture::kRefused : Capture::kNone;
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
    handles_.erase(stream);
    ended_.push_back(stream);
  }

  void launch(Stream stream) {
    const Lock lock(mutex);
    const Id id = id_of(stream);
    if (capturing_.count(id) == 0) {  // else the graph has the work
      work.give(id);
    }
  }

  void complete(Stream stream, uint64_t count) {
    const Lock lock(mutex);
    work.complete(id_of(stream), count);
  }

  // In global mode, as PyTorch captures, or in relaxed mode, which forbids nothing.
  void begin_capture(Stream stream, bool is_relaxed = false) {
    const Lock lock(mutex);
    capturing_[id_of(stream)] = !is_relaxed;
  }

  // Throws std::logic_error if a forbidden call has ended the capture.
  void end_capture(Stream stream) {
    const Lock lock(mutex);
    capturing_.erase(id_of(stream));
    if (!invalid_.empty() && capturing_.empty()) {
      throw std::logic_error("cudaStreamEndCapture: the capture was ended by " + invalid_);
    }
  }

  // Throws std::logic_error for a stream that has ended.
  Id id_of(Stream stream) {
    const Lock lock(mutex);
    if (stream == kPerThread) {
      thread_local Id id = 0;
      if (id == 0) {
        work.add(id = ++last_id_, true);
      }
      return id;
    }
    if (stream % 2 == 1) {
      // Only a thread itself can name its default stream; for others the device's default stream,
      // which waits for it, has to do.
      return id_of(kPerThread) == stream / 2 ? stream / 2 : 0;
    }
    if (stream != 0 && handles_.count(stream) == 0) {
      throw std::logic_error("a call for a stream that has ended: segmentation fault");
    }
    return stream == 0 ? 0 : handles_[stream];
  }

  bool is_idle(Stream stream) {
    const Lock lock(mutex);
    return work.is_reached({{id_of(stream), work.given(id_of(stream))}});
  }

  size_t events_alive() const { return events_.size(); }
  virtual size_t reserved_ranges() const { return 0; }

  // Bytes of memory from `address` on.
  size_t room_at(uintptr_t address) {
    const Lock lock(mutex);
    const auto all = ranges();
    const auto after = all.upper_bound(address);
    if (after == all.begin()) {
      return 0;
    }
    const uintptr_t end = std::prev(after)->first + std::prev(after)->second;
    return address < end ? end - address : 0;
  }

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
    const Recorded& recorded = events_.at(event);
    if (recorded.is_captured || capture_of(kOnly, stream) != Capture::kNone) {
      invalidate("cudaStreamWaitEvent");
      throw std::runtime_error("cudaStreamWaitEvent: dependency created on uncaptured work");
    }
    work.give(id_of(stream), recorded.point);
  }

 private:
  static constexpr int kOnly = 0;  // the only device

  struct Recorded {
    StreamWork::Point point;
    bool is_captured = false;
  };

  const StreamWork::Point& uncaptured(Event event, const std::string& call) {
    refuse_in_capture(call);
    const Recorded& recorded = events_.at(event);
    if (recorded.is_captured) {
      throw std::runtime_error(call + ": operation not permitted on a captured event");
    }
    return recorded.point;
  }

  void invalidate(const std::string& call) { invalid_ = invalid_.empty() ? call : invalid_; }

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
