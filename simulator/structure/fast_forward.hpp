// Running like layers once: what follows from the same times, later, is the same times, as much later.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/structure/lane_program.hpp"
#include "simulator/structure/structure.hpp"

namespace tidepool {

/// A program and what is repeated in it: copies of some actions that do the same to other versions.
class FoldedProgram {
 public:
  /// @param program  outlives it. O(n log n) for n sources of instructions
  explicit FoldedProgram(const LaneProgram& program);

  struct Run {
    Nanos end;                                  ///< when all lanes are done
    std::size_t carried_out = 0, recalled = 0;  ///< actions
  };
  /// Carries the program out, but copies of a repeat only until one begins as the one before it did: when every lane
  /// and every time that it reads is later by the same, or in both so early that nothing waits for it. Then it ends as
  /// that one did, later by the same. Exact: `end` is what LaneProgram::run() leads to. O(1) for every version that a
  /// recalled copy touches, whatever is done to it.
  Run run() const;

  const std::vector<Repeat>& repeats() const { return repeats_; }

 private:
  using Register = LaneProgram::Register;

  /// The registers of versions that a copy uses, in the order of their first use; the same for all copies of a repeat
  /// but for which registers they are.
  struct Roles {
    std::vector<std::vector<Register>> registers;  ///< by copy
    std::vector<bool> read, written;               ///< by role: read before it is written; written at all
    std::vector<bool> lane_read, lane_written;     ///< by lane
    Nanos host;                                    ///< what the copy adds to the host lane
    bool host_waits = false;                       ///< something else sets it
  };
  struct Memory;
  Roles roles_of(const Repeat& repeat, std::uint32_t& alike) const;
  bool recall(const Roles& roles, const std::vector<Register>& mine, const Memory& memory,
              std::vector<Nanos>& registers) const;

  const LaneProgram& program_;
  std::vector<Repeat> repeats_;  // of actions, in order, none in another
  std::vector<Roles> roles_;     // by repeat
};

/// By action: a number that two share if they do the same to lanes and as much to versions.
std::vector<std::uint32_t> action_letters(const LaneProgram& program);

}  // namespace tidepool
