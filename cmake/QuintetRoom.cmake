# quintet_room(<name> SOURCES <files> [TESTS <files>] [DEPENDS <rooms>] [LIBRARIES <targets>])
#
# One folder of src/ as the object library quintet_<name>; its tests, where there are any, as the
# program quintet_<name>_test. DEPENDS are the rooms whose headers this one includes, LIBRARIES what
# is found outside.
set_property(GLOBAL PROPERTY QUINTET_ROOMS "")
function(quintet_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;TESTS;DEPENDS;LIBRARIES" ${ARGN})
  list(TRANSFORM ROOM_DEPENDS PREPEND quintet_)
  add_library(quintet_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(quintet_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(quintet_${name} PUBLIC ${ROOM_DEPENDS} ${ROOM_LIBRARIES} fmt::fmt Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY QUINTET_ROOMS quintet_${name})
  if(QUINTET_TESTS AND ROOM_TESTS)
    add_executable(quintet_${name}_test ${ROOM_TESTS})
    target_compile_options(quintet_${name}_test PRIVATE ${QUINTET_TEST_OPTIONS})
    target_link_libraries(quintet_${name}_test PRIVATE quintet_${name} GTest::gtest_main GTest::gmock)
    target_compile_definitions(quintet_${name}_test PRIVATE
      QUINTET_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures" QUINTET_SOURCE="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(quintet_${name}_test TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
