// Row by row ops and the choice of tokens on every device named in QUINTET_TEST_DEVICES against the
// CPU backend: the same bits.
#include "backends/row_bits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/contract.h"

namespace quintet {
namespace {

using RowBits = Contract;

TEST_P(RowBits, AreThoseOfTheCpu) {
  const auto cpu = open_device("cpu:0");
  for (const row_bits::Case& test : row_bits::cases()) {
    SCOPED_TRACE(test.name);
    test.run(*device_, *cpu);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, RowBits, testing::ValuesIn(test_devices()), name_of_device);

}  // namespace
}  // namespace quintet
