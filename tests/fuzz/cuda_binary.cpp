// Any bytes as a fat binary, and as a cubin: read as far as possible, without a crash.
#include "tracer/dry/cubin.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span{data, size});
  tidepool::dry::read_cubin(bytes);
  tidepool::dry::read_cubin(tidepool::dry::cubin_for_device(bytes, 9, 0).bytes);
  return 0;
}
