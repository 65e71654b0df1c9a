// Trace files: any bytes are either refused with a message, or a trace that is written and read back unchanged. If
// the first byte is odd, the other bytes describe frames, which get correct headers and checksums, so that their
// content is tested too.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "traces/base/error.hpp"
#include "traces/file/decode.hpp"
#include "traces/file/format.hpp"
#include "traces/file/frame.hpp"
#include "traces/file/writer.hpp"
#include "traces/jsonl/jsonl.hpp"

namespace {

using namespace tidepool;

/// A file of the frames that the bytes describe: section, number of records, two bytes of size, content.
std::string framed(std::string_view bytes) {
  std::string out{file::kMagic};
  file::store32(file::kVersion, out);
  file::store32(0, out);
  while (bytes.size() >= 4) {
    const auto at = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };
    const std::size_t size = std::min(at(2) | at(3) << 8, bytes.size() - 4);
    file::append_frame(static_cast<file::Section>(at(0) % file::kSections), at(1), bytes.substr(4, size), out);
    bytes.remove_prefix(4 + size);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const bool describes = size > 0 && bytes[0] % 2 == 1;
  std::optional<Trace> trace;
  try {
    trace = read_trace_file(Input{"fuzz.tide", describes ? framed(bytes.substr(1)) : std::string{bytes}});
  } catch (const InputError& error) {
    if (!std::string_view{error.what()}.starts_with("fuzz.tide:")) std::abort();
    return 0;
  }
  if (read_trace_file(Input{"again.tide", to_trace_file(*trace)}).data() != trace->data()) std::abort();
  if (read_jsonl(Input{"again.jsonl", to_jsonl(*trace)}).data() != trace->data()) std::abort();
  return 0;
}
