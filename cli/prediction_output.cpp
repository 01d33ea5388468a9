#include "cli/prediction_output.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "cli/output.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

std::vector<std::pair<std::string, Time>> parts_of(const RankBreakdown& b) {
  return {{"compute", b.compute},
          {"exposed communication", b.exposed_communication},
          {"bubble", b.bubble},
          {"waiting for the host", b.host}};
}

JsonValue to_json(const RankBreakdown& b) {
  return json_object({{"compute", json(b.compute.ms())},
                      {"exposed_communication", json(b.exposed_communication.ms())},
                      {"bubble", json(b.bubble.ms())},
                      {"host", json(b.host.ms())},
                      {"overlapped_communication", json(b.overlapped_communication.ms())}});
}

}  // namespace

Expected<Prediction> predict(const Scenario& s, const PredictOptions& options) {
  return predict(s.model, s.training, s.parallel, s.cluster, s.profile, options);
}

std::string warnings_text(const std::vector<const Prediction*>& predictions) {
  std::vector<std::string> seen;
  std::string text;
  for (const Prediction* prediction : predictions) {
    for (const std::string& warning : prediction->warnings) {
      if (std::find(seen.begin(), seen.end(), warning) != seen.end()) continue;
      seen.push_back(warning);
      text += fmt::format("warning: {}\n", warning);
    }
  }
  return text;
}

JsonValue to_json(const Interval& interval) {
  return json_object(
      {{"value", json(interval.value)}, {"low", json(interval.low)}, {"high", json(interval.high)}});
}

JsonValue to_json(const Scenario& scenario, const Prediction& p) {
  JsonValue memory = JsonValue::make_object();
  const MemoryReport& fullest = p.memory[static_cast<std::size_t>(p.fullest_class)];
  for (std::size_t c = 0; c < fullest.at_peak.size(); ++c) {
    memory.set(std::string(name_of(static_cast<MemoryClass>(c))), json(fullest.at_peak[c].gib()));
  }
  JsonValue stages = JsonValue::make_array();
  for (std::size_t i = 0; i < p.breakdown.size(); ++i) {
    JsonValue stage = to_json(p.breakdown[i]);
    stage.set("stage", json(static_cast<std::int64_t>(p.breakdown[i].stage)));
    if (i < p.memory.size()) {
      stage.set("peak_mem_gib", json(p.memory[i].peak_allocated.gib()));
      stage.set("reserved_mem_gib", json(p.memory[i].peak_reserved.gib()));
    }
    stages.append(std::move(stage));
  }
  JsonValue warnings = JsonValue::make_array();
  for (const std::string& warning : p.warnings) warnings.append(json(warning));
  return json_object({{"name", json(scenario.name)},
                      {"plan", json(describe(scenario.parallel))},
                      {"gpus", json(static_cast<std::int64_t>(p.gpus))},
                      {"step_time_ms", to_json(p.step_time_ms)},
                      {"tokens_per_s", json(p.tokens_per_s.value)},
                      {"tokens_per_s_interval", to_json(p.tokens_per_s)},
                      {"mfu", json(p.mfu.value)},
                      {"mfu_with_attention", json(p.mfu_with_attention.value)},
                      {"hfu", json(p.hfu.value)},
                      {"peak_flops", json(p.peak_name)},
                      {"peak_mem_gib", json(p.peak_memory_gib.value)},
                      {"reserved_mem_gib", json(p.reserved_memory_gib.value)},
                      {"gpu_mem_gib", json(p.gpu_memory.gib())},
                      {"fits", json(p.fits)},
                      {"memory_gib", std::move(memory)},
                      {"bubble_fraction", json(p.bubble_fraction)},
                      {"exposed_communication_ms", json(p.exposed_communication.ms())},
                      {"breakdown_ms", to_json(p.mean_breakdown)},
                      {"stages", std::move(stages)},
                      {"warnings", std::move(warnings)},
                      {"events", json(static_cast<std::int64_t>(p.events))},
                      {"event_hash", json(fmt::format("{:016x}", p.event_hash))}});
}

std::string with_interval(const Interval& i, const std::string& unit, int decimals) {
  const auto number = [&](double value) { return format_fixed(value, decimals); };
  if (!(i.high > i.low)) return fmt::format("{} {}", number(i.value), unit);
  return fmt::format("{} {} ({} to {})", number(i.value), unit, number(i.low), number(i.high));
}

std::string summary_text(const Scenario& scenario, const Prediction& p) {
  const TrainingSpec& t = scenario.training;
  std::string text = fmt::format("{}\n", bold(scenario.name));
  text += fmt::format("  {} ({} parameters), {}, {} x {} tokens x {} micro-batch{}, on {} of {} {}\n\n",
                      scenario.model.name, format_count(static_cast<double>(parameter_count(scenario.model))),
                      name_of(t.precision), t.micro_batch_size, t.sequence_length, t.micro_batches,
                      t.micro_batches == 1 ? "" : "es", describe(scenario.parallel), p.gpus,
                      scenario.cluster.gpu.full_name);
  const auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<26}{}\n", name, value);
  };
  line("step time", with_interval(p.step_time_ms, "ms", 2));
  line("throughput", fmt::format("{} tokens/s for the whole job, {} per GPU",
                                 format_whole(std::llround(p.tokens_per_s.value)),
                                 format_whole(std::llround(p.tokens_per_s.value / p.gpus))));
  line("MFU (6 N tokens)", fmt::format("{} of {}", format_percent(p.mfu.value), p.peak_name));
  line("MFU with attention", format_percent(p.mfu_with_attention.value));
  line("HFU", format_percent(p.hfu.value));
  line("peak memory allocated",
       fmt::format("{:.2f} GiB of {:.2f} GiB per GPU", p.peak_memory_gib.value, p.gpu_memory.gib()));
  line("peak memory reserved",
       fmt::format("{:.2f} GiB{}", p.reserved_memory_gib.value, p.fits ? "" : "  DOES NOT FIT"));
  line("bubble", format_percent(p.bubble_fraction));
  line("exposed communication", format_ms(p.exposed_communication));
  for (const std::string& warning : p.warnings) text += fmt::format("  warning: {}\n", warning);
  return text;
}

std::string breakdown_text(const Prediction& p) {
  TextTable table({"<where the time goes", "ms", "share"});
  const double total = p.mean_breakdown.total().ms();
  for (const auto& [name, time] : parts_of(p.mean_breakdown)) {
    table.row({name, format_fixed(time.ms(), 2), format_percent(total > 0 ? time.ms() / total : 0)});
  }
  table.row({"(communication hidden behind compute)",
             format_fixed(p.mean_breakdown.overlapped_communication.ms(), 2), ""});
  return table.to_text();
}

std::string memory_text(const Prediction& p) {
  const MemoryReport& m = p.memory[static_cast<std::size_t>(p.fullest_class)];
  TextTable table({"<memory of the fullest rank", "at the peak (GiB)", "own peak (GiB)"});
  Bytes sum;
  for (std::size_t c = 0; c < m.at_peak.size(); ++c) {
    sum += m.at_peak[c];
    table.row({std::string(name_of(static_cast<MemoryClass>(c))), format_fixed(m.at_peak[c].gib(), 3),
               format_fixed(m.peak_of_class[c].gib(), 3)});
  }
  table.rule();
  table.row({"allocated", format_fixed(m.peak_allocated.gib(), 3), ""});
  table.row({"reserved by the caching allocator", format_fixed(m.peak_reserved.gib(), 3), ""});
  table.row({"memory of the GPU", format_fixed(p.gpu_memory.gib(), 3), ""});
  return table.to_text();
}

std::string schedule_text(const Prediction& p, int columns) {
  // What a stage does to one micro-batch without pause is one box, however many blocks it goes through.
  struct Box {
    char kind;
    std::int32_t micro_batch;
    std::int64_t start_ps, end_ps;
  };
  std::map<std::int32_t, std::vector<Box>> stages;
  std::int64_t end_ps = 1;
  for (const Span& span : p.timeline.spans) {
    end_ps = std::max(end_ps, span.end_ps);
    if (span.stream != 0 || span.micro_batch < 0 || span.op >= 0) continue;
    const std::string& name = p.timeline.names[static_cast<std::size_t>(span.name)];
    const char kind = name.empty() ? '?' : name.front();
    std::vector<Box>& boxes = stages[span.rank];
    if (!boxes.empty() && boxes.back().kind == kind && boxes.back().micro_batch == span.micro_batch) {
      boxes.back().end_ps = span.end_ps;
    } else {
      boxes.push_back(Box{kind, span.micro_batch, span.start_ps, span.end_ps});
    }
  }
  std::string text = fmt::format(
      "pipeline schedule, {} from left to right: F forward, B backward, R recomputation, then the "
      "micro-batch; . idle\n",
      format_ms(Time::from_ps(end_ps)));
  std::size_t stage = 0;
  for (const auto& [rank, boxes] : stages) {
    std::string row(static_cast<std::size_t>(columns), '.');
    for (const Box& box : boxes) {
      const auto column = [&](std::int64_t ps) {
        return static_cast<std::size_t>(static_cast<double>(ps) / static_cast<double>(end_ps) * columns);
      };
      const std::size_t from = std::min(column(box.start_ps), row.size() - 1);
      const std::size_t to = std::min(std::max(from + 1, column(box.end_ps)), row.size());
      const std::string label = fmt::format("{}{}", box.kind, box.micro_batch);
      const std::size_t shown = label.size() <= to - from ? label.size() : 1;  // a cut number would mislead
      for (std::size_t c = from; c < to; ++c) row[c] = c - from < shown ? label[c - from] : '-';
    }
    text += fmt::format("  stage {:>2} |{}|\n", stage++, row);
  }
  return text;
}

}  // namespace foretrain
