// The SMs of all GPUs gather the first rows, sorted, while the CPU packs the other rows and the
// copy engines of all GPUs move them.
#include "in_order.h"
#include "packer.h"

const Plan kPlan = {"host", "all", "first", "gather", "none"};

Move prepare(const Share& share, const Resources& resources) {
  const int64_t by_sms = share.launch_rows * SIXTEENTHS_BY_SMS / 16;
  const Move gather_some = gather_in_order(share, by_sms);
  if (share.gpu != 0) {
    return gather_some;
  }
  const auto packer =
      std::make_shared<Packer>(share.launch_rows - by_sms, share.row_bytes, resources);
  return [gather_some, packer, by_sms](const Share& of, cudaStream_t stream) {
    const Share others = rows_of(whole(of), by_sms, of.launch_rows);
    packer->fetch(others, stream);
    gather_some(of, stream);
    packer->pack(others, stream);
  };
}
