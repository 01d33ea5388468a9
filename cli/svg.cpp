#include "cli/svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "model/base/format.h"

namespace foretrain {
namespace {

constexpr int kLeft = 190;
constexpr int kRight = 30;
constexpr int kTop = 74;
constexpr int kTrackHeight = 26;
constexpr int kGap = 6;
constexpr int kRankGap = 12;

// Okabe and Ito's palette.
std::string_view colour_of(const Span& span, const std::string& name) {
  switch (span.category) {
    case SpanCategory::compute:
      return name.starts_with("B") ? "#0072B2" : name.starts_with("R") ? "#CC79A7" : "#56B4E9";
    case SpanCategory::communication:
      return "#E69F00";
    case SpanCategory::pipeline_transfer:
      return "#F0E442";
    case SpanCategory::optimizer:
      return "#009E73";
    case SpanCategory::memory_copy:
      return "#999999";
    case SpanCategory::host:
      return "#BBBBBB";
    case SpanCategory::step:
      return "#FFFFFF";
  }
  return "#000000";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
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

std::string text_at(double x, double y, std::string_view text, std::string_view anchor = "start",
                    int size = 12, std::string_view fill = "#222222") {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x, y,
      size, anchor, fill, escaped(text));
}

// A step of 1, 2 or 5 times a power of ten that gives about `ticks` of them.
double tick_step(double range, int ticks) {
  const double raw = range / ticks;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

constexpr std::string_view kStreams[] = {"compute", "data parallel", "send", "receive", "copies"};

}  // namespace

std::string timeline_svg(const Timeline& timeline, const std::string& title, int width, int most_ranks) {
  std::map<std::int32_t, std::set<std::uint8_t>> tracks;
  std::int64_t end = 1;
  for (const Span& span : timeline.spans) {
    if (span.stream == kHostTrack || span.category == SpanCategory::step) continue;
    tracks[span.rank].insert(span.stream);
    end = std::max(end, span.end_ps);
  }
  const std::size_t all_ranks = tracks.size();
  while (tracks.size() > static_cast<std::size_t>(most_ranks)) tracks.erase(std::prev(tracks.end()));
  std::map<std::pair<std::int32_t, std::uint8_t>, int> place;
  std::string body;
  int y = kTop;
  for (const auto& [rank, streams] : tracks) {
    for (const std::uint8_t stream : streams) {
      place[{rank, stream}] = y;
      const std::string name =
          stream < std::size(kStreams) ? std::string(kStreams[stream]) : fmt::format("stream {}", stream);
      body += text_at(kLeft - 10, y + kTrackHeight - 9, fmt::format("rank {}  {}", rank, name), "end");
      body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#F3F3F3\"/>\n", kLeft, y,
                          width - kLeft - kRight, kTrackHeight);
      y += kTrackHeight + kGap;
    }
    y += kRankGap;
  }
  const int bottom = y;
  const double scale = (width - kLeft - kRight) / static_cast<double>(end);
  // Spans narrower than this join their neighbour of the same colour, so that the file stays small.
  constexpr double kMerge = 0.6;
  struct Box {
    double from, to;
    std::string_view colour;
    std::string label;
    int count;
    std::int32_t micro_batch;
  };
  std::map<std::pair<std::int32_t, std::uint8_t>, std::vector<Box>> boxes;
  // With several micro-batches, what a stage does to one without pause is one box: the classic pipeline
  // diagram.
  const bool by_micro_batch = std::any_of(timeline.spans.begin(), timeline.spans.end(),
                                          [](const Span& span) { return span.micro_batch > 0; });
  for (const Span& span : timeline.spans) {
    if (span.op >= 0 || !place.contains({span.rank, span.stream})) continue;
    const std::string& name = timeline.names[static_cast<std::size_t>(span.name)];
    Box box{kLeft + static_cast<double>(span.start_ps) * scale,
            kLeft + static_cast<double>(span.end_ps) * scale,
            colour_of(span, name),
            name,
            1,
            -1};
    if (by_micro_batch && span.category == SpanCategory::compute && span.micro_batch >= 0 && !name.empty()) {
      box.micro_batch = span.micro_batch;
      box.label = fmt::format("{}{}", name.front(), span.micro_batch);
    }
    std::vector<Box>& track = boxes[{span.rank, span.stream}];
    const bool near =
        !track.empty() && track.back().colour == box.colour && box.from - track.back().to < kMerge;
    const bool same_micro_batch = near && box.micro_batch >= 0 && track.back().micro_batch == box.micro_batch;
    const bool thin = near && box.micro_batch < 0 &&
                      (box.to - box.from < 3 * kMerge || track.back().to - track.back().from < 3 * kMerge);
    if (same_micro_batch || thin) {
      track.back().to = std::max(track.back().to, box.to);
      if (thin) ++track.back().count;
    } else {
      track.push_back(std::move(box));
    }
  }
  for (const auto& [key, track] : boxes) {
    const int top = place.at(key);
    for (const Box& box : track) {
      const double w = std::max(0.3, box.to - box.from);
      body += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"#FFFFFF\" "
          "stroke-width=\"0.4\"><title>{}</title></rect>\n",
          box.from, top, w, kTrackHeight, box.colour,
          escaped(box.count > 1 ? fmt::format("{} instructions", box.count) : box.label));
      constexpr double kCharacter = 6.2;
      if (box.count == 1 && w > kCharacter * static_cast<double>(box.label.size()) + 4) {
        const bool dark = box.colour == "#0072B2" || box.colour == "#009E73";
        body += text_at((box.from + box.to) / 2, top + kTrackHeight - 9, box.label, "middle", 11,
                        dark ? "#FFFFFF" : "#111111");
      }
    }
  }
  const double end_ms = static_cast<double>(end) * 1e-9;
  const double step = tick_step(end_ms, 10);
  for (int i = 0; i * step <= end_ms * 1.0001; ++i) {
    const double x = kLeft + i * step * 1e9 * scale;
    body += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#CCCCCC\" "
        "stroke-width=\"0.7\"/>\n",
        x, kTop - 6, bottom - kRankGap);
    body += text_at(x, bottom + 8, fmt::format("{:g}", i * step), "middle");
  }
  body += text_at(width - kRight, bottom + 26, "ms", "end");
  const std::string more =
      all_ranks > tracks.size() ? fmt::format(", first {} of {} ranks", tracks.size(), all_ranks) : "";
  std::string head = fmt::format("{} ({}, {:.2f} ms per step{})", title,
                                 timeline.source.empty() ? "simulated" : timeline.source, end_ms, more);
  const std::pair<std::string_view, std::string_view> legend[] = {
      {"forward", "#56B4E9"},       {"backward", "#0072B2"},          {"recompute", "#CC79A7"},
      {"communication", "#E69F00"}, {"pipeline transfer", "#F0E442"}, {"optimizer", "#009E73"},
      {"idle", "#F3F3F3"}};
  std::string keys;
  double x = kLeft;
  for (const auto& [name, colour] : legend) {
    keys += fmt::format(
        "<rect x=\"{:.0f}\" y=\"40\" width=\"13\" height=\"13\" fill=\"{}\" stroke=\"#888888\" "
        "stroke-width=\"0.5\"/>\n",
        x, colour);
    keys += text_at(x + 18, 51, name);
    x += 34 + 7.0 * static_cast<double>(name.size());
  }
  const int height = bottom + 36;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
             "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect width=\"{0}\" height=\"{1}\" "
             "fill=\"#FFFFFF\"/>\n",
             width, height) +
         text_at(kLeft, 26, head, "start", 15) + keys + body + "</svg>\n";
}

}  // namespace foretrain
