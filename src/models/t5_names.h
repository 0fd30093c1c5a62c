// Where a checkpoint keeps the parts of a T5 model: classes and versions of the original have
// saved them under several prefixes, and the shared embedding under any of its names.
#ifndef QUINTET_MODELS_T5_NAMES_H_
#define QUINTET_MODELS_T5_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace quintet {

// "block.3.", under the name of a stack.
std::string t5_block_name(int64_t block);

// Whether a two-dimensional tensor is one of the matrices of the stack's blocks.
bool is_t5_block_matrix(const std::string& stack, const std::string& name);

struct T5EncoderNames {
  std::string root;       // "" or, as saved by a fine-tuned classifier, "transformer."
  std::string stack;      // root + "encoder.", or root where the encoder stack was saved alone
  std::string embedding;  // full name of the embedding table
};

// Throws Error(kFile) where there are several encoders and none of them without a prefix. What is
// not there gets its usual name, so that loading tells what is missing.
T5EncoderNames find_t5_encoder(const Checkpoint& checkpoint);

// Names under which the table may stand, in the order in which they count.
std::vector<std::string> embedding_names(const std::string& root, const std::string& stack);

// Whether an encoder need not tell that it leaves this tensor alone: the decoder, the heads.
bool is_expected_unused(const T5EncoderNames& names, const std::string& name);

struct T5DecoderNames {
  std::string root;       // as the encoder's
  std::string stack;      // root + "decoder."
  std::string embedding;  // full name of the table that its tokens are looked up in
  std::string head;       // full name of the head's matrix: the file's own or a shared table
};

// Throws Error(kFile) where there is no decoder, or several and none of them without a prefix.
T5DecoderNames find_t5_decoder(const Checkpoint& checkpoint);

// Whether a decoder need not tell that it leaves this tensor alone: the encoder, other tables.
bool is_expected_unused(const T5DecoderNames& names, const std::string& name);

}  // namespace quintet

#endif  // QUINTET_MODELS_T5_NAMES_H_
