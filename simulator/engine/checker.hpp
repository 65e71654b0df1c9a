// A checker that refuses actions that cannot be executed. It uses neither pools nor policies nor the engine's driver
// (driver.hpp), and is simpler than the driver.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "simulator/engine/disjoint_ranges.hpp"
#include "simulator/engine/memory_map.hpp"
#include "simulator/plan.hpp"
#include "simulator/result.hpp"
#include "simulator/run_spec.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// A stage begins after the first run of an op of the program, and ends with the first run of the next op.
struct RerunRules {
  bool in_order = false;       ///< in a stage ops run again at most once each, and in the order of the program
  std::int32_t most_runs = 0;  ///< of one op in an iteration; 0: any number
  bool operator==(const RerunRules&) const = default;
};

/// The limits that replay() enforces under these assumptions.
RerunRules rerun_rules(const Assumptions& assume);

/// Follows a plan action by action and keeps its own record of each version's place. check() throws PlanError, among
/// others, for: overlap of live places; places beyond the capacity or outside of reserved segments; runs whose inputs
/// are absent or stale, or whose outputs have no place; first runs out of program order; copies of absent content, or
/// beyond the memory of host and storage. It also checks the assumptions of the run (RunSpec::assume): if views are
/// replayed, a view is resident only as long as its base; if sources are pinned, they stay; reruns keep to RerunRules.
class Checker {
 public:
  Checker(const Trace& trace, const RunSpec& spec);
  void check(const Action& action);
  /// Call after the last action. @throws PlanError  if the plan ends before the program does, or without its outputs
  void finish() const;

 private:
  struct Place {
    Bytes offset{}, size{};
    Bytes off_device{};  ///< bytes of its copy in the host's pool, or in the storage beyond it
    bool placed = false, filled = false;
    bool on_host = false;
    bool in_storage = false;  ///< the copy is in storage
  };
  void occupy(const Action& action, VersionId v);
  void occupy_piece(const Action& action, Bytes first, Bytes size, VersionId v);
  void map(const Action& action);
  void unmap(const Action& action);
  void vacate(const Place& place);
  void check_stand(const Action& action) const;
  void check_may_go(const Action& action) const;
  void check_rerun(const Action& action);
  void lose_views(VersionId base);
  void copy_to_host(const Action& action, Place& place);
  void leave_host(Place& place);
  void run(const Action& action);
  void next_iteration(const Action& action);
  void start_places();
  void check_outputs(bool host_will_do) const;
  Place& at(const Action& action);
  [[noreturn]] void refuse(const Action& action, const std::string& reason) const;

  const Trace& trace_;
  const RunSpec& spec_;
  std::vector<Place> places_;       // by version
  DisjointRanges<VersionId> live_;  // memory in use
  MemoryMap map_;
  std::map<Bytes, Bytes> segments_;     // by first address: end
  std::map<VersionId, Place> scratch_;  // for the next run
  std::vector<bool> ran_;
  std::vector<bool> defined_;        // by version: whether a view can be read; empty unless views are replayed
  std::vector<bool> began_on_host_;  // by buffer
  RerunRules rules_;
  std::vector<std::int32_t> runs_;         // by op: reruns in this iteration; empty without a limit
  std::optional<std::size_t> last_again_;  // the last op that ran again in this stage (see RerunRules)
  std::size_t next_op_ = 0;
  int iterations_ = 1;
  Bytes counted_{}, reserved_{}, held_on_host_{}, stored_{};
};

}  // namespace tidepool
