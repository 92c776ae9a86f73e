// Profile of a provider whose calls have a given duration.
//
//   rdma_profile THREADS     prints the average ticks of a thread in each part
#include "profile.h"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

void spend(uint64_t ticks) {
  const uint64_t until = __rdtsc() + ticks;
  while (__rdtsc() < until) {
  }
}

// A post takes as many ticks as it has bytes, and is refused without a buffer.
ssize_t slow_write(fid_ep*, const void* buffer, size_t bytes, void*, fi_addr_t, uint64_t, uint64_t,
                   void*) {
  spend(bytes);
  return buffer ? 0 : -FI_EAGAIN;
}

// A poll takes as many ticks as requested entries, and finds one if it has a buffer.
ssize_t slow_read(fid_cq*, void* entries, size_t count) {
  spend(count);
  return entries ? 1 : -FI_EAGAIN;
}

}  // namespace

int main(int, char** argv) {
  const auto count = std::strtoul(argv[1], nullptr, 10);
  fi_ops_rma rma{};
  rma.write = slow_write;
  fi_ops_cq cq_ops{};
  cq_ops.read = slow_read;
  std::vector<Profile> profiles(count + 1);  // the last one for an unused endpoint
  std::vector<Profile*> all;
  std::vector<fid_ep> eps(profiles.size());
  std::vector<fid_cq> cqs(profiles.size());
  for (size_t i = 0; i < profiles.size(); ++i) {
    eps[i].rma = &rma;
    cqs[i].ops = &cq_ops;
    profiles[i].attach(&eps[i], &cqs[i], nullptr);
    spend(1000);
    fi_cq_read(&cqs[i], nullptr, 1 << 20);  // before the reset, so it does not count
    profiles[i].reset();
    all.push_back(&profiles[i]);
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      char page = 0;
      for (int repeat = 0; repeat < 100; ++repeat) {
        fi_write(&eps[i], &page, 40000, nullptr, 0, 0, 0, nullptr);
        spend(60000);
        fi_write(&eps[i], nullptr, 10000, nullptr, 0, 0, 0, nullptr);
        fi_cq_read(&cqs[i], &page, 30000);
        fi_cq_read(&cqs[i], nullptr, 20000);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Parts parts = Profile::parts(all);
  std::printf("%.0f %.0f %.0f %.0f %.0f %.0f\n", parts.post, parts.refused, parts.poll, parts.empty,
              parts.between, parts.clock);
  for (const auto& [name, seconds] : parts.per_write(32e6, 1, 10)) {
    std::printf("%s %.9f\n", name.c_str(), seconds);
  }
}
