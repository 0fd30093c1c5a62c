// Compiled kernels: what is kept on disk, and what becomes of damage.
#include "backends/opencl/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "backends/opencl/opencl_testing.h"

namespace quintet::opencl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<unsigned char> kBinary = {'a', 0, 255, 'b'};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "quintet-kernels-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  fs::path path;
};

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void rewrite(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

TEST(KernelCacheTest, KeepsByKey) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path / "new");
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", kBinary);
  EXPECT_EQ(cache.load("key"), kBinary);
  EXPECT_FALSE(cache.load("other key"));
  // Another key's file under this one's name, as a collision of hashes would have it.
  fs::copy_file(cache.file_of("key"), cache.file_of("other key"));
  EXPECT_FALSE(cache.load("other key"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path / "new"), {}), 2);
}

TEST(KernelCacheTest, EveryChangedOrMissingByteIsNoticed) {
  const TemporaryFolder folder;
  const KernelCache cache(folder.path);
  cache.store("key", kBinary);
  const fs::path file = cache.file_of("key");
  const std::string whole = contents(file);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    rewrite(file, damaged);
    EXPECT_FALSE(cache.load("key")) << "byte " << i;
    rewrite(file, whole.substr(0, i));
    EXPECT_FALSE(cache.load("key")) << i << " bytes";
  }
  rewrite(file, whole + "x");
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", kBinary);
  EXPECT_EQ(cache.load("key"), kBinary);
}

TEST(KernelCacheTest, AFolderThatCannotBeWrittenIsAsGoodAsNone) {
  const TemporaryFolder folder;
  rewrite(folder.path / "file", "in the way");
  for (const fs::path& place : {folder.path / "file" / "below", fs::path()}) {
    const KernelCache cache(place);
    cache.store("key", kBinary);
    EXPECT_FALSE(cache.load("key"));
  }
}

constexpr const char* kText = "__kernel void set(__global int* x) { x[get_global_id(0)] = VALUE; }";

class ProgramsTest : public OpenclTest {
 protected:
  // What the kernel writes when it is built by `programs`.
  int value_of(Programs& programs, const std::string& defines) {
    const cl::Program program = programs.build("a test", kText, defines);
    cl::Kernel kernel(program, "set");
    const cl::CommandQueue queue(context(), device().device);
    const cl::Buffer memory(context(), CL_MEM_READ_WRITE, sizeof(cl_int));
    kernel.setArg(0, memory);
    queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(1));
    cl_int value = 0;
    queue.enqueueReadBuffer(memory, CL_TRUE, 0, sizeof(value), &value);
    return value;
  }
  const cl::Context& context() {
    if (context_() == nullptr) context_ = cl::Context(device().device);
    return context_;
  }

 private:
  cl::Context context_;
};

TEST_F(ProgramsTest, ASecondStartCompilesNothing) {
  const TemporaryFolder folder;
  Programs first(device(), context(), folder.path);
  EXPECT_EQ(value_of(first, "-D VALUE=7"), 7);
  EXPECT_EQ(value_of(first, "-D VALUE=8"), 8);
  EXPECT_EQ(first.compiled(), 2);
  Programs second(device(), context(), folder.path);
  EXPECT_EQ(value_of(second, "-D VALUE=7"), 7);
  EXPECT_EQ(value_of(second, "-D VALUE=8"), 8);
  EXPECT_EQ(second.compiled(), 0);
}

TEST_F(ProgramsTest, DamagedFilesAreCompiledAnewAndReplaced) {
  const TemporaryFolder folder;
  Programs first(device(), context(), folder.path);
  EXPECT_EQ(value_of(first, "-D VALUE=7"), 7);
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    std::string text = contents(entry.path());
    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] + 1);
    rewrite(entry.path(), text);
  }
  for (const int compiled : {1, 0}) {
    Programs next(device(), context(), folder.path);
    EXPECT_EQ(value_of(next, "-D VALUE=7"), 7);
    EXPECT_EQ(next.compiled(), compiled);
  }
}

TEST_F(ProgramsTest, ErrorsOfTheCompilerAreShown) {
  Programs programs(device(), context(), {});
  try {
    programs.build("a broken text", "__kernel void f() { no_such_thing(); }", "-D X=1");
    FAIL() << "it compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_THAT(error.what(), HasSubstr(device().info.name));
    EXPECT_THAT(error.what(), HasSubstr("a broken text"));
    EXPECT_THAT(error.what(), HasSubstr("-D X=1"));
    EXPECT_THAT(error.what(), HasSubstr("no_such_thing"));
  }
}

}  // namespace
}  // namespace quintet::opencl
