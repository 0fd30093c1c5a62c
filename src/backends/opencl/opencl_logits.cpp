// Choosing tokens: only what was chosen leaves the device.
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <string>
#include <vector>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "backends/opencl/row_lanes.h"

namespace quintet::opencl {
namespace {

constexpr const char* kSource = "logits";
// Columns whose sum is taken at once. The same on all devices: it decides the order of the sums.
constexpr int64_t kChunk = 8192;

static_assert(sizeof(LogitEdit) == 16, "the kernel reads four words");

std::string defines(const RowLanes& lanes) {
  return lanes.defines() + " -D CHUNK=" + std::to_string(kChunk) +
         " -D EDIT_SET=" + std::to_string(static_cast<int>(LogitEdit::Kind::kSet)) +
         " -D EDIT_FILL_ROW=" + std::to_string(static_cast<int>(LogitEdit::Kind::kFillRow));
}

cl_int count(int64_t n) { return static_cast<cl_int>(n); }

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

struct Choice {
  uint32_t column = 0;
  float value = 0;
};

// Rises as x falls; equal for equal numbers, NaN last.
uint32_t falling_key(float x) {
  if (std::isnan(x)) return 0xFFFFFFFFU;
  const auto bits = std::bit_cast<uint32_t>(x + 0.0F);  // no negative zero
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000U);
}

// The largest first, of equal ones the lower column: digit by digit from the lowest, which keeps
// equals in order. `choices` are in the order of their columns.
std::vector<Choice> sorted(std::vector<Choice> choices) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  std::vector<Choice> other(choices.size());
  for (int shift = 0; shift < 32; shift += kDigitBits) {
    const auto digit = [&](const Choice& choice) {
      return falling_key(choice.value) >> shift & (kDigits - 1);
    };
    std::array<size_t, kDigits + 1> begin{};
    for (const Choice& choice : choices) ++begin[digit(choice) + 1];
    for (size_t i = 0; i < kDigits; ++i) begin[i + 1] += begin[i];
    for (const Choice& choice : choices) other[begin[digit(choice)]++] = choice;
    choices.swap(other);
  }
  return choices;
}

bool better(const Choice& a, const Choice& b) {
  const uint32_t key_a = falling_key(a.value);
  const uint32_t key_b = falling_key(b.value);
  return key_a != key_b ? key_a < key_b : a.column < b.column;
}

// The k best of each row out of what the device has chosen, `candidates` for each row.
void keep_best(std::vector<Choice>& chosen, size_t candidates, size_t k, std::span<int32_t> ids,
               std::span<float> values) {
  for (size_t row = 0; row * candidates < chosen.size(); ++row) {
    const auto begin = chosen.begin() + static_cast<std::ptrdiff_t>(row * candidates);
    std::partial_sort(begin, begin + static_cast<std::ptrdiff_t>(k),
                      begin + static_cast<std::ptrdiff_t>(candidates), better);
    for (size_t i = 0; i < k; ++i) {
      ids[row * k + i] = static_cast<int32_t>(begin[static_cast<std::ptrdiff_t>(i)].column);
      values[row * k + i] = begin[static_cast<std::ptrdiff_t>(i)].value;
    }
  }
}

std::vector<Choice> read_choices(Session& session, const cl::Buffer& from, size_t n) {
  std::vector<Choice> choices(n);
  session.read(from, 0, n * sizeof(Choice), choices.data());
  return choices;
}

// Each work-item has a part of a row, long against k.
void best_of_parts(Session& session, const RowLanes& lanes, const Tensor& x, int64_t k,
                   std::span<int32_t> ids, std::span<float> values) {
  constexpr int64_t kShortestPart = 2048;
  const int64_t wanted = (4 * int64_t{session.limits().units} + x.rows() - 1) / x.rows();
  const int64_t most = x.cols() / std::max(kShortestPart, 4 * k);
  int64_t parts = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, most));
  const int64_t length = (x.cols() + parts - 1) / parts;
  parts = (x.cols() + length - 1) / length;
  const auto per_row = static_cast<size_t>(parts * k);
  const auto n = static_cast<size_t>(x.rows()) * per_row;
  const cl::Buffer chosen = session.scratch(n * sizeof(Choice));
  session.launch(session.kernel(kSource, "best_of_parts", defines(lanes)),
                 {static_cast<size_t>(x.rows() * parts), 1, 1}, {1, 1, 1}, MatrixArg(x),
                 count(x.rows()), count(x.cols()), count(parts), count(length), count(k), chosen);
  std::vector<Choice> choices = read_choices(session, chosen, n);
  keep_best(choices, per_row, static_cast<size_t>(k), ids, values);
}

// Each group has a row.
void select_best(Session& session, const RowLanes& lanes, const Tensor& x, int64_t k,
                 std::span<int32_t> ids, std::span<float> values) {
  const size_t group = std::min<size_t>(256, session.limits().work_group);
  const auto rows = static_cast<size_t>(x.rows());
  const cl::Buffer chosen = session.scratch(values.size() * sizeof(Choice));
  session.launch(session.kernel(kSource, "select_best", defines(lanes)), {group * rows, 1, 1},
                 {group, 1, 1}, MatrixArg(x), count(x.cols()), count(k), chosen);
  std::vector<Choice> choices = read_choices(session, chosen, values.size());
  keep_best(choices, static_cast<size_t>(k), static_cast<size_t>(k), ids, values);
}

// Most of a row is wanted: it is moved as it is, row by row.
void sort_rows(Device& device, const Tensor& x, int64_t k, std::span<int32_t> ids,
               std::span<float> values) {
  std::vector<float> row(static_cast<size_t>(x.cols()));
  std::vector<Choice> choices(row.size());
  for (int64_t i = 0; i < x.rows(); ++i) {
    device.download(x.rows(i, 1), row.data());
    for (size_t column = 0; column < row.size(); ++column) {
      choices[column] = {static_cast<uint32_t>(column), row[column]};
    }
    choices = sorted(std::move(choices));
    for (int64_t rank = 0; rank < k; ++rank) {
      const auto at = static_cast<size_t>(i * k + rank);
      ids[at] = static_cast<int32_t>(choices[static_cast<size_t>(rank)].column);
      values[at] = choices[static_cast<size_t>(rank)].value;
    }
  }
}

}  // namespace

void OpenclDevice::log_softmax(const Tensor& x) {
  if (x.empty()) return;
  const RowLanes lanes(session_->limits());
  const int64_t chunks = (x.cols() + kChunk - 1) / kChunk;
  const int64_t items = x.rows() * chunks;
  const cl::Buffer part = session_->scratch(2 * static_cast<size_t>(items) * sizeof(float));
  for (const char* name : {"largest_of_chunks", "sums_of_chunks", "subtract_log_sums"}) {
    cl::Kernel& kernel = session_->kernel(kSource, name, defines(lanes));
    session_->launch(kernel, lanes.global(items), lanes.local(), MatrixArg(x), count(x.rows()),
                     count(x.cols()), count(chunks), part);
  }
}

void OpenclDevice::edit(std::span<const LogitEdit> edits, const Tensor& x) {
  if (edits.empty() || x.empty()) return;
  std::vector<LogitEdit> by_row(edits.begin(), edits.end());
  std::ranges::stable_sort(by_row, {}, &LogitEdit::row);
  std::vector<int32_t> begin;  // of each row that has edits, and their number
  for (size_t i = 0; i < by_row.size(); ++i) {
    if (i == 0 || by_row[i].row != by_row[i - 1].row) begin.push_back(static_cast<int32_t>(i));
  }
  const size_t rows = begin.size();
  begin.push_back(static_cast<int32_t>(by_row.size()));
  const RowLanes lanes(session_->limits());
  const size_t group = lanes.in_vector() ? 1 : std::min<size_t>(64, session_->limits().work_group);
  session_->launch(session_->kernel(kSource, "edit", defines(lanes)), {group * rows, 1, 1},
                   {group, 1, 1}, session_->stage(std::span<const int32_t>(begin)),
                   session_->stage(std::span<const LogitEdit>(by_row)), MatrixArg(x),
                   count(x.cols()));
}

void OpenclDevice::top_k(const Tensor& x, int64_t k, std::span<int32_t> ids,
                         std::span<float> values) {
  assert(k <= x.cols() && static_cast<int64_t>(ids.size()) == x.rows() * k);
  assert(values.size() == ids.size());
  constexpr int64_t kFew = 256;  // a work-item keeps so many in order
  if (ids.empty()) return;
  const RowLanes lanes(session_->limits());
  if (2 * k >= x.cols() || (lanes.in_vector() && k > kFew)) {
    sort_rows(*this, x, k, ids, values);
  } else if (lanes.in_vector()) {
    best_of_parts(*session_, lanes, x, k, ids, values);
  } else {
    select_best(*session_, lanes, x, k, ids, values);
  }
}

void OpenclDevice::pick(const Tensor& x, std::span<const int32_t> rows,
                        std::span<const int32_t> columns, std::span<float> values) {
  assert(rows.size() == values.size() && columns.size() == values.size());
  if (values.empty()) return;
  const RowLanes lanes(session_->limits());
  const cl::Buffer picked = session_->scratch(values.size_bytes());
  const size_t group = lanes.in_vector() ? 1 : std::min<size_t>(64, session_->limits().work_group);
  session_->launch(session_->kernel(kSource, "pick", defines(lanes)),
                   {round_up(values.size(), group), 1, 1}, {group, 1, 1}, MatrixArg(x),
                   session_->stage(rows), session_->stage(columns), count(std::ssize(values)),
                   picked);
  session_->read(picked, 0, values.size_bytes(), values.data());
}

}  // namespace quintet::opencl
