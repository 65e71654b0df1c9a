// Changes of a training script that make a step fit a capacity, each with a simulation of its effect.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/run_spec.hpp"
#include "simulator/solvers/robustness.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// One change of the script, with its simulated effect.
struct Change {
  std::string kind;                         ///< one of kinds_of_changes()
  std::vector<std::string> modules = {};    ///< empty for a change of the whole step
  std::vector<std::string> operators = {};  ///< for a selective checkpoint: those whose outputs are kept
  std::string code;                         ///< to paste: Python, or settings or commands of a shell
  Bytes peak;                               ///< largest sum of resident bytes
  bool peak_is_least = false;               ///< `peak` is a lower bound: a compiler orders the ops that run again
  std::optional<Bytes> allocated = {};      ///< allocated_peak() of the changed step; none for allocator, budget, plan
  double overhead_ratio = 1;  ///< time of the step over its time without change and limit; 1 for a setting: not counted
  RatioBetween between = {};  ///< between which ratios the time lies, where a model estimated the op times
  Bytes copied = {};          ///< for an offload: bytes copied out in a step, and as many back
  int parts = 0;              ///< for a smaller batch: number of micro-batches
  std::optional<Bytes> reserved = {};  ///< for a setting of the allocator: most bytes that it reserves
  std::optional<Nanos> bound = {};     ///< no plan with these kinds of actions is faster within max(capacity, peak)
  std::optional<double> gap = {};      ///< time over bound, less 1
  bool fits = false;
  /// Whether `code` is a Python file with apply(model): apply(*models) for a job of several models, and apply(model,
  /// optimizer) for early updates.
  bool is_python() const { return kind != "plan" && kind != "allocator" && kind != "batch"; }
};

struct Advice {
  Bytes base_peak;
  Bytes base_allocated;  ///< allocated_peak() of the step as it is
  /// Bytes that PyTorch's default settings reserve. Known only if "allocator" is tried, the tensors fit the capacity,
  /// and these bytes do not.
  std::optional<Bytes> reserved = {};
  std::vector<std::string> notes = {};  ///< why some kinds were not tried, a sentence each
  bool complete = true;                 ///< false: some kinds were not done in time, as notes say
  /// The changes that fit come first: those with a certain peak, then the others, in each group the fastest first. The
  /// changes that do not fit follow, by increasing peak, if they lower the peak by at least 1 %. If the step fits as it
  /// is: at most a setting of the allocator.
  std::vector<Change> changes;
};

/// The step that the advice is about.
struct AdvisedStep {
  Trace trace;
  std::optional<std::size_t> iteration = {};  ///< its number in the recording; none: the step is the whole recording
};

/// Chooses, among the iterations that have modules and train, the first one with the largest peak. If there is none,
/// the step is the whole recording.
AdvisedStep step_to_advise(Trace trace);

/// The names of the inputs in the commands that make a plan.
struct PlanWords {
  std::string trace;    ///< path of the trace
  std::string machine;  ///< name of a machine, or path of its file
};

/// All kinds of changes that advise() knows.
const std::vector<std::string>& kinds_of_changes();

/// The kinds of changes and the planners to try.
struct AdviceOptions {
  std::vector<std::string> kinds;     ///< some of kinds_of_changes()
  std::vector<std::string> planners;  ///< policies whose plans are tried, if `kinds` contains "plan"
  /// The time of the processor for all kinds together; none: as much as they need. A kind may take half of what is
  /// left. One that does not end is left out, and a note says so.
  std::optional<std::chrono::milliseconds> limit = {};
  /// Called when a kind is done, with its changes; may be empty.
  std::function<void(const std::string& kind, const std::vector<Change>& changes)> done = {};
};

/// The limit for advice that comes with another answer.
constexpr std::chrono::seconds kAdviceBeside{30};

/// A sentence that names the data that advice needs and the step lacks, and how to record them; empty if it lacks none.
std::string missing_for_advice(const Trace& step);

/// Simulates changes of the kinds in `tried`, and returns those that are worth proposing.
/// @param words  the file and the machine as the user gave them
/// @param spec   `policy` is not used: kinds and planners come from `tried`
/// @throws InputError  missing_for_advice()
Advice advise(const AdvisedStep& step, const PlanWords& words, const RunSpec& spec, const AdviceOptions& tried);

/// {"base_peak_bytes": 9, "changes": [{"kind": "checkpoint", ...}], "notes": [...]}, the changes in their order.
nlohmann::ordered_json to_json(const Advice& advice);

/// Changes as one text, and back.
std::string text_of(const std::vector<Change>& changes);
std::vector<Change> changes_of(const std::string& text);

}  // namespace tidepool
