// Freed blocks that other streams may still use, in a line for each of these streams: one that is
// slow holds back nothing else.
#pragma once

#include <deque>
#include <unordered_map>

#include "heap.h"

namespace dropin {

// A block that every stream is through with goes back to its side. One thread at a time.
class StreamWaits {
 public:
  explicit StreamWaits(Memory& memory) : memory_(memory) { keep(0); }

  // A stream that is never destroyed: an event behind a later point of its work is as good as one
  // behind the free, so that one serves several.
  void keep(Stream stream) { lines_[stream].lasts = true; }
  void forget(Stream stream) { lines_[stream].lasts = stream == 0; }

  bool is_empty() const { return bytes_ == 0; }

  // Takes a freed block with users. The event is recorded now, unless the stream lasts or is being
  // captured; it may be destroyed as soon as this returns. What the driver refuses to record throws
  // std::runtime_error, and is tried again with the next that is recorded.
  void add(HeapBlock* block) {
    block->state = BlockState::kWaiting;
    block->events = block->users.size();
    bytes_ += block->size;
    const std::vector<Stream> users = std::exchange(block->users, {});
    for (const Stream user : users) {
      lines_[user].add(block);
    }
    for (const Stream user : users) {
      Line& line = lines_[user];
      const bool is_due = line.new_blocks >= kBatchBlocks || line.new_bytes >= kBatchBytes;
      if (!line.lasts || is_due) {
        seal(user, line);
      }
      if (is_due && memory_.captures == 0) {
        let_go(line);
      }
    }
  }

  // Records the events that are still to be recorded, where no capture stands against it.
  void seal() {
    for (auto& [stream, line] : lines_) {
      seal(stream, line);
    }
  }

  // Lets go of whatever is done; outside of captures only, as wait.
  void poll() {
    seal();
    for (auto own = lines_.begin(); own != lines_.end();) {
      let_go(own->second);
      own = own->second.is_spent() ? lines_.erase(own) : std::next(own);
    }
  }

  // Where much is waiting, puts the side's stream behind points up to the first that makes a block
  // of `size` bytes free for it, so that the host need not wait; whether there is one. After a
  // poll, and outside of captures only.
  bool order(Side& side, size_t size) {
    const Stream stream = side.heap.stream;
    if (memory_.order == nullptr || bytes_ < memory_.arena.reserved() / kMuch ||
        is_captured(stream)) {
      return false;
    }
    for (auto& [user, line] : lines_) {
      const auto first =
          std::find_if(line.points.begin(), line.points.end(),
                       [&](const Point& point) { return point.has_block_for(side, size); });
      if (first != line.points.end()) {
        // Behind each of the earlier points, too: they may be of a stream that had the same handle.
        std::for_each(line.points.begin(), std::next(first),
                      [&](Point& point) { take_over(point, side.heap); });
        drop_spent(line);
        return true;
      }
    }
    return false;
  }

  // Waits until all is done.
  void wait() {
    seal();
    for (auto& [stream, line] : lines_) {
      for (const Point& point : line.points) {
        memory_.arena.source.wait(memory_.arena.device, point.event);
      }
    }
    poll();
  }

 private:
  using Blocks = std::vector<HeapBlock*>;
  struct Point {
    Event event;
    Blocks blocks;

    // Whether one of them waits for nothing else.
    bool has_block_for(const Side& side, size_t size) const {
      return std::any_of(blocks.begin(), blocks.end(), [&](const HeapBlock* block) {
        return block->side == &side && block->size >= size && block->events == 1;
      });
    }
  };
  struct Line {
    bool lasts = false;
    Blocks open;               // their event is not recorded yet
    std::deque<Point> points;  // the oldest first
    size_t new_blocks = 0;     // since it was looked at last
    size_t new_bytes = 0;

    void add(HeapBlock* block) {
      open.push_back(block);
      ++new_blocks;
      new_bytes += block->size;
    }
    bool is_spent() const { return !lasts && open.empty() && points.empty(); }
  };
  static constexpr size_t kBatchBlocks = 32;
  static constexpr size_t kBatchBytes = size_t{32} << 20;
  static constexpr size_t kMuch = 12;  // a twelfth of what is reserved

  bool is_captured(Stream stream) const {
    return memory_.streams != nullptr &&
           memory_.streams->capture_of(memory_.arena.device, stream) != Capture::kNone;
  }

  void seal(Stream stream, Line& line) {
    if (!line.open.empty() && !is_captured(stream)) {
      const Event event = memory_.arena.source.record(memory_.arena.device, stream);
      line.points.push_back({event, std::exchange(line.open, {})});
    }
  }

  // The oldest points of a line, as far as the stream is through with them.
  void let_go(Line& line) {
    MemorySource& source = memory_.arena.source;
    const int device = memory_.arena.device;
    line.new_blocks = line.new_bytes = 0;
    while (!line.points.empty() && source.is_done(device, line.points.front().event)) {
      source.recycle(device, line.points.front().event);
      for (HeapBlock* block : line.points.front().blocks) {
        leave(block);
      }
      line.points.pop_front();
    }
  }

  // Puts the heap's stream behind a point where that has blocks of the heap, and lets go of those.
  void take_over(Point& point, const Heap& heap) {
    const auto own =
        std::partition(point.blocks.begin(), point.blocks.end(),
                       [&](const HeapBlock* block) { return &block->side->heap != &heap; });
    if (own != point.blocks.end()) {
      memory_.order->put_behind(memory_.arena.device, heap.stream, point.event);
    }
    std::for_each(own, point.blocks.end(), [&](HeapBlock* block) { leave(block); });
    point.blocks.erase(own, point.blocks.end());
  }

  // The oldest points of a line that nothing waits for; streams that were put behind stay so.
  void drop_spent(Line& line) {
    while (!line.points.empty() && line.points.front().blocks.empty()) {
      memory_.arena.source.recycle(memory_.arena.device, line.points.front().event);
      line.points.pop_front();
    }
  }

  // One of the streams that the block waits for uses it no longer.
  void leave(HeapBlock* block) {
    if (--block->events == 0) {
      bytes_ -= block->size;
      block->side->give(block);
    }
  }

  Memory& memory_;
  std::unordered_map<Stream, Line> lines_;
  size_t bytes_ = 0;  // of all blocks that wait
};

}  // namespace dropin
