// Registry of the handles of the fake of libcuda.so.1, and the checks before each call.
#pragma once

#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace fake {

/// The valid handles of one type, and the released ones. Their objects live as long as the process, so that a new
/// object never has the handle of a released one. Functions and executable graphs are exceptions, on purpose (see
/// cuda_state.hpp).
template <class Handle>
class Handles {
 public:
  static Handle* add(Handle* handle) {
    const std::lock_guard lock{mutex()};
    all()[handle] = true;
    return handle;
  }
  /// @return  whether the handle was valid
  static bool remove(Handle* handle) {
    const std::lock_guard lock{mutex()};
    const auto known = all().find(handle);
    return known != all().end() && std::exchange(known->second, false);
  }
  static bool know(Handle* handle) {
    const std::lock_guard lock{mutex()};
    const auto known = all().find(handle);
    return known != all().end() && known->second;
  }

 private:
  /// All handles, and whether they are valid. Never destroyed: the job may call the driver from its destructors.
  static std::map<Handle*, bool>& all() {
    static auto& handles = *new std::map<Handle*, bool>;
    return handles;
  }
  static std::mutex& mutex() {
    static auto& only = *new std::mutex;
    return only;
  }
};

inline std::atomic<pid_t> initialized{0};  // the process that called cuInit; its children may not use the device
inline thread_local CUcontext current_context = nullptr;
inline std::atomic<unsigned> retained{0};

/// Success if this thread may call the driver.
inline CUresult ready() {
  if (initialized != getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  return current_context == nullptr || retained == 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/// Success if ready() succeeds and these handles are valid. For the default stream, pass &stream_of(nullptr).
template <class... Each>
CUresult ready(Each*... handles) {
  if (const CUresult result = ready(); result != CUDA_SUCCESS) return result;
  return (Handles<Each>::know(handles) && ...) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Runs the body and returns its status, if ready(handles...) succeeds; else returns the error.
template <class Body, class... Each>
CUresult checked(Body body, Each*... handles) {
  const CUresult result = ready(handles...);
  return result == CUDA_SUCCESS ? body() : result;
}

}  // namespace fake
