#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "simulator/studies/launch/farm.hpp"
#include "simulator/studies/launch/process.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirstWait = 250ms, kLongestWait = 10'000ms;  // between two queries of the controller
constexpr int kPatience = 30;                                // queries without an answer until the program gives up

std::string trimmed(const std::string& text) { return text.substr(0, text.find_last_not_of(" \n") + 1); }

/// The indices as --array takes them: "3,5-7".
std::string array_text(std::span<const int> indices) {
  std::string text;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t last = i;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", indices[i]);
    if (last > i) text += fmt::format("-{}", indices[last]);
    i = last + 1;
  }
  return text;
}

/// A job as `sbatch --parsable` names it: "ID", or "ID;CLUSTER" if it was submitted to another cluster.
struct Job {
  explicit Job(const std::string& name)
      : id{name.substr(0, name.find(';'))}, cluster{name.size() > id.size() ? name.substr(id.size() + 1) : ""} {}

  std::string parsable() const { return cluster.empty() ? id : id + ";" + cluster; }
  std::string text() const { return cluster.empty() ? id : fmt::format("{} on {}", id, cluster); }

  /// The command that queries the job's own controller with a program of Slurm.
  std::vector<std::string> command(const std::string& program, std::initializer_list<std::string> arguments) const {
    std::vector<std::string> all{program};
    if (!cluster.empty()) all.insert(all.end(), {"-M", cluster});
    all.insert(all.end(), arguments);
    return all;
  }

  std::string id, cluster;
};

class Slurm final : public Launcher {
 public:
  explicit Slurm(std::vector<std::string> options) : options_{std::move(options)} {}

  void wait_for_earlier(const std::string& script, const std::atomic<bool>& stop) override {
    std::ifstream file{job_file(script)};
    std::string name;
    if (!(file >> name)) return;
    const Job job{name};
    if (finished(job)) return;
    say("job {} of an earlier sweep is still there; waiting for it\n", job.text());
    follow(job, stop);
  }

  void run(const std::string& script, const std::string& log, std::span<const int> indices,
           const std::atomic<bool>& stop) override {
    const Job job = submit(script, log, indices);
    std::ofstream{job_file(script)} << job.parsable() << '\n';
    say("submitted job {} with {}\n", job.text(), counted(static_cast<std::int64_t>(indices.size()), "task"));
    follow(job, stop);
  }

 private:
  static std::string job_file(const std::string& script) { return script + ".id"; }

  void follow(const Job& job, const std::atomic<bool>& stop) {
    auto wait = std::chrono::milliseconds{kFirstWait};
    while (!finished(job)) {
      if (stop) {
        run_process(job.command("scancel", {job.id}));
        break;
      }
      std::this_thread::sleep_for(wait);
      wait = std::min(wait * 2, std::chrono::milliseconds{kLongestWait});
    }
    if (isatty(STDERR_FILENO)) say("\r\x1b[K");
  }

  Job submit(const std::string& script, const std::string& log, std::span<const int> indices) const {
    const std::size_t index = log.rfind('%');
    std::string output;  // sbatch reads a single % as the start of a pattern
    for (std::size_t i = 0; i < log.size(); ++i)
      output += log[i] != '%' ? std::string{log[i]} : i == index ? "%a" : "%%";
    std::vector<std::string> command{"sbatch",
                                     "--parsable",
                                     "--job-name=tidepool-sweep",
                                     "--nodes=1",
                                     "--ntasks=1",
                                     "--cpus-per-task=1",
                                     "--no-requeue",  // missing runs are submitted again as another array
                                     "--open-mode=append",
                                     "--output=" + output,
                                     "--array=" + array_text(indices)};
    command.insert(command.end(), options_.begin(), options_.end());
    command.push_back(script);
    const ProcessResult result = run_process(command);
    if (result.code != 0) throw std::runtime_error{fmt::format("sbatch: {}", trimmed(result.said))};
    const std::string said = trimmed(result.said);
    return Job{said.substr(said.rfind('\n') + 1)};  // the last line; a site may print others before
  }

  /// Whether no task of the job waits or runs any more.
  bool finished(const Job& job) {
    const ProcessResult result =
        run_process(job.command("squeue", {"--noheader", "--array", "--jobs=" + job.id, "--format=%T"}));
    if (result.code != 0) {
      if (result.said.find("Invalid job id") != std::string::npos) return true;  // it ended some time ago
      if (++unanswered_ < kPatience) return false;
      throw std::runtime_error{fmt::format("squeue: {}", trimmed(result.said))};
    }
    unanswered_ = 0;
    std::size_t pending = 0, others = 0;
    std::istringstream lines{result.said};
    for (std::string line; std::getline(lines, line);)
      if (!line.empty() && !line.starts_with("CLUSTER:"))  // with -M, some versions print this line first
        ++(line.starts_with("PENDING") ? pending : others);
    if (isatty(STDERR_FILENO)) say("\r\x1b[Kjob {}: {} tasks wait, {} run", job.text(), pending, others);
    return pending + others == 0;
  }

  std::vector<std::string> options_;
  int unanswered_ = 0;
};

}  // namespace

std::unique_ptr<Launcher> make_slurm_launcher(std::vector<std::string> options) {
  return std::make_unique<Slurm>(std::move(options));
}

}  // namespace tidepool
