#include "sim/engine/simulate.h"

#include <utility>

#include "sim/engine/executor.h"
#include "sim/engine/prepared.h"
#include "sim/engine/recorder.h"
#include "sim/engine/run_costs.h"

namespace foretrain {

class Simulator::Impl {
 public:
  Impl(const StepProgram& the_program, const Cluster& the_cluster)
      : program(the_program), cluster(the_cluster) {}
  StepProgram program;
  Cluster cluster;
  std::unique_ptr<Prepared> prepared;  // refers to both
};

Simulator::Simulator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Expected<Simulator> Simulator::create(const StepProgram& program, const Cluster& cluster) {
  auto impl = std::make_unique<Impl>(program, cluster);
  auto prepared = prepare(impl->program, impl->cluster);
  if (!prepared) return fail(std::move(prepared.error()));
  impl->prepared = std::make_unique<Prepared>(std::move(*prepared));
  return Simulator(std::move(impl));
}

Expected<SimulationResult> Simulator::run(const Profile& profile, const SimulationOptions& options) const {
  const RunCosts costs = make_costs(*impl_->prepared, profile, options.fidelity);
  if (Errors errors = check_range(*impl_->prepared, costs); !errors.empty()) return fail(std::move(errors));
  Recorder recorder(*impl_->prepared, options);
  SimulationResult result;
  Executor executor(*impl_->prepared, costs, recorder);
  Errors errors = executor.run(result);
  if (!errors.empty()) return fail(std::move(errors));
  recorder.finish(result, profile);
  return result;
}

}  // namespace foretrain
