// Every record's result is what a plain loop gives that reads all tokens anew at each step,
// whatever the stages, groups, beams, places and pages; failures, stops and refusals.
#include "generation/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "pipeline/fake_stages.h"

namespace quintet {
namespace {

using fake::mix;

constexpr float kBanned = -std::numeric_limits<float>::infinity();

// What a record asks for.
struct Wish {
  uint64_t ordinal = 0;
  Sequence source;
  std::vector<int32_t> prompt;
  int64_t max_rows = 1;
  int64_t max_new_tokens = 1;
  bool thins_out = false;  // rows end one by one, as samples do
  int64_t ends_after = 0;  // steps on average; 0: not before max_new_tokens
  int64_t fails_at = -1;   // that step
};

// Goes wherever the hash of all candidates so far sends it: random parents and tokens, edits of all
// kinds, another number of candidates at each step.
class RandomSearch : public Search {
 public:
  explicit RandomSearch(const Wish& wish)
      : wish_(wish), rows_(1), n_next_(wish.max_rows), state_(mix(wish.ordinal, 77)) {}

  SearchRequest request() const override {
    SearchRequest request;
    request.top_k = top_k();
    const auto n_rows = static_cast<uint64_t>(rows_.size());
    for (uint64_t i = 0; i < state_ % 6; ++i) {
      const uint64_t hash = mix(state_, i);
      LogitEdit edit = {.kind = LogitEdit::Kind::kSet,
                        .row = static_cast<int32_t>(hash % n_rows),
                        .token = static_cast<int32_t>(hash / 16 % fake::kVocab),
                        .value = kBanned};
      if (hash / 1024 % 3 == 1) {
        edit.kind = LogitEdit::Kind::kPenalise;
        edit.value = 1.5F;
      }
      if (hash / 1024 % 7 == 2) {
        edit.kind = LogitEdit::Kind::kFillRow;
        edit.value = -1.0F;
      }
      request.edits.push_back(edit);
    }
    return request;
  }

  std::vector<NextRow> advance(std::span<const Candidates> rows) override {
    EXPECT_EQ(rows.size(), rows_.size());
    if (n_steps_ == wish_.fails_at) fail(ErrorKind::kRecord, "nothing left to choose");
    const auto k = static_cast<size_t>(top_k());
    for (const Candidates& row : rows) {
      EXPECT_EQ(row.ids.size(), k);
      for (size_t i = 0; i < row.ids.size(); ++i) {
        state_ = mix(state_, static_cast<uint64_t>(row.ids[i]));
        state_ = mix(state_, static_cast<uint64_t>(std::max(row.values[i], -1.0F) + 1.0F));
      }
    }
    if (wish_.thins_out && n_steps_ > 0 && n_next_ > 1 && state_ % 4 == 0) --n_next_;
    std::vector<NextRow> next;
    std::vector<std::vector<int32_t>> histories;
    for (int64_t r = 0; r < n_next_; ++r) {
      const uint64_t hash = mix(state_, static_cast<uint64_t>(r));
      const auto parent = static_cast<size_t>(hash % rows_.size());
      const int32_t token = rows[parent].ids[hash / 64 % rows[parent].ids.size()];
      next.push_back({.parent = static_cast<int32_t>(parent), .token = token});
      histories.push_back(rows_[parent]);
      histories.back().push_back(token);
    }
    rows_ = std::move(histories);
    ++n_steps_;
    const bool ends =
        wish_.ends_after > 0 && state_ / 256 % static_cast<uint64_t>(wish_.ends_after) == 0;
    if (ends || n_steps_ >= wish_.max_new_tokens) next.clear();
    return next;
  }

  std::vector<Generated> results() const override {
    std::vector<Generated> results;
    if (n_steps_ == 0) return results;
    for (const auto& row : rows_) {
      results.push_back({.ids = row, .score = static_cast<double>(state_), .has_score = true});
    }
    return results;
  }
  int64_t max_rows() const override { return n_next_; }
  int64_t max_new_tokens() const override { return wish_.max_new_tokens; }
  const std::vector<std::vector<int32_t>>& rows() const { return rows_; }

 private:
  int64_t top_k() const { return 1 + static_cast<int64_t>(state_ % 5); }

  Wish wish_;
  std::vector<std::vector<int32_t>> rows_;  // new tokens of each
  int64_t n_next_;
  int64_t n_steps_ = 0;
  uint64_t state_;
};

constexpr int64_t kBlocks = 6;  // of each stack, however many stages share them

std::vector<Candidates> best(std::vector<std::vector<float>>& logits, const SearchRequest& request,
                             std::vector<std::vector<int32_t>>& ids,
                             std::vector<std::vector<float>>& values) {
  for (const LogitEdit& edit : request.edits) {
    auto& row = logits[static_cast<size_t>(edit.row)];
    float& value = row[static_cast<size_t>(edit.token)];
    if (edit.kind == LogitEdit::Kind::kSet) value = edit.value;
    if (edit.kind == LogitEdit::Kind::kPenalise) {
      value = value < 0 ? value * edit.value : value / edit.value;
    }
    if (edit.kind == LogitEdit::Kind::kFillRow) std::fill(row.begin(), row.end(), edit.value);
  }
  std::vector<Candidates> candidates;
  for (size_t r = 0; r < logits.size(); ++r) {
    std::vector<int32_t> order(logits[r].size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return logits[r][static_cast<size_t>(a)] > logits[r][static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(request.top_k));
    for (const int32_t id : order) values[r].push_back(logits[r][static_cast<size_t>(id)]);
    ids[r] = order;
    candidates.push_back({.ids = ids[r], .values = values[r]});
  }
  return candidates;
}

// One record alone, without caches.
std::vector<Generated> plain(const Wish& wish, bool encodes, int64_t max_positions) {
  RandomSearch search(wish);
  const std::vector<uint64_t> source =
      encodes ? fake::encode(wish.source, kBlocks) : std::vector<uint64_t>{};
  for (int64_t step = 0;; ++step) {
    const size_t n_rows = search.rows().size();
    std::vector<std::vector<float>> logits(n_rows);
    for (size_t r = 0; r < n_rows; ++r) {
      std::vector<int32_t> tokens = wish.prompt;
      tokens.insert(tokens.end(), search.rows()[r].begin(), search.rows()[r].end());
      const uint64_t hidden = fake::decode(tokens, source, kBlocks);
      for (int64_t v = 0; v < fake::kVocab; ++v) logits[r].push_back(fake::logit(hidden, v));
    }
    std::vector<std::vector<int32_t>> ids(n_rows);
    std::vector<std::vector<float>> values(n_rows);
    const bool ends = search.advance(best(logits, search.request(), ids, values)).empty();
    const auto n_kept = static_cast<int64_t>(wish.prompt.size()) + step;
    if (ends || (max_positions > 0 && n_kept >= max_positions)) return search.results();
  }
}

// Blocks of one stack on each device, in the order of the devices: {2, 4} or, from the back, with
// `reversed`, the first blocks on the last device.
struct Layout {
  std::vector<int64_t> encoder;
  std::vector<int64_t> decoder;
  bool host_memory = true;
  bool reversed = false;
};

// Several blocks of a stack on one device.
struct EncoderBlocks : EncoderStage {
  std::vector<std::unique_ptr<fake::EncoderStage>> blocks;

  Tensor forward(const MicroBatch& batch, Tensor hidden) override {
    for (const auto& block : blocks) hidden = block->forward(batch, std::move(hidden));
    return hidden;
  }
};

struct DecoderBlocks : DecoderStage {
  std::vector<std::unique_ptr<fake::DecoderStage>> blocks;

  void reserve(const CachePages& pages) override {
    for (const auto& block : blocks) block->reserve(pages);
  }
  Tensor forward(const StepBatch& step, const Tensor& source, Tensor hidden) override {
    for (const auto& block : blocks) hidden = block->forward(step, source, std::move(hidden));
    return hidden;
  }
  Tensor logits(const Tensor& hidden, const std::vector<int32_t>& selected) override {
    return blocks.back()->logits(hidden, selected);
  }
};

struct Bench {
  Bench(const Layout& layout, const CachePages& pages) {
    const size_t n = std::max(layout.encoder.size(), layout.decoder.size());
    for (size_t i = 0; i < n; ++i) {
      devices.push_back(
          std::make_unique<FakeDevice>("fake:" + std::to_string(i), layout.host_memory));
    }
    parts.resize(n);
    for (size_t i = 0; i < n; ++i) parts[i].device = devices[i].get();
    int64_t block = 0;
    for (size_t i = 0; i < layout.encoder.size(); ++i) {
      const size_t place = layout.reversed ? layout.encoder.size() - 1 - i : i;
      RingDevice& part = parts[place];
      auto stage = std::make_unique<EncoderBlocks>();
      part.encoder_range = {block, block + layout.encoder[i]};
      for (; block < part.encoder_range.last_block; ++block) {
        stage->blocks.push_back(std::make_unique<fake::EncoderStage>(*devices[place]));
        encoder_blocks.push_back(stage->blocks.back().get());
      }
      part.encoder = std::move(stage);
    }
    block = 0;
    for (size_t i = 0; i < layout.decoder.size(); ++i) {
      RingDevice& part = parts[i];
      auto stage = std::make_unique<DecoderBlocks>();
      part.decoder_range = {block, block + layout.decoder[i]};
      for (; block < part.decoder_range.last_block; ++block) {
        stage->blocks.push_back(
            std::make_unique<fake::DecoderStage>(*devices[i], static_cast<uint64_t>(block)));
        decoder_blocks.push_back(stage->blocks.back().get());
      }
      stage->reserve(pages);
      part.decoder = std::move(stage);
    }
  }

  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<RingDevice> parts;
  std::vector<fake::EncoderStage*> encoder_blocks;
  std::vector<fake::DecoderStage*> decoder_blocks;
};

std::vector<int32_t> tokens_of(uint64_t seed, size_t n) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < n; ++i) {
    tokens.push_back(static_cast<int32_t>(mix(seed, i) % fake::kVocab));
  }
  return tokens;
}

// Records of all shapes.
std::vector<Wish> make_wishes(uint64_t n) {
  std::vector<Wish> wishes;
  for (uint64_t ordinal = 0; ordinal < n; ++ordinal) {
    const uint64_t hash = mix(ordinal, 5);
    Wish wish;
    wish.ordinal = ordinal;
    wish.source.tokens = tokens_of(hash, 1 + hash % 37);
    if (hash / 64 % 3 == 0) {
      for (size_t i = 0; i < wish.source.tokens.size(); ++i) {
        wish.source.positions.push_back(static_cast<int32_t>(2 * i));  // holes in the mask
      }
    }
    wish.prompt = tokens_of(hash + 1, hash / 256 % 4 == 0 ? 1 + hash / 1024 % 60 : 1);
    wish.max_rows = std::array<int64_t, 6>{1, 1, 2, 3, 4, 5}[hash / 4096 % 6];
    wish.max_new_tokens = 1 + static_cast<int64_t>(hash / 65536 % 45);
    wish.thins_out = hash / (uint64_t{1} << 24) % 4 == 0;
    wish.ends_after = std::array<int64_t, 3>{0, 8, 30}[hash / (uint64_t{1} << 28) % 3];
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

GenerationTask make_task(const Wish& wish, bool encodes) {
  GenerationTask task;
  task.ordinal = wish.ordinal;
  if (encodes) task.source = wish.source;
  task.prompt = wish.prompt;
  task.search = std::make_unique<RandomSearch>(wish);
  return task;
}

struct Outcome {
  std::map<uint64_t, GenerationResult> results;
  std::map<uint64_t, std::vector<int32_t>> streamed;
  GeneratorStats stats;
};

Outcome generate(Ring& ring, const GeneratorOptions& options, const std::vector<Wish>& wishes) {
  Outcome outcome;
  const bool encodes = ring.n_encoder_stages() > 0;
  size_t next = 0;
  const std::atomic<bool> stop{false};
  Generator generator(ring, options);
  outcome.stats =
      generator.run({.next = [&]() -> std::optional<GenerationTask> {
                       if (next == wishes.size()) return std::nullopt;
                       return make_task(wishes[next++], encodes);
                     },
                     .done =
                         [&](GenerationResult result) {
                           const uint64_t ordinal = result.ordinal;
                           EXPECT_TRUE(outcome.results.emplace(ordinal, std::move(result)).second);
                         },
                     .token = [&](uint64_t ordinal,
                                  int32_t token) { outcome.streamed[ordinal].push_back(token); }},
                    stop);
  EXPECT_EQ(ring.in_flight(), 0);
  return outcome;
}

void expect_same(const GenerationResult& result, const std::vector<Generated>& expected) {
  ASSERT_EQ(result.rejected, "");
  ASSERT_EQ(result.sequences.size(), expected.size()) << "record " << result.ordinal;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result.sequences[i].ids, expected[i].ids) << "record " << result.ordinal;
    EXPECT_EQ(result.sequences[i].score, expected[i].score) << "record " << result.ordinal;
  }
}

const std::vector<std::vector<Generated>>& expected_results(bool encodes) {
  static std::map<bool, std::vector<std::vector<Generated>>> kept;
  auto& results = kept[encodes];
  if (results.empty()) {
    for (const Wish& wish : make_wishes(200)) results.push_back(plain(wish, encodes, 0));
  }
  return results;
}

struct Case {
  Layout layout;
  GeneratorOptions options;
};

void PrintTo(const Case& shape, std::ostream* out) {
  *out << shape.layout.encoder.size() << " encoder and " << shape.layout.decoder.size()
       << " decoder stages, " << shape.options.n_groups << " groups of "
       << shape.options.rows_per_group;
}

class GeneratorOf : public testing::TestWithParam<Case> {};

TEST_P(GeneratorOf, GivesWhatAPlainLoopGives) {
  const auto& [layout, options] = GetParam();
  const bool encodes = !layout.encoder.empty();
  Bench bench(layout, options.pages);
  const std::vector<Wish> wishes = make_wishes(200);
  {
    Ring ring(std::move(bench.parts), {});
    const Outcome outcome = generate(ring, options, wishes);
    ASSERT_EQ(outcome.results.size(), wishes.size());
    for (const auto& [ordinal, result] : outcome.results) {
      expect_same(result, expected_results(encodes)[ordinal]);
      const bool single = wishes[ordinal].max_rows == 1;
      EXPECT_EQ(outcome.streamed.count(ordinal), single ? 1 : 0);
      if (single) {
        EXPECT_EQ(outcome.streamed.at(ordinal), result.sequences.front().ids);
      }
    }
    EXPECT_EQ(outcome.stats.records, wishes.size());
  }
  for (const auto& device : bench.devices) EXPECT_EQ(device->live_bytes, 0);
}

constexpr CachePages kManyPages = {.self = 400, .cross = 100};

INSTANTIATE_TEST_SUITE_P(
    Shapes, GeneratorOf,
    testing::Values(
        Case{{.encoder = {6}, .decoder = {6}}, {.rows_per_group = 16, .pages = kManyPages}},
        Case{{.encoder = {}, .decoder = {6}}, {.rows_per_group = 7, .pages = kManyPages}},
        Case{{.encoder = {3, 3}, .decoder = {2, 4}},
             {.n_groups = 2, .rows_per_group = 9, .pages = kManyPages}},
        Case{{.encoder = {6}, .decoder = {2, 4}, .host_memory = false},
             {.n_groups = 3,
              .rows_per_group = 8,
              .encode_tokens_per_batch = 40,
              .pages = kManyPages}},
        Case{{.encoder = {1, 5}, .decoder = {1, 2, 3}, .host_memory = false, .reversed = true},
             {.n_groups = 4,
              .rows_per_group = 5,
              .source_tokens_per_step = 20,
              .pages = kManyPages}},
        Case{{.encoder = {}, .decoder = {4, 1, 1}},
             {.n_groups = 3,
              .rows_per_group = 20,
              .prompt_tokens_per_step = 8,
              .pages = kManyPages}},
        // Hardly more pages than the largest record needs.
        Case{{.encoder = {2, 2, 2}, .decoder = {2, 2, 2}},
             {.n_groups = 4, .rows_per_group = 30, .pages = {.self = 22, .cross = 3}}},
        Case{{.encoder = {6}, .decoder = {6}},
             {.n_groups = 2, .rows_per_group = 5, .pages = {.self = 22, .cross = 2}}}));

TEST(Generator, ARingServesOneRunAfterTheOther) {
  Bench bench({.encoder = {6}, .decoder = {3, 3}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  const GeneratorOptions options = {.n_groups = 2, .rows_per_group = 6, .pages = kManyPages};
  for (int round = 0; round < 3; ++round) {
    const Outcome outcome = generate(ring, options, make_wishes(30));
    ASSERT_EQ(outcome.results.size(), 30);
    for (const auto& [ordinal, result] : outcome.results) {
      expect_same(result, expected_results(true)[ordinal]);
    }
  }
}

TEST(Generator, WithoutRecords) {
  Bench bench({.encoder = {6}, .decoder = {6}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  EXPECT_EQ(generate(ring, {.pages = kManyPages}, {}).stats.steps, 0);
}

TEST(Generator, APlaceIsTakenAtTheNextStep) {
  // 8 records of 10 steps through 2 places: 40 steps, none with an empty place.
  Bench bench({.encoder = {}, .decoder = {6}}, kManyPages);
  std::vector<int64_t> rows;
  bench.decoder_blocks.front()->before = [&](const StepBatch& step) {
    rows.push_back(step.n_rows());
  };
  Ring ring(std::move(bench.parts), {});
  std::vector<Wish> wishes;
  for (uint64_t i = 0; i < 8; ++i) {
    wishes.push_back({.ordinal = i, .source = {}, .prompt = {3}, .max_new_tokens = 10});
  }
  wishes.front().max_new_tokens = 5;  // the two are never again at the same step
  wishes.back().max_new_tokens = 15;
  generate(ring, {.rows_per_group = 2, .pages = kManyPages}, wishes);
  ASSERT_EQ(rows.size(), 45);
  EXPECT_EQ(std::count(rows.begin(), rows.begin() + 35, 2), 35);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0), 80);
}

TEST(Generator, GroupsShareTheWorkEvenly) {
  Bench bench({.encoder = {6}, .decoder = {3, 3}}, kManyPages);
  std::vector<int64_t> rows;
  bench.decoder_blocks.front()->before = [&](const StepBatch& step) {
    rows.push_back(step.n_rows());
  };
  Ring ring(std::move(bench.parts), {});
  std::vector<Wish> wishes = make_wishes(10);
  for (Wish& wish : wishes) {
    wish.max_rows = 1;
    wish.prompt = {3};
    wish.max_new_tokens = 12;
    wish.ends_after = 0;
  }
  generate(ring, {.n_groups = 2, .rows_per_group = 32, .pages = kManyPages}, wishes);
  EXPECT_EQ(rows, std::vector<int64_t>(24, 5));
}

TEST(Generator, BeamsCopyOnePageAndShareTheOthers) {
  // A prompt of 30: one full page and a quarter of another.
  Bench bench({.encoder = {}, .decoder = {6}}, kManyPages);
  std::vector<std::vector<PageCopy>> copies;
  std::vector<std::set<int32_t>> full_pages;
  bench.decoder_blocks.front()->before = [&](const StepBatch& step) {
    copies.push_back(step.copies);
    std::set<int32_t> pages;
    for (size_t t = 0; t + 1 < step.self.begin.size(); ++t) {
      pages.insert(step.self.pages[static_cast<size_t>(step.self.begin[t])]);
    }
    full_pages.push_back(pages);
  };
  Ring ring(std::move(bench.parts), {});
  const Wish wish = {
      .ordinal = 0, .source = {}, .prompt = tokens_of(1, 30), .max_rows = 4, .max_new_tokens = 15};
  generate(ring, {.rows_per_group = 4, .pages = kManyPages}, {wish});
  ASSERT_EQ(copies.size(), 15);
  EXPECT_EQ(copies[0].size(), 0);  // the prompt
  EXPECT_EQ(copies[1].size(), 3);  // the fourth row keeps the page
  for (size_t i = 1; i < copies.size(); ++i) {
    EXPECT_EQ(full_pages[i].size(), 1);
    for (const PageCopy& copy : copies[i]) {
      EXPECT_EQ(copy.n_tokens, 6 + static_cast<int32_t>(i) - 1);
    }
  }
}

TEST(Generator, EndsAtTheLastPosition) {
  for (const int64_t max_positions : {24, 25, 61}) {
    Bench bench({.encoder = {}, .decoder = {6}}, kManyPages);
    Ring ring(std::move(bench.parts), {});
    std::vector<Wish> wishes = make_wishes(60);
    const Outcome outcome = generate(
        ring, {.rows_per_group = 8, .pages = kManyPages, .max_positions = max_positions}, wishes);
    for (const Wish& wish : wishes) {
      const GenerationResult& result = outcome.results.at(wish.ordinal);
      if (static_cast<int64_t>(wish.prompt.size()) <= max_positions) {
        expect_same(result, plain(wish, false, max_positions));
      } else {
        EXPECT_EQ(result.rejected,
                  fmt::format("the prompt has {} tokens, the model has {} positions",
                              wish.prompt.size(), max_positions));
      }
    }
  }
}

TEST(Generator, RefusesWhatCanNeverBeGenerated) {
  Bench bench({.encoder = {6}, .decoder = {6}}, {.self = 5, .cross = 2});
  Ring ring(std::move(bench.parts), {});
  std::vector<Wish> wishes = make_wishes(6);
  for (Wish& wish : wishes) {
    wish.source.positions.clear();
    wish.source.tokens.resize(20);
    wish.prompt = {1};
    wish.max_rows = 1;
    wish.max_new_tokens = 10;
  }
  wishes[0].prompt.clear();
  wishes[1].source.tokens.clear();
  wishes[2].max_rows = 9;
  wishes[3].max_new_tokens = 200;
  wishes[4].source.tokens.resize(49);
  const Outcome outcome =
      generate(ring, {.rows_per_group = 8, .pages = {.self = 5, .cross = 2}}, wishes);
  EXPECT_EQ(outcome.results.at(0).rejected, "the decoder has no token to begin with");
  EXPECT_EQ(outcome.results.at(1).rejected,
            "the encoder has no token to read: text or mask are empty");
  EXPECT_EQ(outcome.results.at(2).rejected,
            "9 sequences at once are needed, a step has room for 8");
  EXPECT_EQ(outcome.results.at(3).rejected,
            "1 sequences of 1 prompt and up to 200 new tokens need 9 pages of the decoder's cache, "
            "there are 5");
  EXPECT_EQ(outcome.results.at(4).rejected,
            "49 source tokens need 3 pages of the cross-attention's cache, there are 2");
  expect_same(outcome.results.at(5), plain(wishes[5], true, 0));
  EXPECT_EQ(outcome.stats.records, 1);
}

TEST(Generator, ARecordWhoseSearchGivesUpIsRefused) {
  Bench bench({.encoder = {6}, .decoder = {6}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  std::vector<Wish> wishes = make_wishes(20);
  wishes[7].fails_at = 3;
  wishes[7].max_new_tokens = 10;
  wishes[7].ends_after = 0;
  const Outcome outcome = generate(ring, {.rows_per_group = 5, .pages = kManyPages}, wishes);
  for (const auto& [ordinal, result] : outcome.results) {
    if (ordinal != 7) expect_same(result, expected_results(true)[ordinal]);
  }
  EXPECT_EQ(outcome.results.at(7).rejected, "nothing left to choose");
  EXPECT_TRUE(outcome.results.at(7).sequences.empty());
  EXPECT_EQ(outcome.stats.records, 19);
}

TEST(Generator, RefusesOptionsThatCannotWork) {
  Bench bench({.encoder = {}, .decoder = {3, 3}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  EXPECT_THROW(Generator(ring, {.n_groups = 1, .pages = kManyPages}), Error);
  EXPECT_THROW(Generator(ring, {.n_groups = 2, .rows_per_group = 0, .pages = kManyPages}), Error);
  EXPECT_THROW(Generator(ring, {.n_groups = 2, .pages = {}}), Error);
}

TEST(Generator, FailureOfAnyStageIsThrown) {
  for (size_t block = 0; block < 2 * kBlocks; ++block) {
    Bench bench({.encoder = {3, 3}, .decoder = {3, 3}}, kManyPages);
    std::atomic<int> calls{0};
    const auto trip = [&calls](const auto&) {
      if (++calls == 3) fail(ErrorKind::kMemory, "no room");
    };
    if (block < kBlocks) {
      bench.encoder_blocks[block]->before = trip;
    } else {
      bench.decoder_blocks[block - kBlocks]->before = trip;
    }
    Ring ring(std::move(bench.parts), {});
    try {
      generate(
          ring,
          {.n_groups = 2, .rows_per_group = 10, .encode_tokens_per_batch = 30, .pages = kManyPages},
          make_wishes(50));
      FAIL() << "expected BatchError";
    } catch (const BatchError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMemory);
      EXPECT_FALSE(error.ordinals().empty());
      for (const uint64_t ordinal : error.ordinals()) EXPECT_LT(ordinal, 50);
      const size_t device = block % kBlocks / 3;
      EXPECT_EQ(std::string(error.what()), fmt::format("{} stage (fake:{}, blocks {}-{}): no room",
                                                       block < kBlocks ? "encoder" : "decoder",
                                                       device, 3 * device, 3 * device + 2));
    }
  }
}

TEST(Generator, StopsSoonAndLeavesTheRingInOrder) {
  Bench bench({.encoder = {3, 3}, .decoder = {3, 3}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  const GeneratorOptions options = {.n_groups = 2, .rows_per_group = 6, .pages = kManyPages};
  for (const size_t stop_at : {0, 1, 20}) {
    std::atomic<bool> stop{stop_at == 0};
    size_t n_done = 0;
    uint64_t next = 0;
    const std::vector<Wish> wishes = make_wishes(200);
    Generator(ring, options)
        .run({.next = [&]() -> std::optional<GenerationTask> {
                if (next == wishes.size()) return std::nullopt;
                return make_task(wishes[next++], true);
              },
              .done =
                  [&](const GenerationResult&) {
                    if (++n_done == stop_at) stop = true;
                  }},
             stop);
    EXPECT_GE(n_done, stop_at);
    EXPECT_LT(n_done, stop_at + 12);
    EXPECT_EQ(ring.in_flight(), 0);
  }
  const Outcome outcome = generate(ring, options, make_wishes(20));
  for (const auto& [ordinal, result] : outcome.results) {
    expect_same(result, expected_results(true)[ordinal]);
  }
}

TEST(Generator, TakesNoMoreThanItSoonNeeds) {
  Bench bench({.encoder = {6}, .decoder = {6}}, kManyPages);
  Ring ring(std::move(bench.parts), {});
  const std::vector<Wish> wishes = make_wishes(200);
  size_t next = 0;
  size_t n_done = 0;
  size_t most = 0;
  const std::atomic<bool> stop{false};
  Generator(ring, {.rows_per_group = 6, .pages = kManyPages})
      .run({.next = [&]() -> std::optional<GenerationTask> {
              if (next == wishes.size()) return std::nullopt;
              most = std::max(most, next + 1 - n_done);
              return make_task(wishes[next++], true);
            },
            .done = [&](const GenerationResult&) { ++n_done; }},
           stop);
  EXPECT_EQ(n_done, wishes.size());
  EXPECT_LE(most, 6 + 6);  // in places, and waiting
}

}  // namespace
}  // namespace quintet
