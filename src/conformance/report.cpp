#include "conformance/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "conformance/subject.h"
#include "conformance/suite.h"
#include "core/human.h"

namespace quintet::conformance {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kOutcomes[] = {"pass", "fail", "skip"};

std::string painted(const std::string& text, Outcome outcome, bool colour) {
  if (!colour) return text;
  constexpr const char* kColours[] = {"32", "1;31", "33"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kColours[static_cast<size_t>(outcome)], text);
}

std::string cell_text(Outcome outcome) {
  return outcome == Outcome::kFail ? "FAIL" : kOutcomes[static_cast<size_t>(outcome)];
}

const CellResult* find(const Report& report, std::string_view model_class, std::string_view test) {
  for (const CellResult& result : report.results) {
    if (result.model_class == model_class && result.test == test) return &result;
  }
  return nullptr;
}

bool any(const Report& report, const auto& holds) {
  return std::ranges::any_of(report.results, holds);
}

std::string table(const Report& report, bool colour) {
  std::vector<const ModelClass*> classes;
  for (const ModelClass& c : model_classes()) {
    if (any(report, [&](const auto& r) { return r.model_class == c.name; })) classes.push_back(&c);
  }
  size_t width = 0;
  for (const TestCase& test : test_cases()) width = std::max(width, test.name.size());
  // Two lines of heads: the family above its first class, the rest of the names below.
  std::string families(width, ' ');
  std::string heads(width, ' ');
  std::vector<size_t> widths;
  for (size_t i = 0; i < classes.size(); ++i) {
    const bool first = i == 0 || classes[i]->family != classes[i - 1]->family;
    const std::string_view family = first ? family_name(classes[i]->family) : "";
    const std::string gap(first ? 2 : 1, ' ');
    const size_t column = std::max({classes[i]->short_name.size(), family.size(), size_t{4}});
    widths.push_back(gap.size() + column);
    families += fmt::format("{}{:<{}}", gap, family, column);
    heads += fmt::format("{}{:<{}}", gap, classes[i]->short_name, column);
  }
  families.erase(families.find_last_not_of(' ') + 1);
  heads.erase(heads.find_last_not_of(' ') + 1);
  std::string text = families + "\n" + heads + "\n";
  for (const TestCase& test : test_cases()) {
    if (!any(report, [&](const auto& r) { return r.test == test.name; })) continue;
    std::string row = fmt::format("{:<{}}", test.name, width);
    size_t pending = 0;  // blanks that end the cell before
    for (size_t i = 0; i < classes.size(); ++i) {
      const bool first = i == 0 || classes[i]->family != classes[i - 1]->family;
      const CellResult* result = find(report, classes[i]->name, test.name);
      const std::string cell = result == nullptr ? "" : cell_text(result->outcome);
      row += std::string(pending + (first ? 2 : 1), ' ');
      row += result == nullptr ? "" : painted(cell, result->outcome, colour);
      pending = widths[i] - (first ? 2 : 1) - cell.size();
    }
    text += row + "\n";
  }
  return text;
}

std::string findings(const Report& report, bool colour) {
  std::string text;
  for (const CellResult& result : report.results) {
    if (result.outcome != Outcome::kFail) continue;
    text += fmt::format("\n{} {} {} ({:.2f} s)\n", painted("FAIL", Outcome::kFail, colour),
                        result.model_class, result.test, result.seconds);
    for (const Finding& finding : result.findings) {
      text += fmt::format("  {}\n    expected {}\n    found    {}\n", finding.what,
                          finding.expected, finding.found);
    }
  }
  return text;
}

// A line for each reason of each test, with the classes it holds for.
std::string skips(const Report& report) {
  std::string text;
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  // "test: reason", classes
  for (const CellResult& result : report.results) {
    if (result.outcome != Outcome::kSkip) continue;
    const std::string line = result.test + ": " + result.reason;
    auto found = std::ranges::find(lines, line, &decltype(lines)::value_type::first);
    if (found == lines.end()) found = lines.insert(found, {line, {}});
    found->second.push_back(result.model_class);
  }
  for (const auto& entry : lines) {
    const std::vector<std::string>& classes = entry.second;
    const bool all = classes.size() > 1 && std::ranges::all_of(report.results, [&](const auto& r) {
                       return std::ranges::find(classes, r.model_class) != classes.end();
                     });
    text += fmt::format("skip {} ({})\n", entry.first,
                        all ? "all classes" : fmt::format("{}", fmt::join(classes, ", ")));
  }
  return text.empty() ? text : "\n" + text;
}

std::string differences(const Report& report) {
  double largest = -1;
  const CellResult* where = nullptr;
  for (const CellResult& result : report.results) {
    if (result.relative_difference.value_or(-1) <= largest) continue;
    largest = *result.relative_difference;
    where = &result;
  }
  if (where == nullptr) return "";
  return fmt::format("largest relative difference between kinds {:.2g} ({} {}), tolerance {:.2g}\n",
                     largest, where->model_class, where->test, report.spec.tolerance);
}

}  // namespace

size_t Report::count(Outcome outcome) const {
  return static_cast<size_t>(std::ranges::count(results, outcome, &CellResult::outcome));
}

std::string report_text(const Report& report, bool colour) {
  std::string text;
  for (const DeviceInfo& device : report.devices) {
    text += fmt::format("{}: {}, {}\n", device.name, device.description,
                        human_bytes(static_cast<double>(device.total_bytes)));
  }
  text += "\n" + table(report, colour) + findings(report, colour) + skips(report) + "\n" +
          differences(report);
  const size_t failed = report.count(Outcome::kFail);
  const std::string sum =
      fmt::format("{} passed, {} failed, {} skipped", report.count(Outcome::kPass), failed,
                  report.count(Outcome::kSkip));
  text += painted(sum, failed == 0 ? Outcome::kPass : Outcome::kFail, colour);
  return text + fmt::format(" in {:.1f} s\n", report.seconds);
}

ordered_json report_json(const Report& report) {
  ordered_json devices = ordered_json::array();
  for (const DeviceInfo& device : report.devices) devices.push_back(to_json(device));
  ordered_json results = ordered_json::array();
  for (const CellResult& result : report.results) results.push_back(to_json(result));
  return {{"quintet", report.version},
          {"spec",
           {{"file", report.spec.file.string()},
            {"module", report.spec.module.string()},
            {"manual_seed", report.spec.hooks.manual_seed},
            {"empty_cache", report.spec.hooks.empty_cache},
            {"device_count", report.spec.hooks.device_count},
            {"tolerance", report.spec.tolerance}}},
          {"devices", std::move(devices)},
          {"passed", report.count(Outcome::kPass)},
          {"failed", report.count(Outcome::kFail)},
          {"skipped", report.count(Outcome::kSkip)},
          {"seconds", report.seconds},
          {"results", std::move(results)}};
}

ordered_json to_json(const CellResult& result) {
  ordered_json value = {{"class", result.model_class},
                        {"test", result.test},
                        {"outcome", kOutcomes[static_cast<size_t>(result.outcome)]},
                        {"seconds", result.seconds}};
  if (result.outcome == Outcome::kSkip) value["reason"] = result.reason;
  if (result.relative_difference) value["relative_difference"] = *result.relative_difference;
  for (const Finding& finding : result.findings) {
    value["findings"].push_back(
        {{"what", finding.what}, {"expected", finding.expected}, {"found", finding.found}});
  }
  return value;
}

CellResult cell_result_from(const json& value) {
  CellResult result{.model_class = value.at("class"), .test = value.at("test")};
  const std::string outcome = value.at("outcome");
  result.outcome = static_cast<Outcome>(std::ranges::find(kOutcomes, outcome) - kOutcomes);
  result.seconds = value.at("seconds");
  result.reason = value.value("reason", "");
  const auto difference = value.find("relative_difference");
  // JSON has no infinity: it is written as null.
  if (difference != value.end()) {
    result.relative_difference = difference->is_null() ? INFINITY : difference->get<double>();
  }
  for (const json& finding : value.value("findings", json::array())) {
    result.findings.push_back({finding.at("what"), finding.at("expected"), finding.at("found")});
  }
  return result;
}

ordered_json to_json(const DeviceInfo& device) {
  return {{"name", device.name},         {"description", device.description},
          {"hardware", device.hardware}, {"memory_pool", device.memory_pool},
          {"bytes", device.total_bytes}, {"free_bytes", device.free_bytes},
          {"units", device.n_cores}};
}

DeviceInfo device_info_from(const json& value) {
  DeviceInfo device;
  device.name = value.at("name");
  device.description = value.at("description");
  device.hardware = value.at("hardware");
  device.memory_pool = value.at("memory_pool");
  device.total_bytes = value.at("bytes");
  device.free_bytes = value.at("free_bytes");
  device.n_cores = value.at("units");
  return device;
}

}  // namespace quintet::conformance
