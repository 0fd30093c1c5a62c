// What a stage threw, told with the names of the records that were under way in it.
#ifndef QUINTET_ENGINE_BATCH_ERROR_H_
#define QUINTET_ENGINE_BATCH_ERROR_H_

#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/failures.h"

namespace quintet {

// Throws Error of the same kind. `id_of`: a record's id by its ordinal.
[[noreturn]] void fail_with_records(const BatchError& error,
                                    const std::function<std::string(uint64_t)>& id_of);

}  // namespace quintet

#endif  // QUINTET_ENGINE_BATCH_ERROR_H_
