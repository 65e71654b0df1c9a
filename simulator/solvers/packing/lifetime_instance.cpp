#include "simulator/solvers/packing/lifetime_instance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "traces/base/error.hpp"

namespace tidepool {

Instance instance_of(const LifetimeTable& table, Bytes alignment) {
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  Instance instance;
  for (const Lifetime& row : table.rows) {
    std::vector<Interval> lives;
    std::int64_t from = row.lower;
    for (const auto& [lower, upper] : row.gaps) {
      if (from < lower) lives.push_back({from, lower});
      from = upper;
    }
    if (from < row.upper) lives.push_back({from, row.upper});

    const std::size_t id = instance.items.size();
    const std::int64_t common = std::gcd(row.alignment, alignment.count());
    if (row.alignment / common > kMost / alignment.count())
      throw InputError{fmt::format("buffer {}: alignments of {} B and {} B have no common multiple below 2^61 B", id,
                                   row.alignment, alignment.count())};
    const Bytes size = alignment == 1_B ? Bytes{row.size} : std::max(round_up(Bytes{row.size}, alignment), alignment);
    Item& item = instance.add(size, lives);
    item.alignment = Bytes{row.alignment / common * alignment.count()};
    if (row.offset) item.fixed = Bytes{*row.offset};
  }
  return instance;
}

}  // namespace tidepool
