#include "conformance/layouts.h"

#include <gtest/gtest.h>

namespace quintet::conformance {
namespace {

TEST(Layouts, AllAreMapsThatTheApiTakes) {
  for (const std::vector<std::string>& devices :
       {std::vector<std::string>{"a:0", "a:1"},
        {"a:0", "a:1", "a:2"},
        {"a:0", "a:1", "a:2", "a:3", "a:4", "a:5", "a:6"}}) {
    for (const Layout& layout : layouts_over(devices, 6, 4)) {
      EXPECT_NO_THROW(assert_device_map(layout.maps.encoder, 6)) << layout.name;
      EXPECT_NO_THROW(assert_device_map(layout.maps.decoder, 4)) << layout.name;
    }
  }
}

TEST(Layouts, OneStackOnTwoDevices) {
  std::vector<std::string> texts;
  for (const Layout& layout : layouts_over({"a", "b"}, 0, 5)) {
    texts.push_back(layout.name + " " + maps_text(layout.maps));
  }
  EXPECT_EQ(texts,
            (std::vector<std::string>{
                R"(even {"a":[0,1,2],"b":[3,4]})", R"(reversed {"b":[0,1,2],"a":[3,4]})",
                R"(uneven {"a":[0,1,2,3],"b":[4]})", R"(one block each {"a":[0],"b":[1,2,3,4]})",
                R"(whole on the last device {"b":[0,1,2,3,4]})"}));
}

}  // namespace
}  // namespace quintet::conformance
