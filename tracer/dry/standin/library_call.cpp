#include "tracer/dry/standin/library_call.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tidepool::dry {

void call_library(void* stream, LibraryCall call) {
  Standin& standin = Standin::get();
  standin.submit(standin.stream(stream), [call = std::move(call)](Stream&) {
    if (std::getenv("TIDEPOOL_DRY_LOG"))
      std::fprintf(stderr, "call %s %g\n", std::string{call.name}.c_str(), call.flops);
  });
}

}  // namespace tidepool::dry
