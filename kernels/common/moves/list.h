// Pieces that lie anywhere on both sides: their places come from a list.
#pragma once

#include "transfer.h"

// Offsets of a piece in bytes from the first byte of the pieces' memory on either side.
struct alignas(16) Place {
  int64_t host;
  int64_t device;
};

// A method for pieces of `size` bytes at the places of a list. bindings.cpp has no argument for the
// list, so `landing` is its address: pinned memory, one Place per piece. `streams` is the number of
// CPU threads of a method that uses them.
class ListMethod : public Method {
 public:
  explicit ListMethod(const Pieces& moved)
      : Method(moved), places_(reinterpret_cast<const Place*>(moved.landing)) {
    if (places_ == nullptr) {
      throw std::invalid_argument("landing: expected the address of the places, got 0");
    }
  }

 protected:
  const Place* places() const { return places_; }
  uint8_t* host_at(int64_t i) const { return pieces.host + places_[i].host; }
  uint8_t* device_at(int64_t i) const { return pieces.device + places_[i].device; }
  uint8_t* from_at(int64_t i) const { return pieces.to_device ? host_at(i) : device_at(i); }
  uint8_t* to_at(int64_t i) const { return pieces.to_device ? device_at(i) : host_at(i); }

  // Whether all pieces start and end on 16-byte boundaries on both sides.
  bool has_vectors() const {
    auto bits = reinterpret_cast<uintptr_t>(pieces.host) |
                reinterpret_cast<uintptr_t>(pieces.device) | static_cast<uintptr_t>(pieces.size);
    for (int64_t i = 0; i < pieces.count; ++i) {
      bits |= static_cast<uintptr_t>(places_[i].host | places_[i].device);
    }
    return bits % 16 == 0;
  }

  void require_packed_device() const {
    for (int64_t i = 0; i < pieces.count; ++i) {
      if (places_[i].device != i * pieces.size) {
        throw std::invalid_argument("device: expected packed pieces in the order of the list, got" +
                                    (" piece " + std::to_string(i)) + " at byte " +
                                    std::to_string(places_[i].device));
      }
    }
  }

 private:
  const Place* places_;
};
