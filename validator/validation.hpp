// A plan executed on some memory, once to compare its bytes and then as often as wanted to measure its time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/plan_file.hpp"
#include "simulator/sweep/database.hpp"
#include "traces/trace.hpp"
#include "validator/execution/execution_report.hpp"
#include "validator/execution/time_comparison.hpp"

namespace tidepool {

struct ValidationOptions {
  std::string backend = "host";     ///< host or cuda
  bool content = true;              ///< compare bytes
  bool threads = true;              ///< host: one per lane; without, everything in issue order
  double time_scale = 0;            ///< host: > 0: measure time, see HostTimingOptions
  bool move = false;                ///< host: copies move real bytes, see HostTimingOptions
  std::optional<Bytes> arena = {};  ///< most memory for content; larger plans are scaled down
  int repeat = 1;                   ///< how often time is measured
  bool detail = false;              ///< when ops and copies were executed even if no time is measured
  bool graph = false;               ///< cuda: everything as one CUDA graph
  int device = 0;                   ///< cuda: its number
};

/// What became of a plan.
struct Validation {
  std::string outcome = "ok", message;
  std::string device;                      ///< what it was executed on, if that has a name
  Totals predicted;                        ///< of all its iterations, on the machine of the plan
  std::optional<ExecutionReport> checked;  ///< absent if it could not be executed, or bytes were not compared
  std::vector<ExecutionReport> timed;      ///< empty if no time was measured
  std::optional<TimeComparison> comparison;
};

/// As a database of results keeps it: an entry for each time that was measured, or one that says what came of it.
std::vector<MeasuredRun> measured_runs(const Validation& validation, const std::string& backend);

/// Executes plans one after the other. A device is looked for once.
class Validator {
 public:
  /// @throws InputError  "--backend: cuda: libcuda.so.1: cannot open ...; no NVIDIA driver is installed here"
  explicit Validator(const ValidationOptions& options);
  ~Validator();
  Validator(const Validator&) = delete;
  Validator& operator=(const Validator&) = delete;

  /// Never throws for what a plan or a device does wrong: that is an outcome.
  Validation validate(const Trace& trace, const PlanFile& file) const;

 private:
  class Backend;
  class Host;
  class Cuda;

  const ValidationOptions options_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace tidepool
