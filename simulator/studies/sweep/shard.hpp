// Shares of a sweep's runs, one for each of several workers.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

/// Every run belongs to exactly one of `count` shards. Only the run's key decides which one, so that all workers agree
/// and slow runs (small capacities, a slow policy) are spread over the shards.
struct Shard {
  int index = 1;  ///< 1 to count
  int count = 1;

  /// @param run_key  32 hexadecimal digits
  bool has(std::string_view run_key) const;
};

/// The index of the run's shard, 1 to `count`.
int shard_of(std::string_view run_key, int count);

/// "2/8".
std::string to_text(const Shard& shard);

/// Reads "2/8".
/// @throws InputError  "'0/8' is not a shard; expected INDEX/COUNT, whole numbers with INDEX from 1 to COUNT and COUNT
/// up to 100000, as in 2/8"
Shard parse_shard(std::string_view text);

}  // namespace tidepool
