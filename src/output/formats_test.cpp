// Every format and layout, written through Output, read back with the format's own library or by
// its published layout.
#include "output/formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "output/hdf5_file.h"
#include "output/test_folder.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kWidth = 2;

struct Settings {
  Hdf5Layout layout = Hdf5Layout::kProtTrans;
  DType dtype = DType::kFloat32;
  bool pooled = false;
};

OutputOptions options_for(const std::filesystem::path& path, Settings settings) {
  OutputOptions options;
  options.path = path;
  options.format = output_format_of(path);
  options.layout = settings.layout;
  options.dtype = settings.dtype;
  options.pooled = settings.pooled;
  options.d_model = kWidth;
  return options;
}

Embedding record(uint64_t ordinal, const std::string& id, const std::string& sequence,
                 std::vector<float> values) {
  Embedding embedding;
  embedding.ordinal = ordinal;
  embedding.id = id;
  embedding.sequence = sequence;
  embedding.n_rows = static_cast<int64_t>(values.size()) / kWidth;
  embedding.values = std::move(values);
  return embedding;
}

// Three records, of which the last has the sequence of the first; ids with '/', '.', blank, umlaut.
void write_three(const std::filesystem::path& path, Settings settings) {
  const auto output = open_output(options_for(path, settings), Existing::kRefuse);
  const bool pooled = settings.pooled;
  output->append(record(0, "sp/P1.2", "MK*",
                        pooled ? std::vector<float>{1, 2} : std::vector<float>{1, 2, 3, 4}));
  output->append(record(1, "ü x", "A", {5, 1.5F}));
  Embedding same = record(2, "b", "MK*", {});
  same.embedded = "MK";
  output->append_same(same, 0);
  output->finish();
}

std::vector<float> values_of(const Hdf5File& file, const std::string& key) {
  const Hid dataset = file.open(key);
  size_t n = 1;
  for (const hsize_t dim : file.dims(dataset)) n *= dim;
  std::vector<float> values(n);
  H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  return values;
}

std::vector<int64_t> integers_of(const Hdf5File& file, const std::string& key) {
  const Hid dataset = file.open(key);
  std::vector<int64_t> values(file.dims(dataset)[0]);
  H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  return values;
}

std::string bytes_of(const Hdf5File& file, const std::string& key) {
  const Hid dataset = file.open(key);
  std::string bytes(file.dims(dataset)[0], '\0');
  H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
  return bytes;
}

TEST(Hdf5, ProtTransLayout) {
  const TestFolder folder;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const auto path = folder / (std::string(name_of(dtype)) + ".h5");
    write_three(path, {.dtype = dtype});
    const Hdf5File file(path, Hdf5File::Mode::kRead);
    EXPECT_THAT(file.keys(), testing::UnorderedElementsAre("sp_P1_2", "ü x", "b"));
    EXPECT_EQ(file.dtype(file.open("b")), dtype);
    EXPECT_THAT(file.dims(file.open("sp_P1_2")), ElementsAre(2, 2));
    EXPECT_THAT(values_of(file, "sp_P1_2"), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(values_of(file, "b"), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(values_of(file, "ü x"), ElementsAre(5, 1.5));
    EXPECT_THAT(file.texts(file.open("sp_P1_2"), "original_id"), ElementsAre("sp/P1.2"));
  }
}

TEST(Hdf5, PooledVectorsHaveOneAxis) {
  const TestFolder folder;
  write_three(folder / "x.h5", {.pooled = true});
  const Hdf5File file(folder / "x.h5", Hdf5File::Mode::kRead);
  EXPECT_THAT(file.dims(file.open("ü x")), ElementsAre(2));
  EXPECT_THAT(values_of(file, "ü x"), ElementsAre(5, 1.5));
}

// MD5("MK*") and MD5("A"), from md5sum.
constexpr const char* kDigestOfMk = "4d09bb8ba5c9fc4a892cc1ac23345569";
constexpr const char* kDigestOfA = "7fc56270e7a70fa81a5935b72eacbe29";

TEST(Hdf5, DigestLayoutsKeepEverySequenceOnce) {
  const TestFolder folder;
  for (const auto layout : {Hdf5Layout::kBioEmbeddings, Hdf5Layout::kTmbed}) {
    const auto path = folder / (fmt::format("{}.h5", static_cast<int>(layout)));
    write_three(path, {.layout = layout, .dtype = DType::kFloat16});
    const Hdf5File file(path, Hdf5File::Mode::kRead);
    EXPECT_THAT(file.keys(), testing::UnorderedElementsAre(kDigestOfMk, kDigestOfA));
    const Hid shared = file.open(kDigestOfMk);
    EXPECT_EQ(file.dtype(shared), DType::kFloat16);
    EXPECT_THAT(values_of(file, kDigestOfMk), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(file.texts(shared, "original_id"), ElementsAre("sp/P1.2"));
    EXPECT_THAT(file.texts(shared, "original_ids"), ElementsAre("sp/P1.2", "b"));
    EXPECT_THAT(file.texts(file.open(kDigestOfA), "original_ids"), ElementsAre());
  }
}

TEST(Hdf5, FlatLayoutPointsToWhereRecordsEnd) {
  const TestFolder folder;
  write_three(folder / "x.h5", {.layout = Hdf5Layout::kFlat});
  const Hdf5File file(folder / "x.h5", Hdf5File::Mode::kRead);
  EXPECT_THAT(file.dims(file.open("embeddings")), ElementsAre(5, 2));
  EXPECT_THAT(values_of(file, "embeddings"), ElementsAre(1, 2, 3, 4, 5, 1.5, 1, 2, 3, 4));
  EXPECT_THAT(values_of(file, "embedding"), ElementsAre(1, 2, 3, 4, 5, 1.5, 1, 2, 3, 4));
  EXPECT_THAT(integers_of(file, "embedding_ptr"), ElementsAre(2, 3, 5));
  EXPECT_EQ(bytes_of(file, "id"), "MK*AMK");
  EXPECT_THAT(integers_of(file, "idptr"), ElementsAre(3, 4, 6));
  EXPECT_EQ(bytes_of(file, "original_id"), "sp/P1.2ü xb");
  EXPECT_THAT(integers_of(file, "original_idptr"), ElementsAre(7, 11, 12));
  EXPECT_THAT(file.texts(file.id(), "dtype"), ElementsAre("float32"));
}

TEST(Hdf5, RecordsWithoutRows) {
  const TestFolder folder;
  for (const auto layout : {Hdf5Layout::kProtTrans, Hdf5Layout::kFlat}) {
    const auto path = folder / (fmt::format("{}.h5", static_cast<int>(layout)));
    const auto output = open_output(options_for(path, {.layout = layout}), Existing::kRefuse);
    output->append(record(0, "none", "", {}));
    output->finish();
    const Hdf5File file(path, Hdf5File::Mode::kRead);
    const char* key = layout == Hdf5Layout::kFlat ? "embeddings" : "none";
    EXPECT_THAT(file.dims(file.open(key)), ElementsAre(0, 2));
  }
}

TEST(Hdf5, WritesAnEmptyFileAndManyDatasets) {
  const TestFolder folder;
  open_output(options_for(folder / "none.h5", {.pooled = true}), Existing::kRefuse)->finish();
  EXPECT_TRUE(Hdf5File(folder / "none.h5", Hdf5File::Mode::kRead).keys().empty());
  constexpr uint64_t kMany = 20000;
  const auto output =
      open_output(options_for(folder / "many.h5", {.pooled = true}), Existing::kRefuse);
  for (uint64_t i = 0; i < kMany; ++i) {
    output->append(record(i, fmt::format("id{}", i), "M", {static_cast<float>(i), 0}));
  }
  output->finish();
  const Hdf5File file(folder / "many.h5", Hdf5File::Mode::kRead);
  EXPECT_EQ(file.keys().size(), kMany);
  EXPECT_THAT(values_of(file, "id19999"), ElementsAre(19999, 0));
}

TEST(Npy, HeaderRowsAndIds) {
  const TestFolder folder;
  write_three(folder / "x.npy", {.pooled = true});
  const std::string bytes = read_file(folder / "x.npy");
  ASSERT_EQ(bytes.size(), 128 + 3 * kWidth * sizeof(float));
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
  EXPECT_THAT(bytes.substr(10, 118),
              HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"));
  EXPECT_EQ(bytes[127], '\n');
  std::vector<float> values(6);
  std::memcpy(values.data(), bytes.data() + 128, 6 * sizeof(float));
  EXPECT_THAT(values, ElementsAre(1, 2, 5, 1.5, 1, 2));
  EXPECT_EQ(read_file(folder / "x.npy.ids.txt"), "sp/P1.2\nü x\nb\n");
}

TEST(Npy, IdsWithLineBreaksComeBack) {
  const TestFolder folder;
  const std::string odd = "a\nb\\n\rc";
  const auto path = folder / "x.npy";
  const auto output = open_output(options_for(path, {.pooled = true}), Existing::kRefuse);
  output->append(record(0, odd, "M", {1, 2}));
  output->finish();
  EXPECT_EQ(read_file(folder / "x.npy.ids.txt"), "a\\nb\\\\n\\rc\n");
  read_npy(path, [&](const Frame& frame, const auto&) { EXPECT_EQ(frame.id, odd); });
}

TEST(Safetensors, HeaderIsAlignedAndContiguous) {
  const TestFolder folder;
  write_three(folder / "x.safetensors", {.dtype = DType::kBFloat16});
  const std::string bytes = read_file(folder / "x.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["sp/P1.2"]["shape"], (nlohmann::json{2, 2}));
  EXPECT_EQ(header["ü x"]["shape"], (nlohmann::json{1, 2}));
  EXPECT_EQ(header["ü x"]["dtype"], "BF16");
  EXPECT_EQ(header["ü x"]["data_offsets"], (nlohmann::json{8, 12}));
  EXPECT_EQ(header["b"]["data_offsets"], (nlohmann::json{12, 20}));
  EXPECT_EQ(bytes.size(), 8 + length + 20);
  uint16_t half = 0;
  std::memcpy(&half, bytes.data() + 8 + length + 8, 2);
  EXPECT_EQ(float_from_bfloat16(half), 5.0F);
}

TEST(Jsonl, NumbersComeBackAndOddOnesAreNull) {
  const std::vector<float> values = {0.1F,
                                     1e-45F,
                                     -3.4028235e38F,
                                     16777217.0F,
                                     std::numeric_limits<float>::quiet_NaN(),
                                     std::numeric_limits<float>::infinity()};
  const SpoolShape shape{.dtype = DType::kFloat32, .pooled = true, .d_model = 6};
  const auto bytes = reinterpret_cast<const std::byte*>(values.data());
  const std::string line = jsonl_line("a\"\xFF\n", shape, 1, bytes);
  EXPECT_EQ(line,
            "{\"id\": \"a\\\"\xEF\xBF\xBD\\n\", \"embedding\": "
            "[0.1, 1e-45, -3.4028235e+38, 16777216, null, null]}\n");
  const SpoolShape rows{.dtype = DType::kFloat32, .pooled = false, .d_model = 2};
  EXPECT_EQ(jsonl_line("x", rows, 2, bytes).substr(0, 43),
            R"({"id": "x", "embedding": [[0.1, 1e-45], [-3)");
}

// merge: one file per half of the records gives what one run over all gives.
class Merge : public testing::TestWithParam<std::tuple<std::string, Hdf5Layout, bool>> {};

TEST_P(Merge, JoinsShards) {
  const std::string name = std::get<0>(GetParam());
  const Hdf5Layout layout = std::get<1>(GetParam());
  const bool pooled = std::get<2>(GetParam());
  const TestFolder folder;
  const Settings settings{.layout = layout,
                          .dtype = name == "x.jsonl" ? DType::kFloat32 : DType::kFloat16,
                          .pooled = pooled};
  const auto write = [&](const std::string& prefix, int begin, int end) {
    const auto output =
        open_output(options_for(folder / (prefix + name), settings), Existing::kRefuse);
    for (int i = begin; i < end; ++i) {
      const auto ordinal = static_cast<uint64_t>(i);
      const auto x = static_cast<float>(i % 4);  // sequence of 4 is that of 0
      if (i == 2) {
        output->reject({.ordinal = ordinal, .line = 9, .id = "r2", .reason = "empty"});
      } else {
        output->append(
            record(ordinal, fmt::format("r{}", i), std::string(1 + i % 4, 'M'), {x, 1.5F}));
      }
    }
    output->finish();
  };
  write("all", 0, 6);
  write("a", 0, 3);
  write("b", 3, 6);
  const auto merged = folder / ("m" + name);
  const OutputCounts counts =
      merge_outputs({folder / ("a" + name), folder / ("b" + name)}, merged, Existing::kRefuse);
  EXPECT_EQ(counts.embedded, 5U);
  EXPECT_EQ(counts.rejected, 1U);
  if (name != "x.h5") {  // a merged .h5 may hold its datasets in another order
    EXPECT_TRUE(read_file(merged) == read_file(folder / ("all" + name)));
  }
  std::map<std::string, std::vector<std::byte>> values;
  const auto read = format_of(output_format_of(merged)).read;
  read(folder / ("all" + name),
       [&](const Frame& f, const auto& payload) { values[f.id] = payload; });
  EXPECT_EQ(values.size(), 5U);
  size_t found = 0;
  read(merged, [&](const Frame& f, const auto& payload) {
    EXPECT_TRUE(values.at(f.id) == payload) << f.id;
    ++found;
  });
  EXPECT_EQ(found, 5U);
  EXPECT_EQ(read_file(with_suffix(merged, ".rejects.jsonl")),
            read_file(with_suffix(folder / ("all" + name), ".rejects.jsonl")));
}

INSTANTIATE_TEST_SUITE_P(Formats, Merge,
                         testing::Values(std::tuple("x.h5", Hdf5Layout::kProtTrans, false),
                                         std::tuple("x.h5", Hdf5Layout::kBioEmbeddings, true),
                                         std::tuple("x.h5", Hdf5Layout::kTmbed, false),
                                         std::tuple("x.h5", Hdf5Layout::kFlat, false),
                                         std::tuple("x.npy", Hdf5Layout::kProtTrans, true),
                                         std::tuple("x.safetensors", Hdf5Layout::kProtTrans, false),
                                         std::tuple("x.jsonl", Hdf5Layout::kProtTrans, true),
                                         std::tuple("x.jsonl", Hdf5Layout::kProtTrans, false)));

std::string problem_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MergeRefuses, WhatDoesNotGoTogether) {
  const TestFolder folder;
  write_three(folder / "a.safetensors", {});
  write_three(folder / "b.safetensors", {});
  write_three(folder / "half.safetensors", {.dtype = DType::kFloat16});
  write_three(folder / "a.h5", {});
  const auto merge = [&](const std::string& first, const std::string& second) {
    return problem_of([&] {
      merge_outputs({folder / first, folder / second}, folder / "m.safetensors", Existing::kRefuse);
    });
  };
  EXPECT_THAT(merge("a.safetensors", "b.safetensors"),
              testing::AllOf(HasSubstr("id 'sp/P1.2' stands in"), HasSubstr("a.safetensors"),
                             HasSubstr("b.safetensors")));
  EXPECT_THAT(merge("a.safetensors", "half.safetensors"), HasSubstr("do not go together"));
  EXPECT_THAT(merge("a.safetensors", "a.h5"), HasSubstr("is not safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.safetensors.spool"));
}

TEST(MergeRejects, SecondOfTwoIdsThatMeet) {
  const TestFolder folder;
  for (const std::string id : {"a.1", "a/1"}) {
    const auto output = open_output(
        options_for(folder / (id == "a.1" ? "x.h5" : "y.h5"), {.pooled = true}), Existing::kRefuse);
    output->append(record(0, id, "M", {1, 2}));
    output->finish();
  }
  const OutputCounts counts =
      merge_outputs({folder / "x.h5", folder / "y.h5"}, folder / "m.h5", Existing::kRefuse);
  EXPECT_EQ(counts.embedded, 1U);
  EXPECT_EQ(counts.rejected, 1U);
  EXPECT_THAT(read_file(folder / "m.h5.rejects.jsonl"), HasSubstr("its key 'a_1'"));
}

}  // namespace
}  // namespace quintet
