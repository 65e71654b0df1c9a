// A report: one HTML file that needs nothing but itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/advise/advise.hpp"
#include "simulator/bounds/bound.hpp"
#include "simulator/report/autopsy.hpp"
#include "simulator/report/history.hpp"
#include "simulator/report/kept_decisions.hpp"
#include "simulator/sweep/frontier.hpp"
#include "simulator/sweep/result_row.hpp"

namespace tidepool {

/// A run that is shown in full.
struct ReportedRun {
  RunSpec spec;
  Row row;  ///< as `simulate --json` prints it
  std::optional<Bound> bound;
  std::optional<History> history;  ///< none: the run failed
  std::optional<Autopsy> autopsy;  ///< of a run that was out of memory
  KeptDecisions decisions;         ///< of the iterations that are shown
};

/// Advice on the trace's step, for a capacity.
struct ReportedAdvice {
  Bytes capacity;
  Advice advice;
};

struct ReportContent {
  std::string command;                ///< that made it
  const NamedTrace* trace = nullptr;  ///< none: there are only frontiers
  Bytes ideal_peak;                   ///< of the trace under the assumptions of the runs
  std::vector<ReportedRun> runs;
  std::vector<Frontier> frontiers;
  std::optional<ReportedAdvice> advice = {};
};

/// The page, which says the same for the same content.
std::string report_page(const ReportContent& content);

}  // namespace tidepool
