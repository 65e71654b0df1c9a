// Entry points of the recorder. CUDA_INJECTION64_PATH names this library, and the driver calls it in cuInit. PyTorch's
// hook finds it in the process, and calls it when an iteration begins and when the hook's recording ends.
#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "tracer/inject/recorder.hpp"

using tidepool::inject::Recorder;

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static std::once_flag once;
  try {
    std::call_once(once, [] {
      Recorder::instance().begin();
      pthread_atfork(nullptr, nullptr, [] { Recorder::instance().forked(); });
      std::atexit([] { Recorder::instance().end(); });
    });
  } catch (...) {
    tidepool::inject::say("out of memory; the job runs unrecorded");
  }
  return 1;  // the job continues in any case
}

extern "C" __attribute__((visibility("default"))) void tidepool_iteration(int last) {
  Recorder::instance().hook_iteration(last != 0);
}
