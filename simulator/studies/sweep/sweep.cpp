#include "simulator/studies/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "simulator/registry.hpp"
#include "simulator/solvers/bounds/bound.hpp"
#include "simulator/studies/sweep/database.hpp"
#include "simulator/studies/sweep/remaining_time.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kWritePeriod{200};
constexpr std::size_t kMostAhead = 4096;  // most runs that are taken and not begun

/// Threads that execute runs, and the finished rows until they are written.
class Worker {
 public:
  /// @param tasks  all runs that the worker may be given
  Worker(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, const SweepOptions& options)
      : parts_{parts}, stop_{options.stop}, remaining_{std::max(1, options.threads)} {
    const std::size_t threads = std::min(tasks.size(), static_cast<std::size_t>(std::max(1, options.threads)));
    for (const SweepTask& task : tasks) remaining_.expect(kind_of(task));
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) start();
  }
  ~Worker() {
    {
      const std::lock_guard lock{mutex_};
      closed_ = true;
      queue_.clear();
    }
    more_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The number of runs that the worker can be given now: about as many as it does in two write periods.
  std::size_t wanted() const {
    const std::lock_guard lock{mutex_};
    const std::size_t enough = std::clamp(2 * last_taken_, threads_.size(), kMostAhead);
    return enough - std::min(enough, queue_.size());
  }

  void add(std::span<const SweepTask> tasks) {
    if (tasks.empty()) return;
    {
      const std::lock_guard lock{mutex_};
      queue_.insert(queue_.end(), tasks.begin(), tasks.end());
      ran_dry_ = false;
    }
    more_.notify_all();
  }

  /// Forgets runs that another sweep has done.
  void forget(std::span<const SweepTask> tasks) {
    const std::lock_guard lock{mutex_};
    for (const SweepTask& task : tasks) remaining_.forget(kind_of(task));
  }

  /// Seconds until all runs are done, if they can be estimated.
  std::optional<double> to_go() const {
    const std::lock_guard lock{mutex_};
    return remaining_.at(now());
  }

  /// Whether the worker has nothing to do, and take() has nothing to return.
  bool idle() const {
    const std::lock_guard lock{mutex_};
    return queue_.empty() && busy_ == 0 && done_.empty() && !failure_;
  }

  /// The rows that were finished since the last call. Waits at most kWritePeriod, or until the last given run begins,
  /// or until all given runs have ended. @throws  the exception that a thread met
  std::vector<KeyedRow> take() {
    std::unique_lock lock{mutex_};
    dry_.wait_for(lock, kWritePeriod, [&] { return ran_dry_ || failure_; });
    ran_dry_ = false;
    if (failure_) std::rethrow_exception(failure_);
    last_taken_ = done_.size();
    return std::exchange(done_, {});
  }

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  /// The kind of runs that are assumed to take equally long: one trace under one policy and pool.
  std::string kind_of(const SweepTask& task) const {
    const SpecNames names = names_of(parts_[task.part].grid.at(task.index));
    return fmt::format("{} {} {} {}", task.part, names.policy, names.pool, names.options);
  }

  /// Starts one more thread, if the system allows it or no thread runs yet. @throws std::system_error  if none can run
  void start() {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
    }
  }

  void work() {
    std::unique_lock lock{mutex_};
    for (;;) {
      more_.wait(lock, [&] { return closed_ || !queue_.empty(); });
      if (stop_ && *stop_) queue_.clear();
      if (closed_) return;
      if (queue_.empty()) continue;
      const SweepTask task = queue_.front();
      queue_.pop_front();
      if (queue_.empty()) run_dry();
      ++busy_;
      const std::size_t number = begun_++;
      remaining_.begin(kind_of(task), number, now());
      lock.unlock();
      try {
        KeyedRow row = row_of(task);
        lock.lock();
        done_.push_back(std::move(row));
        remaining_.end(number, now());
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        failure_ = std::current_exception();
      }
      --busy_;
      if (failure_ || (queue_.empty() && busy_ == 0)) run_dry();
    }
  }

  void run_dry() {
    ran_dry_ = true;
    dry_.notify_one();
  }

  KeyedRow row_of(const SweepTask& task) {
    const SweepPart& part = parts_[task.part];
    const RunSpec spec = part.grid.at(task.index);
    const Result result = try_simulate(part.trace.trace, spec, needs_plan(part.trace.trace));
    std::optional<Bound> bound;
    if (result.outcome != Outcome::kError) bound = bounds_.find(part.trace.trace, spec);
    return {run_key(part.trace.trace, spec), make_row(part.trace, part.grid.ideal_peak(), spec, result, bound)};
  }

  std::span<const SweepPart> parts_;
  const std::atomic<bool>* stop_;
  const Clock::time_point begin_ = Clock::now();
  BoundCache bounds_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable more_, dry_;
  std::deque<SweepTask> queue_;
  std::vector<KeyedRow> done_;
  RemainingTime remaining_;
  std::exception_ptr failure_;
  std::size_t busy_ = 0, begun_ = 0, last_taken_ = 0;
  bool closed_ = false, ran_dry_ = false;
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

/// The runs that a database does not have, or has as failed (the policy may be corrected by now). Another sweep may be
/// doing some of them.
class Lacking {
 public:
  Lacking(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
          SweepProgress& progress)
      : database_{database} {
    for (const SweepTask& task : tasks) {
      ++progress.runs;
      const SweepPart& part = parts[task.part];
      const std::string key = run_key(part.trace.trace, part.grid.at(task.index));
      const auto outcome = database.outcome(key);
      if (outcome && *outcome != to_text(Outcome::kError)) {
        ++progress.present;
        continue;
      }
      tasks_.push_back(task);
      keys_.push_back(key);
    }
    // With nothing to do, the lock is taken only because its release removes the lock file of a killed sweep.
    if (database.path() != ":memory:" && (!tasks_.empty() || ClaimLock::file_exists(database.path())))
      lock_.emplace(database.path());
  }
  ~Lacking() {
    try {
      if (lock_) database_.release(*lock_);
    } catch (const std::exception&) {  // harmless: a claim without a lock is not valid
    }
  }
  Lacking(const Lacking&) = delete;
  Lacking& operator=(const Lacking&) = delete;

  /// The runs that this sweep has not taken, and that are not done as far as it knows.
  std::span<const SweepTask> tasks() const { return tasks_; }

  struct Taken {
    std::vector<SweepTask> tasks;      ///< for this sweep
    std::vector<SweepTask> elsewhere;  ///< done by another sweep meanwhile
  };
  /// Takes up to `most` runs.
  Taken take(std::size_t most) {
    if (most == 0 || tasks_.empty()) return {};
    const std::vector<Claim> claims =
        lock_ ? database_.claim(keys_, most, *lock_) : std::vector(std::min(most, tasks_.size()), Claim::kTaken);
    Taken taken;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (claims[i] == Claim::kTaken) taken.tasks.push_back(tasks_[i]);
      if (claims[i] == Claim::kDone) taken.elsewhere.push_back(tasks_[i]);
      if (claims[i] != Claim::kElsewhere) continue;
      tasks_[kept] = tasks_[i];
      keys_[kept++] = keys_[i];
    }
    const auto first = static_cast<std::ptrdiff_t>(kept), last = static_cast<std::ptrdiff_t>(claims.size());
    tasks_.erase(tasks_.begin() + first, tasks_.begin() + last);
    keys_.erase(keys_.begin() + first, keys_.begin() + last);
    return taken;
  }

 private:
  Database& database_;
  std::vector<SweepTask> tasks_;
  std::vector<std::string> keys_;  // of tasks_
  std::optional<ClaimLock> lock_;
};

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

std::string title_of(const SweepPart& part, std::span<const SweepPart> parts) {
  const auto file_name = [](const SweepPart& one) { return std::filesystem::path{one.trace.name}.filename(); };
  const auto same = std::count_if(parts.begin(), parts.end(),
                                  [&](const SweepPart& other) { return file_name(other) == file_name(part); });
  return printable(same > 1 ? part.trace.name : file_name(part).string());
}

void sweep(std::span<const SweepPart> parts, std::span<const SweepTask> tasks, Database& database,
           const SweepOptions& options, SweepProgress& progress) {
  const Clock::time_point begin = Clock::now();
  const double before = progress.seconds;
  Lacking lacking{parts, tasks, database, progress};
  if (options.progress) options.progress(progress);
  Worker worker{parts, lacking.tasks(), options};
  const auto stopped = [&] { return options.stop != nullptr && *options.stop; };
  while (!worker.idle() || (!lacking.tasks().empty() && !stopped())) {
    if (!stopped()) {
      const Lacking::Taken taken = lacking.take(worker.wanted());
      worker.add(taken.tasks);
      worker.forget(taken.elsewhere);
      progress.present += taken.elsewhere.size();
      progress.elsewhere += taken.elsewhere.size();
    }
    const std::vector<KeyedRow> rows = worker.take();
    database.insert(rows);
    for (const KeyedRow& keyed : rows) count(keyed.row, progress);
    progress.seconds_to_go = worker.to_go();
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
