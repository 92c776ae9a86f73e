// A libfabric endpoint with its domain, queue and address table, and errors with their call.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "profile.h"
#include "watch.h"

constexpr int kCompletionsPerRead = 16;

// A failed call of libfabric, or a failed operation.
struct FabricError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The provider is missing or unsuitable here: a reason to skip, not a failure.
struct ProviderUnavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws FabricError with libfabric's message for a negative status.
inline void check(int64_t status, const char* call) {
  if (status < 0) {
    throw FabricError(std::string(call) + ": " + fi_strerror(static_cast<int>(-status)));
  }
}

// Owners of objects that libfabric opens or allocates.
struct CloseFid {
  template <typename T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <typename T>
using Handle = std::unique_ptr<T, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// Looks for reliable datagram endpoints with messages and remote writes; ProviderUnavailable.
inline Info find_provider(const std::string& provider) {
  Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = FI_COMPLETION;  // of calls that take no flags
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (provider == "shm") {
    // With ordered writes, a small one travels inside its command, without a system call.
    hints->tx_attr->msg_order = FI_ORDER_RMA_WAW;
  }
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  // Only shm names its endpoints; other providers need an address of this host.
  const char* node = provider == "shm" ? nullptr : "127.0.0.1";
  const bool has_network_card = provider.rfind("tcp", 0) != 0 && provider != "shm";
  fi_info* found = nullptr;
  const int status = fi_getinfo(FI_VERSION(1, 14), has_network_card ? nullptr : node, nullptr,
                                node && !has_network_card ? FI_SOURCE : 0, hints.get(), &found);
  if (status != 0) {
    throw ProviderUnavailable("libfabric offers no provider " + provider + " here (" +
                              fi_strerror(-status) + ")");
  }
  return Info(found);
}

// Registered memory, as a peer and this endpoint address it. Its destructor ends the registration.
// The caller owns the memory, which outlives the region, as the endpoint does.
struct Region {
  Handle<fid_mr> mr;
  uint64_t address;  // for a peer's writes: virtual, or an offset from the start
  uint64_t key;
  void* descriptor;
};

// For one thread at a time. Every call may throw FabricError.
class Endpoint {
 public:
  // With `counts_writes`, a counter holds the number of completed writes, and fi_writemsg produces
  // a completion only on request.
  explicit Endpoint(const std::string& provider, bool counts_writes = false)
      : info_(find_provider(provider)) {
    check(fi_fabric(info_->fabric_attr, out(fabric_), nullptr), "fi_fabric");
    check(fi_domain(fabric_.get(), info_.get(), out(domain_), nullptr), "fi_domain");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    check(fi_cq_open(domain_.get(), &cq_attr, out(cq_), nullptr), "fi_cq_open");
    fi_av_attr av_attr{};
    check(fi_av_open(domain_.get(), &av_attr, out(av_), nullptr), "fi_av_open");
    if (counts_writes) {
      fi_cntr_attr cntr_attr{};
      check(fi_cntr_open(domain_.get(), &cntr_attr, out(cntr_), nullptr), "fi_cntr_open");
    }
    // shm names an endpoint after the process and a number. A killed process with the same
    // identifier may have left a file of that name; the next number is free.
    int status = -FI_EBUSY;
    for (int attempt = 0; status == -FI_EBUSY && attempt < kMaxNames; ++attempt) {
      status = enable_endpoint(counts_writes);
    }
    check(status, "fi_enable");
  }

  // Address for `resolve` of a peer: at most 256 bytes in the provider's format.
  std::string address() const {
    std::string name(256, '\0');
    size_t length = name.size();
    check(fi_getname(&ep_->fid, name.data(), &length), "fi_getname");
    name.resize(length);
    return name;
  }

  // Handle of a peer for messages and writes to it.
  fi_addr_t resolve(const std::string& address) {
    fi_addr_t peer = FI_ADDR_UNSPEC;
    // The provider reads all bytes of its format, even if the peer sent fewer.
    std::string name = address;
    name.resize(std::max<size_t>(name.size(), 256));
    if (fi_av_insert(av_.get(), name.data(), 1, &peer, 0, nullptr) != 1) {
      throw FabricError("fi_av_insert: the provider refuses the peer's address");
    }
    return peer;
  }

  // Registers `bytes` at `data` for `access` (FI_SEND, FI_REMOTE_WRITE ...). `key` is unique in
  // this endpoint; the provider may choose another one.
  Region register_memory(void* data, size_t bytes, uint64_t key, uint64_t access) {
    Region region{};
    check(fi_mr_reg(domain_.get(), data, bytes, access, 0, key, 0, out(region.mr), nullptr),
          "fi_mr_reg");
    if (info_->domain_attr->mr_mode & FI_MR_ENDPOINT) {
      check(fi_mr_bind(region.mr.get(), &ep_->fid, 0), "fi_mr_bind");
      check(fi_mr_enable(region.mr.get()), "fi_mr_enable");
    }
    const bool is_virtual = info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    region.address = is_virtual ? reinterpret_cast<uint64_t>(data) : 0;
    region.key = fi_mr_key(region.mr.get());
    region.descriptor = fi_mr_desc(region.mr.get());
    return region;
  }

  // At most kCompletionsPerRead completions, valid until the next read; drives the provider's
  // progress. Throws FabricError for a failed operation.
  std::span<const fi_cq_data_entry> read_completions() {
    const ssize_t count = fi_cq_read(cq_.get(), entries_, kCompletionsPerRead);
    if (count > 0) {
      return {entries_, static_cast<size_t>(count)};
    }
    if (count != -FI_EAGAIN) {
      throw_completion_error(count);
    }
    return {};
  }

  // Number of completed writes; drives the provider's progress. Requires `counts_writes`.
  uint64_t count_writes() { return fi_cntr_read(cntr_.get()); }

  fid_ep* ep() const { return ep_.get(); }

  // Times all later calls. `profile` is null before; the endpoint owns it.
  void begin_profile() {
    profile_ = std::make_unique<Profile>();
    profile_->attach(ep_.get(), cq_.get(), cntr_.get());
  }
  Profile* profile() const { return profile_.get(); }

 private:
  static constexpr int kMaxNames = 16;

  int enable_endpoint(bool counts_writes) {
    ep_.reset();
    check(fi_endpoint(domain_.get(), info_.get(), out(ep_), nullptr), "fi_endpoint");
    if (counts_writes) {
      check(fi_ep_bind(ep_.get(), &cntr_->fid, FI_WRITE), "fi_ep_bind");
    }
    const uint64_t selective = counts_writes ? FI_SELECTIVE_COMPLETION : 0;
    check(fi_ep_bind(ep_.get(), &cq_->fid, FI_SEND | selective), "fi_ep_bind");
    check(fi_ep_bind(ep_.get(), &cq_->fid, FI_RECV), "fi_ep_bind");
    check(fi_ep_bind(ep_.get(), &av_->fid, 0), "fi_ep_bind");
    return fi_enable(ep_.get());
  }

  template <typename T>
  struct Out {  // passes the address of a plain pointer to a C function, then owns its result
    Handle<T>& handle;
    T* raw = nullptr;
    ~Out() { handle.reset(raw); }
    operator T**() { return &raw; }
  };
  template <typename T>
  static Out<T> out(Handle<T>& handle) {
    return {handle};
  }

  [[noreturn]] void throw_completion_error(ssize_t status) {
    if (status != -FI_EAVAIL) {
      check(status, "fi_cq_read");
    }
    fi_cq_err_entry error{};
    check(fi_cq_readerr(cq_.get(), &error, 0), "fi_cq_readerr");
    throw FabricError(std::string("an operation failed: ") + fi_strerror(error.err) + " (" +
                      fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, nullptr, 0) +
                      ")");
  }

  // Destroyed in reverse order.
  std::unique_ptr<Profile> profile_;
  Info info_;
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
  Handle<fid_av> av_;
  Handle<fid_cq> cq_;
  Handle<fid_cntr> cntr_;
  Handle<fid_ep> ep_;
  fi_cq_data_entry entries_[kCompletionsPerRead];
};
