// Execution of a plan on real memory: once to compare its bytes, then `repeat` times to measure its time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/result.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"
#include "validator/execution/time_comparison.hpp"

namespace tidepool {

struct ValidationOptions {
  std::string backend = "host";     ///< host or cuda
  bool content = true;              ///< compare bytes
  bool threads = true;              ///< host: one per lane; without them, all tasks run in issue order
  double time_scale = 0;            ///< host: > 0: measure time, see HostTimingOptions
  bool move = false;                ///< host: copies move real bytes, see HostTimingOptions
  std::optional<Bytes> arena = {};  ///< most memory for compared content; nothing: 256 MiB on the host, else no limit
  int repeat = 1;                   ///< number of runs that measure time
  bool detail = false;              ///< host: record times of ops and copies even if no time of the step is measured
  bool graph = false;               ///< cuda: everything as one CUDA graph
  int device = 0;                   ///< cuda: its number
};

/// The outcome of executing a plan.
struct Validation {
  /// `outcome` is "error" for a mistake of the plan, else to_text(ExecutionOutcome). `message` is the reason.
  std::string outcome = "ok", message;
  std::string device;  ///< the device that executed it, if it has a name
  /// Of all iterations (with cuda, without pinning and slow-down by copies). If an execution could not begin or did
  /// not end well, those of the plan file.
  Totals predicted;
  std::optional<ExecutionReport> checked;  ///< absent if it could not be executed, or bytes were not compared
  std::vector<ExecutionReport> timed;      ///< empty if no time was measured
  std::optional<TimeComparison> comparison;
};

/// The entries of a result database: one for each measured time, or one with the outcome if none was measured.
std::vector<MeasuredRun> measured_runs(const Validation& validation, const std::string& backend);

/// Executes plans one after the other. The device is opened once.
class Validator {
 public:
  /// @throws InputError  "--backend: cuda: libcuda.so.1: cannot open ...; no NVIDIA driver is installed here"
  explicit Validator(const ValidationOptions& options);
  ~Validator();
  Validator(const Validator&) = delete;
  Validator& operator=(const Validator&) = delete;

  /// Does not throw for a mistake of a plan or an error of a device: these are outcomes.
  /// @throws InputError  on the host, for a plan that has more pieces than `arena` has words
  Validation validate(const Trace& trace, const PlanFile& file) const;

 private:
  class Backend;
  class Host;
  class Cuda;

  const ValidationOptions options_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace tidepool
