// Freed blocks that other streams may still use, in one queue per stream: a slow stream delays only
// the blocks that it uses.
#pragma once

#include <deque>
#include <unordered_map>

#include "heap.h"

namespace dropin {

// Holds freed blocks until every stream has finished with them, then returns each to its pool. One
// thread at a time.
class StreamWaits {
 public:
  explicit StreamWaits(Memory& memory) : memory_(memory) { keep(0); }

  // Marks a stream as never destroyed. An event recorded after a later free then covers the earlier
  // frees, so one event serves several blocks.
  void keep(Stream stream) { queues_[stream].is_persistent = true; }
  void forget(Stream stream) { queues_[stream].is_persistent = stream == 0; }

  bool is_empty() const { return bytes_ == 0; }

  // Takes a freed block with users. The event is recorded at once, unless the stream is persistent
  // or being captured, so the stream may be destroyed after this returns. If the driver refuses to
  // record, throws std::runtime_error; the next record tries again.
  void add(HeapBlock* block) {
    block->state = BlockState::kWaiting;
    block->pending_events = block->users.size();
    bytes_ += block->size;
    const std::vector<Stream> users = std::exchange(block->users, {});
    for (const Stream user : users) {
      queues_[user].add(block);
    }
    for (const Stream user : users) {
      Queue& queue = queues_[user];
      const bool is_due = queue.new_blocks >= kBatchBlocks || queue.new_bytes >= kBatchBytes;
      if (!queue.is_persistent || is_due) {
        record_event(user, queue);
      }
      if (is_due && memory_.captures == 0) {
        release_completed(queue);
      }
    }
  }

  // Records the outstanding events of all streams that are not being captured.
  void record_events() {
    for (auto& [stream, queue] : queues_) {
      record_event(stream, queue);
    }
  }

  // Releases all blocks whose events are complete. Outside of captures only, like wait.
  void poll() {
    record_events();
    for (auto entry = queues_.begin(); entry != queues_.end();) {
      release_completed(entry->second);
      entry = entry->second.is_unused() ? queues_.erase(entry) : std::next(entry);
    }
  }

  // Lets the pool's stream wait on the device for pending blocks, so that the host need not wait,
  // once much memory is pending. It waits for events up to the first that frees a block of `size`
  // bytes for the pool; false where there is none. After a poll, and outside of captures only.
  bool wait_on_device(SegmentPool& segment_pool, size_t size) {
    const Stream stream = segment_pool.heap.stream;
    if (memory_.order == nullptr || bytes_ < memory_.arena.reserved() / kMinPendingDivisor ||
        is_captured(stream)) {
      return false;
    }
    for (auto& [user, queue] : queues_) {
      const auto first =
          std::find_if(queue.batches.begin(), queue.batches.end(),
                       [&](const Batch& batch) { return batch.has_block_for(segment_pool, size); });
      if (first != queue.batches.end()) {
        // Earlier events count, too: they may be of a destroyed stream with the same handle.
        std::for_each(queue.batches.begin(), std::next(first),
                      [&](Batch& batch) { wait_for_batch(batch, segment_pool.heap); });
        drop_empty_batches(queue);
        return true;
      }
    }
    return false;
  }

  // Waits until all events are complete.
  void wait() {
    record_events();
    for (auto& [stream, queue] : queues_) {
      for (const Batch& batch : queue.batches) {
        memory_.arena.source.wait(memory_.arena.device, batch.event);
      }
    }
    poll();
  }

 private:
  using Blocks = std::vector<HeapBlock*>;
  // Blocks that wait for one event.
  struct Batch {
    Event event;
    Blocks blocks;

    // Whether a block of the pool fits and waits for this event only.
    bool has_block_for(const SegmentPool& segment_pool, size_t size) const {
      return std::any_of(blocks.begin(), blocks.end(), [&](const HeapBlock* block) {
        return block->segment_pool == &segment_pool && block->size >= size &&
               block->pending_events == 1;
      });
    }
  };
  // The blocks that one stream still uses.
  struct Queue {
    bool is_persistent = false;
    Blocks unrecorded;          // blocks whose event is not recorded yet
    std::deque<Batch> batches;  // the oldest first
    size_t new_blocks = 0;      // since the last release_completed
    size_t new_bytes = 0;

    void add(HeapBlock* block) {
      unrecorded.push_back(block);
      ++new_blocks;
      new_bytes += block->size;
    }
    bool is_unused() const { return !is_persistent && unrecorded.empty() && batches.empty(); }
  };
  static constexpr size_t kBatchBlocks = 32;
  static constexpr size_t kBatchBytes = size_t{32} << 20;
  static constexpr size_t kMinPendingDivisor = 12;  // a twelfth of the reserved bytes is much

  bool is_captured(Stream stream) const {
    return memory_.streams != nullptr &&
           memory_.streams->capture_of(memory_.arena.device, stream) != Capture::kNone;
  }

  void record_event(Stream stream, Queue& queue) {
    if (!queue.unrecorded.empty() && !is_captured(stream)) {
      const Event event = memory_.arena.source.record(memory_.arena.device, stream);
      queue.batches.push_back({event, std::exchange(queue.unrecorded, {})});
    }
  }

  // Releases the oldest batches of a queue, up to the first whose event is not complete.
  void release_completed(Queue& queue) {
    MemorySource& source = memory_.arena.source;
    const int device = memory_.arena.device;
    queue.new_blocks = queue.new_bytes = 0;
    while (!queue.batches.empty() && source.is_done(device, queue.batches.front().event)) {
      source.recycle(device, queue.batches.front().event);
      for (HeapBlock* block : queue.batches.front().blocks) {
        finish_event(block);
      }
      queue.batches.pop_front();
    }
  }

  // Lets the heap's stream wait for a batch that holds blocks of the heap, and releases these.
  void wait_for_batch(Batch& batch, const Heap& heap) {
    const auto of_heap =
        std::partition(batch.blocks.begin(), batch.blocks.end(),
                       [&](const HeapBlock* block) { return &block->segment_pool->heap != &heap; });
    if (of_heap != batch.blocks.end()) {
      memory_.order->wait_for_event(memory_.arena.device, heap.stream, batch.event);
    }
    std::for_each(of_heap, batch.blocks.end(), [&](HeapBlock* block) { finish_event(block); });
    batch.blocks.erase(of_heap, batch.blocks.end());
  }

  // Drops the oldest batches that hold no blocks; streams that wait for their events still do.
  void drop_empty_batches(Queue& queue) {
    while (!queue.batches.empty() && queue.batches.front().blocks.empty()) {
      memory_.arena.source.recycle(memory_.arena.device, queue.batches.front().event);
      queue.batches.pop_front();
    }
  }

  // Counts one event of the block as complete; the last one releases the block.
  void finish_event(HeapBlock* block) {
    if (--block->pending_events == 0) {
      bytes_ -= block->size;
      block->segment_pool->give(block);
    }
  }

  Memory& memory_;
  std::unordered_map<Stream, Queue> queues_;
  size_t bytes_ = 0;  // of all blocks that wait
};

}  // namespace dropin
