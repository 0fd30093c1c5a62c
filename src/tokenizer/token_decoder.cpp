#include "tokenizer/token_decoder.h"

#include <utility>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/traced_text.h"

namespace quintet {
namespace {

class Joined : public TokenText {
 public:
  void push(std::string_view piece, bool /*is_added*/, std::string& out) override {
    if (!is_first_) out += ' ';
    is_first_ = false;
    out += piece;
  }

 private:
  bool is_first_ = true;
};

class Metaspace : public TokenText {
 public:
  Metaspace(std::string mark, bool drops_first)
      : mark_(std::move(mark)), drops_marks_(drops_first) {}
  void push(std::string_view piece, bool /*is_added*/, std::string& out) override {
    for (size_t at = 0; at < piece.size();) {
      const size_t mark = std::min(piece.find(mark_, at), piece.size());
      out += piece.substr(at, mark - at);
      if (mark < piece.size() && !drops_marks_) out += ' ';
      at = mark + mark_.size();
    }
    drops_marks_ = false;
  }

 private:
  std::string mark_;
  bool drops_marks_;  // before the first token
};

// Bytes to UTF-8; a code point that is not whole is held back.
class Utf8Text {
 public:
  explicit Utf8Text(std::string_view in_place_of_invalid) : substitute_(in_place_of_invalid) {}
  void push(std::string_view bytes, std::string& out) { take(bytes, false, out); }
  void flush(std::string& out) { take({}, true, out); }

 private:
  void take(std::string_view bytes, bool at_end, std::string& out) {
    held_ += bytes;
    size_t at = 0;
    while (at < held_.size()) {
      const Utf8Unit unit = utf8_unit(std::string_view(held_).substr(at, 4));
      if (unit.is_cut && !at_end) break;
      out += unit.is_valid ? std::string_view(held_).substr(at, unit.size) : substitute_;
      at += unit.size;
    }
    held_.erase(0, at);
  }

  std::string_view substitute_;
  std::string held_;
};

class ByteLevel : public TokenText {
 public:
  void push(std::string_view piece, bool /*is_added*/, std::string& out) override {
    const auto bytes = byte_level_bytes(piece);
    text_.push(bytes ? *bytes : piece, out);
  }
  void flush(std::string& out) override { text_.flush(out); }

 private:
  Utf8Text text_{kReplacementCharacter};
};

class Byt5 : public TokenText {
 public:
  void push(std::string_view piece, bool is_added, std::string& out) override {
    if (is_added) {
      text_.push(piece, out);
      return;
    }
    const char byte = static_cast<char>(code_point_at(piece, 0).value);
    text_.push({&byte, 1}, out);
  }
  void flush(std::string& out) override { text_.flush(out); }

 private:
  Utf8Text text_{""};
};

TokenDecoder read_metaspace_decoder(const nlohmann::json& spec, const std::string& where) {
  std::string mark = require_string(spec, "replacement", where);
  if (mark.empty()) fail(ErrorKind::kFile, "{}: 'replacement' is empty", where);
  // Files of before 2023 have add_prefix_space, later ones prepend_scheme.
  const bool drops_first = member(spec, "prepend_scheme").is_null()
                               ? bool_or(spec, "add_prefix_space", true, where)
                               : require_string(spec, "prepend_scheme", where) != "never";
  return make_metaspace_decoder(std::move(mark), drops_first);
}

}  // namespace

TokenDecoder make_metaspace_decoder(std::string mark, bool drops_first) {
  return [mark = std::move(mark), drops_first] {
    return std::make_unique<Metaspace>(mark, drops_first);
  };
}

TokenDecoder make_byte_level_decoder() {
  return [] { return std::make_unique<ByteLevel>(); };
}

TokenDecoder make_byt5_decoder() {
  return [] { return std::make_unique<Byt5>(); };
}

TokenDecoder make_token_decoder(const nlohmann::json& spec, const std::string& where) {
  if (spec.is_null()) {
    return [] { return std::make_unique<Joined>(); };
  }
  const std::string type = require_string(spec, "type", where);
  if (type == "Metaspace") return read_metaspace_decoder(spec, component(where, type));
  if (type == "ByteLevel") return make_byte_level_decoder();
  return [where, type]() -> std::unique_ptr<TokenText> {
    fail(ErrorKind::kFile,
         "{}: '{}' is not supported; this program makes text of tokens with Metaspace, ByteLevel, "
         "or none",
         where, type);
  };
}

}  // namespace quintet
