// Any bytes are either a layout file that can be written again without loss, or refused with a position. For a job that
// deviates from the layout, each request is matched with a planned one of its size, or with none.
#include "simulator/solvers/packing/layout_file.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "simulator/solvers/packing/follower.hpp"
#include "tests/fuzz/mutations/mutations.hpp"
#include "traces/base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  LayoutFile file;
  try {
    file = parse_layout(Input{"fuzz.layout", {reinterpret_cast<const char*>(data), size}});
  } catch (const InputError& error) {
    if (!std::string_view{error.what()}.starts_with("fuzz.layout")) std::abort();
    return 0;
  }
  const std::string text = layout_text(file);
  if (parse_layout(Input{"again.layout", text}) != file) std::abort();

  // The job runs the step twice. Of all requests, it leaves out every third one, and makes every fourth one twice
  // unless that is left out. The follower answers with a planned request of the wanted size, or with none.
  Follower follower{file.requests, file.existing};
  for (std::size_t i = 0; i < 2 * file.requests.size(); ++i) {
    if (i % 3 == 2) continue;
    for (int times = i % 4 == 0 ? 2 : 1; times > 0; --times) {
      const Bytes wanted = file.requests[i % file.requests.size()].size;
      const std::optional<std::size_t> taken_for = follower.next(wanted);
      if (taken_for && (*taken_for >= file.requests.size() || file.requests[*taken_for].size != wanted)) std::abort();
    }
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tidepool::fuzz::mutate_in_place(data, size, most, seed, tidepool::fuzz::mutate_json);
}
