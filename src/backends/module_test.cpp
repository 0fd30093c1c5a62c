// The module loader against modules made for it (test_module.cpp), in QUINTET_TEST_MODULES.
#include "backends/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.h"
#include "quintet/backend.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFolder = QUINTET_TEST_MODULES;

std::string message(const std::function<void()>& work, ErrorKind kind = ErrorKind::kDevice) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Module, WhatIsWrongWithAFileIsSaidWithItsName) {
  const auto refused = [](const std::string& file) {
    return message([&] { load_backend(kFolder + "/" + file); });
  };
  EXPECT_THAT(refused("there_is_none.so"),
              AllOf(HasSubstr("there_is_none.so"), HasSubstr("cannot be opened")));
  EXPECT_THAT(refused("libtest_module_0.so"),
              AllOf(HasSubstr("libtest_module_0.so"), HasSubstr("quintet_backend_v1")));
  EXPECT_THAT(refused("libtest_module_1.so"),
              AllOf(HasSubstr("libtest_module_1.so"), HasSubstr("null")));
  EXPECT_THAT(refused("libtest_module_2.so"),
              AllOf(HasSubstr("libtest_module_2.so"), HasSubstr("another quintet")));
  EXPECT_THAT(refused("libtest_module_3.so"),
              AllOf(HasSubstr("libtest_module_3.so"), HasSubstr("open_device")));
  EXPECT_THAT(refused("libtest_module_4.so"),
              AllOf(HasSubstr("libtest_module_4.so"), HasSubstr("'Toy:1'")));
  EXPECT_THAT(refused("libtest_module_5.so"),
              AllOf(HasSubstr("libtest_module_5.so"), HasSubstr("built-in")));
  const std::string text = testing::TempDir() + "not_a_library.so";
  std::ofstream(text) << "text";
  EXPECT_THAT(message([&] { load_backend(text); }), HasSubstr("not_a_library.so"));
  const std::string cut = testing::TempDir() + "cut_short.so";
  std::filesystem::copy_file(kFolder + "/libquintet_toy.so", cut,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  EXPECT_THAT(message([&] { load_backend(cut); }),
              AllOf(HasSubstr("cut_short.so"), HasSubstr("cut short")));
  EXPECT_THAT(message([] { load_backend(""); }), HasSubstr("cannot be opened"));
  EXPECT_THAT(message([] { load_backend(kFolder); }), HasSubstr("cannot be opened"));
}

TEST(Module, DevicesThatCannotBeCountedAreANote) {
  ASSERT_EQ(load_backend(kFolder + "/libtest_module_7.so"), "many");
  EXPECT_THAT(message([] { list_devices_of("many"); }),
              AllOf(HasSubstr("libtest_module_7.so"), HasSubstr("1073741824")));
  std::vector<std::string> notes;
  EXPECT_FALSE(list_devices(&notes).empty());
  EXPECT_THAT(notes, Contains(HasSubstr("libtest_module_7.so")));
}

class ToyModule : public testing::Test {
 protected:
  static void SetUpTestSuite() { EXPECT_EQ(load_backend(kFolder + "/libquintet_toy.so"), "toy"); }
};

TEST_F(ToyModule, ItsDevicesAreThere) {
  const DeviceInfo info = find_device("toy:0");
  EXPECT_EQ(info.name, "toy:0");
  EXPECT_EQ(info.memory_pool, "host");
  EXPECT_EQ(info.total_bytes, 1000U);
  EXPECT_EQ(info.n_cores, 3);
  EXPECT_EQ(find_device("plaything:0").name, "plaything:0");
  std::vector<std::string> names;
  for (const DeviceInfo& device : list_devices()) names.push_back(device.name);
  EXPECT_THAT(names, Contains("toy:0"));
  EXPECT_EQ(list_devices_of("toy").size(), 1U);
  EXPECT_EQ(device_memory_in_use("toy:0"), 42U);
}

TEST_F(ToyModule, ANameMayStandForSeveralDevices) {
  EXPECT_THAT(canonical_device_names("toy:0/2"), ElementsAre("toy:0/2[0]", "toy:0/2[1]"));
  EXPECT_THAT(devices_like("toy:0/2[1]"), ElementsAre("toy:0/2[0]", "toy:0/2[1]"));
  EXPECT_THAT(devices_like("toy:0"), ElementsAre("toy:0"));
  EXPECT_THAT(message([] { find_device("toy:0/2"); }, ErrorKind::kUsage),
              AllOf(HasSubstr("toy:0/2[0]"), HasSubstr("toy:0/2[1]")));
}

TEST_F(ToyModule, DevicesThatShareHardwareAreRefusedTogether) {
  EXPECT_THAT(message([] { parse_device_list("toy:0/2"); }, ErrorKind::kUsage),
              AllOf(HasSubstr("toy:0/2[0]"), HasSubstr("same hardware")));
}

TEST_F(ToyModule, WhatItSaysIsPassedOn) {
  EXPECT_THAT(message([] { find_device("toy:9"); }), HasSubstr("there is toy:0"));
  EXPECT_THAT(message([] { find_device("toy:silent"); }),
              AllOf(HasSubstr("libquintet_toy.so"), HasSubstr("status 3")));
  EXPECT_THAT(message([] { open_device("toy:0"); }, ErrorKind::kMemory),
              AllOf(HasSubstr("toy:0: the cable is unplugged"), HasSubstr("libquintet_toy.so")));
}

TEST_F(ToyModule, WhatCannotBeIsAnErrorThatNamesIt) {
  for (const char* name : {"toy:nameless", "toy:alien", "toy:odd", "toy:endless", "toy:1"}) {
    EXPECT_THAT(message([&] { open_device(name); }),
                AllOf(HasSubstr(name), HasSubstr("libquintet_toy.so")));
  }
  EXPECT_THAT(message([&] { open_device("toy:2"); }),
              HasSubstr("toy:2: " + std::string(kQuintetMessageBytes, 'x') + " ("));
}

TEST_F(ToyModule, AnotherModuleMayNotHaveItsNames) {
  EXPECT_THAT(message([] { load_backend(kFolder + "/libtest_module_8.so"); }),
              AllOf(HasSubstr("libtest_module_8.so"), HasSubstr("'plaything'")));
  EXPECT_EQ(load_backend(kFolder + "/libquintet_toy.so"), "toy");  // once more does no harm
}

TEST_F(ToyModule, TextThatDoesNotEndStaysInItsField) {
  const DeviceInfo info = find_device("toy:long");
  EXPECT_EQ(info.name, "toy:" + std::string(60, 'x'));
  EXPECT_EQ(info.description, std::string(256, 'x'));
}

TEST(ModuleFiles, AreFoundByNameInTheFoldersGiven) {
  ASSERT_EQ(setenv("QUINTET_BACKEND_PATH", ("/there/is/none::" + kFolder).c_str(), 1), 0);
  std::vector<std::string> names;
  for (const auto& file : module_files()) {
    if (file.parent_path() == kFolder) names.push_back(file.filename().string());
  }
  unsetenv("QUINTET_BACKEND_PATH");
  EXPECT_THAT(names, ElementsAre("libquintet_toy.so"));
}

TEST(ModuleFiles, AModuleThatCannotBeLoadedIsTheReasonForAMissingDevice) {
  const std::filesystem::path folder = testing::TempDir() + "modules of another version";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kFolder + "/libtest_module_2.so", folder / "libquintet_old.so",
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(setenv("QUINTET_BACKEND_PATH", folder.c_str(), 1), 0);
  std::vector<std::string> notes;
  EXPECT_FALSE(list_devices(&notes).empty());
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("libquintet_old.so"), HasSubstr("another quintet"))));
  EXPECT_THAT(message([] { open_device("old:0"); }),
              AllOf(HasSubstr("old:0: no such device"), HasSubstr("cpu:0"),
                    HasSubstr("another quintet"), HasSubstr(folder.string())));
  unsetenv("QUINTET_BACKEND_PATH");
}

}  // namespace
}  // namespace quintet
