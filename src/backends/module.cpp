#include "backends/module.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/split_list.h"
#include "quintet/backend.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEntryPoint = "quintet_backend_v1";
// Beyond these a module is taken to be broken, rather than asked on without end.
constexpr int32_t kMostDevices = 4096;
constexpr int32_t kMostParts = 1024;

// What a module wrote into a field of fixed size, whether or not it ended it.
template <size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  return {field, strnlen(field, kSize)};
}

// Room for a module's message, empty before each call.
class Message {
 public:
  char* data() { return text_.data(); }
  std::string text() const { return {text_.data(), strnlen(text_.data(), text_.size())}; }

 private:
  std::array<char, kQuintetMessageBytes> text_{};
};

// "toy:0/2[1]" of a module with the prefix "toy": what may stand in lists, maps and messages.
bool is_device_name(const std::string& name, const std::vector<std::string>& prefixes) {
  const std::string prefix = name.substr(0, name.find_first_of(":["));
  return std::ranges::find(prefixes, prefix) != prefixes.end() &&
         std::ranges::all_of(name, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  std::string_view("_:/[]-.,").find(c) != std::string_view::npos;
         });
}

// A module's entry points, with statuses turned into errors. Copied into the functions of its
// Backend; the library is never unloaded.
class Module {
 public:
  Module(fs::path file, const QuintetBackendV1& entry, std::vector<std::string> prefixes)
      : file_(std::move(file)), entry_(&entry), prefixes_(std::move(prefixes)) {}

  std::vector<DeviceInfo> list() const {
    int32_t count = 0;
    Message message;
    check(entry_->device_count(&count, message.data()), message,
          fmt::format("counting devices of {}", prefixes_.front()));
    if (count < 0 || count > kMostDevices) {
      broken("counts {} devices of {}, at most {} can be", count, prefixes_.front(), kMostDevices);
    }
    std::vector<DeviceInfo> devices;
    for (int32_t i = 0; i < count; ++i) {
      for (DeviceInfo& device : find(fmt::format("{}:{}", prefixes_.front(), i))) {
        devices.push_back(std::move(device));
      }
    }
    return devices;
  }

  std::vector<DeviceInfo> find(const std::string& name) const {
    std::vector<DeviceInfo> devices;
    for (int32_t i = 0; i < kMostParts; ++i) {
      QuintetDeviceFacts facts{};
      Message message;
      const QuintetStatus status = entry_->find_device(name.c_str(), i, &facts, message.data());
      if (status == kQuintetNoDevice && i > 0 && message.text().empty()) return devices;
      check(status, message, name);
      devices.push_back({.name = text_of(facts.name),
                         .description = text_of(facts.description),
                         .total_bytes = facts.total_bytes,
                         .free_bytes = std::min(facts.free_bytes, facts.total_bytes),
                         .n_cores = std::max(0, facts.n_units),
                         .memory_pool = text_of(facts.memory_pool),
                         .hardware = text_of(facts.hardware),
                         .asynchronous = facts.asynchronous != 0});
      if (!is_device_name(devices.back().name, prefixes_)) {
        broken("found {} but calls the device '{}'", name, devices.back().name);
      }
    }
    broken("finds more than {} devices for {}", kMostParts, name);
  }

  std::unique_ptr<Device> open(const std::string& name, const OpenOptions& options) const {
    const QuintetOpenOptions open_options{.threads = options.threads};
    void* device = nullptr;
    Message message;
    check(entry_->open_device(name.c_str(), &open_options, &device, message.data()), message, name);
    if (device == nullptr) broken("opened {} but gave no device", name);
    return std::unique_ptr<Device>(static_cast<Device*>(device));
  }

  size_t memory_in_use(const std::string& name) const {
    uint64_t total = 0;
    uint64_t free = 0;
    uint64_t used = 0;
    Message message;
    check(entry_->memory(name.c_str(), &total, &free, &used, message.data()), message, name);
    return used;
  }

 private:
  void check(QuintetStatus status, const Message& message, const std::string& what) const {
    if (status == kQuintetOk) return;
    const ErrorKind kind = status == kQuintetNoMemory ? ErrorKind::kMemory : ErrorKind::kDevice;
    std::string text = message.text();
    if (text.empty()) {
      text = status == kQuintetNoDevice
                 ? "no such device"
                 : fmt::format("status {} and no reason", static_cast<int32_t>(status));
    }
    if (text.find(what) == std::string::npos) text = fmt::format("{}: {}", what, text);
    fail(kind, "{} (backend module {})", text, file_.string());
  }

  template <typename... Args>
  [[noreturn]] void broken(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kDevice, "backend module {}: {}; the module is at fault, ask its makers",
         file_.string(), fmt::format(format, std::forward<Args>(args)...));
  }

  fs::path file_;
  const QuintetBackendV1* entry_;
  std::vector<std::string> prefixes_;
};

// dlopen() maps what the header promises: of a file that is shorter the program would die.
void check_whole(const fs::path& file) {
  std::error_code ignored;
  Elf64_Ehdr header{};
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(&header), sizeof(header))) return;  // dlopen() says why
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  const uint64_t tables = uint64_t{header.e_shnum} * header.e_shentsize;
  const uint64_t bytes = fs::file_size(file, ignored);
  if (header.e_shoff <= bytes && tables <= bytes - header.e_shoff) return;
  fail(ErrorKind::kDevice, "backend module {}: cut short: {} bytes of at least {}; copy it anew",
       file.string(), bytes, header.e_shoff + tables);
}

const QuintetBackendV1& entry_of(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    fail(ErrorKind::kDevice, "backend module {}: cannot be opened: no such file", file.string());
  }
  check_whole(file);
  // A bare name would be looked for in the system's folders instead.
  const std::string path = fs::absolute(file).string();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    fail(ErrorKind::kDevice, "backend module {}: cannot be opened: {}", file.string(),
         why == nullptr ? "no reason given" : why);
  }
  void* const symbol = dlsym(library, kEntryPoint);
  if (symbol == nullptr) {
    fail(ErrorKind::kDevice,
         "backend module {}: has no entry point {}; it is no module, or one for another version "
         "of quintet",
         file.string(), kEntryPoint);
  }
  const auto* const entry = reinterpret_cast<const QuintetBackendV1* (*)()>(symbol)();
  if (entry == nullptr) {
    fail(ErrorKind::kDevice, "backend module {}: {} returns null", file.string(), kEntryPoint);
  }
  if (entry->struct_bytes != sizeof(QuintetBackendV1) ||
      entry->device_version != kQuintetDeviceVersion) {
    fail(ErrorKind::kDevice,
         "backend module {}: made for another quintet (class Device of version {}, table of {} "
         "bytes; this one has version {}, {} bytes); compile it against this quintet's headers",
         file.string(), entry->device_version, entry->struct_bytes, kQuintetDeviceVersion,
         sizeof(QuintetBackendV1));
  }
  if (entry->names == nullptr || entry->device_count == nullptr || entry->find_device == nullptr ||
      entry->open_device == nullptr) {
    fail(ErrorKind::kDevice,
         "backend module {}: names, device_count, find_device or open_device is missing",
         file.string());
  }
  return *entry;
}

std::vector<std::string> prefixes_of(const fs::path& file, const QuintetBackendV1& entry) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
      return std::islower(static_cast<unsigned char>(c)) != 0 ||
             std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_';
    });
  };
  std::vector<std::string> prefixes = split_list(entry.names);
  if (prefixes.empty() || !std::ranges::all_of(prefixes, is_name)) {
    fail(ErrorKind::kDevice,
         "backend module {}: calls its devices '{}'; a name is made of a-z, 0-9 and _",
         file.string(), entry.names);
  }
  return prefixes;
}

}  // namespace

Backend load_module(const fs::path& file) {
  const QuintetBackendV1& entry = entry_of(file);
  Backend backend;
  backend.prefixes = prefixes_of(file, entry);
  const Module module(file, entry, backend.prefixes);
  backend.list = [module] { return module.list(); };
  backend.find = [module](const std::string& name) { return module.find(name); };
  backend.open = [module](const std::string& name, const OpenOptions& options) {
    return module.open(name, options);
  };
  if (entry.share_hardware != nullptr) {
    backend.check_disjoint = [&entry](const std::string& first, const std::string& second) {
      if (!entry.share_hardware(first.c_str(), second.c_str())) return;
      fail(ErrorKind::kUsage, "{} and {} are the same hardware; name one of them", first, second);
    };
  }
  if (entry.manual_seed != nullptr) {
    backend.manual_seed = [&entry](uint64_t seed) { entry.manual_seed(seed); };
  }
  if (entry.memory != nullptr) {
    backend.memory_in_use = [module](const std::string& name) {
      return module.memory_in_use(name);
    };
  }
  if (entry.empty_cache != nullptr) backend.empty_cache = [&entry] { entry.empty_cache(); };
  return backend;
}

std::vector<fs::path> module_folders() {
  std::vector<fs::path> folders;
  if (const char* const given = std::getenv("QUINTET_BACKEND_PATH"); given != nullptr) {
    std::istringstream text(given);
    for (std::string folder; std::getline(text, folder, ':');) {
      if (!folder.empty()) folders.emplace_back(folder);
    }
  }
  std::error_code ignored;  // without /proc there are no such folders
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path().parent_path() / "lib" / "quintet");
  }
  return folders;
}

std::vector<fs::path> module_files() {
  std::vector<fs::path> files;
  for (const fs::path& folder : module_folders()) {
    std::vector<fs::path> here;
    std::error_code ignored;  // a folder that is not there, or may not be read, holds no modules
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libquintet_") && name.ends_with(".so")) here.push_back(entry.path());
    }
    std::ranges::sort(here);
    for (fs::path& file : here) {
      const auto same_name = [&](const fs::path& other) {
        return other.filename() == file.filename();
      };
      if (std::ranges::none_of(files, same_name)) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace quintet
