#include "traces/names.hpp"

#include <array>

namespace tidepool {
namespace {

using Words = std::span<const std::string_view>;

template <std::size_t N>
using List = std::array<std::string_view, N>;

constexpr List<7> kBufferKinds{"unknown",    "parameter", "gradient", "optimizer_state",
                               "activation", "workspace", "input"};
constexpr List<6> kOpKinds{"kernel", "copy", "memset", "collective", "host_wait", "source"};
constexpr List<4> kPhases{"unknown", "forward", "backward", "optimizer"};
constexpr List<5> kAccesses{"read", "write", "read_write", "touch", "view"};
constexpr List<6> kEvidence{"schema", "copy", "const", "instrumented", "parameter", "inferred"};
constexpr List<4> kMarkKinds{"iteration", "phase", "range_begin", "range_end"};
constexpr List<4> kVersionKinds{"initial", "write", "update", "view"};
constexpr List<4> kStepKinds{"alloc", "free", "run", "forget"};

}  // namespace

// clang-format off
template <> Words words<BufferKind>() { return kBufferKinds; }
template <> Words words<OpKind>() { return kOpKinds; }
template <> Words words<Phase>() { return kPhases; }
template <> Words words<Access>() { return kAccesses; }
template <> Words words<Evidence>() { return kEvidence; }
template <> Words words<MarkKind>() { return kMarkKinds; }
template <> Words words<VersionKind>() { return kVersionKinds; }
template <> Words words<EventKind>() { return kStepKinds; }
// clang-format on

std::string choices(std::span<const std::string_view> all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " or " : ", ";
    text += all[i];
  }
  return text;
}

}  // namespace tidepool
