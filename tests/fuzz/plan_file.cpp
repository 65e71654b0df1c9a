// Any bytes are a plan file that can be written again without loss, or are refused with a position.
#include "simulator/plan_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "traces/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  try {
    const std::string text = plan_text(parse_plan(Input{"fuzz.plan", bytes}));
    if (plan_text(parse_plan(Input{"again.plan", text})) != text) std::abort();
  } catch (const InputError& error) {
    if (std::string_view{error.what()}.substr(0, 9) != "fuzz.plan") std::abort();
  }
  return 0;
}
