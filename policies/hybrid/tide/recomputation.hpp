// Cascades of recomputations: what dropping the content of idle intervals costs in time and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/hybrid/tide/treatment.hpp"
#include "policies/planning/gaps/dead_content.hpp"
#include "policies/planning/gaps/gap.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// Follows a step in which the content of some idle intervals is on the host and that of others is dropped. Dropped
/// content is recomputed before the op that needs it. Inputs of a recomputation must be resident: an input on the host
/// is swapped in that early; a dropped input is recomputed first, and stays; an input that the program has freed is
/// recomputed for this one only. An op that works in place takes over the memory of a temporary input.
class Recomputation {
 public:
  /// @param trace, gaps  outlive this object
  /// @param dead         content that no recomputation finds after its last use
  Recomputation(const Trace& trace, const std::vector<Gap>& gaps, const std::vector<DeadContent>& dead);

  /// O(intervals, and uses of recomputed ops). @return  whether all needed content can be recomputed
  bool follow(const Treatments& treatments);

  /// The position before which an interval ends: its due op or, if a recomputation reads its content, an earlier one.
  std::uint32_t due(std::size_t gap) const { return due_[gap]; }
  /// By op: time of the recomputations before it.
  const std::vector<Nanos>& time() const { return time_; }
  /// By op: most bytes that recomputations need beside the load of the op.
  const std::vector<Bytes>& held() const { return held_; }
  /// Of all recomputations.
  Nanos total() const { return total_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  enum class At : std::uint8_t { kNowhere, kDevice, kHost, kDropped };
  struct Where {
    At at = At::kNowhere;
    std::uint32_t gap = kNone;  ///< the idle interval that the content is in, if it is not resident
  };
  struct VersionLife {
    std::uint32_t producer = kNone;  ///< op
    std::uint32_t begin = 0, end = 0;
    std::uint32_t replaces = kNone;  ///< the version in whose place it was made
    Bytes size;
    std::vector<std::uint32_t> gaps = {};
  };
  struct Frame {
    std::uint32_t op;
    std::size_t next_input, first_temporary;
  };

  void find_ends(const std::vector<DeadContent>& dead);
  bool is_in(std::uint32_t gap, std::uint32_t version) const;
  Where where(std::uint32_t version) const;
  bool is_there(std::uint32_t version);
  void end_interval(std::uint32_t gap);
  void enter(std::uint32_t version);
  void bring_back(std::uint32_t version);
  void give_up();
  void run_again(std::uint32_t op, std::size_t first_temporary);
  void add_temporary(std::uint32_t version);
  void end_temporary(std::uint32_t version);
  void drop_temporaries(std::size_t first, std::uint32_t made_by);

  const Trace& trace_;
  const std::vector<Gap>& gaps_;
  std::vector<std::vector<std::uint32_t>> inputs_, made_;  // by op: versions
  std::vector<bool> is_source_;                            // by op
  std::vector<VersionLife> versions_;
  std::vector<std::uint32_t> by_due_;  // idle intervals in the order of their due ops in the step

  const Treatments* treatments_ = nullptr;
  std::vector<std::uint32_t> due_;
  std::vector<char> ended_;  // by idle interval
  std::vector<Nanos> time_;
  std::vector<Bytes> held_;
  std::vector<std::uint32_t> touched_;  // ops with recomputations
  Nanos total_;
  bool possible_ = true;

  std::uint32_t op_ = 0;
  Bytes temporary_bytes_, pending_;         // pending: dropped content that the load of op_ counts, but is not back yet
  std::vector<char> is_temporary_, waits_;  // by version; by op
  std::vector<std::uint32_t> temporaries_;
  std::vector<Frame> frames_;
};

}  // namespace tidepool
