// Starting and stopping CUPTI.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tracer/inject/recorder.hpp"

namespace tidepool::inject {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kReadyBuffers = 4, kMostBuffers = 256;
constexpr std::uint32_t kFlushPeriodMs = 500;
constexpr int kDetachWaits = 20;  ///< of 100 ms, until the job makes a call in which CUPTI can be detached
constexpr CUpti_CallbackId kMostCallbacks = 1U << 14;

constexpr std::array kKinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_MEMORY_POOL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT,
    CUPTI_ACTIVITY_KIND_STREAM,
    CUPTI_ACTIVITY_KIND_DEVICE,
    CUPTI_ACTIVITY_KIND_CONTEXT,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
};

constexpr std::array kResourceCallbacks{
    CUPTI_CBID_RESOURCE_STREAM_CREATED,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING,
};

std::string reason(const CuptiLibrary& cupti, CUptiResult result) {
  const char* text = nullptr;
  if (cupti.result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  return std::string{text} + " (" + std::to_string(static_cast<int>(result)) + ")";
}

bool records_torch() { return std::getenv(cupti::variable::kTorch) != nullptr; }

/// A sentence about the recording that is possible without CUPTI.
std::string what_remains() {
  return records_torch() ? "only PyTorch's operators and tensors are recorded" : "the job runs unrecorded";
}

}  // namespace

Recorder& Recorder::instance() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

Recorder::Recorder() : options_{cupti::options_from_environment()}, layouts_{options_.iteration_kernel} {}

void Recorder::begin() {
  if (!options_.problem.empty()) say(options_.problem);
  if (options_.folder.empty()) {
    say("TIDEPOOL_RAW is not set; expected the folder for the recording, as `tidepool record` sets it");
    return;
  }
  window_ = std::make_unique<cupti::IterationWindow>(options_.skip, options_.iterations);
  if (!load()) return;
  if (!options_.wait && !start()) return;
  listen();
}

bool Recorder::load() {
  if (const std::string problem = cupti_.load(options_.cupti.c_str()); !problem.empty()) {
    say("no CUPTI: " + problem + "; " + what_remains() +
        ". Expected libcupti.so of CUDA 12.4 or later in LD_LIBRARY_PATH, or its path in TIDEPOOL_CUPTI");
    return false;
  }
  if (const std::string problem = driver_.load(); !problem.empty()) {
    say("no driver: " + problem + "; " + what_remains());
    return false;
  }
  if (const int error = output_.open(options_.folder, now()); error != 0) {
    say(options_.folder + ": cannot make a file for the recording (" + std::strerror(error) +
        "); the job runs unrecorded");
    return false;
  }
  int driver = 0;
  driver_.version(&driver);
  output_.info("mode", "cupti");
  output_.info("driver", std::to_string(driver));
  output_.info("cupti_library", cupti_.path.substr(cupti_.path.rfind('/') + 1));  // its folder may name a user
  output_.info("cupti_headers", std::to_string(CUPTI_API_VERSION));
  output_.info("driver_headers", std::to_string(CUDA_VERSION));
  learn_calls();
  buffers_ = std::make_unique<cupti::BufferPool>(kBufferBytes, kReadyBuffers, kMostBuffers);
  return true;
}

void Recorder::learn_calls() {
  calls_.clear();
  outer_calls_.clear();
  for (CUpti_CallbackId id = 0; id < kMostCallbacks; ++id) {
    const char* name = nullptr;
    if (cupti_.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || name == nullptr) {
      if (id > 0) break;
      name = "";
    }
    calls_.push_back(cupti::driver_call(name));
  }
  for (CUpti_CallbackId id = 1; id < kMostCallbacks; ++id) {
    const char* name = nullptr;
    if (cupti_.callback_name(CUPTI_CB_DOMAIN_RUNTIME_API, id, &name) != CUPTI_SUCCESS || name == nullptr) break;
    if (cupti::is_outer_call(name)) outer_calls_.push_back(id);
  }
}

bool Recorder::subscribe() {
  char other[128] = {};
  SubscriberParams params;
  params.name = "tidepool";
  params.other_name = other;
  params.other_size = sizeof other;
  CUptiResult result = CUPTI_ERROR_UNKNOWN;
  if (cupti_.subscribe_v2 != nullptr) result = cupti_.subscribe_v2(&subscriber_, &Recorder::on_callback, this, &params);
  if (cupti_.subscribe_v2 == nullptr) result = cupti_.subscribe(&subscriber_, &Recorder::on_callback, this);
  if (result == CUPTI_SUCCESS) return true;
  subscriber_ = nullptr;
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    other[sizeof other - 1] = '\0';
    const std::string name = *other == '\0' ? "another profiler (Kineto, Nsight Systems or Compute Sanitizer)"
                                            : "'" + std::string{other} + "'";
    say(name + " already uses CUPTI in this process, and CUPTI serves one tool at a time; " + what_remains() +
        ". Switch the other tool off, or keep it and give `tidepool import` what it records" +
        (records_torch() ? "" : "; `tidepool record --torch` records PyTorch's operators and tensors without CUPTI"));
  } else {
    say("CUPTI refuses to be used: " + reason(cupti_, result) + "; " + what_remains());
  }
  return false;
}

void Recorder::set_attributes() {
  // Called before anything is enabled. By default CUPTI keeps its buffers in device memory: 0.7 GiB of an H200.
  std::size_t size = sizeof(std::uint8_t);
  std::uint8_t on = 1;
  cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &on);
  const bool pinned =
      !options_.device_buffers &&
      cupti_.set_attribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size, &on) == CUPTI_SUCCESS;
  output_.info("setting.cupti_buffers", pinned ? "host" : "device");
  if (!pinned) {
    std::size_t bytes = 0, most = 0;
    size = sizeof(std::size_t);
    cupti_.get_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes);
    cupti_.get_attribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &most);
    output_.info("setting.cupti_buffer_bytes", std::to_string(bytes));
    output_.info("setting.cupti_buffers_most", std::to_string(most));
  }
  if (cupti_.all_sync_records != nullptr) cupti_.all_sync_records(0);  // no records of queries
  if (cupti_.allocation_source != nullptr) cupti_.allocation_source(1);
}

void Recorder::set_callbacks(bool on) {
  const std::uint32_t enable = on ? 1 : 0;
  for (CUpti_CallbackId id = 0; id < calls_.size(); ++id)
    if (calls_[id] != cupti::DriverCall::kOther)
      cupti_.enable_callback(enable, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
  for (const CUpti_CallbackId id : outer_calls_)
    cupti_.enable_callback(enable, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, id);
  for (const CUpti_CallbackId id : kResourceCallbacks)
    cupti_.enable_callback(enable, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
}

bool Recorder::start() {
  if (!subscribe()) return false;
  memory_.forget();
  layouts_.forget();
  set_attributes();
  CUptiResult result = cupti_.register_callbacks(&Recorder::on_buffer_requested, &Recorder::on_buffer_completed);
  if (result == CUPTI_SUCCESS) result = cupti_.enable(kKinds.front());
  if (result != CUPTI_SUCCESS) {
    say("CUPTI does not record kernels: " + reason(cupti_, result) + "; " + what_remains() +
        (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
             ? ". Expected permission: root, or the driver's option NVreg_RestrictProfilingToAdminUsers=0"
             : ""));
    cupti_.unsubscribe(subscriber_);
    subscriber_ = nullptr;
    return false;
  }
  for (const CUpti_ActivityKind kind : kKinds)
    if (kind != kKinds.front() && cupti_.enable(kind) != CUPTI_SUCCESS)
      output_.info("setting.not_recorded", "activity kind " + std::to_string(static_cast<int>(kind)));
  if (cupti_.flush_period != nullptr) cupti_.flush_period(kFlushPeriodMs);
  // Some versions return 999 from every function before the driver has been initialised.
  if (cupti_.version == 0) cupti_.ask_version();
  if (outer_calls_.empty()) learn_calls();
  output_.info("cupti", cupti_.version == 0 ? "unknown" : std::to_string(cupti_.version));
  threads_inside_ = 0;
  ++session_;
  started_ = true;
  set_callbacks(true);
  read_clocks();
  return true;
}

void Recorder::stop() {
  if (!started_.exchange(false)) return;
  // A forced flush would deliver records of running work without times. So this first sleeps for a fifth of the flush
  // limit, at most 1 s, in which the work may end. At the end of the process, it does not sleep: all work that the job
  // waited for has ended.
  if (!ending_) std::this_thread::sleep_for(std::chrono::milliseconds{std::min(options_.flush_limit_ms / 5, 1000U)});
  cupti_.flush_all(0);
  for (const CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  count_dropped();
  read_clocks();
  output_.info("parameters", layouts_.summary());
}

void Recorder::detach() {
  if (subscriber_ == nullptr) return;
  if (options_.detach && finalize()) {
    subscriber_ = nullptr;
    return;
  }
  // CUPTI stays loaded, but nothing is enabled.
  set_callbacks(false);
  cupti_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
}

bool Recorder::finalize() {
  std::unique_lock lock{control_mutex_};
  detached_ = false;
  detach_wanted_ = true;
  // Many short waits take the place of a long one: if the whole machine is suspended, only one of them runs out.
  for (int waits = 0; waits < kDetachWaits && !detached_ && !ending_; ++waits)
    control_changed_.wait_for(lock, std::chrono::milliseconds{100}, [this] { return detached_ || ending_; });
  if (detached_) return true;
  if (detach_wanted_.exchange(false)) return false;           // the job made no call, or was always in one
  control_changed_.wait(lock, [this] { return detached_; });  // a callback is detaching now
  return true;
}

void Recorder::read_clocks() { output_.append(raw::ClockReading{now(), realtime(), monotonic_raw()}); }

void Recorder::count_dropped() {
  std::size_t dropped = 0;
  if (cupti_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS && dropped != 0)
    output_.append(raw::Loss{now(), dropped, raw::LossKind::kDroppedRecords});
}

std::int64_t Recorder::now() const {
  std::uint64_t time = 0;
  return cupti_.timestamp(&time) == CUPTI_SUCCESS ? static_cast<std::int64_t>(time) : realtime();
}

}  // namespace tidepool::inject
