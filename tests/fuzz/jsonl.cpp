// Traces as JSON lines: refused with a message, or written and read back as the same.
#include "traces/jsonl/jsonl.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tests/fuzz/mutations/mutations.hpp"
#include "traces/base/error.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  std::optional<Trace> trace;
  try {
    trace = read_jsonl(Input{"fuzz.jsonl", {reinterpret_cast<const char*>(data), size}});
  } catch (const InputError& error) {
    if (!std::string_view{error.what()}.starts_with("fuzz.jsonl:")) std::abort();
    return 0;
  }
  if (read_jsonl(Input{"again.jsonl", to_jsonl(*trace)}).data() != trace->data()) std::abort();
  if (read_trace_file(Input{"again.tide", to_trace_file(*trace)}).data() != trace->data()) std::abort();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tidepool::fuzz::mutate_in_place(data, size, most, seed, tidepool::fuzz::mutate_json);
}
