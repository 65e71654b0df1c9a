#include "simulator/sweep/sweep.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/bounds/bound_cache.hpp"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kWritePeriod{200};

/// Runs on their way from the threads that do them to the one that writes them.
class Worker {
 public:
  Worker(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, const SweepOptions& options)
      : parts_{parts}, tasks_{tasks}, stop_{options.stop} {
    const std::size_t threads = std::min(tasks.size(), static_cast<std::size_t>(std::max(1, options.threads)));
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) start();
  }
  ~Worker() {
    given_up_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// What was done since the last call, after at most kWritePeriod; sets `last` when nothing more will come.
  std::vector<KeyedRow> take(bool& last) {
    std::unique_lock lock{mutex_};
    finished_.wait_for(lock, kWritePeriod, [&] { return running_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
    last = running_ == 0;
    return std::exchange(done_, {});
  }

 private:
  /// As many as the system allows; without any, nothing would be done.
  void start() {
    const std::lock_guard lock{mutex_};  // a thread ends only after it has been counted
    try {
      threads_.emplace_back([this] { work(); });
      ++running_;
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
    }
  }

  void work() {
    try {
      while (!given_up_ && !(stop_ && *stop_)) {
        const std::size_t next = next_++;
        if (next >= tasks_.size()) break;
        const SweepPart& part = parts_[tasks_[next].part];
        const RunSpec spec = part.grid.at(tasks_[next].index);
        const Result result = try_simulate(part.trace.trace, spec);
        std::optional<Bound> bound;
        if (result.outcome != Outcome::kError) bound = bounds_.find(part.trace.trace, spec);
        KeyedRow row{run_key(part.trace.trace, spec),
                     make_row(part.trace, part.grid.ideal_peak(), spec, result, bound)};
        const std::lock_guard lock{mutex_};
        done_.push_back(std::move(row));
      }
    } catch (...) {
      const std::lock_guard lock{mutex_};
      failure_ = std::current_exception();
    }
    const std::lock_guard lock{mutex_};
    --running_;
    finished_.notify_one();
  }

  std::span<const SweepPart> parts_;
  std::span<const SweepTask> tasks_;
  const std::atomic<bool>* stop_;
  BoundCache bounds_;
  std::atomic<bool> given_up_ = false;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<KeyedRow> done_;  // guarded by mutex_, as are the next two
  std::exception_ptr failure_;
  std::size_t running_ = 0;
  std::vector<std::thread> threads_;
};

std::vector<SweepTask> all_of(std::span<const SweepPart> parts, const Shard& shard) {
  std::vector<SweepTask> tasks;
  for (std::uint32_t part = 0; part < parts.size(); ++part)
    for (std::size_t i = 0; i < parts[part].grid.size(); ++i)
      if (shard.count == 1 || shard.has(run_key(parts[part].trace.trace, parts[part].grid.at(i))))
        tasks.push_back({part, i});
  return tasks;
}

/// What the database does not have, or has as failed: a policy may have been mended since.
std::vector<SweepTask> missing(std::span<const SweepPart> parts, std::span<const SweepTask> tasks,
                               const Database& database, SweepProgress& progress) {
  std::vector<SweepTask> missing;
  for (const SweepTask& task : tasks) {
    ++progress.runs;
    const SweepPart& part = parts[task.part];
    const auto outcome = database.outcome(run_key(part.trace.trace, part.grid.at(task.index)));
    if (!outcome || *outcome == to_text(Outcome::kError))
      missing.push_back(task);
    else
      ++progress.present;
  }
  return missing;
}

void count(const Row& row, SweepProgress& progress) {
  ++progress.done;
  if (const auto* actions = std::get_if<std::int64_t>(&at(row, "actions"))) progress.actions += *actions;
  const auto* settled = std::get_if<bool>(&at(row, "settled"));
  if (settled != nullptr && !*settled) ++progress.unsettled;
  if (text_at(row, "outcome") != to_text(Outcome::kError)) return;
  if (progress.failed++ == 0)
    progress.first_failure = fmt::format("{}: {} on {}: {}", text_at(row, "trace"), text_at(row, "policy"),
                                         text_at(row, "pool"), text_at(row, "message"));
}

}  // namespace

void sweep(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
           const SweepOptions& options, SweepProgress& progress) {
  const Clock::time_point begin = Clock::now();
  const double before = progress.seconds;
  const std::vector<SweepTask> lacking = missing(parts, tasks, database, progress);
  if (options.progress) options.progress(progress);
  Worker worker{parts, lacking, options};
  for (bool last = lacking.empty(); !last;) {
    const std::vector<KeyedRow> rows = worker.take(last);
    database.insert(rows);
    for (const KeyedRow& keyed : rows) count(keyed.row, progress);
    progress.seconds = before + std::chrono::duration<double>(Clock::now() - begin).count();
    if (options.progress) options.progress(progress);
  }
}

SweepProgress sweep(std::span<const SweepPart> parts, Database& database, const SweepOptions& options) {
  SweepProgress progress;
  sweep(parts, all_of(parts, options.shard), database, options, progress);
  return progress;
}

}  // namespace tidepool
