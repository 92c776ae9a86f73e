// Freed blocks that other streams may still use, let go in batches when those streams are through.
#pragma once

#include <algorithm>
#include <deque>

#include "pool.h"

// A block that is let go of goes back to its pool. The arena outlives the room, whose owner waits
// for what is in it or leaves it to the source. One thread at a time.
class WaitingRoom {
 public:
  explicit WaitingRoom(Arena& arena) : arena_(arena) {}

  bool is_empty() const { return open_.blocks.empty() && sealed_.empty(); }

  // Takes a freed block with users. An event behind a later point of their streams is as good as
  // one behind this, so that one event a stream serves a whole batch.
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

  // Records the events that the blocks added so far wait for.
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

  // Lets go of the oldest batches as far as their events are done.
  void poll() {
    while (!sealed_.empty() && is_done(sealed_.front())) {
      let_go_of_oldest();
    }
  }

  // Lets go of whatever is done, old or not.
  void poll_all() {
    for (size_t left = sealed_.size(); left > 0; --left) {
      if (is_done(sealed_.front())) {
        let_go_of_oldest();
      } else {
        sealed_.push_back(std::move(sealed_.front()));
        sealed_.pop_front();
      }
    }
  }

  // Waits until all is done.
  void wait() {
    seal();
    while (!sealed_.empty()) {
      for (std::vector<Event>& events = sealed_.front().events; !events.empty();
           events.pop_back()) {
        arena_.source.wait(arena_.device, events.back());
        arena_.source.recycle(arena_.device, events.back());
      }
      let_go_of_oldest();
    }
  }

 private:
  struct Batch {
    std::vector<Block*> blocks;
    std::vector<Event> events;  // those not yet known to be done
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

  void let_go_of_oldest() {
    for (Block* block : sealed_.front().blocks) {
      block->pool->give(block);
    }
    sealed_.pop_front();
  }

  Arena& arena_;
  Batch open_;
  std::vector<Stream> users_;  // of the blocks in the open batch
  size_t open_bytes_ = 0;
  std::deque<Batch> sealed_;  // oldest first, but for what poll_all turned over
};
