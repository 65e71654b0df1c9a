// Merge of the databases of several workers.
#pragma once

#include <span>
#include <string>

#include "simulator/studies/sweep/database.hpp"

namespace tidepool {

struct MergeCount {
  std::int64_t added = 0;  ///< runs that `into` did not have
  std::int64_t known = 0;  ///< all other runs of `sources`: `into` had them already
};

/// Adds every run, measurement and request of `sources` to `into`; each source is checked for damage first. The result
/// does not depend on the order of the sources, except for the repeat numbers of measurements. Memory does not grow
/// with the number of runs. If a merge fails, `into` has some whole sources and a part of another. The same merge then
/// goes on from there.
/// @param any_version  accept runs of different versions of the program; these are different runs
/// @throws InputError  as Database and Database::check, or "b.sqlite: runs of tidepool 0.2.0, but 0.1.0 in a.sqlite;
///                     expected one version, or --any-version"
/// @throws Disagreement  naming the two files
MergeCount merge(std::span<const std::string> sources, Database& into, bool any_version = false);

}  // namespace tidepool
