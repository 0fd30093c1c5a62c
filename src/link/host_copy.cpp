#include "link/host_copy.h"

#include <cassert>

namespace quintet {

// Three buffers: one filled, one queued, one read.
HostCopy::HostCopy(Device& from, Device& to)
    : from_(from), to_(to), buffers_(HostBuffers::create(3)) {}

void HostCopy::send(Parcel& parcel, uint64_t mark) {
  assert(parcel.hidden.dtype() == DType::kFloat32);
  parcel.n_rows = parcel.hidden.rows();
  parcel.rows = buffers_->take(static_cast<size_t>(parcel.hidden.rows() * parcel.hidden.cols()));
  from_.download_at(mark, parcel.hidden, parcel.rows.data());
  parcel.hidden = {};  // here, on the thread that drives the device it belongs to
}

void HostCopy::receive(Parcel& parcel) {
  const int64_t n_rows = parcel.n_rows;
  parcel.hidden = to_.allocate(n_rows, static_cast<int64_t>(parcel.rows.size()) / n_rows);
  to_.upload(parcel.rows.data(), parcel.hidden);
  parcel.rows = {};
}

}  // namespace quintet
