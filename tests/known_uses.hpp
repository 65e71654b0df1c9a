// Random steps whose ops may be reordered.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tests/random_trace.hpp"

namespace tidepool::tests {

/// A small random step of one stream, all uses of which are known from schemas; nothing for a seed with two streams.
inline std::optional<Trace> step_of_known_uses(std::uint64_t seed, int ops) {
  TraceData data = RandomProgram{seed, ops}.make_small().data();
  if (data.streams.size() > 1) return std::nullopt;
  for (Use& use : data.uses) use.evidence = Evidence::kSchema;
  return Trace{std::move(data)};
}

}  // namespace tidepool::tests
