// Page of a report: one HTML file that loads no other file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/advise/advise.hpp"
#include "simulator/studies/diff/compared.hpp"
#include "simulator/studies/report/autopsy.hpp"
#include "simulator/studies/report/history.hpp"
#include "simulator/studies/report/job_lanes.hpp"
#include "simulator/studies/report/kept_decisions.hpp"
#include "simulator/studies/sweep/frontier.hpp"
#include "simulator/studies/sweep/result_row.hpp"

namespace tidepool {

/// A run that is shown in full.
struct ReportedRun {
  RunSpec spec;
  Row row;  ///< as `simulate --json` prints it
  std::optional<Bound> bound;
  std::optional<History> history;  ///< none: the run failed
  std::optional<Autopsy> autopsy;  ///< for a run that was out of memory
  KeptDecisions decisions;         ///< decisions of the iterations that are shown
};

/// Advice on the trace's step, for a capacity.
struct ReportedAdvice {
  Bytes capacity;
  Advice advice;
};

struct ReportContent {
  std::string command;                ///< the command that made the report
  const NamedTrace* trace = nullptr;  ///< none: the report has only frontiers
  Bytes ideal_peak;                   ///< ideal peak of the trace under the assumptions of the runs
  std::vector<ReportedRun> runs;
  std::vector<Frontier> frontiers;
  std::optional<ReportedAdvice> advice = {};
  std::optional<ReportedJob> job = {};
  std::optional<Compared> compared = {};  ///< two recordings, what differs between them
};

/// The page. Equal content gives an equal page.
std::string report_page(const ReportContent& content);

/// @param name  name of a file in that folder, such as "report.css"; the file must exist
std::string_view report_asset(std::string_view name);
/// All scripts, in the order of their names. The page executes them in this order.
std::string_view report_scripts();

}  // namespace tidepool
