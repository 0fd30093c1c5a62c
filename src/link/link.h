// How rows of hidden states reach the next stage. A link has two ends: send() runs on the
// thread that drives the sender's device, receive() on the thread that drives the receiver's, and
// between the two lies a queue, or a network.
#ifndef QUINTET_LINK_LINK_H_
#define QUINTET_LINK_LINK_H_

#include <cstdint>
#include <string>

#include "core/tensor.h"
#include "link/host_buffers.h"

namespace quintet {

// Hidden states between stages, in one of two places.
struct Parcel {
  Tensor hidden;       // [n_rows, d_model] on a device; empty before the first stage
  HostRows rows;       // [n_rows, d_model], row-major, while on the way through host memory
  int64_t n_rows = 0;  // of `rows`
};

class Link {
 public:
  virtual ~Link() = default;
  virtual std::string kind() const = 0;  // "hand-over", "host copy": for traces and statistics

  // From `hidden`, as it is at `mark` of the sending device, to what travels; calls made to that
  // device since go on meanwhile. It is done with `hidden` when send() returns.
  virtual void send(Parcel& parcel, uint64_t mark) = 0;
  // From what travelled to `hidden` on the receiving device, ready for use.
  virtual void receive(Parcel& parcel) = 0;
};

}  // namespace quintet

#endif  // QUINTET_LINK_LINK_H_
