// A job with arbitrary requests and frees, under a layout of any bytes: no two blocks share a byte, every block keeps
// its content, no request fails, and every free finds its block.
#include "validator/live/planned_allocator.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/base/error.hpp"

namespace {

using namespace tidepool;

struct Held {
  unsigned char* memory;
  std::size_t size;
  unsigned char mark;
};

void end(PlannedAllocator& allocator, std::vector<Held>& held, std::size_t which) {
  const Held block = held[which];
  for (std::size_t i = 0; i < block.size; ++i)
    if (block.memory[i] != block.mark) std::abort();
  allocator.free(block.memory);
  held[which] = held.back();
  held.pop_back();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kMostArena = 1 << 20;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const std::size_t cut = text.find('\0');
  LayoutFile file;
  try {
    file = parse_layout(Input{"fuzz.layout", text.substr(0, cut)});
  } catch (const InputError&) {
    return 0;
  }
  if (file.height > Bytes{kMostArena} || file.alignment > Bytes{kMostArena}) return 0;
  HeapMemory memory;
  std::optional<PlannedAllocator> allocator;
  try {
    allocator.emplace(file, Bytes{4096}, memory);
  } catch (const InputError&) {
    return 0;
  }
  std::vector<Held> held;
  unsigned char mark = 0;
  for (std::size_t i = cut == std::string_view::npos ? size : cut + 1; i < size; ++i) {
    const std::uint8_t step = data[i];
    if (step % 2 == 1 && !held.empty()) {
      end(*allocator, held, (step / 2U) % held.size());
      continue;
    }
    const Bytes planned = file.requests.empty() ? Bytes{step} : file.requests[(step / 2U) % file.requests.size()].size;
    const Bytes wanted = planned > Bytes{kMostArena} || step >= 200 ? Bytes{step} : planned;
    auto* bytes = static_cast<unsigned char*>(allocator->allocate(wanted, nullptr));
    if (!bytes) continue;
    held.push_back({bytes, static_cast<std::size_t>(wanted.count()), ++mark});
    std::memset(bytes, mark, held.back().size);
  }
  while (!held.empty()) end(*allocator, held, held.size() - 1);
  const PlannedAllocator::Report report = allocator->report();
  if (report.unknown_frees != 0 || report.failed != 0) std::abort();
  return 0;
}
