// A source that behaves like a driver and its streams at their worst: memory runs out and is not
// taken back, streams lag, end, and come back under the same handle, and inside a capture most
// calls are refused.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
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

// The work of streams, by their ids: unlike a handle, an id is never used twice.
class StreamWork {
 public:
  using Id = uint64_t;
  using Point = std::map<Id, size_t>;  // numbers of finished pieces of work, by stream

  // The default stream, 0, waits for all blocking streams.
  void add(Id id, bool is_blocking) { streams_[id] = {is_blocking, {{}}}; }
  bool is_blocking(Id id) const { return streams_.at(id).is_blocking; }
  size_t given(Id id) const { return streams_.at(id).pieces.size() - 1; }

  // Enqueues a piece of work that waits for `point`.
  void give(Id id, const Point& point = {}) {
    std::vector<Point>& pieces = streams_.at(id).pieces;
    Point end = pieces.back();
    merge(end, point);
    end[id] = pieces.size();
    pieces.push_back(end);
  }

  // All work that is finished when the stream's is.
  Point end_of(Id id) const {
    Point end = streams_.at(id).pieces.back();
    for (const auto& [other, work] : streams_) {
      if (id == 0 && work.is_blocking) {
        merge(end, work.pieces.back());
      }
    }
    return end;
  }

  // Whether `point` is reached now, or when `end` is.
  bool is_reached(const Point& point, const Point& end = {}) const {
    return std::all_of(point.begin(), point.end(), [&](const auto& part) {
      return count(done_, part.first) >= part.second || count(end, part.first) >= part.second;
    });
  }

  // Finishes the next `pieces`, and all that these wait for.
  void complete(Id id, size_t pieces) {
    reach(streams_.at(id).pieces[std::min(count(done_, id) + pieces, given(id))]);
  }

  void reach(const Point& point) { merge(done_, point); }

  void finish_all() {
    for (const auto& [id, work] : streams_) {
      reach(work.pieces.back());
    }
  }

 private:
  struct Work {
    bool is_blocking;
    std::vector<Point> pieces;  // what is finished with each piece, the first being no work
  };

  static size_t count(const Point& point, Id id) {
    const auto found = point.find(id);
    return found == point.end() ? 0 : found->second;
  }

  static void merge(Point& point, const Point& other) {
    for (const auto& [id, position] : other) {
      point[id] = std::max(point[id], position);
    }
  }

  std::map<Id, Work> streams_;
  Point done_;
};

// One device, whatever the index, for a program of one source. Programs and allocators may call it
// from several threads. It throws std::logic_error where the real driver would end the process or a
// capture.
class HostileSource : public StreamSource {
 public:
  using Id = StreamWork::Id;
  using Lock = std::lock_guard<std::recursive_mutex>;

  explicit HostileSource(size_t capacity) : capacity_(capacity) { work.add(0, true); }

  void* allocate(int device, size_t bytes) override {
    const Lock lock(mutex);
    forbid_in_capture("cudaMalloc");
    return allocate_in_capture(device, bytes);
  }

  void* allocate_in_capture(int /*device*/, size_t bytes) override {
    const Lock lock(mutex);
    if (!reserves(bytes)) {
      return nullptr;
    }
    void* ptr = addresses_.allocate(kOnly, bytes);
    memory_[static_cast<char*>(ptr)] = bytes;
    return ptr;
  }

  void release(int /*device*/, void* ptr) override {
    const Lock lock(mutex);
    forbid_in_capture("cudaFree");
    if (failing_releases > 0) {
      --failing_releases;
      throw std::runtime_error("cudaFree: unspecified launch failure");
    }
    addresses_.release(kOnly, ptr);
    unreserve(memory_.extract(static_cast<char*>(ptr)).mapped());
  }

  Event record(int /*device*/, Stream stream) override {
    const Lock lock(mutex);
    if (capture_of(kOnly, stream) == Capture::kRefused) {
      throw std::logic_error("cudaEventRecord would make the legacy stream depend on a capture");
    }
    if (capture_of(kOnly, stream) == Capture::kNone) {  // else the graph has the event
      events_[last_event_ + 1] = work.end_of(id_of(stream));
    }
    return ++last_event_;
  }

  bool is_done(int /*device*/, Event event) override {
    const Lock lock(mutex);
    forbid_in_capture("cudaEventQuery");
    return work.is_reached(events_.at(event));
  }

  void wait(int /*device*/, Event event) override {
    const Lock lock(mutex);
    forbid_in_capture("cudaEventSynchronize");
    work.reach(events_.at(event));
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

  void end_capture(Stream stream) {
    const Lock lock(mutex);
    capturing_.erase(id_of(stream));
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

  // Bytes of memory from `address` on.
  size_t room_at(char* address) {
    const Lock lock(mutex);
    const auto after = memory_.upper_bound(address);
    if (after == memory_.begin()) {
      return 0;
    }
    const auto& [start, bytes] = *std::prev(after);
    return address < start + bytes ? size_t(start + bytes - address) : 0;
  }

  StreamWork work;
  mutable std::recursive_mutex mutex;  // of all state

  // The next `count` calls fail.
  std::atomic<uint64_t> failing_allocations{0}, failing_releases{0};
  std::map<char*, std::vector<size_t>> ranges;  // pieces of pages in each range of addresses

 protected:
  std::map<char*, size_t> memory_;  // bytes by their start

  // False if a test wants a failure, or for lack of memory.
  bool reserves(size_t bytes) {
    if (failing_allocations > 0) {
      --failing_allocations;
      return false;
    }
    if (bytes > capacity_ || counts_.reserved > capacity_ - bytes) {
      return false;
    }
    counts_.reserved += bytes;
    return true;
  }

  // Like the driver, waits for the device.
  void unreserve(size_t bytes) {
    counts_.reserved -= bytes;
    work.finish_all();
  }

  void forbid_in_capture(const std::string& call) {
    if (std::any_of(capturing_.begin(), capturing_.end(), [](auto& one) { return one.second; })) {
      throw std::logic_error(call + " while a stream is captured");
    }
  }

  std::map<Event, StreamWork::Point> events_;  // those outside of graphs

 private:
  static constexpr int kOnly = 0;  // the only device

  const size_t capacity_;
  SourceCounts counts_;
  HostSource addresses_{SIZE_MAX};  // which come back
  std::map<Stream, Id> handles_;
  std::vector<Stream> ended_;
  Stream next_handle_ = 0x10000;
  std::map<Id, bool> capturing_;  // and whether in global mode
  Event last_event_ = 0;
  Id last_id_ = 0;
};

// The source with mapped pages, in ranges far apart. Segments and pages share the capacity.
class HostilePages : public HostileSource, public Mapping {
 public:
  using HostileSource::HostileSource;

  char* reserve(int /*device*/) override {
    const Lock lock(mutex);
    forbid_in_capture("cuMemAddressReserve");
    ranges[next_ += size_t{1} << 38];
    return next_;
  }

  bool extend(int /*device*/, char* range, size_t bytes) override {
    const Lock lock(mutex);
    forbid_in_capture("cuMemCreate");
    if (!reserves(bytes)) {
      return false;
    }
    ranges.at(range).push_back(bytes);
    memory_[range] += bytes;
    return true;
  }

  size_t shrink(int /*device*/, char* range, size_t keep) override {
    const Lock lock(mutex);
    forbid_in_capture("cuMemUnmap");
    std::vector<size_t>& pieces = ranges.at(range);
    while (!pieces.empty() && memory_[range] - pieces.back() >= keep) {
      unreserve(pieces.back());
      memory_[range] -= pieces.back();
      pieces.pop_back();
    }
    return memory_[range];
  }

  void drop(int device, char* range) override {
    shrink(device, range, 0);
    const Lock lock(mutex);
    ranges.erase(range);
  }

 private:
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 44);
};

// The source with pages, whose streams wait for each other on the device.
class HostileOrder : public HostilePages, public StreamOrder {
 public:
  using HostilePages::HostilePages;

  void wait_for_event(int /*device*/, Stream stream, Event event) override {
    const Lock lock(mutex);
    if (capture_of(0, stream) != Capture::kNone) {
      throw std::logic_error("cudaStreamWaitEvent: a graph would depend on work outside of it");
    }
    work.give(id_of(stream), events_.at(event));
  }
};
