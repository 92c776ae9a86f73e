// Freed blocks that other streams may still use, released in batches when those streams are done.
#pragma once

#include <algorithm>
#include <deque>

#include "pool.h"

// A released block goes back to its pool. The arena outlives this object; blocks that are pending
// when it is destroyed are left to the source. One thread at a time.
class DeferredFrees {
 public:
  explicit DeferredFrees(Arena& arena) : arena_(arena) {}

  bool is_empty() const { return open_.blocks.empty() && sealed_.empty(); }

  // Takes a freed block with users. An event recorded later on their streams covers this block,
  // too, so one event per stream serves a whole batch.
  void add(Block* block) {
    block->state = BlockState::kWaiting;
    for (const Stream user : block->users) {
      if (std::find(users_.begin(), users_.end(), user) == users_.end()) {
        users_.push_back(user);
      }
    }
    block->users.clear();
    open_.blocks.push_back(block);
    open_bytes_ += block->size;
    if (open_.blocks.size() >= kBatchBlocks || open_bytes_ >= kBatchBytes) {
      seal();
      poll();
    }
  }

  // Records the events of the blocks added since the last call.
  void seal() {
    if (open_.blocks.empty()) {
      return;
    }
    while (!users_.empty()) {
      open_.events.push_back(arena_.source.record(arena_.device, users_.back()));
      users_.pop_back();
    }
    sealed_.push_back(std::move(open_));
    open_ = {};
    open_bytes_ = 0;
  }

  // Releases the oldest batches, up to the first whose events are not complete.
  void poll() {
    while (!sealed_.empty() && is_done(sealed_.front())) {
      release_oldest_batch();
    }
  }

  // Releases every batch whose events are complete.
  void poll_all() {
    for (size_t left = sealed_.size(); left > 0; --left) {
      if (is_done(sealed_.front())) {
        release_oldest_batch();
      } else {
        sealed_.push_back(std::move(sealed_.front()));
        sealed_.pop_front();
      }
    }
  }

  // Waits for all events and releases all blocks.
  void wait() {
    seal();
    while (!sealed_.empty()) {
      for (std::vector<Event>& events = sealed_.front().events; !events.empty();
           events.pop_back()) {
        arena_.source.wait(arena_.device, events.back());
        arena_.source.recycle(arena_.device, events.back());
      }
      release_oldest_batch();
    }
  }

 private:
  struct Batch {
    std::vector<Block*> blocks;
    std::vector<Event> events;  // not yet known to be complete
  };
  static constexpr size_t kBatchBlocks = 32;
  static constexpr size_t kBatchBytes = size_t{1} << 19;

  bool is_done(Batch& batch) {
    while (!batch.events.empty() && arena_.source.is_done(arena_.device, batch.events.back())) {
      arena_.source.recycle(arena_.device, batch.events.back());
      batch.events.pop_back();
    }
    return batch.events.empty();
  }

  void release_oldest_batch() {
    for (Block* block : sealed_.front().blocks) {
      block->pool->give(block);
    }
    sealed_.pop_front();
  }

  Arena& arena_;
  Batch open_;
  std::vector<Stream> users_;  // of the blocks in the open batch
  size_t open_bytes_ = 0;
  std::deque<Batch> sealed_;  // oldest first, unless poll_all has rotated it
};
