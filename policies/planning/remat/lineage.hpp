// Ops that make a version again, given what else is there at that time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Times of recomputations in a program from which some versions are dropped. The program's frees are followed: what
/// has been freed is recomputed as well, and so is what is dropped at that time.
class Lineage {
 public:
  /// O(uses) to make.
  explicit Lineage(const Trace& trace);

  /// From now on `v` is absent in front of the ops in (release, due), or no longer.
  void drop(VersionId v, std::uint32_t release, std::uint32_t due);
  void keep(VersionId v) { due_[v.index()] = release_[v.index()] = 0; }

  /// Time of the ops that must run again for `v` in front of `op`, each once; nothing where that is impossible, since
  /// something needed was there before the step or is a source, and is gone. O(ops that run again and their uses).
  std::optional<Nanos> time(VersionId v, std::uint32_t op);

 private:
  bool available(VersionId v, std::uint32_t op) const;

  const Trace& trace_;
  std::vector<std::uint32_t> end_, release_, due_;  // by version
  std::vector<std::uint32_t> asked_;                // by op: the question that it was last counted for
  std::uint32_t question_ = 0;
  std::vector<VersionId> wanted_;
};

}  // namespace tidepool
