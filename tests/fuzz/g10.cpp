// Any bytes as G10's three tables, one after the other with a zero byte between them: read or refused, nothing else.
#include <algorithm>

#include "traces/base/error.hpp"
#include "traces/import/readers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all{reinterpret_cast<const char*>(data), size};
  const std::size_t first = std::min(all.find('\0'), size);
  const std::size_t second = std::min(all.find('\0', std::min(first + 1, size)), size);
  try {
    tidepool::read_g10(
        tidepool::Input{"kernels", all.substr(0, first)},
        tidepool::Input{"tensors", all.substr(std::min(first + 1, size), second - std::min(first + 1, second))},
        tidepool::Input{"times", all.substr(std::min(second + 1, size))});
  } catch (const tidepool::InputError&) {
  }
  return 0;
}
