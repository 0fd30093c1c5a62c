// A change to one number of a row of logits, decided on the host and done where the logits are.
#ifndef QUINTET_CORE_LOGIT_EDIT_H_
#define QUINTET_CORE_LOGIT_EDIT_H_

#include <cstdint>

namespace quintet {

struct LogitEdit {
  enum class Kind {
    kSet,       // x = value; a ban is -infinity
    kPenalise,  // x = x < 0 ? x * value : x / value
    kFillRow,   // all of the row = value; `token` does not count
  };
  Kind kind = Kind::kSet;
  int32_t row = 0;
  int32_t token = 0;
  float value = 0;
};

}  // namespace quintet

#endif  // QUINTET_CORE_LOGIT_EDIT_H_
