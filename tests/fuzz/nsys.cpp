// Any bytes as an SQLite export of Nsight Systems: read or refused, nothing else.
#include "tests/fuzz/mutations/mutations.hpp"
#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tidepool::read_nsys(tidepool::Input{"fuzz.sqlite", {reinterpret_cast<const char*>(data), size}});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tidepool::fuzz::mutate_in_place(data, size, most, seed, tidepool::fuzz::mutate_sqlite);
}
