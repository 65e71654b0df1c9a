// Time to recompute a version, given the versions that are resident when this happens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// Times of recomputations in a program from which some versions are dropped. The program's own frees count: an input
/// that is freed or dropped when the recomputation needs it is recomputed too.
class Lineage {
 public:
  /// O(uses). `trace` must outlive this.
  explicit Lineage(const Trace& trace);

  /// Makes `v` absent before the ops in (release, due). keep() undoes this.
  void drop(VersionId v, std::uint32_t release, std::uint32_t due);
  void keep(VersionId v) { due_[v.index()] = release_[v.index()] = 0; }

  /// Time of the ops that must run again to have `v` before `op`, each once. None if `v` cannot be recomputed, since it
  /// or an absent input is a source's output or from before the step. O(reruns and their uses).
  std::optional<Nanos> time(VersionId v, std::uint32_t op);

 private:
  bool available(VersionId v, std::uint32_t op) const;

  const Trace& trace_;
  std::vector<std::uint32_t> end_, release_, due_;  // by version
  std::vector<std::uint32_t> asked_;                // by op: the last query that counted it
  std::uint32_t question_ = 0;
  std::vector<VersionId> wanted_;
};

}  // namespace tidepool
