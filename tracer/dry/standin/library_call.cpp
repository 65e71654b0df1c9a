#include "tracer/dry/standin/library_call.hpp"

namespace tidepool::dry {

void call_library(void* stream, const LibraryCall& call) {
  Standin& standin = Standin::get();
  standin.call(standin.stream(stream), call);
}

}  // namespace tidepool::dry
