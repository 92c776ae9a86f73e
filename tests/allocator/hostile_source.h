// A source that does what a driver and its streams may do at their worst: memory runs out and is
// not taken back, events complete late, streams lag, end, and come back under the same handle, and
// inside a capture most calls are refused.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "stream_source.h"

// Where the real driver would end the process, or do what nobody has asked for.
struct Crash : std::logic_error {
  using std::logic_error::logic_error;
};

constexpr Stream kPerThread = 2;  // cudaStreamPerThread: another stream in each thread

// One device, whatever index is given. Tests and allocators may call it from several threads.
class HostileSource : public StreamSource {
 public:
  using Id = uint64_t;  // of a stream: unlike its handle, never given twice
  // The end of the work that each of these streams had at some time.
  using Point = std::map<Id, uint64_t>;

  explicit HostileSource(size_t capacity) : capacity_(capacity) { streams_[0].is_blocking = true; }

  // What the driver does.

  void* allocate(int device, size_t bytes) override {
    const Lock lock(mutex_);
    refuse_in_capture("cudaMalloc");
    return allocate_in_capture(device, bytes);
  }

  void* allocate_in_capture(int /*device*/, size_t bytes) override {
    const Lock lock(mutex_);
    ++counts_.allocations;
    if (failing_allocations > 0) {
      --failing_allocations;
      return nullptr;
    }
    if (bytes > capacity_ || counts_.reserved > capacity_ - bytes) {
      return nullptr;
    }
    // The address that was given back last, so that addresses come back.
    std::vector<uintptr_t>& returned = returned_[bytes];
    if (returned.empty()) {
      returned.push_back(next_address_);
      next_address_ += (bytes + kPage - 1) / kPage * kPage;
    }
    const uintptr_t start = returned.back();
    returned.pop_back();
    given_out_.emplace(start, bytes);
    counts_.reserved += bytes;
    counts_.peak_reserved = std::max(counts_.peak_reserved, counts_.reserved);
    return reinterpret_cast<void*>(start);
  }

  void release(int /*device*/, void* ptr) override {
    const Lock lock(mutex_);
    refuse_in_capture("cudaFree");
    const auto found = given_out_.find(reinterpret_cast<uintptr_t>(ptr));
    if (found == given_out_.end()) {
      throw Crash("cudaFree: not an allocation");
    }
    if (failing_releases > 0) {
      --failing_releases;
      throw std::runtime_error("cudaFree: unspecified launch failure");
    }
    ++counts_.frees;
    counts_.reserved -= found->second;
    returned_[found->second].push_back(found->first);
    given_out_.erase(found);
    // As the driver's, it waits for the device.
    for (auto& [id, stream] : streams_) {
      stream.done = stream.given;
    }
  }

  Event record(int /*device*/, Stream stream) override {
    const Lock lock(mutex_);
    ++counts_.event_records;
    const Id id = live(stream, "cudaEventRecord");
    if (failing_records > 0) {
      --failing_records;
      throw std::runtime_error("cudaEventRecord: unspecified launch failure");
    }
    Recorded event;
    const Capture capture = capture_of_id(id);
    if (capture == Capture::kRefused) {
      invalidate("cudaEventRecord in the default stream");
      throw std::runtime_error("cudaEventRecord: operation would make the legacy stream depend");
    }
    event.is_captured = capture == Capture::kCaptured;
    event.point = point_of_id(id);
    event.late = lag;
    events_.emplace(++last_event_, event);
    return last_event_;
  }

  bool is_done(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    ++counts_.event_queries;
    refuse_in_capture("cudaEventQuery");
    Recorded& own = events_.at(event);
    if (own.is_captured) {
      throw std::runtime_error("cudaEventQuery: operation not permitted on a captured event");
    }
    if (!is_through(own.point)) {
      return false;
    }
    return own.late == 0 || own.late-- == 0;
  }

  void wait(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    ++counts_.event_waits;
    refuse_in_capture("cudaEventSynchronize");
    Recorded& own = events_.at(event);
    if (own.is_captured) {
      throw std::runtime_error("cudaEventSynchronize: operation not permitted on a captured event");
    }
    own.late = 0;
    for (const auto& [id, position] : own.point) {
      streams_.at(id).done = std::max(streams_.at(id).done, position);
    }
  }

  void recycle(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    events_.erase(event);
  }

  // That of a thread's own default stream is odd, as no handle is.
  Stream identity(Stream stream) override {
    const Lock lock(mutex_);
    return stream == kPerThread ? Stream(2 * live(stream, "a call") + 1) : stream;
  }

  Capture capture_of(int /*device*/, Stream stream) override {
    const Lock lock(mutex_);
    return capture_of_id(live(stream, "cudaStreamIsCapturing"));
  }

  SourceCounts counts(int /*device*/) const override {
    const Lock lock(mutex_);
    return counts_;
  }

  void reset_counts(int /*device*/) override {
    const Lock lock(mutex_);
    counts_ = {counts_.reserved, counts_.reserved, 0, 0, 0, 0, 0};
  }

  // What a program does.

  // The handle of a stream that ended last comes back first.
  Stream create_stream() {
    const Lock lock(mutex_);
    if (ended_.empty()) {
      ended_.push_back(next_handle_);
      next_handle_ += 64;
    }
    const Stream handle = ended_.back();
    ended_.pop_back();
    streams_[handles_[handle] = ++last_id_];
    return handle;
  }

  // What it was given is still done.
  void destroy_stream(Stream stream) {
    const Lock lock(mutex_);
    live(stream, "cudaStreamDestroy");
    handles_.erase(stream);
    ended_.push_back(stream);
  }

  void launch(Stream stream) {
    const Lock lock(mutex_);
    const Id id = live(stream, "a launch");
    streams_.at(id).given += capturing_.count(id) == 0;  // else the graph has it
  }

  // The next `count` pieces of its work are done.
  void complete(Stream stream, uint64_t count) { complete_id(id_of(stream), count); }

  void complete_id(Id id, uint64_t count) {
    const Lock lock(mutex_);
    Work& work = streams_.at(id);
    work.done += std::min(count, work.given - work.done);
  }

  void complete_all() {
    const Lock lock(mutex_);
    for (auto& [id, work] : streams_) {
      work.done = work.given;
    }
    for (auto& [id, event] : events_) {
      event.late = 0;
    }
  }

  // In global mode, as PyTorch captures.
  void begin_capture(Stream stream) {
    const Lock lock(mutex_);
    capturing_.insert(live(stream, "cudaStreamBeginCapture"));
  }

  // Throws Crash where something has ended the capture before.
  void end_capture(Stream stream) {
    const Lock lock(mutex_);
    capturing_.erase(live(stream, "cudaStreamEndCapture"));
    if (!invalid_.empty() && capturing_.empty()) {
      const std::string why = invalid_;
      invalid_.clear();
      throw Crash("cudaStreamEndCapture: the capture was ended by " + why);
    }
  }

  // What a test sees.

  Id id_of(Stream stream) {
    const Lock lock(mutex_);
    return live(stream, "a test");
  }

  // Pieces of work so far.
  uint64_t given(Id id) {
    const Lock lock(mutex_);
    return streams_.at(id).given;
  }

  bool is_reached(const Point& point) {
    const Lock lock(mutex_);
    return is_through(point);
  }

  size_t events_alive() {
    const Lock lock(mutex_);
    return events_.size();
  }

  // The next so many calls fail; events recorded from now on complete so many queries late.
  std::atomic<uint64_t> failing_allocations{0};
  std::atomic<uint64_t> failing_releases{0};
  std::atomic<uint64_t> failing_records{0};
  std::atomic<uint64_t> lag{0};

 private:
  using Lock = std::lock_guard<std::recursive_mutex>;
  struct Work {
    uint64_t given = 0;
    uint64_t done = 0;
    bool is_blocking = false;  // the default stream waits for it
  };
  struct Recorded {
    Point point;
    bool is_captured = false;
    uint64_t late = 0;
  };

  static constexpr size_t kPage = size_t{2} << 20;

  Id live(Stream stream, const std::string& call) {
    if (stream == 0) {
      return 0;
    }
    if (stream == kPerThread) {
      thread_local std::map<uint64_t, Id> own;
      const auto [found, is_new] = own.try_emplace(serial_, last_id_ + 1);
      if (is_new) {
        streams_[++last_id_].is_blocking = true;
      }
      return found->second;
    }
    if (stream % 2 == 1) {
      // Nobody else can name another thread's default stream, but the device's waits for it.
      return live(kPerThread, call) == stream / 2 ? stream / 2 : 0;
    }
    const auto found = handles_.find(stream);
    if (found == handles_.end()) {
      throw Crash(call + " of a stream that has ended: segmentation fault");
    }
    return found->second;
  }

  Capture capture_of_id(Id id) const {
    if (capturing_.count(id) > 0) {
      return Capture::kCaptured;
    }
    const bool is_waited_for = std::any_of(capturing_.begin(), capturing_.end(), [&](Id other) {
      return streams_.at(other).is_blocking;
    });
    return id == 0 && is_waited_for ? Capture::kRefused : Capture::kNone;
  }

  // Behind all of the stream's work, and for the default stream behind that of those it waits for.
  Point point_of_id(Id id) const {
    Point point{{id, streams_.at(id).given}};
    if (id == 0) {
      for (const auto& [other, work] : streams_) {
        if (work.is_blocking) {
          point[other] = work.given;
        }
      }
    }
    return point;
  }

  bool is_through(const Point& point) const {
    return std::all_of(point.begin(), point.end(), [&](const auto& part) {
      return streams_.at(part.first).done >= part.second;
    });
  }

  void invalidate(const std::string& call) { invalid_ = invalid_.empty() ? call : invalid_; }

  void refuse_in_capture(const std::string& call) {
    if (!capturing_.empty()) {
      invalidate(call);
      throw std::runtime_error(call + ": operation not permitted when stream is capturing");
    }
  }

  static uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  mutable std::recursive_mutex mutex_;
  const uint64_t serial_ = next_serial();
  const size_t capacity_;
  std::map<uintptr_t, size_t> given_out_;
  std::map<size_t, std::vector<uintptr_t>> returned_;  // addresses by size
  uintptr_t next_address_ = uintptr_t{1} << 40;
  std::map<Stream, Id> handles_;
  std::vector<Stream> ended_;
  Stream next_handle_ = 0x10000;
  std::map<Id, Work> streams_;
  std::set<Id> capturing_;
  std::string invalid_;  // what ended the captures that are under way
  std::map<Event, Recorded> events_;
  Event last_event_ = 0;
  Id last_id_ = 0;
  SourceCounts counts_;
};
