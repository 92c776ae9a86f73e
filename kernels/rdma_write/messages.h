// Messages between client and server, and their validation.
//
//   client -> server  CONNECT      devices, endpoints, and the memory that the server may write
//   client -> server  RANDOM_FILL  pages and their destinations; the server warms up, then writes
//   client -> server  RECEIVED     the immediate data of every endpoint has arrived
//   client -> server  BYE          no more requests
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

constexpr size_t kMaxMessageBytes = 1 << 20;
constexpr uint64_t kMaxDevices = 8;
constexpr uint64_t kMaxEndpoints = 16;  // of one device
constexpr uint64_t kMaxPageBytes = 16 << 20;
constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 32;  // of one device

// An invalid message, argument or answer: the field, and its expected and actual value.
struct ProtocolError : std::runtime_error {
  ProtocolError(const std::string& field, const std::string& expected, const std::string& got)
      : std::runtime_error(field + ": expected " + expected + ", got " + got) {}
};

// Throws ProtocolError unless low <= value <= high.
inline void require_between(const std::string& field, uint64_t value, uint64_t low, uint64_t high) {
  if (value < low || value > high) {
    throw ProtocolError(field, std::to_string(low) + " to " + std::to_string(high),
                        std::to_string(value));
  }
}

enum class MessageType : uint64_t { kConnect = 1, kRandomFill = 2, kReceived = 3, kBye = 4 };

inline const char* name_of(MessageType type) {
  switch (type) {
    case MessageType::kConnect:
      return "CONNECT";
    case MessageType::kRandomFill:
      return "RANDOM_FILL";
    case MessageType::kReceived:
      return "RECEIVED";
    case MessageType::kBye:
      return "BYE";
  }
  return "unknown";
}

// Builds a message: its type, then values in the byte order of the host, which both ends share.
class Writer {
 public:
  explicit Writer(MessageType type) { put(static_cast<uint64_t>(type)); }

  template <typename T>
  Writer& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return put(&value, sizeof value);
  }
  Writer& put(const void* data, size_t bytes) {
    text_.append(static_cast<const char*>(data), bytes);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Reads the values of a message in the order of writing. Each step throws ProtocolError for missing
// bytes or a value out of range. `text` outlives the reader.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {
    const auto type = get<uint64_t>("type");
    require_between("message type", type, 1, 4);
    type_ = static_cast<MessageType>(type);
  }

  MessageType type() const { return type_; }
  void require(MessageType expected) const {
    if (type_ != expected) {
      throw ProtocolError("message type", name_of(expected), name_of(type_));
    }
  }

  template <typename T>
  T get(const char* field) {
    T value;
    get(&value, sizeof value, field);
    return value;
  }
  void get(void* data, size_t bytes, const char* field) {
    if (text_.size() - at_ < bytes) {
      throw ProtocolError(field, std::to_string(bytes) + " bytes",
                          std::to_string(text_.size() - at_) + " (the message is truncated)");
    }
    std::memcpy(data, text_.data() + at_, bytes);
    at_ += bytes;
  }
  // Call before allocating memory for `count` items of the message.
  void require_left(uint64_t count, size_t item_bytes, const char* field) const {
    if ((text_.size() - at_) / item_bytes < count) {
      throw ProtocolError(
          field, std::to_string(count) + " items",
          std::to_string((text_.size() - at_) / item_bytes) + " (the message is truncated)");
    }
  }
  void require_end() const {
    if (at_ != text_.size()) {
      throw ProtocolError("message", std::to_string(at_) + " bytes", std::to_string(text_.size()));
    }
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
  MessageType type_{};
};

// Memory of one device that the peer may write through one endpoint.
struct RemoteRegion {
  uint64_t address;
  uint64_t bytes;
  uint64_t key;
};

// Devices of a client. `decode` is the inverse of `encode`; it throws ProtocolError.
struct Connect {
  uint64_t devices = 0;
  uint64_t endpoints = 0;              // of each device
  std::vector<std::string> addresses;  // [devices * endpoints]
  std::vector<RemoteRegion> regions;   // [devices * endpoints]

  std::string encode() const {
    Writer writer(MessageType::kConnect);
    writer.put(devices).put(endpoints);
    for (size_t i = 0; i < addresses.size(); ++i) {
      writer.put<uint64_t>(addresses[i].size()).put(addresses[i].data(), addresses[i].size());
      writer.put(regions[i]);
    }
    return writer.text();
  }

  static Connect decode(const std::string& text) {
    Reader reader(text);
    reader.require(MessageType::kConnect);
    Connect connect;
    connect.devices = reader.get<uint64_t>("CONNECT devices");
    require_between("CONNECT devices", connect.devices, 1, kMaxDevices);
    connect.endpoints = reader.get<uint64_t>("CONNECT endpoints");
    require_between("CONNECT endpoints", connect.endpoints, 1, kMaxEndpoints);
    for (uint64_t i = 0; i < connect.devices * connect.endpoints; ++i) {
      const auto length = reader.get<uint64_t>("CONNECT address length");
      require_between("CONNECT address length", length, 1, 256);
      std::string address(length, '\0');
      reader.get(address.data(), length, "CONNECT address");
      connect.addresses.push_back(address);
      const auto region = reader.get<RemoteRegion>("CONNECT region");
      require_between("CONNECT region bytes", region.bytes, 1, kMaxBufferBytes);
      connect.regions.push_back(region);
    }
    reader.require_end();
    return connect;
  }
};

// Source page i of every device goes to page `destinations[i]` of the client's region.
struct RandomFill {
  uint64_t context = 0;  // returned as the immediate data
  uint64_t seed = 0;     // of the bytes
  uint64_t page_bytes = 0;
  std::vector<uint32_t> destinations;  // [pages], each once

  std::string encode() const {
    Writer writer(MessageType::kRandomFill);
    writer.put(context).put(seed).put(page_bytes).put<uint64_t>(destinations.size());
    writer.put(destinations.data(), destinations.size() * sizeof(uint32_t));
    return writer.text();
  }

  // Throws ProtocolError unless every page lies inside the regions of `connect` and every endpoint
  // has at least one page.
  static RandomFill decode(const std::string& text, const Connect& connect) {
    Reader reader(text);
    reader.require(MessageType::kRandomFill);
    RandomFill fill;
    fill.context = reader.get<uint64_t>("RANDOM_FILL context");
    require_between("RANDOM_FILL context", fill.context, 0, UINT32_MAX);
    fill.seed = reader.get<uint64_t>("RANDOM_FILL seed");
    fill.page_bytes = reader.get<uint64_t>("RANDOM_FILL page_bytes");
    require_between("RANDOM_FILL page_bytes", fill.page_bytes, 8, kMaxPageBytes);
    if (fill.page_bytes % 8 != 0) {
      throw ProtocolError("RANDOM_FILL page_bytes", "a multiple of 8",
                          std::to_string(fill.page_bytes));
    }
    const auto pages = reader.get<uint64_t>("RANDOM_FILL pages");
    require_between("RANDOM_FILL pages", pages, connect.endpoints,
                    kMaxBufferBytes / fill.page_bytes);
    reader.require_left(pages, sizeof(uint32_t), "RANDOM_FILL destinations");
    fill.destinations.resize(pages);
    reader.get(fill.destinations.data(), pages * sizeof(uint32_t), "RANDOM_FILL destinations");
    reader.require_end();
    uint64_t room = UINT64_MAX;
    for (const RemoteRegion& region : connect.regions) {
      room = std::min(room, region.bytes / fill.page_bytes);
    }
    for (const uint32_t page : fill.destinations) {
      if (page >= room) {
        throw ProtocolError("RANDOM_FILL destination", "a page below " + std::to_string(room),
                            std::to_string(page));
      }
    }
    return fill;
  }
};
