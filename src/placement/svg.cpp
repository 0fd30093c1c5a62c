#include "placement/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/human.h"
#include "placement/block_ranges.h"
#include "placement/text_table.h"

namespace quintet {
namespace {

// Geometry in pixels of a page 960 wide.
constexpr double kWidth = 960;
constexpr double kMargin = 32;
constexpr double kLabelWidth = 150;              // device names, left
constexpr double kLeft = kMargin + kLabelWidth;  // where drawings begin
constexpr double kRight = kWidth - kMargin;
constexpr double kSpan = kRight - kLeft;
constexpr double kCardHeight = 64;
constexpr double kRowHeight = 34;

constexpr const char* kStyle =
    "text{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:12px;fill:#24292f}"
    ".title{font-size:19px;font-weight:bold}.head{font-size:14px;font-weight:bold}"
    ".soft{fill:#57606a}.bad{fill:#b3261e}.small{font-size:10.5px}"
    ".inside{fill:#ffffff;font-size:11px}.mid{text-anchor:middle}.end{text-anchor:end}";

// Colours of the stages in turn, of one lightness and told apart by most colour-blind readers.
constexpr const char* kColours[] = {"#2f6db5", "#c46210", "#3a8651", "#8250b8",
                                    "#b03a5b", "#1f8a8c", "#7a6a1e", "#5a6673"};

const char* colour(size_t stage) { return kColours[stage % std::size(kColours)]; }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// At most four lines of about the page's width, broken at blanks.
std::vector<std::string> lines_of(const std::string& text) {
  constexpr size_t kColumns = 145;
  std::vector<std::string> lines(1);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (lines.back().size() + end - begin > kColumns && !lines.back().empty()) {
      if (lines.size() == 4) {
        lines.back() += " ...";
        break;
      }
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back().append(text, begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

class Drawing {
 public:
  void text(double x, double y, const std::string& style, const std::string& content) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style,
                         escaped(content));
  }
  void box(double x, double y, double width, double height, const std::string& look,
           double radius = 2) {
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" rx=\"{}\" {}/>\n", x, y,
        std::max(0.0, width), height, radius, look);
  }
  void line(double x1, double y1, double x2, double y2, const char* stroke) {
    body_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, stroke);
  }
  std::string page(double height) const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\">\n<style>{2}</style>\n"
        "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
        kWidth, height, kStyle, body_);
  }

 private:
  std::string body_;
};

std::string fill(const std::string& colour, double opacity = 1) {
  return fmt::format("fill=\"{}\" fill-opacity=\"{}\"", colour, opacity);
}

// 0.0123 -> "12.3 ms"
std::string human_seconds(double seconds) {
  if (seconds == 0) return "0";
  if (seconds >= 1) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

// The blocks as a row of cells, coloured by device.
double draw_blocks(Drawing& drawing, const Plan& plan, double y) {
  const double cell = kSpan / static_cast<double>(std::max<int64_t>(1, plan.n_layers));
  const double gap = cell > 6 ? 2 : 0;
  drawing.text(kMargin, y + 20, "head", "Blocks");
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    for (int64_t block = stage.first_block; block < stage.last_block; ++block) {
      const double x = kLeft + cell * static_cast<double>(block);
      drawing.box(x, y, cell - gap, 30, fill(colour(s)), 3);
      if (cell >= 18) {
        drawing.text(x + (cell - gap) / 2, y + 19, "inside mid", fmt::format("{}", block));
      }
    }
  }
  return y + 30;
}

// One device: name, blocks, and its memory as a bar of weights, activations, program and free.
double draw_device(Drawing& drawing, const StagePlan& stage, size_t index, double scale, double y) {
  drawing.box(kMargin, y, 5, kCardHeight - 16, fill(colour(index)));
  drawing.text(kMargin + 14, y + 15, "head", shortened(stage.device, 14));
  drawing.text(kMargin + 14, y + 32, "soft",
               "blocks " + block_range(stage.first_block, stage.last_block));
  const auto width = [&](int64_t bytes) { return static_cast<double>(bytes) * scale; };
  drawing.box(kLeft, y, width(stage.memory_bytes), 20, fill("#eaeef2"));
  double x = kLeft;
  const std::pair<int64_t, double> parts[] = {
      {stage.weight_bytes, 1.0}, {stage.activation_bytes, 0.55}, {stage.fixed_bytes, 0.25}};
  for (const auto& [bytes, opacity] : parts) {
    drawing.box(x, y, width(bytes), 20, fill(colour(index), opacity), 0);
    x += width(bytes);
  }
  if (!stage.fits) {
    const double end = kLeft + width(stage.memory_bytes);
    drawing.box(end, y + 20, x - end, 4, fill("#b3261e"), 0);
    drawing.line(end, y - 3, end, y + 24, "#b3261e");
  }
  std::string note =
      fmt::format("weights {}  \u00b7  activations {}", human_bytes(stage.weight_bytes),
                  human_bytes(stage.activation_bytes));
  if (stage.fixed_bytes > 0)
    note += fmt::format("  \u00b7  program {}", human_bytes(stage.fixed_bytes));
  drawing.text(kLeft, y + 38, "soft small", note);
  drawing.text(kRight, y + 38, stage.fits ? "end small" : "bad end small",
               fmt::format("{} of {}{}", human_bytes(stage.needed_bytes()),
                           human_bytes(stage.memory_bytes), stage.fits ? "" : ": does not fit"));
  return y + kCardHeight;
}

double draw_devices(Drawing& drawing, const Plan& plan, double y) {
  drawing.text(kMargin, y, "head", "Memory");
  drawing.text(kLeft, y, "soft small",
               "dark: weights, lighter: activations and program, grey: free");
  y += 18;
  int64_t most = 1;
  for (const StagePlan& stage : plan.stages) {
    most = std::max({most, stage.memory_bytes, stage.needed_bytes()});
  }
  const double scale = kSpan / static_cast<double>(most);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    y = draw_device(drawing, plan.stages[s], s, scale, y);
  }
  for (const std::string& device : plan.unused) {
    drawing.text(kMargin + 14, y + 12, "soft", shortened(device, 18) + ": left without blocks");
    y += 26;
  }
  return y;
}

// When each micro-batch is computed on each stage: [stage][batch], in seconds.
std::vector<std::vector<double>> starts(const Plan& plan, const std::vector<double>& seconds,
                                        size_t n_batches) {
  std::vector<std::vector<double>> start(plan.stages.size(), std::vector<double>(n_batches, 0));
  for (size_t s = 0; s < start.size(); ++s) {
    for (size_t b = 0; b < n_batches; ++b) {
      const double free = b == 0 ? 0 : start[s][b - 1] + seconds[s];
      const double ready = s == 0 ? 0 : start[s - 1][b] + seconds[s - 1];
      start[s][b] = std::max(free, ready);
    }
  }
  return start;
}

// A round step that divides `total` into four to nine parts.
double tick_step(double total) {
  const double power = std::pow(10, std::floor(std::log10(total / 4)));
  for (const double factor : {5.0, 2.0}) {
    if (total / (power * factor) >= 4) return power * factor;
  }
  return power;
}

void draw_axis(Drawing& drawing, double total, double top, double bottom) {
  const double step = tick_step(total);
  for (int tick = 0; tick * step <= total * (1 + 1e-9); ++tick) {
    const double x = kLeft + kSpan * (tick * step / total);
    drawing.line(x, top - 4, x, bottom, "#d8dee4");
    drawing.text(x, bottom + 14, "soft small mid", human_seconds(tick * step));
  }
}

double draw_timeline(Drawing& drawing, const Plan& plan, int n_batches, double y) {
  std::vector<double> seconds;
  for (const StagePlan& stage : plan.stages) {
    seconds.push_back(stage.seconds_per_token * std::max(1.0, plan.tokens_per_batch));
  }
  const auto n = static_cast<size_t>(std::clamp(n_batches, 1, 200));
  const auto start = starts(plan, seconds, n);
  const double total = start.back().back() + seconds.back();
  drawing.text(kMargin, y, "head", "Timeline");
  drawing.text(kLeft, y, "soft small",
               fmt::format("the first {} micro-batches of {:.0f} tokens, each with its number", n,
                           plan.tokens_per_batch));
  y += 16;
  const double bottom = y + kRowHeight * static_cast<double>(plan.stages.size());
  draw_axis(drawing, total, y, bottom);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const double row = y + kRowHeight * static_cast<double>(s);
    drawing.text(kMargin + 14, row + 18, "", shortened(plan.stages[s].device, 10));
    drawing.text(kLeft - 10, row + 18, "soft small end",
                 fmt::format("busy {:.0f} %", 100 * plan.stages[s].utilisation));
    for (size_t b = 0; b < n; ++b) {
      const double x = kLeft + kSpan * start[s][b] / total;
      const double width = kSpan * seconds[s] / total;
      drawing.box(x, row + 3, width - std::min(1.0, width / 4), kRowHeight - 8,
                  fill(colour(s), b % 2 == 0 ? 1 : 0.8));
      if (width >= 16) {
        drawing.text(x + width / 2, row + 20, "inside mid", fmt::format("{}", b));
      }
    }
  }
  return bottom + 22;
}

std::string summary(const Plan& plan, const PlanContext& context) {
  std::string text = fmt::format("{}: {} blocks in {} on {} device{}, {:.{}f} tokens/s expected",
                                 context.stack, plan.n_layers, context.dtype, plan.stages.size(),
                                 plan.stages.size() == 1 ? "" : "s", plan.tokens_per_second,
                                 plan.tokens_per_second < 100 ? 1 : 0);
  if (plan.n_batches > 0) {
    text += fmt::format(", {} micro-batches (start and end cost {:.1f} %)", plan.n_batches,
                        100 * (1 - plan.fill));
  }
  return text;
}

}  // namespace

std::string plan_svg(const Plan& plan, const SvgOptions& options, const PlanContext& context) {
  Drawing drawing;
  double y = kMargin + 14;
  drawing.text(kMargin, y, "title", options.title.empty() ? "quintet plan" : options.title);
  drawing.text(kMargin, y += 24, "soft", summary(plan, context));
  if (!plan.fits) {
    for (const std::string& line : lines_of("Does not fit: " + plan.problem + ". " + plan.advice)) {
      drawing.text(kMargin, y += 18, "bad", line);
    }
  }
  if (!plan.stages.empty()) {
    y = draw_blocks(drawing, plan, y + 24);
    y = draw_devices(drawing, plan, y + 38);
    y = draw_timeline(drawing, plan, options.n_batches, y + 18);
  }
  return drawing.page(y + 18);
}

}  // namespace quintet
