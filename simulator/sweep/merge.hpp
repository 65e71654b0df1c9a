// Databases of several workers put together.
#pragma once

#include <span>
#include <string>

#include "simulator/sweep/database.hpp"

namespace tidepool {

struct MergeCount {
  std::int64_t added = 0;  ///< runs that were not there
  std::int64_t known = 0;  ///< runs that were, with the same result
};

/// Adds every run, measurement and request of `sources`, each checked for damage first. The runs are the same in any
/// order of them, and so are the measurements but for how repeats are numbered. Runs are streamed; memory does not grow
/// with their number. If it fails, `into` has whole sources and part of another, and the same merge goes on from there.
/// @param any_version  take runs of different versions of the program, which are different runs
/// @throws InputError  "b.sqlite: runs of tidepool 0.2.0, but 0.1.0 in a.sqlite; expected one version, or
/// --any-version",
///                     or as Database and Database::check
/// @throws Disagreement  naming the two files
MergeCount merge(std::span<const std::string> sources, Database& into, bool any_version = false);

}  // namespace tidepool
