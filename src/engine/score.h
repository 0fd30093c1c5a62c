// The job of `quintet score`: how likely a model finds given tokens, under teacher forcing.
#ifndef QUINTET_ENGINE_SCORE_H_
#define QUINTET_ENGINE_SCORE_H_

#include "engine/generate.h"

namespace quintet {

// As run_generate. A line per record: id, tokens (those that are scored), token_logprobs, logprob,
// n_tokens, loss, perplexity (both null where no token is scored); with --choices instead choices:
// the log-softmax over the pieces given, of the logits behind the prompt.
LineJobResult run_score(const Options& options, const GenerateEvents& events,
                        const std::atomic<bool>& stop,
                        std::chrono::steady_clock::time_point started);

}  // namespace quintet

#endif  // QUINTET_ENGINE_SCORE_H_
