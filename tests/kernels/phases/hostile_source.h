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
#include "stream_work.h"

// Where the real driver would end the process, or do what nobody has asked for.
struct Crash : std::logic_error {
  using std::logic_error::logic_error;
};

constexpr Stream kPerThread = 2;  // cudaStreamPerThread: another stream in each thread

// One device, whatever index is given. Tests and allocators may call it from several threads.
class HostileSource : public StreamSource {
 public:
  using Id = StreamWork::Id;
  using Point = StreamWork::Point;

  explicit HostileSource(size_t capacity) : capacity_(capacity) { work_.add(0, true); }

  // Calls of the driver.

  void* allocate(int device, size_t bytes) override {
    const Lock lock(mutex_);
    refuse_in_capture("cudaMalloc");
    return allocate_in_capture(device, bytes);
  }

  void* allocate_in_capture(int /*device*/, size_t bytes) override {
    const Lock lock(mutex_);
    ++counts_.allocations;
    if (is_allocation_refused(bytes)) {
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
    work_.finish_all();  // as the driver's, it waits for the device
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
    event.point = work_.point_of(id);
    event.late = lag;
    events_.emplace(++last_event_, event);
    return last_event_;
  }

  bool is_done(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    ++counts_.event_queries;
    refuse_in_capture("cudaEventQuery");
    Recorded& recorded = uncaptured(event, "cudaEventQuery");
    if (!work_.is_reached(recorded.point)) {
      return false;
    }
    return recorded.late == 0 || recorded.late-- == 0;
  }

  void wait(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    ++counts_.event_waits;
    refuse_in_capture("cudaEventSynchronize");
    Recorded& recorded = uncaptured(event, "cudaEventSynchronize");
    recorded.late = 0;
    work_.reach(recorded.point);
  }

  void recycle(int /*device*/, Event event) override {
    const Lock lock(mutex_);
    events_.erase(event);
  }

  // The identity of a per-thread default stream is odd, which no handle is.
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

  // Actions of a program.

  // The handle of a stream that ended last comes back first.
  Stream create_stream() {
    const Lock lock(mutex_);
    if (ended_.empty()) {
      ended_.push_back(next_handle_);
      next_handle_ += 64;
    }
    const Stream handle = ended_.back();
    ended_.pop_back();
    work_.add(handles_[handle] = ++last_id_, false);
    return handle;
  }

  // Work that was enqueued before is still completed.
  void destroy_stream(Stream stream) {
    const Lock lock(mutex_);
    live(stream, "cudaStreamDestroy");
    handles_.erase(stream);
    ended_.push_back(stream);
  }

  void launch(Stream stream) {
    const Lock lock(mutex_);
    const Id id = live(stream, "a launch");
    if (capturing_.count(id) == 0) {  // else the graph has it
      work_.give(id);
    }
  }

  // The next `count` pieces of its work are done.
  void complete(Stream stream, uint64_t count) { complete_id(id_of(stream), count); }

  void complete_id(Id id, uint64_t count) {
    const Lock lock(mutex_);
    work_.complete(id, count);
  }

  void complete_all() {
    const Lock lock(mutex_);
    work_.finish_all();
    for (auto& [id, event] : events_) {
      event.late = 0;
    }
  }

  // In global mode, as PyTorch captures, or in relaxed mode, in which nothing is forbidden.
  void begin_capture(Stream stream, bool is_relaxed = false) {
    const Lock lock(mutex_);
    const Id id = live(stream, "cudaStreamBeginCapture");
    capturing_.insert(id);
    if (!is_relaxed) {
      forbidding_.insert(id);
    }
  }

  // Throws Crash where something has ended the capture before.
  void end_capture(Stream stream) {
    const Lock lock(mutex_);
    const Id id = live(stream, "cudaStreamEndCapture");
    capturing_.erase(id);
    forbidding_.erase(id);
    if (!invalid_.empty() && capturing_.empty()) {
      const std::string why = invalid_;
      invalid_.clear();
      throw Crash("cudaStreamEndCapture: the capture was ended by " + why);
    }
  }

  // State for tests.

  Id id_of(Stream stream) {
    const Lock lock(mutex_);
    return live(stream, "a test");
  }

  // Pieces of work so far.
  uint64_t given(Id id) {
    const Lock lock(mutex_);
    return work_.given(id);
  }

  bool is_reached(const Point& point) {
    const Lock lock(mutex_);
    return work_.is_reached(point);
  }

  // Whether the point is reached before anything that the stream is given from now on begins.
  bool is_before(Id id, const Point& point) {
    const Lock lock(mutex_);
    return work_.is_before(id, point);
  }

  bool is_idle(Stream stream) {
    const Lock lock(mutex_);
    return work_.is_idle(live(stream, "cudaStreamQuery"));
  }

  size_t events_alive() {
    const Lock lock(mutex_);
    return events_.size();
  }

  // Lets the next `count` calls fail, or events recorded from now on complete `count` queries late.
  std::atomic<uint64_t> failing_allocations{0};
  std::atomic<uint64_t> failing_releases{0};
  std::atomic<uint64_t> failing_records{0};
  std::atomic<uint64_t> lag{0};

 protected:
  using Lock = std::lock_guard<std::recursive_mutex>;

  // Whether it fails as a test wants, or for lack of room.
  bool is_allocation_refused(size_t bytes) {
    if (failing_allocations > 0) {
      --failing_allocations;
      return true;
    }
    return bytes > capacity_ || counts_.reserved > capacity_ - bytes;
  }

  void refuse_in_capture(const std::string& call) {
    if (!forbidding_.empty()) {
      invalidate(call);
      throw std::runtime_error(call + ": operation not permitted when stream is capturing");
    }
  }

  // The stream is given a piece of work that is done when the event is reached.
  void give_wait(Stream stream, Event event) {
    const Id id = live(stream, "cudaStreamWaitEvent");
    const Recorded& recorded = events_.at(event);
    if (recorded.is_captured || capture_of_id(id) != Capture::kNone) {
      invalidate("cudaStreamWaitEvent");
      throw std::runtime_error("cudaStreamWaitEvent: dependency created on uncaptured work");
    }
    work_.give_wait(id, recorded.point);
  }

  mutable std::recursive_mutex mutex_;
  StreamWork work_;
  SourceCounts counts_;
  std::map<uintptr_t, size_t> given_out_;

 private:
  struct Recorded {
    Point point;
    bool is_captured = false;
    uint64_t late = 0;
  };

  static constexpr size_t kPage = size_t{2} << 20;

  Recorded& uncaptured(Event event, const std::string& call) {
    Recorded& recorded = events_.at(event);
    if (recorded.is_captured) {
      throw std::runtime_error(call + ": operation not permitted on a captured event");
    }
    return recorded;
  }

  Id live(Stream stream, const std::string& call) {
    if (stream == 0) {
      return 0;
    }
    if (stream == kPerThread) {
      thread_local std::map<uint64_t, Id> ids;
      const auto [found, is_new] = ids.try_emplace(serial_, last_id_ + 1);
      if (is_new) {
        work_.add(++last_id_, true);
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
    const bool is_waited_for = std::any_of(capturing_.begin(), capturing_.end(),
                                           [&](Id other) { return work_.is_blocking(other); });
    return id == 0 && is_waited_for ? Capture::kRefused : Capture::kNone;
  }

  void invalidate(const std::string& call) { invalid_ = invalid_.empty() ? call : invalid_; }

  static uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  const uint64_t serial_ = next_serial();
  const size_t capacity_;
  std::map<size_t, std::vector<uintptr_t>> returned_;  // addresses by size
  uintptr_t next_address_ = uintptr_t{1} << 40;
  std::map<Stream, Id> handles_;
  std::vector<Stream> ended_;
  Stream next_handle_ = 0x10000;
  std::set<Id> capturing_;
  std::set<Id> forbidding_;  // those in global mode
  std::string invalid_;      // what ended the captures that are under way
  std::map<Event, Recorded> events_;
  Event last_event_ = 0;
  Id last_id_ = 0;
};
