// Options of the recorder, set through the environment by `tidepool record` or by hand.
#pragma once

#include <cstdint>
#include <string>

namespace tidepool::cupti {

/// Names of the environment variables; README.md has the meanings of those without a comment.
namespace variable {
inline constexpr const char* kFolder = "TIDEPOOL_RAW";
inline constexpr const char* kCupti = "TIDEPOOL_CUPTI";
inline constexpr const char* kSkip = "TIDEPOOL_SKIP";
inline constexpr const char* kIterations = "TIDEPOOL_ITERATIONS";
inline constexpr const char* kIterationRange = "TIDEPOOL_ITERATION_RANGE";
inline constexpr const char* kIterationKernel = "TIDEPOOL_ITERATION_KERNEL";
inline constexpr const char* kSignal = "TIDEPOOL_SIGNAL";
inline constexpr const char* kWait = "TIDEPOOL_WAIT";
inline constexpr const char* kDeviceBuffers = "TIDEPOOL_DEVICE_BUFFERS";
inline constexpr const char* kResolve = "TIDEPOOL_RESOLVE";
inline constexpr const char* kDetach = "TIDEPOOL_DETACH";
inline constexpr const char* kFlushLimit = "TIDEPOOL_FLUSH_LIMIT_MS";
inline constexpr const char* kTimes = "TIDEPOOL_TIMES";         ///< a device: PyTorch's hook prices operators for it
inline constexpr const char* kSteps = "TIDEPOOL_STEPS";         ///< PyTorch's hook ends the job after so many steps
inline constexpr const char* kTorch = "TIDEPOOL_RECORD_TORCH";  ///< set if PyTorch's hook records too
}  // namespace variable

struct RecorderOptions {
  std::string folder;                         ///< for one file per process; empty: nothing is recorded
  std::string cupti;                          ///< path of libcupti; empty: see CuptiLibrary::load()
  std::uint64_t skip = 0, iterations = 0;     ///< see IterationWindow
  std::string iteration_range = "iteration";  ///< an NVTX range with this prefix begins an iteration
  std::string iteration_kernel;               ///< as does a kernel whose name contains this text; empty: none does
  bool torch = false;                         ///< only PyTorch's hook marks the begins of iterations
  int signal = 0;                             ///< starts and stops the recording; 0 = none
  bool wait = false;                          ///< nothing is recorded before the first signal
  bool device_buffers = false;                ///< CUPTI may keep its buffers in device memory
  bool resolve = true;                        ///< ask the driver about the memory of unknown pointers
  bool detach = true;                         ///< CUPTI leaves the process when the recording has ended
  std::uint32_t flush_limit_ms = 5000;        ///< the longest wait for CUPTI at the end of the job
  std::string problem;                        ///< message about the last wrong variable; each keeps its default
};

/// Reads the variables. Never throws: a job is not ended for a mistyped number.
RecorderOptions options_from_environment();

}  // namespace tidepool::cupti
