// Tables of lifetimes, as static allocators read them: one buffer a line, the columns named in the first line, in any
// order.
//   id, lower, upper, size   lives [lower, upper), in any unit of time
//   alignment                optional: the offset is a multiple of it; empty: 1
//   offset                   optional: the fixed offset of the buffer; empty: any
//   gaps                     optional: "3-5 8-9": not alive during [3, 5) and [8, 9), but back at the same offset
//   hint                     optional: the offset at which MiniMalloc begins its search; a whole number, not used here
// The columns and their meaning are MiniMalloc's (github.com/google/minimalloc, src/converter.cc). MiniMalloc also has
// windows, which are gaps in which a part of the buffer stays ("3-5@0:4"); these are refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/base/input.hpp"
#include "traces/trace.hpp"

namespace tidepool {

struct Lifetime {
  std::string id;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size = 0;
  std::int64_t alignment = 1;
  std::optional<std::int64_t> offset = {};
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps = {};  ///< ascending, disjoint, inside the life
  bool operator==(const Lifetime&) const = default;
};

struct LifetimeTable {
  std::vector<Lifetime> rows;
  bool constrained = false;  ///< has a column for alignment, offset or gaps: more than a trace can hold
};

/// The columns that are read.
enum class LifetimeColumns : std::uint8_t {
  kPlain,  ///< the four that a trace can hold; others are refused, since their data would be lost
  kAll,
};

/// @throws InputError  "file:line: what we saw; what we expected"
LifetimeTable read_lifetimes(const Input& input, LifetimeColumns columns);

/// The lives of sizes without a program: only the rows' ids, times and sizes count. Ends come before beginnings at the
/// same time; otherwise the order of the rows decides.
Trace trace_of(const std::vector<Lifetime>& rows, const std::map<std::string, std::string>& meta);

/// Whether a file that begins with `head` is such a table.
bool looks_like_lifetimes(std::string_view head);

}  // namespace tidepool
