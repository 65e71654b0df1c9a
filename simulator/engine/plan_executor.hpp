// Executor of plans on real memory. It lives where nothing here may look, and makes itself known.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/sweep/database.hpp"
#include "traces/trace.hpp"

namespace tidepool {

class PlanExecutor {
 public:
  virtual ~PlanExecutor() = default;
  /// One entry for each time that the plan was measured, or one for all if no time is measured there. `run_key` is
  /// empty.
  virtual std::vector<MeasuredRun> execute(const Trace& trace, const PlanFile& file) = 0;
};

struct PlanExecutorOptions {
  std::string backend = "host";  ///< host or cuda
  bool move = false;             ///< host: measure time too, with copies that move their bytes
};

/// @throws InputError  for a backend that is not known or not there
using MakePlanExecutor = std::function<std::unique_ptr<PlanExecutor>(const PlanExecutorOptions&)>;

/// A namespace-scope object of this type makes what executes plans known.
struct RegisterPlanExecutor {
  explicit RegisterPlanExecutor(MakePlanExecutor make);
};

/// @throws InputError  likewise
std::unique_ptr<PlanExecutor> make_plan_executor(const PlanExecutorOptions& options);

}  // namespace tidepool
