// A plan without addresses as what it is to its lanes: waiting for the latest of some times, and taking time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulator/plan.hpp"
#include "simulator/run.hpp"
#include "traces/trace.hpp"

namespace tidepool {

/// The times of a run in registers: those of the lanes, three of every version, and where the trace has order edges the
/// ends of ops. Every action of a plan sets some of them to the latest of others and a constant more (max-plus algebra:
/// Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", 1992), so a program is to times what a matrix
/// is to vectors.
///
/// It says what Timeline does where the places of buffers are not told apart (the ideal pool), the directions of the
/// link do not disturb each other, copies go in one piece and to the host only, and pinning is free; in one iteration.
class LaneProgram {
 public:
  using Register = std::uint32_t;

  /// registers[target] = latest of `sources` + `more`
  struct Instruction {
    Register target = 0;
    Nanos more;
    std::uint32_t first_source = 0, last_source = 0;
  };

  /// @param plan  total, on the ideal pool
  /// @return      none where the plan or the machine has more to it than above
  static std::optional<LaneProgram> compile(const Trace& trace, const RunSpec& spec, const Plan& plan);

  std::size_t actions() const { return first_.size() - 1; }
  /// What an action does, in order.
  std::span<const Instruction> instructions(std::size_t action) const {
    return std::span{instructions_}.subspan(first_[action], first_[action + 1] - first_[action]);
  }
  std::span<const Register> sources(const Instruction& one) const {
    return std::span{sources_}.subspan(one.first_source, one.last_source - one.first_source);
  }

  /// Registers below this are lanes: streams first, then copies in, copies out, host, and places to be had again.
  Register lanes() const { return streams_ + 4; }
  Register streams() const { return streams_; }
  Register copies_in() const { return streams_; }
  Register copies_out() const { return streams_ + 1; }
  Register host() const { return streams_ + 2; }
  Register places() const { return streams_ + 3; }
  /// Of the times of a version, which.
  static constexpr Register kReady = 0, kLastUse = 1, kOnHost = 2;
  Register of(VersionId v, Register which) const { return lanes() + v.value() * 3 + which; }
  std::size_t registers() const { return registers_; }

  /// Carries out the actions [first, last).
  void run(std::vector<Nanos>& registers, std::size_t first, std::size_t last) const;
  /// When all lanes are done.
  Nanos end(const std::vector<Nanos>& registers) const;

 private:
  class Compiler;

  Register streams_ = 0;
  std::size_t registers_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<Register> sources_;
  std::vector<std::uint32_t> first_;  // by action: instruction
};

}  // namespace tidepool
