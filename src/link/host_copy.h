// Hidden states pass through host memory: down from one device, up to the other.
#ifndef QUINTET_LINK_HOST_COPY_H_
#define QUINTET_LINK_HOST_COPY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "backends/device.h"
#include "link/link.h"

namespace quintet {

class HostCopy : public Link {
 public:
  HostCopy(Device& from, Device& to);
  std::string kind() const override { return "host copy"; }
  void send(Parcel& parcel, uint64_t mark) override;
  void receive(Parcel& parcel) override;

 private:
  Device& from_;
  Device& to_;
  std::shared_ptr<HostBuffers> buffers_;
};

}  // namespace quintet

#endif  // QUINTET_LINK_HOST_COPY_H_
