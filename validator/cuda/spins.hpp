// Kernels that keep a stream busy for a time: the ops of a timed run.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validator/cuda/device.hpp"
#include "validator/execution/predecessors.hpp"

namespace tidepool::cuda {

/// The duration of an op counts from the latest end of its predecessors, which may be on other streams. So the time
/// from that end to the kernel's begin is part of the duration. Kernels on separate streams stamp the ends of copies,
/// so that no copy waits for such a kernel.
class Spins {
 public:
  /// @param stamps  one Stamp for each step of the program, and one for the begin of the program
  Spins(const Gpu& gpu, const DeviceProgram& program, Address stamps);

  /// Sets begin and end of a stamp to the time at which the stream reaches this call.
  void stamp(Stream stream, std::uint32_t number) { spin(stream, number, 0, 0, 0); }
  /// Keeps the stream busy for `duration` ns from the time at which it reaches this call. The number is that of the
  /// stamp.
  void spin(Stream stream, std::uint32_t number, std::uint64_t duration) { spin(stream, number, 0, 0, duration); }
  /// The same for an op, whose time counts from the latest end of its predecessors, or from the begin of the program.
  void spin_op(Stream stream, std::uint32_t step, std::uint64_t duration);
  /// Called after a copy was submitted to the stream: its end is stamped if ops count from it.
  void after_copy(Stream stream, const DeviceStep& step, std::uint32_t number);
  /// `stream` waits for all stamps of copies.
  void join(Stream stream);

 private:
  void spin(Stream stream, std::uint32_t number, std::size_t first, std::uint32_t count, std::uint64_t duration);

  const Gpu& gpu_;
  const Predecessors predecessors_;
  const Address stamps_;
  const Owned<Address> before_;  ///< predecessors_.all(), and the number of the stamp of the program's begin
  const Function spin_;
  const Owned<Event> copied_;
  std::vector<std::optional<Owned<Event>>> stamped_;    ///< by step, for copies from which ops count: follows the stamp
  std::vector<std::optional<Owned<Stream>>> stampers_;  ///< by lane: the stream that stamps its copies
};

}  // namespace tidepool::cuda
