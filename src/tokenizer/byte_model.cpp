#include "tokenizer/byte_model.h"

#include <array>

#include "tokenizer/traced_text.h"

namespace quintet {
namespace {

constexpr int32_t kOffset = 3;

class ByteModel : public WordModel {
 public:
  explicit ByteModel(const std::vector<std::string>& first_three) {
    for (int32_t id = 0; id < kOffset; ++id) {
      pieces_[id] = first_three[id];
    }
    // As the reference shows them: the character of that number.
    for (int32_t byte = 0; byte < 256; ++byte) {
      pieces_[byte + kOffset] = to_utf8(byte);
    }
  }

  void encode(std::string_view word, const TokenSink& sink) const override {
    for (size_t at = 0; at < word.size(); ++at) {
      sink({static_cast<unsigned char>(word[at]) + kOffset, at, at + 1});
    }
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<int32_t> find(std::string_view piece) const override {
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (pieces_[id] == piece) return static_cast<int32_t>(id);
    }
    return std::nullopt;
  }
  std::string_view piece(int32_t id) const override {
    const bool known = id >= 0 && static_cast<size_t>(id) < pieces_.size();
    return known ? std::string_view(pieces_[id]) : std::string_view();
  }
  std::optional<int32_t> unk_id() const override { return kOffset - 1; }

 private:
  std::array<std::string, 256 + kOffset> pieces_;
};

}  // namespace

std::unique_ptr<WordModel> make_byte_model(const std::vector<std::string>& first_three) {
  return std::make_unique<ByteModel>(first_three);
}

}  // namespace quintet
