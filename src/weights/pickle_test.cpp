#include "weights/pickle.h"

#include <array>

#include "weights/test_files.h"

namespace quintet {
namespace {

using Kind = PickleValue::Kind;
using testing::HasSubstr;
using namespace std::string_literals;

constexpr std::array<std::string_view, 1> kAllowed{"torch.FloatStorage"};

// Texts of the result are views of `bytes`.
Pickle read(const std::string& bytes) { return read_pickle(bytes_of(bytes), "x", kAllowed); }

std::string problem(const std::string& bytes) {
  return problem_of([&] { read(bytes); });
}

TEST(Pickle, ReadsConstants) {
  // pickle.dumps((None, True, -5, 70000, 2**40, -2**40, "é", 1.5), protocol=2), and the rest after.
  const std::string bytes =
      "\x80\x02(N\x88J\xfb\xff\xff\xffJ\x70\x11\x01\x00\x8a\x06\x00\x00\x00\x00\x00\x01"
      "\x8a\x06\x00\x00\x00\x00\x00\xffX\x02\x00\x00\x00\xc3\xa9G?"
      "\xf8\x00\x00\x00\x00\x00\x00tq\x00."
      "rest"s;
  const Pickle pickle = read(bytes);
  EXPECT_EQ(pickle.size, bytes.size() - 4);
  const PickleValue& root = pickle.at(pickle.root);
  ASSERT_EQ(root.kind, Kind::kTuple);
  ASSERT_EQ(root.items.size(), 8U);
  EXPECT_EQ(pickle.at(root.items[0]).kind, Kind::kNone);
  EXPECT_EQ(pickle.at(root.items[1]).number, 1);
  EXPECT_EQ(pickle.at(root.items[2]).number, -5);
  EXPECT_EQ(pickle.at(root.items[3]).number, 70000);
  EXPECT_EQ(pickle.at(root.items[4]).number, int64_t{1} << 40);
  EXPECT_EQ(pickle.at(root.items[5]).number, -(int64_t{1} << 40));
  EXPECT_EQ(pickle.at(root.items[6]).text, "é");
  EXPECT_EQ(pickle.at(root.items[7]).kind, Kind::kFloat);
}

TEST(Pickle, SharesWhatIsMemorised) {
  // a = [1]; pickle.dumps({"a": a, "b": a}, protocol=2)
  const std::string bytes =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02K\x01"
      "aX\x01\x00\x00\x00"
      "bq\x03h\x02u."s;
  const Pickle pickle = read(bytes);
  const PickleValue& root = pickle.at(pickle.root);
  ASSERT_EQ(root.items.size(), 4U);
  EXPECT_EQ(root.items[1], root.items[3]);
  EXPECT_EQ(pickle.at(root.items[1]).items.size(), 1U);
}

TEST(Pickle, ReadsAnOrderedDictOfPython2) {
  // OrderedDict([["a", 1]]), as Python 2 reduces it
  const std::string bytes =
      "\x80\x02"
      "ccollections\nOrderedDict\n]]U\x01"
      "aaK\x01"
      "aa\x85R."s;
  const Pickle pickle = read(bytes);
  const PickleValue& root = pickle.at(pickle.root);
  ASSERT_EQ(root.kind, Kind::kDict);
  ASSERT_EQ(root.items.size(), 2U);
  EXPECT_EQ(pickle.at(root.items[0]).text, "a");
  EXPECT_EQ(pickle.at(root.items[1]).number, 1);
}

TEST(Pickle, NotesCallsWithoutMakingThem) {
  const std::string bytes =
      "\x80\x02"
      "ctorch\nFloatStorage\n)R."s;
  const Pickle pickle = read(bytes);
  const PickleValue& root = pickle.at(pickle.root);
  ASSERT_EQ(root.kind, Kind::kCall);
  EXPECT_EQ(pickle.at(root.items[0]).text, "torch.FloatStorage");
}

TEST(Pickle, RefusesNamesAndOpcodes) {
  EXPECT_THAT(problem("\x80\x02"
                      "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s),
              HasSubstr("asks for os.system: refused"));
  EXPECT_THAT(problem("\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93)R."s),
              HasSubstr("asks for os.system: refused"));
  EXPECT_THAT(problem("(ios\nsystem\n."s), HasSubstr("INST: refused"));
  EXPECT_THAT(problem("\x80\x02"
                      "ctorch\nFloatStorage\n)\x81."s),
              HasSubstr("NEWOBJ: refused"));
  EXPECT_THAT(problem("\x80\x02\x82\x01."s), HasSubstr("EXT: refused"));
  EXPECT_THAT(problem("\x80\x02K\x01)R."s), HasSubstr("calls what is no function"));
  EXPECT_THAT(problem("\x80\x02"
                      "ctorch\nFloatStorage\n}b."s),
              HasSubstr("sets attributes"));
  EXPECT_THAT(problem("\x80\x02"
                      "cos\x1b[2J\nsystem\n."s),
              HasSubstr("os?[2J.system"));
}

TEST(Pickle, RefusesDamage) {
  EXPECT_THAT(problem(""), HasSubstr("cut short"));
  EXPECT_THAT(problem("."), HasSubstr("where there is none"));
  EXPECT_THAT(problem("\x80\x06N."), HasSubstr("protocol newer than 5"));
  EXPECT_THAT(problem("X\xff\xff\xff\xffz"), HasSubstr("wants 4294967295 bytes"));
  EXPECT_THAT(problem("t."), HasSubstr("never begun"));
  EXPECT_THAT(problem("N(\x85."), HasSubstr("more values than there are"));
  EXPECT_THAT(problem("h\x01."), HasSubstr("recalls value 1"));
  EXPECT_THAT(problem("}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(problem("NNa."), HasSubstr("no list or dict"));
  EXPECT_THAT(problem("c" + std::string(1000, 'a')), HasSubstr("longer than 256"));
  EXPECT_THAT(problem("]NR."), HasSubstr("calls what is no function"));
}

TEST(Pickle, BoundsItsWork) {
  EXPECT_THAT(problem(std::string(3'000'000, 'N')), HasSubstr("more than 2000000 opcodes"));
  // A tuple in a tuple in a tuple, 1.9 million deep: read, and freed without recursion.
  EXPECT_EQ(problem("N" + std::string(1'900'000, '\x85') + "."), "");
  // One list of 100000 pairs, handed to OrderedDict a hundred times.
  std::string bytes = "]q\x01(";
  for (int i = 0; i < 100'000; ++i) bytes += "NN\x86";
  bytes += "e";
  for (int i = 0; i < 100; ++i) bytes += "ccollections\nOrderedDict\nh\x01\x85R";
  EXPECT_THAT(problem(bytes + "."), HasSubstr("more than 2000000 pairs"));
}

}  // namespace
}  // namespace quintet
