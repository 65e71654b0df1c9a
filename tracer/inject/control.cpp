// Recorder: the control thread, which stops and starts CUPTI while the job runs; the end of the process; and the job's
// iterations and NVTX ranges.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {
namespace {

constexpr int kPollMs = 100, kPollsPerClockReading = 10;

}  // namespace

void Recorder::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t done = ::write(wake_, &one, sizeof one);
}

void Recorder::on_signal(int) {
  ++instance().signals_;
  instance().wake();
}

void Recorder::listen() {
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (options_.signal > 0) {
    struct sigaction before {};
    struct sigaction action {};
    action.sa_handler = &Recorder::on_signal;
    action.sa_flags = SA_RESTART;
    if (sigaction(options_.signal, nullptr, &before) != 0)
      say("signal " + std::to_string(options_.signal) +
          " cannot be caught; recording cannot be started or stopped by it");
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
      say("the job handles signal " + std::to_string(options_.signal) +
          " itself; recording cannot be started or stopped by it");
    else
      sigaction(options_.signal, &action, nullptr);
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the job's threads handle the job's signals
  control_ = std::thread{[this] { run_control(); }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Recorder::run_control() {
  std::uint32_t handled = 0;
  for (int polls = 1; !ending_; ++polls) {
    pollfd waiting{wake_, POLLIN, 0};
    if (poll(&waiting, 1, kPollMs) > 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t done = ::read(wake_, &count, sizeof count);
    }
    if (ending_) break;
    if (handled != signals_) {
      ++handled;
      if (started_) {
        stop();
        detach();
        say("recording stopped; the signal starts it again");
      } else if (start()) {
        say("recording started");
      }
    }
    if (started_ && window_->ended()) {
      stop();
      detach();
    }
    if (started_ && polls % kPollsPerClockReading == 0) {
      read_clocks();
      count_dropped();
    }
  }
  stop();
  const std::lock_guard lock{control_mutex_};
  control_done_ = true;
  control_changed_.notify_all();
}

void Recorder::end() {
  if (dead_.exchange(true)) return;
  if (control_.joinable()) {
    std::unique_lock lock{control_mutex_};
    ending_ = true;
    control_changed_.notify_all();
    wake();
    if (!control_changed_.wait_for(lock, std::chrono::milliseconds{options_.flush_limit_ms},
                                   [this] { return control_done_; }))
      say("CUPTI did not hand out its last records in " + std::to_string(options_.flush_limit_ms) +
          " ms; the raw file lacks them");
    lock.unlock();
    control_.detach();
  }
  if (window_ != nullptr && !window_->begun() && output_.is_open())
    say("the job ended before the iterations that were to be recorded: " + std::to_string(window_->boundaries()) +
        (window_->boundaries() == 1 ? " iteration was marked, " : " iterations were marked, ") +
        std::to_string(options_.skip) + " to be skipped. " +
        (options_.torch ? "Iterations are steps of a PyTorch optimizer"
                        : "Iterations are NVTX ranges '" + options_.iteration_range + "...'" +
                              (options_.iteration_kernel.empty()
                                   ? ""
                                   : " and launches of kernels named '..." + options_.iteration_kernel + "...'")));
  output_.close(options_.flush_limit_ms);
}

void Recorder::forked() {
  dead_ = true;
  started_ = false;
  output_.abandon();
}

void Recorder::iteration(std::string_view name, std::uint32_t last) {
  if (!output_.is_open()) return;
  const bool ended = window_->ended(), inside = window_->boundary(last);
  if (inside || (window_->ended() && !ended)) {
    raw::Range mark;
    mark.time = now();
    mark.name = output_.text(name);
    mark.thread = thread_id();
    mark.action = raw::RangeAction::kMark;
    mark.meaning = raw::Meaning::kIteration;
    output_.append(mark);
  }
  if (window_->ended() && !ended) wake();
}

void Recorder::hook_iteration(bool last) {
  if (dead_ || !started_) return;
  const bool ended = window_->ended();
  if (last)
    window_->close(last_correlation_);
  else
    window_->boundary(last_correlation_);
  if (window_->ended() && !ended) wake();
}

void Recorder::range(raw::RangeAction action, std::string_view name, std::string_view domain, std::uint64_t id) {
  if (dead_ || !started_) return;
  const bool begins =
      action == raw::RangeAction::kPush || action == raw::RangeAction::kBegin || action == raw::RangeAction::kMark;
  if (begins && !options_.torch && !options_.iteration_range.empty() && name.starts_with(options_.iteration_range))
    iteration(name, last_correlation_);
  if (!window_->begun() || window_->ended()) return;
  raw::Range range;
  range.time = now();
  range.id = id;
  range.name = output_.text(name);
  range.domain = output_.text(domain);
  range.thread = thread_id();
  range.action = action;
  output_.append(range);
}

}  // namespace tidepool::inject
