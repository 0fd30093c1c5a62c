#include "weights/zip_reader.h"

#include "weights/test_files.h"

namespace quintet {
namespace {

using testing::HasSubstr;

struct Source {
  std::string name;
  std::string data;
  uint64_t method = 0;
  uint64_t flags = 0;
};

std::string n16(uint64_t value) { return little_endian(static_cast<uint16_t>(value)); }
std::string n32(uint64_t value) { return little_endian(static_cast<uint32_t>(value)); }
std::string n64(uint64_t value) { return little_endian(value); }

std::string local(const Source& source) {
  return "PK\3\4" + n16(45) + n16(source.flags) + n16(source.method) + n32(0) + n32(0) +
         n32(source.data.size()) + n32(source.data.size()) + n16(source.name.size()) + n16(5) +
         source.name + "pad.." + source.data;
}

// With `wide`, sizes and offset stand in the zip64 extra field, behind one of another kind.
std::string central(const Source& source, uint64_t offset, bool wide) {
  const uint64_t size = source.data.size();
  const std::string extra =
      wide ? n16(7) + n16(2) + "xx" + n16(1) + n16(24) + n64(size) + n64(size) + n64(offset) : "";
  return "PK\1\2" + n16(45) + n16(45) + n16(source.flags) + n16(source.method) + n32(0) + n32(0) +
         (wide ? std::string(8, '\xFF') : n32(size) + n32(size)) + n16(source.name.size()) +
         n16(extra.size()) + n16(3) + n16(0) + n16(0) + n32(0) +
         (wide ? std::string(4, '\xFF') : n32(offset)) + source.name + extra + "hey";
}

std::string finish(const std::string& body, const std::string& directory, size_t n, bool wide,
                   const std::string& comment = "") {
  std::string end;
  if (wide) {
    end = "PK\6\6" + n64(44) + n16(45) + n16(45) + n32(0) + n32(0) + n64(n) + n64(n) +
          n64(directory.size()) + n64(body.size());
    end += "PK\6\7" + n32(0) + n64(body.size() + directory.size()) + n32(1);
  }
  return body + directory + end + "PK\5\6" + n16(0) + n16(0) + (wide ? n16(0xFFFF) : n16(n)) +
         (wide ? n16(0xFFFF) : n16(n)) + (wide ? n32(0xFFFFFFFF) : n32(directory.size())) +
         (wide ? n32(0xFFFFFFFF) : n32(body.size())) + n16(comment.size()) + comment;
}

std::string zip_of(const std::vector<Source>& sources, bool wide = false,
                   const std::string& comment = "") {
  std::string body;
  std::string directory;
  for (const Source& source : sources) {
    directory += central(source, body.size(), wide);
    body += local(source);
  }
  return finish(body, directory, sources.size(), wide, comment);
}

std::string problem(const std::string& file) {
  return problem_of([&] { read_stored_zip(bytes_of(file), "x.zip"); });
}

TEST(ZipReader, ReadsStoredEntries) {
  for (const bool wide : {false, true}) {
    const std::string file = zip_of({{"a/one", "first"}, {"a/none", ""}, {"b", "x"}}, wide, "so");
    const std::vector<ZipEntry> entries = read_stored_zip(bytes_of(file), "x.zip");
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(entries[0].name, "a/one");
    EXPECT_EQ(entries[0].data.size(), 5U);
    EXPECT_EQ(std::memcmp(entries[0].data.data(), "first", 5), 0);
    EXPECT_TRUE(entries[1].data.empty());
    EXPECT_EQ(entries[2].name, "b");
  }
  EXPECT_EQ(problem(zip_of({})), "");
}

TEST(ZipReader, RefusesEntriesByName) {
  EXPECT_THAT(problem(zip_of({{"a", "x", 8}})), HasSubstr("'a' is compressed"));
  EXPECT_THAT(problem(zip_of({{"a", "x", 0, 1}})), HasSubstr("'a' is compressed or encrypted"));
  EXPECT_THAT(problem(zip_of({{"a", "x"}, {"a", "y"}})), HasSubstr("'a' stands twice"));
}

TEST(ZipReader, RefusesOverlaps) {
  // The second entry lies inside the first one's data.
  const Source inner{"b", "xx"};
  const Source outer{"a", local(inner)};
  const uint64_t begin = local(outer).size() - outer.data.size();
  const std::string directory = central(outer, 0, false) + central(inner, begin, false);
  EXPECT_THAT(problem(finish(local(outer), directory, 2, false)), HasSubstr("overlap"));
}

TEST(ZipReader, RefusesPlacesOutsideTheFile) {
  const Source source{"a", "xx"};
  const std::string body = local(source);
  EXPECT_THAT(problem(finish(body, central(source, 1000, false), 1, false)),
              HasSubstr("points to byte 1000"));
  EXPECT_THAT(problem(finish(body, central(source, ~uint64_t{0} - 1, true), 1, true)),
              HasSubstr("points to byte 18446744073709551614"));
  EXPECT_THAT(problem(finish(body, central(source, 1, false), 1, false)),
              HasSubstr("no zip entry 'a' at byte 1"));
  EXPECT_THAT(problem(finish(body, central(source, 0, false), 2, false)), HasSubstr("cut short"));
  EXPECT_THAT(problem(finish(body, central(source, 0, false) + "more", 1, false)),
              HasSubstr("4 bytes after the 1 entries"));
  EXPECT_THAT(problem(finish(body, "", ~uint64_t{0}, true)), HasSubstr("at most 1000000"));
}

TEST(ZipReader, RefusesWhatIsNoArchive) {
  EXPECT_THAT(problem(""), HasSubstr("no zip directory"));
  EXPECT_THAT(problem(std::string(100'000, 'P')), HasSubstr("no zip directory"));
  const std::string file = zip_of({{"a", "x"}});
  EXPECT_THAT(problem(file + "!"), HasSubstr("no zip directory"));
}

}  // namespace
}  // namespace quintet
