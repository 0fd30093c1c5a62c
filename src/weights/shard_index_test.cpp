#include "weights/shard_index.h"

#include "weights/test_files.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// The problem with an index that names `shard`, in `folder`.
std::string problem(const fs::path& folder, const std::string& shard) {
  const fs::path file = folder / "model.safetensors.index.json";
  std::ofstream(file) << R"({"weight_map": {"a": ")" << shard << "\"}}";
  return problem_of([&] { read_shard_index(file); });
}

TEST(ShardIndex, AllowsSubFolders) {
  const TestFolder folder;
  folder.write("sub/deep/1.safetensors", "");
  folder.write("index.json", R"({"metadata": {}, "weight_map": {"a": "sub/deep/1.safetensors"}})");
  const ShardIndex index = read_shard_index(folder.path() / "index.json");
  EXPECT_THAT(index.weight_map, ElementsAre(Pair("a", "sub/deep/1.safetensors")));
  EXPECT_EQ(index.shards.at("sub/deep/1.safetensors"),
            fs::canonical(folder.path() / "sub/deep/1.safetensors"));
}

TEST(ShardIndex, RefusesShardsOutsideTheFolder) {
  const TestFolder folder;
  folder.write("x.safetensors", "");
  folder.write("model/sub/y.safetensors", "");
  folder.write("model_too/z.safetensors", "");
  const fs::path model = folder.path() / "model";
  EXPECT_THAT(problem(model, "../x.safetensors"), HasSubstr("'../x.safetensors', which leaves"));
  EXPECT_THAT(problem(model, "sub/../../x.safetensors"), HasSubstr("leaves the folder"));
  EXPECT_THAT(problem(model, "sub/../sub/y.safetensors"), HasSubstr("leaves the folder"));
  EXPECT_THAT(problem(model, "/etc/passwd"), HasSubstr("'/etc/passwd', which is an absolute path"));
  EXPECT_THAT(problem(model, ""), HasSubstr("is no name"));
  EXPECT_THAT(problem(model, "sub/y.safetensors\\u0000/../../x"), HasSubstr("is no name"));
  EXPECT_THAT(problem(model, "2.safetensors"), HasSubstr("cannot be found"));

  fs::create_symlink("../x.safetensors", model / "link");
  EXPECT_THAT(problem(model, "link"), HasSubstr("a link out of the folder"));
  fs::create_directory_symlink("..", model / "up");
  EXPECT_THAT(problem(model, "up/x.safetensors"), HasSubstr("a link out of the folder"));
  fs::create_directory_symlink("../model_too", model / "too");
  EXPECT_THAT(problem(model, "too/z.safetensors"), HasSubstr("a link out of the folder"));
  fs::create_symlink("loop", model / "loop");
  EXPECT_THAT(problem(model, "loop"), HasSubstr("cannot be found"));
  fs::create_symlink("sub/y.safetensors", model / "inner");
  EXPECT_EQ(problem(model, "inner"), "");
}

TEST(ShardIndex, AllowsTheBlobsOfTheHubCache) {
  const TestFolder folder;
  folder.write("models--x/blobs/1234", "");
  folder.write("models--y/blobs/5678", "");
  const fs::path snapshot = folder.path() / "models--x/snapshots/main";
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/1234", snapshot / "1.safetensors");
  EXPECT_EQ(problem(snapshot, "1.safetensors"), "");
  fs::create_symlink("../../../models--y/blobs/5678", snapshot / "2.safetensors");
  EXPECT_THAT(problem(snapshot, "2.safetensors"), HasSubstr("a link out of the folder"));
  EXPECT_THAT(problem(snapshot, "2.safetensors"), HasSubstr("cp -rL"));

  const fs::path inner = snapshot / "encoder";
  fs::create_directories(inner);
  fs::create_symlink("../../../blobs/1234", inner / "1.safetensors");
  EXPECT_EQ(problem(inner, "1.safetensors"), "");
  fs::create_symlink("../../../../models--y/blobs/5678", inner / "2.safetensors");
  EXPECT_THAT(problem(inner, "2.safetensors"), HasSubstr("a link out of the folder"));
}

TEST(ShardIndex, RefusesOtherJson) {
  const TestFolder folder;
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})"}) {
    folder.write("index.json", text);
    EXPECT_THAT(problem_of([&] { read_shard_index(folder.path() / "index.json"); }),
                HasSubstr("no weight_map"));
  }
  folder.write("index.json", R"({"weight_map": {"a": 3}})");
  EXPECT_THAT(problem_of([&] { read_shard_index(folder.path() / "index.json"); }),
              HasSubstr("weight_map['a'] is not the name of a shard"));
}

}  // namespace
}  // namespace quintet
