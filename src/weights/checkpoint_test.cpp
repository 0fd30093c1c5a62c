#include "weights/checkpoint.h"

#include "weights/test_files.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A safetensors file of one float32 tensor with one value.
std::string shard(const std::string& name, float value) {
  return safetensors_of("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        little_endian(value));
}

std::string problem(const fs::path& folder) {
  return problem_of([&] { Checkpoint::open(folder); });
}

float value_of(const Checkpoint& checkpoint, std::string_view name) {
  return values_of(*checkpoint.find(name)).at(0);
}

TEST(Checkpoint, PrefersSafetensorsThenTheWholeFile) {
  const TestFolder folder;
  folder.write("pytorch_model.bin", fixture("zip.bin"));
  EXPECT_EQ(Checkpoint::open(folder.path())->format(), "torch zip, 1 file");
  folder.write("pytorch_model.bin", fixture("legacy.bin"));
  EXPECT_EQ(Checkpoint::open(folder.path())->format(), "torch legacy, 1 file");

  folder.write("model.safetensors.index.json", R"({"weight_map": {"b": "two.safetensors"}})");
  folder.write("two.safetensors", shard("b", 2));
  EXPECT_EQ(value_of(*Checkpoint::open(folder.path()), "b"), 2);

  folder.write("model.safetensors", shard("a", 1));
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint->format(), "safetensors, 1 file");
  EXPECT_EQ(checkpoint->file_bytes(), shard("a", 1).size());
  EXPECT_EQ(value_of(*checkpoint, "a"), 1);
  EXPECT_NE(checkpoint->find("a")->file, nullptr);
  EXPECT_EQ(checkpoint->find("b"), nullptr);
  EXPECT_EQ(checkpoint->why_absent("b"), "no tensor 'b'");
}

TEST(Checkpoint, JoinsShards) {
  const TestFolder folder;
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": 8},
                   "weight_map": {"a": "1.safetensors", "b": "sub/2.safetensors",
                                  "tied": "1.safetensors"}})");
  folder.write("1.safetensors", shard("a", 1));
  folder.write("sub/2.safetensors", shard("b", 2));
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint->format(), "safetensors, 2 files");
  EXPECT_EQ(value_of(*checkpoint, "a"), 1);
  EXPECT_EQ(value_of(*checkpoint, "b"), 2);
  EXPECT_THAT(checkpoint->missing(), ElementsAre(Pair("tied", "1.safetensors")));
  EXPECT_EQ(checkpoint->why_absent("tied"),
            "'tied' is not in 1.safetensors, where the index says it is");
}

TEST(Checkpoint, JoinsShardsOfTheHubCacheAndNamesThemAsGiven) {
  const TestFolder folder;
  folder.write("models--x/blobs/11", shard("a", 1));
  folder.write("models--x/blobs/22", shard("b", 2));
  folder.write("models--x/blobs/33",
               R"({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})");
  const fs::path snapshot = folder.path() / "models--x/snapshots/0123abcd";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/11", snapshot / "1.safetensors");
  fs::create_symlink("../../blobs/22", snapshot / "2.safetensors");
  fs::create_symlink("../../blobs/33", snapshot / "model.safetensors.index.json");
  const auto checkpoint = Checkpoint::open(snapshot);
  EXPECT_EQ(value_of(*checkpoint, "b"), 2);
  EXPECT_EQ(checkpoint->find("b")->file->path(), snapshot / "2.safetensors");
}

TEST(Checkpoint, JoinsTorchShardsOfBothKinds) {
  const TestFolder folder;
  folder.write("pytorch_model.bin.index.json", R"({"weight_map": {"plain": "1.bin"}})");
  folder.write("1.bin", fixture("legacy.bin"));
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint->tensors().size(), 9U);
  EXPECT_THAT(problem_of([&] { checkpoint->find("wide"); }),
              HasSubstr("'wide' is stored as torch.DoubleStorage in 1.bin; weights are read as"));
}

TEST(Checkpoint, TheIndexSaysWhichOfTwoCounts) {
  const TestFolder folder;
  folder.write("1.safetensors", shard("a", 1));
  folder.write("2.safetensors", shard("a", 2));
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"a": "2.safetensors", "b": "1.safetensors"}})");
  EXPECT_EQ(value_of(*Checkpoint::open(folder.path()), "a"), 2);
  folder.write("model.safetensors.index.json",
               R"({"weight_map": {"c": "2.safetensors", "b": "1.safetensors"}})");
  EXPECT_THAT(problem(folder.path()), HasSubstr("'a' stands in another shard as well"));
}

TEST(Checkpoint, RefusesFoldersWithoutWeights) {
  const TestFolder folder;
  EXPECT_THAT(problem(folder.path() / "nowhere"), HasSubstr("not a folder"));
  EXPECT_THAT(problem(folder.path()), HasSubstr("the folder holds nothing"));
  folder.write("tf_model.h5", "");
  EXPECT_THAT(problem(folder.path()),
              AllOf(HasSubstr("expected one of model.safetensors, "), HasSubstr("tf_model.h5")));
  folder.write("pytorch_model.bin", "garbage");
  EXPECT_THAT(problem(folder.path()), HasSubstr("torch zip, torch legacy"));
  folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(problem(folder.path()), HasSubstr("git lfs pull"));
  fs::remove(folder.path() / "model.safetensors");
  fs::create_directory(folder.path() / "model.safetensors");
  EXPECT_THAT(problem(folder.path()), HasSubstr("not a regular file"));
}

}  // namespace
}  // namespace quintet
