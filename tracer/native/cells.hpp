#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
/// Read and written by Python without calls, at the indices below.
extern std::int64_t tidepool_cells[16];
}

namespace tidepool::native {

constexpr std::size_t kWords = 0;     ///< words in the log
constexpr std::size_t kResting = 1;   ///< above 0: ops are not recorded, as those of a loader
constexpr std::size_t kRunning = 2;   ///< number of modules that are running
constexpr std::size_t kMatched = 3;   ///< number of ops of the step that the last ops of the job match
constexpr std::size_t kWhole = 4;     ///< whether the iteration was followed from its first op on
constexpr std::size_t kIssued = 5;    ///< actions before ops below this one are done
constexpr std::size_t kBusy = 6;      ///< whether Python sees each op: code of the job has borrowed content
constexpr std::size_t kNow = 7;       ///< bytes of the job's storages
constexpr std::size_t kPeak = 8;      ///< their most since the meter was started
constexpr std::size_t kUpdating = 9;  ///< whether an optimizer's step runs
constexpr std::size_t kGaveUp = 10;   ///< whether the plan is not followed any more
constexpr std::size_t kBudget = 11;   ///< bytes above which the job gets an out-of-memory error
constexpr std::size_t kTake = 12;     ///< whether content is elsewhere that the plan takes over before its next op
constexpr std::size_t kQuick = 13;    ///< number of ops that were followed without Python
constexpr std::size_t kEnds = 14;     ///< whether the last op of the step has run, and actions are left
constexpr std::size_t kDone = 15;     ///< number of actions before op kIssued that are done

}  // namespace tidepool::native
