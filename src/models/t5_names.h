// Where a checkpoint keeps the parts of a T5 encoder: classes and versions of the original have
// saved them under several prefixes, and the shared embedding under any of its names.
#ifndef QUINTET_MODELS_T5_NAMES_H_
#define QUINTET_MODELS_T5_NAMES_H_

#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace quintet {

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

}  // namespace quintet

#endif  // QUINTET_MODELS_T5_NAMES_H_
