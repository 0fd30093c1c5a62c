#include "tokenizer/spiece.h"

#include <bit>
#include <optional>
#include <utility>

#include "core/error.h"
#include "tokenizer/traced_text.h"
#include "tokenizer/word_model.h"

namespace quintet {
namespace {

// One field of a message: its number and, by its wire type, a number or bytes.
struct Field {
  uint64_t number = 0;
  int wire_type = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

// Walks over the fields of one message. Nothing is copied, no length is believed unchecked.
class Message {
 public:
  Message(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  std::optional<Field> next() {
    if (rest_.empty()) {
      return std::nullopt;
    }
    const uint64_t tag = varint();
    Field field{
        .number = tag >> 3, .wire_type = static_cast<int>(tag & 7), .value = 0, .bytes = {}};
    switch (field.wire_type) {
      case kVarint:
        field.value = varint();
        break;
      case kFixed32:
        field.value = fixed(4);
        break;
      case kFixed64:
        field.value = fixed(8);
        break;
      case kBytes:
        field.bytes = take(varint());
        break;
      default:
        fail(ErrorKind::kFile, "{}: field {} has wire type {}, which no SentencePiece model uses",
             where_, field.number, field.wire_type);
    }
    return field;
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) {
      fail(ErrorKind::kFile, "{}: not a SentencePiece model, or cut: {} bytes announced, {} left",
           where_, size, rest_.size());
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    fail(ErrorKind::kFile, "{}: not a SentencePiece model: a number of more than 10 bytes", where_);
  }

  uint64_t fixed(size_t size) {
    const std::string_view bytes = take(size);
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    return value;
  }

  std::string_view rest_;
  const std::string& where_;
};

Spiece::Piece parse_piece(std::string_view bytes, size_t id, const std::string& where) {
  Spiece::Piece piece;
  Message message(bytes, where);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire_type == kBytes) {
      piece.text = field->bytes;
    } else if (field->number == 2 && field->wire_type == kFixed32) {
      piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    } else if (field->number == 3 && field->wire_type == kVarint) {
      if (field->value < 1 || field->value > 6) {
        fail(ErrorKind::kFile, "{}: piece {} is of the unknown kind {}", where, id, field->value);
      }
      piece.kind = static_cast<Spiece::Kind>(field->value);
    }
  }
  if (!is_valid_utf8(piece.text)) {
    fail(ErrorKind::kFile, "{}: piece {} is not UTF-8", where, id);
  }
  return piece;
}

void check_trainer(std::string_view bytes, const std::string& where) {
  constexpr uint64_t kUnigram = 1;
  Message message(bytes, where);
  while (const auto field = message.next()) {
    if (field->number == 3 && field->wire_type == kVarint && field->value != kUnigram) {
      fail(ErrorKind::kFile, "{}: a model of type {}, only unigram (1) is supported", where,
           field->value);
    }
  }
}

std::string parse_charsmap(std::string_view bytes, const std::string& where) {
  std::string charsmap;
  Message message(bytes, where);
  while (const auto field = message.next()) {
    if (field->number == 2 && field->wire_type == kBytes) {
      charsmap = field->bytes;
    }
  }
  return charsmap;
}

}  // namespace

Spiece parse_spiece(std::string_view bytes, const std::string& where) {
  Spiece spiece;
  Message message(bytes, where);
  while (const auto field = message.next()) {
    if (field->wire_type != kBytes) {
      continue;
    }
    if (field->number == 1) {
      if (spiece.pieces.size() == kMaxPieces) {
        fail(ErrorKind::kFile, "{}: more than {} pieces", where, kMaxPieces);
      }
      spiece.pieces.push_back(parse_piece(field->bytes, spiece.pieces.size(), where));
    } else if (field->number == 2) {
      check_trainer(field->bytes, where);
    } else if (field->number == 3) {
      spiece.charsmap = parse_charsmap(field->bytes, where);
    }
  }
  if (spiece.pieces.empty()) {
    fail(ErrorKind::kFile, "{}: not a SentencePiece model: it has no pieces", where);
  }
  return spiece;
}

}  // namespace quintet
