#include "simulator/studies/launch/farm.hpp"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulator/studies/launch/process.hpp"
#include "simulator/studies/sweep/merge.hpp"
#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/folder.hpp"
#include "traces/base/input.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

namespace fs = std::filesystem;
constexpr int kTries = 2;
constexpr std::size_t kRunsPerShard = 50;  // with fewer, starting a worker costs more than its work
constexpr std::size_t kMostShards = 64;

/// The script that a worker runs with the index of its shard.
std::string script_text(const FarmOrder& order, const std::string& folder) {
  return fmt::format(
      "#!/bin/sh\n"
      "# One shard of a sweep: its index is the argument, or what Slurm says.\n"
      "shard=${{1:-$SLURM_ARRAY_TASK_ID}}\n"
      "cd {} || exit 2\n"
      "exec {} --shard \"$shard/{}\"{} -o {}\"$shard\".sqlite --json >/dev/null\n",
      shell_word(order.sweep.folder), command_line(order.program, order.sweep), order.shards,
      order.threads.empty() ? "" : " -j " + order.threads, shell_word(folder + "/"));
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file{path};
  file << text;
  if (!file.flush()) throw std::runtime_error{fmt::format("{}: cannot be written", path)};
}

/// The shards that lack runs. Failed runs are not lacking: another worker would fail too.
FarmResult lacking(const FarmOrder& order, std::span<const SweepPart> parts, const Database& database) {
  FarmResult result;
  std::vector<bool> lacks(static_cast<std::size_t>(order.shards) + 1);
  for (const SweepPart& part : parts)
    for (std::size_t i = 0; i < part.grid.size(); ++i) {
      const std::string key = run_key(part.trace.trace, part.grid.at(i));
      ++result.runs;
      if (database.outcome(key)) continue;
      ++result.missing;
      lacks[static_cast<std::size_t>(shard_of(key, order.shards))] = true;
    }
  for (int index = 1; index <= order.shards; ++index)
    if (lacks[static_cast<std::size_t>(index)]) result.shards.push_back(index);
  return result;
}

/// Merges all shards that are there, from this attempt or from an earlier farm with another number of shards.
void collect(const std::string& folder, Database& database) {
  std::vector<std::string> files;
  for (const std::string& file : files_in(folder))
    if (file.ends_with(".sqlite")) files.push_back(file);
  for (const std::string& file : files) Database{file};  // completes a database that a killed worker had begun
  merge(files, database, true);                          // the database may already have runs of another version
}

/// Runs the shards. If the first job of a farm is refused, so that there is nothing but its script, the folder goes.
void run(Launcher& launcher, const std::string& folder, const std::string& script, std::span<const int> shards,
         const std::atomic<bool>& stop) try {
  launcher.run(script, folder + "/%.log", shards, stop);
} catch (...) {
  if (files_in(folder) == std::vector{script}) fs::remove_all(folder);
  throw;
}

}  // namespace

std::string command_line(const std::string& program, const SweepOrder& order) {
  std::string line = shell_word(program) + " sweep";
  for (const std::string& trace : order.traces) line += " " + shell_word(trace);
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) line += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--pool", order.grid.pool);
  add("--policy", order.grid.policy);
  add("--capacity", order.grid.capacity);
  add("--machine", order.grid.machine);
  add("--seed", order.grid.seed);
  add("--assume", order.grid.assume);
  add("--overhead-limit", order.grid.overhead_limit);
  add("--iterations", order.grid.iterations);
  if (order.grid.first) line += " --first";
  return line + (order.grid.count_search ? " --count-search" : "");
}

int usual_shards(std::span<const SweepPart> parts) {
  std::size_t runs = 0;
  for (const SweepPart& part : parts) runs += part.grid.size();
  return static_cast<int>(std::clamp(runs / kRunsPerShard, std::size_t{1}, kMostShards));
}

FarmResult farm(const FarmOrder& order, std::span<const SweepPart> parts, Database& database, Launcher& launcher,
                const std::atomic<bool>& stop) {
  const std::string folder = order.results + ".shards", script = folder + "/job.sh";
  fs::create_directories(folder);
  launcher.wait_for_earlier(script, stop);
  write(script, script_text(order, folder));
  database.insert(SweepRequest{std::string{build_version()}, to_json(order.sweep)});
  collect(folder, database);
  FarmResult state = lacking(order, parts, database);
  for (int attempt = 1; attempt <= kTries && state.missing > 0 && !stop; ++attempt) {
    if (attempt > 1)
      say("{} not complete; once more\n",
          state.shards.size() == 1 ? "1 shard is" : fmt::format("{} shards are", state.shards.size()));
    run(launcher, folder, script, state.shards, stop);
    collect(folder, database);
    state = lacking(order, parts, database);
  }
  state.folder = folder;
  if (state.missing == 0) fs::remove_all(folder);
  return state;
}

}  // namespace tidepool
