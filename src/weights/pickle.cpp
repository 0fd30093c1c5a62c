#include "weights/pickle.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "weights/byte_cursor.h"
#include "weights/tensor_file.h"

namespace quintet {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxSteps = 2'000'000;
constexpr size_t kMaxName = 256;
constexpr std::string_view kOrderedDict = "collections.OrderedDict";

enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8A,
  kShortBinUnicode = 0x8C,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

// Python's names of opcodes that a hostile or exotic pickle may hold, for the message.
std::string_view refused_opcode(uint8_t op) {
  switch (op) {
    case 'P':
      return "PERSID";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 0x82:
    case 0x83:
    case 0x84:
      return "EXT";
    default:
      return "an opcode that no weight file needs";
  }
}

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& where,
          std::span<const std::string_view> allowed)
      : cursor_(bytes, where), where_(where), allowed_(allowed) {}

  Pickle run() {
    for (size_t step = 0; step < kMaxSteps; ++step) {
      const auto op = cursor_.number<uint8_t>();
      if (op == kStop) {
        pickle_.root = pop();
        pickle_.size = cursor_.position();
        return std::move(pickle_);
      }
      if (!constant(op) && !text(op) && !container(op) && !memo(op) && !call(op)) {
        damaged(fmt::format("opcode 0x{:02x}, {}: refused", op, refused_opcode(op)));
      }
    }
    damaged(fmt::format("more than {} opcodes", kMaxSteps));
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorKind::kFile, "{}: pickle, byte {}: {}", where_, cursor_.position(), what);
  }

  // The stack. Nothing below the topmost mark can be popped.

  void push(uint32_t index) { stack_.push_back(index); }

  void push_value(PickleValue value) {
    pickle_.values.push_back(std::move(value));
    push(static_cast<uint32_t>(pickle_.values.size() - 1));
  }

  void push_number(Kind kind, int64_t number) { push_value({.kind = kind, .number = number}); }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  uint32_t top() const {
    if (stack_.size() <= floor()) damaged("takes a value where there is none");
    return stack_.back();
  }

  uint32_t pop() {
    const uint32_t index = top();
    stack_.pop_back();
    return index;
  }

  std::vector<uint32_t> pop_last(size_t count) {
    if (stack_.size() - floor() < count) damaged("takes more values than there are");
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) damaged("ends a list that was never begun");
    std::vector<uint32_t> items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  // The opcodes by family; each function says whether `op` is one of its own.

  bool constant(uint8_t op) {
    switch (op) {
      case kProto:
        if (cursor_.number<uint8_t>() > 5) damaged("a protocol newer than 5");
        return true;
      case kFrame:
        cursor_.take(8);  // how much to read ahead; all is in memory already
        return true;
      case kNone:
        push_value({});
        return true;
      case kNewTrue:
      case kNewFalse:
        push_number(Kind::kBool, op == kNewTrue ? 1 : 0);
        return true;
      case kBinInt:
        push_number(Kind::kInt, cursor_.number<int32_t>());
        return true;
      case kBinInt1:
        push_number(Kind::kInt, cursor_.number<uint8_t>());
        return true;
      case kBinInt2:
        push_number(Kind::kInt, cursor_.number<uint16_t>());
        return true;
      case kLong1:
        long_number();
        return true;
      case kBinFloat:
        cursor_.take(8);
        push_value({.kind = Kind::kFloat});
        return true;
      default:
        return false;
    }
  }

  void long_number() {
    const std::string_view digits = cursor_.text(cursor_.number<uint8_t>());
    if (digits.size() > sizeof(int64_t)) {
      push_value({.kind = Kind::kBigInt, .text = digits});
      return;
    }
    const bool negative = !digits.empty() && (static_cast<uint8_t>(digits.back()) & 0x80U) != 0;
    uint64_t bits = negative ? ~uint64_t{0} : 0;
    std::memcpy(&bits, digits.data(), digits.size());
    push_number(Kind::kInt, static_cast<int64_t>(bits));
  }

  bool text(uint8_t op) {
    uint32_t size = 0;
    switch (op) {
      case kBinString:  // Python 2's str
      case kBinUnicode:
        size = cursor_.number<uint32_t>();
        break;
      case kShortBinString:
      case kShortBinUnicode:
        size = cursor_.number<uint8_t>();
        break;
      default:
        return false;
    }
    push_value({.kind = Kind::kText, .text = cursor_.text(size)});
    return true;
  }

  bool container(uint8_t op) {
    switch (op) {
      case kMark:
        marks_.push_back(stack_.size());
        return true;
      case kEmptyTuple:
        push_value({.kind = Kind::kTuple});
        return true;
      case kEmptyList:
        push_value({.kind = Kind::kList});
        return true;
      case kEmptyDict:
        push_value({.kind = Kind::kDict});
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        push_value({.kind = Kind::kTuple, .items = pop_last(op - kTuple1 + size_t{1})});
        return true;
      case kTuple:
        push_value({.kind = Kind::kTuple, .items = pop_to_mark()});
        return true;
      case kAppend:
        extend(Kind::kList, pop_last(1));
        return true;
      case kAppends:
        extend(Kind::kList, pop_to_mark());
        return true;
      case kSetItem:
        extend(Kind::kDict, pop_last(2));
        return true;
      case kSetItems:
        extend(Kind::kDict, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  void extend(Kind kind, const std::vector<uint32_t>& items) {
    PickleValue& target = pickle_.values[top()];
    if (target.kind != kind) damaged("adds items to what is no list or dict");
    if (kind == Kind::kDict && items.size() % 2 != 0) damaged("a key without a value");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool memo(uint8_t op) {
    switch (op) {
      case kBinPut:
        memo_[cursor_.number<uint8_t>()] = top();
        return true;
      case kLongBinPut:
        memo_[cursor_.number<uint32_t>()] = top();
        return true;
      case kMemoize:
        memo_[static_cast<uint32_t>(memo_.size())] = top();
        return true;
      case kBinGet:
        recall(cursor_.number<uint8_t>());
        return true;
      case kLongBinGet:
        recall(cursor_.number<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  void recall(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) damaged(fmt::format("recalls value {}, never memorised", key));
    push(found->second);
  }

  bool call(uint8_t op) {
    switch (op) {
      case kGlobal: {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case kStackGlobal: {
        const auto names = pop_last(2);
        push_global(name_at(names[0]), name_at(names[1]));
        return true;
      }
      case kReduce:
        reduce();
        return true;
      case kBuild:
        build();
        return true;
      case kBinPersId:
        push_value({.kind = Kind::kPersistent, .items = pop_last(1)});
        return true;
      default:
        return false;
    }
  }

  std::string_view line() {
    const auto begin = cursor_.position();
    while (cursor_.number<uint8_t>() != '\n') {
      if (cursor_.position() - begin > kMaxName) damaged("a name longer than 256 bytes");
    }
    const size_t size = cursor_.position() - begin - 1;
    cursor_.seek(begin);
    const std::string_view name = cursor_.text(size);
    cursor_.take(1);
    return name;
  }

  std::string_view name_at(uint32_t index) const {
    const PickleValue& value = pickle_.at(index);
    if (value.kind != Kind::kText || value.text.size() > kMaxName) damaged("a name that is none");
    return value.text;
  }

  void push_global(std::string_view module, std::string_view name) {
    const std::string full = fmt::format("{}.{}", module, name);
    if (full == kOrderedDict) {
      push_value({.kind = Kind::kGlobal, .text = kOrderedDict});
      return;
    }
    const auto found = std::find(allowed_.begin(), allowed_.end(), full);
    if (found == allowed_.end()) {
      damaged(fmt::format("asks for {}: refused; only plain tensors are read", printable(full)));
    }
    push_value({.kind = Kind::kGlobal, .text = *found});
  }

  void reduce() {
    const auto parts = pop_last(2);
    const PickleValue& function = pickle_.at(parts[0]);
    const PickleValue& arguments = pickle_.at(parts[1]);
    if (function.kind != Kind::kGlobal || arguments.kind != Kind::kTuple) {
      damaged("calls what is no function: refused");
    }
    if (function.text == kOrderedDict) {
      push_value({.kind = Kind::kDict, .items = ordered_items(arguments)});
    } else {
      push_value({.kind = Kind::kCall, .items = parts});
    }
  }

  // OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
  std::vector<uint32_t> ordered_items(const PickleValue& arguments) {
    std::vector<uint32_t> items;
    if (arguments.items.empty()) return items;
    const PickleValue& pairs = pickle_.at(arguments.items[0]);
    if (arguments.items.size() != 1 || pairs.kind != Kind::kList) {
      damaged("an OrderedDict of something else than pairs");
    }
    // One list can be the argument of many calls, each of which copies it.
    n_copied_ += pairs.items.size();
    if (n_copied_ > kMaxSteps) damaged(fmt::format("more than {} pairs", kMaxSteps));
    for (const uint32_t index : pairs.items) {
      const PickleValue& pair = pickle_.at(index);
      if ((pair.kind != Kind::kList && pair.kind != Kind::kTuple) || pair.items.size() != 2) {
        damaged("an OrderedDict of something else than pairs");
      }
      items.insert(items.end(), pair.items.begin(), pair.items.end());
    }
    return items;
  }

  // State of an OrderedDict: state_dict() hangs its _metadata there, which says nothing of weights.
  void build() {
    pop();
    if (pickle_.at(top()).kind != Kind::kDict) damaged("sets attributes of an object: refused");
  }

  ByteCursor cursor_;
  const std::string& where_;
  std::span<const std::string_view> allowed_;
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
  size_t n_copied_ = 0;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where,
                   std::span<const std::string_view> allowed) {
  return Machine(bytes, where, allowed).run();
}

}  // namespace quintet
