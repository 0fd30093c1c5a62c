// The checkpoints load, and what is computed from them is worth comparing.
#include "conformance/checkpoint_maker.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/inputs.h"
#include "conformance/scratch_folder.h"
#include "conformance/subject.h"

namespace quintet::conformance {
namespace {

TEST(CheckpointMaker, EveryClassLoadsAndGeneratesDifferentTokens) {
  const ScratchFolder scratch;
  for (const ModelClass& c : model_classes()) {
    SCOPED_TRACE(c.name);
    const MadeCheckpoint made = make_checkpoint(c.family, scratch.path());
    const auto model = c.load(made.folder.string(), {});
    const Inputs inputs = test_inputs(made);
    const Rows rows = model->forward(inputs);
    ASSERT_EQ(rows.size(), inputs.ids.size());
    if (!c.generates) continue;
    std::set<std::vector<int32_t>> texts;
    for (const auto& returned : model->generate(inputs, searches()[0].options)) {
      ASSERT_EQ(returned.size(), 1U);
      const auto& ids = returned[0].ids;
      EXPECT_GE(std::set<int32_t>(ids.begin(), ids.end()).size(), 3U);  // no token over and over
      texts.insert(ids);
    }
    EXPECT_GE(texts.size(), 4U);  // what is read matters
  }
}

TEST(CheckpointMaker, TheScratchFolderGoes) {
  std::filesystem::path path;
  {
    const ScratchFolder scratch;
    path = scratch.path();
    make_checkpoint(Family::kGpt2, path);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace quintet::conformance
