#include "weights/torch_state.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"

namespace quintet {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kRebuildTensorV1 = "torch._utils._rebuild_tensor";
constexpr std::string_view kRebuildTensorV2 = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildTensorV3 = "torch._utils._rebuild_tensor_v3";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kSize = "torch.Size";

struct StorageType {
  std::string_view name;
  size_t item_size;
  std::optional<DType> dtype;
};

constexpr std::array<StorageType, 15> kStorageTypes{{
    {"torch.FloatStorage", 4, DType::kFloat32},
    {"torch.BFloat16Storage", 2, DType::kBFloat16},
    {"torch.HalfStorage", 2, DType::kFloat16},
    {"torch.DoubleStorage", 8, std::nullopt},
    {"torch.LongStorage", 8, std::nullopt},
    {"torch.IntStorage", 4, std::nullopt},
    {"torch.ShortStorage", 2, std::nullopt},
    {"torch.CharStorage", 1, std::nullopt},
    {"torch.ByteStorage", 1, std::nullopt},
    {"torch.BoolStorage", 1, std::nullopt},
    {"torch.ComplexFloatStorage", 8, std::nullopt},
    {"torch.ComplexDoubleStorage", 16, std::nullopt},
    {"torch.UntypedStorage", 1, std::nullopt},
    {"torch.storage.UntypedStorage", 1, std::nullopt},
    {"torch.storage._UntypedStorage", 1, std::nullopt},
}};

// All that a file of plain tensors mentions. The dtypes are arguments of _rebuild_tensor_v3, which
// is written for those that have no storage type of their own; none of them can be used.
constexpr std::array kOtherNames{
    kRebuildTensorV1,
    kRebuildTensorV2,
    kRebuildTensorV3,
    kRebuildParameter,
    kSize,
    std::string_view("torch.float8_e4m3fn"),
    std::string_view("torch.float8_e5m2"),
    std::string_view("torch.float8_e4m3fnuz"),
    std::string_view("torch.float8_e5m2fnuz"),
    std::string_view("torch.float8_e8m0fnu"),
    std::string_view("torch.uint16"),
    std::string_view("torch.uint32"),
    std::string_view("torch.uint64"),
};

std::vector<std::string_view> allowed_names() {
  std::vector<std::string_view> names(kOtherNames.begin(), kOtherNames.end());
  for (const StorageType& type : kStorageTypes) names.push_back(type.name);
  return names;
}

bool is_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t codepoint = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(at, left, &codepoint);
    if (n <= 0) return false;
    at += n;
    left -= n;
  }
  return true;
}

class StateReader {
 public:
  StateReader(const Pickle& pickle, const std::string& where) : pickle_(pickle), where_(where) {}

  TorchState read() {
    const PickleValue& root = pickle_.at(pickle_.root);
    if (root.kind != Kind::kDict) {
      fail(ErrorKind::kFile, "{}: holds no dict of tensors; save the model's state_dict()", where_);
    }
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
      const PickleValue& key = pickle_.at(root.items[i]);
      if (key.kind != Kind::kText || !is_utf8(key.text)) {
        fail(ErrorKind::kFile, "{}: a key of the state dict is no text in UTF-8", where_);
      }
      name_ = printable(key.text);
      if (!names.insert(key.text).second) damaged("stands twice");
      entry(std::string(key.text), pickle_.at(root.items[i + 1]));
    }
    return std::move(state_);
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorKind::kFile, "{}: '{}' {}", where_, name_, what);
  }

  const PickleValue& item(const PickleValue& tuple, size_t i, Kind kind,
                          std::string_view what) const {
    if (i >= tuple.items.size() || pickle_.at(tuple.items[i]).kind != kind) {
      damaged(fmt::format("lacks its {} in the pickle", what));
    }
    return pickle_.at(tuple.items[i]);
  }

  int64_t number(const PickleValue& tuple, size_t i, std::string_view what) const {
    const int64_t value = item(tuple, i, Kind::kInt, what).number;
    if (value < 0) damaged(fmt::format("has a negative {}: {}", what, value));
    return value;
  }

  // torch.Size is a tuple, pickled as such or as a call with one.
  std::vector<int64_t> numbers(const PickleValue& tuple, size_t i, std::string_view what) const {
    const PickleValue* holder = &tuple;
    if (i < tuple.items.size() && pickle_.at(tuple.items[i]).kind == Kind::kCall &&
        function(pickle_.at(tuple.items[i])) == kSize) {
      holder = &arguments(pickle_.at(tuple.items[i]));
      i = 0;
    }
    const PickleValue& checked = item(*holder, i, Kind::kTuple, what);
    constexpr size_t kMaxRank = 64;
    if (checked.items.size() > kMaxRank) damaged("has more than 64 dimensions");
    std::vector<int64_t> values;
    for (size_t k = 0; k < checked.items.size(); ++k) values.push_back(number(checked, k, what));
    return values;
  }

  void entry(std::string name, const PickleValue& value) {
    const PickleValue* call = &value;
    if (call->kind == Kind::kCall && function(*call) == kRebuildParameter) {
      call = &item(arguments(*call), 0, Kind::kCall, "tensor");
    }
    if (call->kind != Kind::kCall) {
      state_.skipped.emplace_back(std::move(name), "is not a tensor");
    } else if (function(*call) == kRebuildTensorV3) {
      int64_t view_begin = 0;
      int64_t view_size = 0;
      storage(item(arguments(*call), 0, Kind::kPersistent, "storage"), view_begin, view_size);
      const std::string_view dtype = item(arguments(*call), 6, Kind::kGlobal, "dtype").text;
      state_.skipped.emplace_back(std::move(name), fmt::format("is stored as {}", dtype));
    } else if (function(*call) == kRebuildTensorV1 || function(*call) == kRebuildTensorV2) {
      tensor(std::move(name), arguments(*call));
    } else {
      damaged(fmt::format("is a {}, expected a tensor", function(*call)));
    }
  }

  std::string_view function(const PickleValue& call) const {
    return pickle_.at(call.items[0]).text;
  }
  const PickleValue& arguments(const PickleValue& call) const { return pickle_.at(call.items[1]); }

  // Arguments: storage, offset, size, stride, and more that says nothing of the values.
  void tensor(std::string name, const PickleValue& arguments) {
    TorchTensor tensor{.name = std::move(name)};
    int64_t view_begin = 0;
    int64_t view_size = 0;
    tensor.storage =
        storage(item(arguments, 0, Kind::kPersistent, "storage"), view_begin, view_size);
    const int64_t offset = number(arguments, 1, "storage offset");
    tensor.shape = numbers(arguments, 2, "size");
    const std::vector<int64_t> strides = numbers(arguments, 3, "stride");
    const TorchStorage& storage = state_.storages[tensor.storage];
    const auto count = element_count(tensor.shape);
    if (!count || offset > view_size || *count > view_size - offset) {
      damaged(fmt::format("is {} from element {}, its storage '{}' has {}",
                          shape_text(tensor.shape), offset, printable(storage.key), view_size));
    }
    if (!storage.dtype) {
      state_.skipped.emplace_back(std::move(tensor.name),
                                  fmt::format("is stored as {}", storage.type));
      return;
    }
    check_strides(tensor.shape, strides);
    tensor.begin = view_begin + offset;
    state_.tensors.push_back(std::move(tensor));
  }

  void check_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) const {
    bool contiguous = strides.size() == shape.size();
    int64_t step = 1;
    for (size_t i = shape.size(); contiguous && i-- > 0;) {
      contiguous = shape[i] <= 1 || strides[i] == step;
      step *= std::max<int64_t>(shape[i], 1);
    }
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    if (contiguous || (empty && strides.size() == shape.size())) return;
    damaged(fmt::format("is {} with strides {}: transposed or a slice; save tensor.contiguous()",
                        shape_text(shape), shape_text(strides)));
  }

  // ("storage", type, key, location, elements[, None or (key, begin, elements) of a view of it]).
  size_t storage(const PickleValue& persistent, int64_t& view_begin, int64_t& view_size) {
    const PickleValue& id = item(persistent, 0, Kind::kTuple, "storage");
    if (item(id, 0, Kind::kText, "storage").text != "storage") damaged("has no storage");
    const std::string_view type_name = item(id, 1, Kind::kGlobal, "storage type").text;
    const std::string_view key = item(id, 2, Kind::kText, "storage key").text;
    const int64_t size = number(id, 4, "storage size");
    const auto* type = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                    [&](const StorageType& t) { return t.name == type_name; });
    if (type == kStorageTypes.end()) {
      damaged(fmt::format("has a storage of type {}", type_name));
    }
    if (!element_count(std::array{size})) {
      damaged(fmt::format("has a storage of {} elements", size));
    }
    view(id, size, view_begin, view_size);
    const auto [found, is_new] = by_key_.try_emplace(key, state_.storages.size());
    if (is_new) {
      state_.storages.push_back({key, type->name, type->item_size, type->dtype, size});
    }
    const TorchStorage& known = state_.storages[found->second];
    if (known.type != type->name || known.size != size) {
      damaged(fmt::format("takes storage '{}' as {} x {}, which is {} x {} elsewhere",
                          printable(key), size, type_name, known.size, known.type));
    }
    return found->second;
  }

  void view(const PickleValue& id, int64_t size, int64_t& begin, int64_t& view_size) const {
    begin = 0;
    view_size = size;
    if (id.items.size() < 6 || pickle_.at(id.items[5]).kind == Kind::kNone) return;
    const PickleValue& view = item(id, 5, Kind::kTuple, "storage view");
    begin = number(view, 1, "view offset");
    view_size = number(view, 2, "view size");
    if (begin > size || view_size > size - begin) damaged("has a view that leaves its storage");
  }

  const Pickle& pickle_;
  const std::string& where_;
  std::string name_;  // of the entry at hand, for messages
  TorchState state_;
  std::unordered_map<std::string_view, size_t> by_key_;
};

}  // namespace

TorchState read_torch_state(std::span<const std::byte> bytes, const std::string& where,
                            size_t* pickle_size) {
  const Pickle pickle = read_pickle(bytes, where, allowed_names());
  if (pickle_size != nullptr) *pickle_size = pickle.size;
  return StateReader(pickle, where).read();
}

TensorFile bind_storages(TorchState state, std::span<const std::span<const std::byte>> storages) {
  TensorFile file;
  file.skipped = std::move(state.skipped);
  for (TorchTensor& tensor : state.tensors) {
    const TorchStorage& storage = state.storages[tensor.storage];
    const size_t begin = static_cast<size_t>(tensor.begin) * storage.item_size;
    file.tensors.push_back({.name = std::move(tensor.name),
                            .data = storages[tensor.storage].data() + begin,
                            .dtype = *storage.dtype,
                            .shape = std::move(tensor.shape)});
  }
  return file;
}

}  // namespace quintet
