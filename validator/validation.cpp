#include "validator/validation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "simulator/engine/boundary.hpp"
#include "simulator/engine/confirmation.hpp"
#include "simulator/options.hpp"
#include "simulator/ordered_step.hpp"
#include "simulator/plan_executor.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"
#include "traces/base/quantity.hpp"
#include "validator/cuda/run_program.hpp"
#include "validator/execution/device_program.hpp"
#include "validator/host/host_backend.hpp"
#include "validator/host/host_timing.hpp"

namespace tidepool {

namespace {

/// Alignment of the operands of kernels (CUDA C++ Programming Guide, "Device Memory Accesses": memory from the runtime
/// is aligned to at least 256 bytes).
inline constexpr Bytes kDeviceAlignment{256};

/// The granule of the plan's pool: every offset of the pool is a multiple of it. It is the pool's option "alignment" if
/// the pool has one, else PoolInfo::granule; kDeviceAlignment if that is 0 or more than kDeviceAlignment.
Bytes granule_of(const RunSpec& spec) {
  const PoolInfo& info = find_pool(spec.pool.name);
  const bool chosen = std::any_of(info.options.begin(), info.options.end(),
                                  [](const OptionInfo& option) { return option.name == "alignment"; });
  const Bytes own = chosen ? Options{info.name, info.options, spec.pool.options}.bytes("alignment") : info.granule;
  return own == Bytes{} ? kDeviceAlignment : std::min(own, kDeviceAlignment);
}

/// Checks that every place of the plan that has an address begins at a multiple of `granule`.
/// @throws PlanError  "alloc 7 before op 12: it begins at 513 B; expected a multiple of 256 B"
void check_alignment(const PlanFile& file, Bytes granule) {
  for (const Action& action : file.plan.actions) {
    const bool placed = action.verb == Verb::kAlloc || action.verb == Verb::kScratch || action.verb == Verb::kSwapIn;
    if (!placed || action.offset == kNoAddress || action.offset.count() % granule.count() == 0) continue;
    throw PlanError{fmt::format("{}: it begins at {} B; expected a multiple of {} B", to_text(action),
                                action.offset.count(), granule.count())};
  }
}

}  // namespace

class Validator::Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string device() const { return {}; }
  virtual bool measures() const = 0;
  /// The machine for which the times of a timed run are predicted. @param machine  that of the plan
  virtual Machine timed_machine(const Machine& machine) const { return machine; }
  /// Called before each plan, because runs share state only with runs of the same plan.
  virtual void begin_plan() {}
  /// @param timed  whether to measure time; if not, bytes are compared
  virtual ExecutionReport execute(const Trace& trace, const PlanFile& file, bool timed) = 0;
};

class Validator::Host final : public Backend {
 public:
  explicit Host(const ValidationOptions& options) : options_{options} {
    if (options.move) links_ = std::make_unique<HostLinks>();
  }
  bool measures() const override { return options_.time_scale > 0; }

  ExecutionReport execute(const Trace& trace, const PlanFile& file, bool timed) override {
    const bool copy_on_write = file.spec.assume.copy_on_write;
    if (timed)
      return time_on_host(trace, file.plan,
                          {.copy_on_write = copy_on_write,
                           .links = links_.get(),
                           .time_scale = options_.time_scale,
                           .machine = file.spec.machine});
    HostOptions options{.copy_on_write = copy_on_write, .threads = options_.threads, .detail = options_.detail};
    if (options_.arena) options.arena = *options_.arena;
    return execute_on_host(trace, file.plan, options);
  }

 private:
  const ValidationOptions& options_;
  std::unique_ptr<HostLinks> links_;  ///< shared by all runs, since filling their memory takes longer than most steps
};

class Validator::Cuda final : public Backend {
 public:
  explicit Cuda(const ValidationOptions& options) : options_{options}, gpu_{driver_, options.device} {}
  std::string device() const override { return gpu_.description(); }
  bool measures() const override { return options_.repeat > 0; }
  /// The prediction has no time for pinning, because all host memory is pinned before the clock starts. It has no
  /// slow-down of ops by copies, because the kernels that stand for ops read no memory.
  Machine timed_machine(const Machine& machine) const override {
    Machine timed = machine;
    timed.host.pin_latency = {}, timed.host.pin_rate = {};
    timed.h2d.slowdown_ppm = timed.d2h.slowdown_ppm = 0;
    return timed;
  }
  void begin_plan() override { memory_.emplace(gpu_); }

  ExecutionReport execute(const Trace& trace, const PlanFile& file, bool timed) override {
    DeviceProgramOptions options{.copy_on_write = file.spec.assume.copy_on_write, .content = !timed};
    if (options_.arena && !timed) options.aim = *options_.arena;  // timed copies move all their bytes
    const DeviceProgram program = program_of(trace, file.plan, options);
    const PlannedStep step{trace, file.plan};
    return cuda::run_program(gpu_, step.trace(), file.plan, program,
                             {.timed = timed, .graph = options_.graph, .memory = &*memory_});
  }

 private:
  static DeviceProgram program_of(const Trace& trace, const Plan& plan, const DeviceProgramOptions& options) {
    try {
      return make_program(trace, plan, options);
    } catch (const InputError& error) {
      throw PlanError{error.what()};  // an error of this plan only: a sweep continues with the next plan
    }
  }

  const ValidationOptions& options_;
  const cuda::Driver driver_;
  const cuda::Gpu gpu_;
  std::optional<cuda::RunMemory> memory_;  ///< of the runs of one plan; if one compares bytes, it is the first
};

Validator::Validator(const ValidationOptions& options) : options_{options} {
  if (options.backend == "host") {
    backend_ = std::make_unique<Host>(options_);
  } else if (options.backend == "cuda") {
    try {
      backend_ = std::make_unique<Cuda>(options_);
    } catch (const cuda::Error& error) {
      throw InputError{fmt::format("--backend: cuda: {}", error.what())};
    }
  } else {
    throw InputError{fmt::format("--backend: '{}' is not a backend; expected host or cuda", options.backend)};
  }
}

Validator::~Validator() = default;

std::vector<MeasuredRun> measured_runs(const Validation& validation, const std::string& backend) {
  MeasuredRun run{.run_key = {}, .backend = backend, .device = validation.device};
  run.outcome = validation.outcome;
  run.message = validation.message;
  if (validation.outcome == "ok") run.predicted = validation.predicted.makespan;
  if (validation.checked) {
    run.peak = validation.checked->peak;
    run.corrupt = validation.checked->corrupt;
  }
  if (validation.timed.empty()) return {run};
  std::vector<MeasuredRun> runs;
  for (const ExecutionReport& timed : validation.timed) {
    run.measured = timed.measured;
    if (!run.peak) run.peak = timed.peak;
    runs.push_back(run);
    ++run.repeat;
  }
  return runs;
}

namespace {

class Executor final : public PlanExecutor {
 public:
  explicit Executor(const PlanExecutorOptions& options)
      : backend_{options.backend},
        validator_{
            {.backend = options.backend, .time_scale = options.move ? 1.0 : 0.0, .move = options.move, .repeat = 3}} {}
  std::vector<MeasuredRun> execute(const Trace& trace, const PlanFile& file) override {
    return measured_runs(validator_.validate(trace, file), backend_);
  }

 private:
  const std::string backend_;
  const Validator validator_;
};

const RegisterPlanExecutor kValidation{[](const PlanExecutorOptions& options) -> std::unique_ptr<PlanExecutor> {
  return std::make_unique<Executor>(options);
}};

/// "its actions do not cost what the plan predicts: makespan 84 ns, not 83 ns; ...", with each figure that differs.
std::string differences(const Totals& replayed, const Totals& predicted) {
  std::vector<std::string> all;
  const auto compare = [&](const char* what, const auto& is, const auto& was, const char* unit) {
    if (is != was) all.push_back(fmt::format("{} {}{}, not {}{}", what, is, unit, was, unit));
  };
  const auto times = [&](const char* what, Nanos is, Nanos was) { compare(what, is.count(), was.count(), " ns"); };
  const auto sizes = [&](const char* what, Bytes is, Bytes was) { compare(what, is.count(), was.count(), " B"); };
  times("makespan", replayed.makespan, predicted.makespan);
  sizes("peak", replayed.peak, predicted.peak);
  sizes("footprint", replayed.footprint, predicted.footprint);
  sizes("swapped out", replayed.swap_out, predicted.swap_out);
  sizes("swapped in", replayed.swap_in, predicted.swap_in);
  times("recomputation", replayed.recompute, predicted.recompute);
  compare("recomputed ops", replayed.recompute_count, predicted.recompute_count, "");
  compare("evictions", replayed.eviction_count, predicted.eviction_count, "");
  compare("actions", replayed.actions, predicted.actions, "");
  times("waits", replayed.stall.compute + replayed.stall.h2d + replayed.stall.d2h + replayed.stall.memory,
        predicted.stall.compute + predicted.stall.h2d + predicted.stall.d2h + predicted.stall.memory);
  times("slowdown", replayed.slowdown, predicted.slowdown);
  sizes("pinned on the host", replayed.host_peak, predicted.host_peak);
  sizes("in storage", replayed.storage_peak, predicted.storage_peak);
  if (all.empty()) all.push_back("waits on single engines differ");
  return fmt::format("its actions do not cost what the plan predicts: {}", fmt::join(all, "; "));
}

}  // namespace

Validation Validator::validate(const Trace& trace, const PlanFile& file) const {
  Validation result;
  result.device = backend_->device();
  result.predicted = file.predicted;
  const auto ended = [&](const ExecutionReport& run) {
    if (run.outcome == ExecutionOutcome::kOk) return true;
    result.outcome = to_text(run.outcome);
    result.message = run.message;
    return false;
  };
  try {
    check_alignment(file, options_.backend == "cuda" ? kDeviceAlignment : granule_of(file.spec));
    backend_->begin_plan();
    if (options_.content) {
      result.checked = backend_->execute(trace, file, false);
      if (!ended(*result.checked)) return result;
    }
    for (int i = 0; i < options_.repeat && backend_->measures(); ++i) {
      result.timed.push_back(backend_->execute(trace, file, true));
      if (!ended(result.timed.back())) return result;
    }
    const std::vector<Totals> iterations = costs_of_iterations(trace, file.spec, file.plan);
    result.predicted = sum_of(iterations);
    const int cycle = std::clamp(file.plan.cycle, 1, static_cast<int>(iterations.size()));
    if (const Totals replayed = mean_of_last(iterations, cycle); replayed != file.predicted) {
      result.outcome = "error";
      result.message = differences(replayed, file.predicted);
      return result;
    }
    RunSpec timed = file.spec;
    timed.machine = backend_->timed_machine(file.spec.machine);
    if (timed.machine != file.spec.machine) result.predicted = whole_cost(trace, timed, file.plan);
    if (!result.timed.empty())
      result.comparison = compare_times(PlannedStep{trace, file.plan}.trace(), timed.machine, result.predicted,
                                        median_run(result.timed));
  } catch (const PlanError& error) {
    result.outcome = "error";
    result.message = error.what();
  }
  return result;
}

}  // namespace tidepool
