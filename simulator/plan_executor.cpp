#include "simulator/plan_executor.hpp"

#include <utility>

namespace tidepool {
namespace {

MakePlanExecutor& registered() {
  static MakePlanExecutor make;
  return make;
}

}  // namespace

RegisterPlanExecutor::RegisterPlanExecutor(MakePlanExecutor make) { registered() = std::move(make); }

std::unique_ptr<PlanExecutor> make_plan_executor(const PlanExecutorOptions& options) { return registered()(options); }

}  // namespace tidepool
