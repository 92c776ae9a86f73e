// One libfabric endpoint with all it needs, and errors that say what failed.
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

// A call of libfabric failed, or an operation that it had taken.
struct FabricError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The provider is not there, or cannot do this here: a reason to skip, not a failure.
struct ProviderUnavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws FabricError with libfabric's own message for a negative status.
inline void check(int64_t status, const char* call) {
  if (status < 0) {
    throw FabricError(std::string(call) + ": " + fi_strerror(static_cast<int>(-status)));
  }
}

// Owners of what libfabric opened or allocated.
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

// Reliable datagram endpoints that can send messages and write to remote memory. Throws
// ProviderUnavailable.
inline Info find_provider(const std::string& provider) {
  Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->op_flags = FI_COMPLETION;  // of calls that take no flags
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  if (provider == "shm") {
    // In order, a small write travels inside its command, not by a system call of its own.
    hints->tx_attr->msg_order = FI_ORDER_RMA_WAW;
  }
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  // Only shm names its endpoints itself; the others are given an address of this host.
  const char* node = provider == "shm" ? nullptr : "127.0.0.1";
  const bool has_own_network = provider.rfind("tcp", 0) != 0 && provider != "shm";
  fi_info* found = nullptr;
  const int status = fi_getinfo(FI_VERSION(1, 14), has_own_network ? nullptr : node, nullptr,
                                node && !has_own_network ? FI_SOURCE : 0, hints.get(), &found);
  if (status != 0) {
    throw ProviderUnavailable("libfabric offers no provider " + provider + " here (" +
                              fi_strerror(-status) + ")");
  }
  return Info(found);
}

// Registered memory: how a peer, or this endpoint itself, names it. The registration ends with it;
// the memory is the caller's and outlives it, and the endpoint does, too.
struct Region {
  Handle<fid_mr> mr;
  uint64_t address;  // what a peer puts into a write: virtual, or an offset from the start
  uint64_t key;
  void* descriptor;
};

// It opens a domain, queue and address table of its own, and is used by one thread at a time.
// Besides what is named below, FabricError.
class Endpoint {
 public:
  // With `counts_writes`, a counter tells how many writes are complete, and fi_writemsg makes a
  // completion only where it is asked for.
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
    // shm names an endpoint after the process and counts: what a killed process with the same
    // identifier left behind may be in the way of one, but not of the next.
    int status = -FI_EBUSY;
    for (int attempt = 0; status == -FI_EBUSY && attempt < kMostNames; ++attempt) {
      status = enable_endpoint(counts_writes);
    }
    check(status, "fi_enable");
  }

  // Its name as a peer's `resolve` takes it, at most 256 bytes of the provider's own format.
  std::string address() const {
    std::string name(256, '\0');
    size_t length = name.size();
    check(fi_getname(&ep_->fid, name.data(), &length), "fi_getname");
    name.resize(length);
    return name;
  }

  // The handle of a peer, by which it is sent and written to.
  fi_addr_t resolve(const std::string& address) {
    fi_addr_t peer = FI_ADDR_UNSPEC;
    // The provider reads as many bytes as its format has, whatever the peer sent.
    std::string name = address;
    name.resize(std::max<size_t>(name.size(), 256));
    if (fi_av_insert(av_.get(), name.data(), 1, &peer, 0, nullptr) != 1) {
      throw FabricError("fi_av_insert: the provider refuses the peer's address");
    }
    return peer;
  }

  // Registers `bytes` at `data` for the kinds of `access` (FI_SEND, FI_REMOTE_WRITE ...). `key` is
  // one that no other region of this endpoint has; the provider may choose another.
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

  // Completions that are there, at most kCompletionsPerRead, until the next read; drives the
  // provider's progress. Throws FabricError for an operation that failed.
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

  // Writes complete so far, by the counter; drives the provider's progress. Only with
  // `counts_writes`.
  uint64_t count_writes() { return fi_cntr_read(cntr_.get()); }

  fid_ep* ep() const { return ep_.get(); }

  // Has the calls from now on timed. `profile` is null before; the endpoint owns it.
  void begin_profile() {
    profile_ = std::make_unique<Profile>();
    profile_->attach(ep_.get(), cq_.get(), cntr_.get());
  }
  Profile* profile() const { return profile_.get(); }

 private:
  static constexpr int kMostNames = 16;

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
  struct Out {  // hands a C function the address of a plain pointer, then owns what it put there
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

  // Closed in the reverse order.
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
