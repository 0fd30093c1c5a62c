// Which link joins two devices.
#ifndef QUINTET_LINK_REGISTRY_H_
#define QUINTET_LINK_REGISTRY_H_

#include <memory>

#include "backends/device.h"
#include "link/link.h"

namespace quintet {

// The cheapest link that can carry hidden states between the two; both devices outlive it.
std::unique_ptr<Link> make_link(Device& from, Device& to);

}  // namespace quintet

#endif  // QUINTET_LINK_REGISTRY_H_
