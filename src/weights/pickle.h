// Python's pickle format read as data: builds the plain values a pickle describes and notes down
// the calls it asks for without making any. Knows a closed list of opcodes; the caller gives the
// closed list of names that may be mentioned.
#ifndef QUINTET_WEIGHTS_PICKLE_H_
#define QUINTET_WEIGHTS_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,        // number
    kInt,         // number
    kBigInt,      // text: its bytes, lowest first, two's complement
    kFloat,       // the value is not kept
    kText,        // text
    kTuple,       // items
    kList,        // items
    kDict,        // items: key, value, key, value, ...; a collections.OrderedDict too
    kGlobal,      // text: "torch.FloatStorage", one of the names allowed
    kCall,        // items: the global that would be called, the tuple of its arguments
    kPersistent,  // items: the id of something kept outside the pickle
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string_view text = {};        // bytes of the pickle, or of the list of names
  std::vector<uint32_t> items = {};  // indices of values
};

// Values refer to each other by index and may be shared or even hold themselves: whoever walks them
// bounds the depth of the walk.
struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  size_t size = 0;  // bytes of the pickle, up to and with its STOP

  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Reads the pickle at the start of `bytes`. "collections.OrderedDict" is always allowed.
// Throws Error(kFile) that begins with `where`: the name or opcode that is refused, or what is
// damaged. Time and memory are bounded by the pickle's length and by 2 million opcodes.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where,
                   std::span<const std::string_view> allowed = {});

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_PICKLE_H_
