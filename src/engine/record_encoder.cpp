#include "engine/record_encoder.h"

#include <algorithm>

#include "core/error.h"
#include "engine/sequence.h"

namespace quintet {

RecordEncoder::RecordEncoder(const Options& options, InputFormat format, int64_t vocab_size)
    : folder_(options.model),
      protein_options_(options.protein),
      format_(format),
      max_tokens_(options.max_tokens),
      vocab_size_(vocab_size) {}

RecordEncoder::~RecordEncoder() = default;

const Tokenizer* RecordEncoder::tokenizer() {
  if (tokenizer_ != nullptr || !tokenizer_missing_.empty()) return tokenizer_.get();
  try {
    tokenizer_ = load_tokenizer(folder_);
  } catch (const Error& error) {
    for (const char* file : {"tokenizer.json", "spiece.model", "vocab.json"}) {
      if (std::filesystem::exists(folder_ / file)) throw;  // there is one, and it is broken
    }
    tokenizer_missing_ = error.what();
  }
  return tokenizer_.get();
}

// The protein rules, where a tokenizer is there and they are not yet.
void RecordEncoder::prepare() {
  if (protein_ != nullptr || tokenizer() == nullptr) return;
  if (protein_options_.preset == ProteinPreset::kAuto) {
    protein_options_.preset =
        format_ == InputFormat::kFasta ? detect_preset(*tokenizer_) : ProteinPreset::kNone;
  }
  if (protein_options_.preset != ProteinPreset::kNone) {
    protein_ = std::make_unique<ProteinEncoder>(*tokenizer_, protein_options_);
    residue_of_.resize(static_cast<size_t>(tokenizer_->vocab_size()));
    for (size_t id = 0; id < residue_of_.size(); ++id) {
      const std::string piece = tokenizer_->piece(static_cast<int32_t>(id));
      if (!piece.empty()) residue_of_[id] = piece.back();
    }
  }
}

std::string RecordEncoder::reading() {
  if (format_ != InputFormat::kJsonl) {
    prepare();
    if (tokenizer_ == nullptr) fail(ErrorKind::kFile, "{}", tokenizer_missing_);
  }
  const ProteinPreset preset = protein_options_.preset;
  if (preset == ProteinPreset::kNone || preset == ProteinPreset::kAuto) return "text";
  return std::string(preset_name(preset));
}

EncodedRecord RecordEncoder::encode(const Record& record) {
  EncodedRecord encoded;
  if (record.has_ids) {
    try {
      encoded.sequence = sequence_from_ids(record.input_ids, record.attention_mask, vocab_size_);
    } catch (const Error& error) {
      encoded.rejected = error.what();
      return encoded;
    }
    encoded.mask = record.attention_mask;
    if (record.input_ids.empty()) encoded.rejected = "no tokens";
  } else {
    prepare();
    if (tokenizer_ == nullptr) {
      encoded.rejected = "a text, and there is no tokenizer for it: " + tokenizer_missing_;
    } else if (protein_ != nullptr) {
      encode_protein(record.text, encoded);
    } else {
      encode_text(record.text, encoded);
    }
  }
  encoded.sequence.ordinal = record.ordinal;
  if (encoded.rejected.empty()) cut(encoded);
  return encoded;
}

void RecordEncoder::encode_protein(const std::string& residues, EncodedRecord& encoded) {
  EncodedProtein protein = protein_->encode(residues);
  notes_.changed_letters += static_cast<uint64_t>(protein.changed);
  notes_.dropped_letters += static_cast<uint64_t>(protein.dropped);
  encoded.rejected = std::move(protein.rejected);
  encoded.empty = protein.empty;
  encoded.sequence.tokens = std::move(protein.tokens);
  encoded.sequence.pool_begin = protein.begin;
  encoded.sequence.pool_end = protein.end;
  if (!encoded.rejected.empty()) return;
  for (int32_t i = protein.begin; i < protein.end; ++i) {
    encoded.residues += residue_of_[static_cast<size_t>(encoded.sequence.tokens[i])];
  }
}

void RecordEncoder::encode_text(const std::string& text, EncodedRecord& encoded) {
  std::vector<int32_t>& tokens = encoded.sequence.tokens;
  tokens = tokenizer_->encode(text, true);
  encoded.sequence.pool_end = static_cast<int32_t>(tokens.size());
  if (tokens.empty()) encoded.rejected = "no tokens";
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == tokenizer_->unk_id()) ++notes_.unknown_tokens;
    if (tokens[i] < 0 || tokens[i] >= vocab_size_) {
      encoded.rejected =
          fmt::format("token {} ('{}') at position {} is outside the model's vocabulary of {}",
                      tokens[i], tokenizer_->piece(tokens[i]), i, vocab_size_);
      return;
    }
  }
}

// Keeps the first tokens, and what ends a text (</s>) as the last of them.
void RecordEncoder::cut(EncodedRecord& encoded) {
  Sequence& sequence = encoded.sequence;
  const auto n_tokens = static_cast<int64_t>(sequence.tokens.size());
  if (max_tokens_ == 0 || n_tokens <= max_tokens_) return;
  ++notes_.cut_records;
  notes_.tokens_seen += static_cast<uint64_t>(n_tokens);
  notes_.tokens_kept += static_cast<uint64_t>(max_tokens_);
  const int32_t last = sequence.tokens.back();
  const bool ends = tokenizer_ != nullptr && tokenizer_->eos_id() == last;
  sequence.tokens.resize(static_cast<size_t>(max_tokens_));
  if (!sequence.positions.empty()) sequence.positions.resize(sequence.tokens.size());
  auto n_rows = static_cast<int32_t>(max_tokens_);
  if (ends) sequence.tokens.back() = last;
  const bool own_end = sequence.pool_end == static_cast<int32_t>(n_tokens);  // </s> is a row too
  if (ends && !own_end) --n_rows;
  sequence.pool_end = std::min(sequence.pool_end, n_rows);
  sequence.pool_begin = std::min(sequence.pool_begin, sequence.pool_end);
  if (!encoded.residues.empty()) {
    encoded.residues.resize(static_cast<size_t>(sequence.pool_end - sequence.pool_begin));
  }
  if (sequence.pool_begin == sequence.pool_end) {
    encoded.rejected = fmt::format("--max-tokens {} leaves no row of it", max_tokens_);
  }
  if (!encoded.mask.empty()) {  // the rows of the ids that are cut go too
    int64_t kept = 0;
    size_t end = 0;
    while (kept < max_tokens_) kept += encoded.mask[end++] != 0 ? 1 : 0;
    encoded.mask.resize(end);
  }
}

}  // namespace quintet
