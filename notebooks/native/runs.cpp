// Runs in Python: single runs as JSON lines, sweeps into a database, and a check of the contract of all policies.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "notebooks/native/parts.hpp"
#include "simulator/plan_file.hpp"
#include "simulator/run.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "simulator/studies/sweep/sweep_request.hpp"
#include "traces/base/error.hpp"
#include "traces/import/importer.hpp"
#include "validator/host/host_backend.hpp"

namespace tidepool::python {
namespace {

namespace py = pybind11;

GridText grid_of(const py::kwargs& given) {
  GridText text;
  for_each_text(text, [&](const char* name, std::string& into) {
    if (given.contains(name)) into = given[name].cast<std::string>();
  });
  if (given.contains("first")) text.first = given["first"].cast<bool>();
  return text;
}

/// Raises KeyboardInterrupt after Ctrl-C.
void obey_signals() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set{};
}

/// The runs of the grid, one JSON object each. With `plan_out`, the grid must have one run; if it ends well, its plan
/// is written to that file.
std::vector<std::string> simulate_grid(const std::shared_ptr<Trace>& trace, const std::string& name,
                                       const std::string& plan_out, const py::kwargs& given) {
  const GridText text = grid_of(given);
  const py::gil_scoped_release unlock;
  const NamedTrace named{name, *trace};
  const Grid grid{text, named.trace};
  if (!plan_out.empty() && grid.size() != 1)
    throw InputError{fmt::format("plan_out: the lists ask for {} runs; expected one", grid.size())};
  BoundCache bounds;
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    Result result = try_simulate(named.trace, spec, !plan_out.empty());
    obey_signals();
    std::optional<Bound> bound;
    if (result.outcome != Outcome::kError) bound = bounds.find(named.trace, spec);
    rows.push_back(to_json(make_row(named, grid.ideal_peak(), spec, result, bound)));
    if (!plan_out.empty() && result.outcome == Outcome::kOk)
      write_plan(plan_out, {named.trace.hash(), spec, result.totals, std::move(result.realised)});
  }
  return rows;
}

/// The same as `tidepool sweep -o`, but without printing. On Ctrl-C, runs in progress are finished and kept. If
/// policies are Python classes, no request is stored, because `tidepool resume` does not know these classes.
void sweep_into(const std::vector<std::string>& traces, const std::string& output, int threads,
                const py::kwargs& given) {
  SweepOrder order{.traces = traces,
                   .hashes = {},
                   .grid = grid_of(given),
                   .shard = {},
                   .find = {},
                   .folder = std::filesystem::current_path().string()};
  bool interrupted = false;
  const bool resumable = !has_python_policies();  // even if none is named: tide runs all registered policies
  {
    const py::gil_scoped_release unlock;
    const std::vector<SweepPart> parts = load_parts(order);
    Database database{output};
    if (resumable) database.insert(SweepRequest{std::string{build_version()}, to_json(order)});
    std::atomic<bool> stop = false;
    const auto look = [&](const SweepProgress&) {
      const py::gil_scoped_acquire lock;
      if (!interrupted && PyErr_CheckSignals() != 0) interrupted = stop = true;
    };
    sweep(parts, database, {.threads = threads, .shard = {}, .progress = look, .stop = &stop});
  }
  if (interrupted) throw py::error_already_set{};
}

/// The first way in which a run violates the contract of all policies, as a message; "" if it keeps the contract.
std::string broken(const Trace& trace, const RunSpec& spec, BoundCache& bounds) {
  const Result result = try_simulate(trace, spec, true);
  if (result.outcome == Outcome::kError) return result.message;
  const Result again = try_simulate(trace, spec, true);
  if (again.realised != result.realised || again.totals != result.totals) return "two runs of it differ";
  if (result.outcome != Outcome::kOk) return "";
  try {
    if (replay(trace, spec, result.realised) != result.totals) return "a replay of its plan has other times or counts";
  } catch (const PlanError& error) {
    return error.what();
  }
  if (result.totals.footprint > spec.capacity)
    return fmt::format("{} above the capacity", to_text(result.totals.footprint - spec.capacity));
  const HostReport report = execute_on_host(trace, result.realised, {.threads = false, .arena = 1_MiB});
  if (report.outcome != HostOutcome::kOk) return "on real bytes: " + report.message;
  const std::optional<Bound> bound = bounds.find(trace, spec);
  if (bound && (!bound->feasible || result.totals.makespan < bound->makespan))
    return fmt::format("below the bound {} ({})", bound->name, bound->proof);
  return "";
}

/// (run, violation) for every run of the grid that violates the contract, and the number of all runs.
std::pair<std::vector<std::pair<std::string, std::string>>, std::size_t> contract(const std::shared_ptr<Trace>& trace,
                                                                                  const py::kwargs& given) {
  const GridText text = grid_of(given);
  const py::gil_scoped_release unlock;
  const Grid grid{text, *trace};
  BoundCache bounds;
  std::vector<std::pair<std::string, std::string>> failures;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const RunSpec spec = grid.at(i);
    std::string what = broken(*trace, spec, bounds);
    obey_signals();
    if (!what.empty())
      failures.emplace_back(fmt::format("{} on {} at {}", spec.policy.text, spec.pool.text, to_text(spec.capacity)),
                            std::move(what));
  }
  return {std::move(failures), grid.size()};
}

}  // namespace

void declare_runs(py::module_& module) {
  module.def("simulate", &simulate_grid, py::arg("trace"), py::arg("name"), py::arg("plan_out"));
  module.def("sweep", &sweep_into, py::arg("traces"), py::arg("output"), py::arg("threads"));
  module.def("contract", &contract, py::arg("trace"));
}

}  // namespace tidepool::python
