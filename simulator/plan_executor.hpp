// The interface of an executor of plans on real memory. The executor itself is in validator/ and registers itself here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/result.hpp"
#include "traces/trace.hpp"

namespace tidepool {

class PlanExecutor {
 public:
  virtual ~PlanExecutor() = default;
  /// One entry for each measurement of the plan, or a single one if the backend measures no time. Their `run_key` is
  /// empty.
  virtual std::vector<MeasuredRun> execute(const Trace& trace, const PlanFile& file) = 0;
};

struct PlanExecutorOptions {
  std::string backend = "host";  ///< host or cuda
  bool move = false;             ///< host: measure time too, with copies that move their bytes
};

/// @throws InputError  for a backend that is unknown or absent
using MakePlanExecutor = std::function<std::unique_ptr<PlanExecutor>(const PlanExecutorOptions&)>;

/// A namespace-scope object of this type registers the executor.
struct RegisterPlanExecutor {
  explicit RegisterPlanExecutor(MakePlanExecutor make);
};

/// @throws InputError  as MakePlanExecutor
std::unique_ptr<PlanExecutor> make_plan_executor(const PlanExecutorOptions& options);

}  // namespace tidepool
