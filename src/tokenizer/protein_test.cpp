#include "tokenizer/protein.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tokenizer/testing.h"
#include "tokenizer/tokenizer_json.h"

namespace quintet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Protein : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> spaced_ = load_tokenizer(testing::fixture("prostt5_like"));
  std::unique_ptr<Tokenizer> bare_ = load_tokenizer(testing::fixture("ankh_like"));
  ProteinEncoder prott5_{*spaced_, {.preset = ProteinPreset::kProtT5}};
};

TEST_F(Protein, GivesTheIdsOfThePublishedRecipes) {
  EXPECT_EQ(prott5_.encode("PRTEINO").tokens, spaced_->encode("P R T E I N X", true));
  const ProteinEncoder aa(*spaced_, {.preset = ProteinPreset::kProstT5Aa});
  const EncodedProtein a = aa.encode("PRTEIN");
  EXPECT_EQ(a.tokens, spaced_->encode("<AA2fold> P R T E I N", true));
  EXPECT_EQ(a.begin, 1);
  EXPECT_EQ(a.end, 7);
  const ProteinEncoder fold(*spaced_, {.preset = ProteinPreset::kProstT53di});
  const EncodedProtein f = fold.encode("strct");
  EXPECT_EQ(f.tokens, spaced_->encode("<fold2AA> s t r c t", true));
  EXPECT_EQ(f.end - f.begin, 5);
  EXPECT_EQ(f.changed, 0);
  EXPECT_EQ(fold.encode("STRCT").tokens, f.tokens);
  EXPECT_EQ(fold.encode("STRCT").changed, 5);
  const ProteinEncoder ankh(*bare_, {.preset = ProteinPreset::kAnkh});
  EXPECT_EQ(ankh.encode("MKV").tokens, bare_->encode("MKV", true));
}

TEST_F(Protein, DropsGapsAndOneTrailingStop) {
  const EncodedProtein protein = prott5_.encode(" M-K.\tV*\r\n");
  EXPECT_EQ(protein.tokens, prott5_.encode("MKV").tokens);
  EXPECT_EQ(protein.end - protein.begin, 3);
  EXPECT_EQ(protein.dropped, 7);
  EXPECT_TRUE(protein.stop_cut);
  EXPECT_EQ(protein.rejected, "");
  EXPECT_EQ(prott5_.encode("MKV**").rejected, "'*' at residue 4");
}

TEST_F(Protein, AStopInsideIsRejectedOrX) {
  EXPECT_EQ(prott5_.encode("M*KV").rejected, "'*' at residue 2");
  const ProteinEncoder lenient(*spaced_, {.preset = ProteinPreset::kProtT5, .stop_as_x = true});
  EXPECT_EQ(lenient.encode("M*KV").tokens, prott5_.encode("MXKV").tokens);
  EXPECT_EQ(lenient.encode("M*KV").changed, 1);
}

TEST_F(Protein, LowerCaseAndRareResiduesAreChangedAndCounted) {
  const EncodedProtein protein = prott5_.encode("mkvU");
  EXPECT_EQ(protein.tokens, prott5_.encode("MKVX").tokens);
  EXPECT_EQ(protein.changed, 4);
  EXPECT_EQ(prott5_.encode("XXXX").end, 4);
  const ProteinEncoder keeps(*spaced_, {.preset = ProteinPreset::kProtT5, .rare_residues = ""});
  EXPECT_EQ(keeps.encode("MU").tokens, spaced_->encode("M U", true));
}

TEST_F(Protein, WhatTheVocabularyLacksIsNeverUnkWithoutAWord) {
  EXPECT_EQ(prott5_.encode("MJ").rejected, "'J' at residue 2 is not in the vocabulary");
  EXPECT_EQ(prott5_.encode("M\xC3\xA9").rejected,
            "byte 0xC3 at residue 2 is not in the vocabulary");
  EXPECT_EQ(prott5_.encode("").rejected, "no residues");
  EXPECT_EQ(prott5_.encode("*").rejected, "no residues");
  EXPECT_TRUE(prott5_.encode("-").empty);
  EXPECT_FALSE(prott5_.encode("*MK").empty);  // rejected, but for what is in it
  EXPECT_EQ(prott5_.encode("A").rejected, "");
}

TEST_F(Protein, DetectsThePresetByTheVocabulary) {
  EXPECT_EQ(detect_preset(*spaced_), ProteinPreset::kProtT5);
  EXPECT_EQ(detect_preset(*bare_), ProteinPreset::kAnkh);
  EXPECT_EQ(detect_preset(*load_tokenizer(testing::fixture("byt5"))), ProteinPreset::kNone);
  EXPECT_EQ(detect_preset(*load_tokenizer(testing::fixture("spiece_only"))), ProteinPreset::kNone);
}

TEST_F(Protein, RefusesWhatTheVocabularyCannotDo) {
  const auto text = load_tokenizer(testing::fixture("spiece_only"));
  EXPECT_THROW(ProteinEncoder(*text, {.preset = ProteinPreset::kProtT5}), Error);
  EXPECT_THROW(ProteinEncoder(*bare_, {.preset = ProteinPreset::kProstT5Aa}), Error);
  EXPECT_THROW(ProteinEncoder(*spaced_, {.preset = ProteinPreset::kAuto}), Error);
  EXPECT_THROW(ProteinEncoder(*spaced_, {.preset = ProteinPreset::kProtT5, .rare_residues = "*"}),
               Error);
  try {
    ProteinEncoder(*spaced_, {.preset = ProteinPreset::kProtT5, .prefix = "[NLU]"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("[NLU]"));
  }
}

TEST_F(Protein, TakesAPrefixOfTheVocabulary) {
  const ProteinEncoder encoder(*bare_, {.preset = ProteinPreset::kAnkh, .prefix = "<extra_id_0>"});
  const EncodedProtein protein = encoder.encode("MK");
  EXPECT_EQ(protein.tokens, bare_->encode("<extra_id_0>MK", true));
  EXPECT_EQ(protein.begin, 1);
}

TEST_F(Protein, WorksWithAWordLevelModel) {
  const auto words = parse_tokenizer_json(R"({"pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "A": 1, "C": 2,
    "D": 3, "E": 4, "F": 5, "G": 6, "H": 7, "I": 8, "K": 9, "L": 10, "M": 11, "N": 12, "P": 13,
    "Q": 14, "R": 15, "S": 16, "T": 17, "V": 18, "W": 19, "Y": 20, "X": 21}}})",
                                          "tokenizer.json");
  EXPECT_EQ(detect_preset(*words), ProteinPreset::kProtT5);
  const ProteinEncoder encoder(*words, {.preset = ProteinPreset::kProtT5});
  EXPECT_THAT(encoder.encode("MKU").tokens, ElementsAre(11, 9, 21));
}

}  // namespace
}  // namespace quintet
