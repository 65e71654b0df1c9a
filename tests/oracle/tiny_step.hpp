// A step of few ops as sets of bits: the data structure of the search over all plans.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "simulator/machine.hpp"
#include "traces/trace.hpp"

namespace tidepool::optimum {

/// Root versions of a TinyStep, or its ops, one bit each.
using Set = std::uint32_t;

inline constexpr std::size_t kMostVersions = 32;
inline constexpr std::size_t kMostOps = 16;
inline constexpr std::size_t kMostOutputs = 4;
inline constexpr std::size_t kMostStreams = 4;
inline constexpr std::size_t kMostUnits = 64;
/// Limit on versions if the directions of the link slow each other down.
inline constexpr std::size_t kMostVersionsShared = 16;

/// A time before every time of a search.
inline constexpr Nanos kLongAgo{-(std::int64_t{1} << 59)};

constexpr Set bit(std::size_t i) { return Set{1} << i; }
constexpr bool has(Set set, std::size_t i) { return (set >> i & 1) != 0; }

/// Calls visit(std::size_t) for each member, in rising order.
template <class Visit>
void for_each(Set set, Visit visit) {
  for (; set != 0; set &= set - 1) visit(static_cast<std::size_t>(std::countr_zero(set)));
}

/// One op. Numbers of versions are those of the TinyStep.
struct TinyOp {
  struct Output {
    std::uint8_t version = 0;
    std::int8_t parent = -1;  ///< the version that it replaces in place; -1: none
    bool update = false;      ///< it changes that version instead of overwriting it
  };
  Nanos duration;
  Set reads = 0, makes = 0;
  Set after = 0;  ///< ops on other streams that must end before it starts
  std::array<Output, kMostOutputs> outputs = {};
  std::uint8_t output_count = 0;
  std::uint8_t stream = 0;
  bool source = false;
  bool host_wait = false;
};

/// The actions that plans may use besides running the ops of the program once.
struct Freedom {
  bool swap = false;       ///< copy versions to the host and back; initial versions may begin there
  bool remat = false;      ///< run ops again
  bool addresses = false;  ///< places are ranges of addresses of [0, capacity) and do not move; else bytes are counted
  bool steady = false;     ///< the step is repeated: the next iteration needs the content that outlives it
};

/// A step with everything that does not change during the search. Versions that are views have no number.
struct TinyStep {
  /// @throws InputError  "the step has 23 ops; expected at most 16: all plans of a step are tried" and the like, for a
  /// step that is too large or a machine with unsupported features
  TinyStep(const Trace& trace, const Machine& machine, Bytes capacity, Freedom freedom);

  /// Multiplies every time by `factor`, and moves the beginning of each new iteration earlier by `shift`.
  void scale(std::int64_t factor, Nanos shift);

  std::size_t ops() const { return op.size(); }
  std::size_t versions() const { return named.size(); }
  Bytes size(Set set) const {
    Bytes sum;
    for_each(set, [&](std::size_t v) { sum += bytes[v]; });
    return sum;
  }

  /// Whether places without addresses choose among free bytes, see FreeBytes. On one stream, each place waits for all
  /// of them.
  bool chooses_bytes() const { return streams > 1 && !freedom.addresses; }

  /// Bytes that are free if these versions have places.
  Bytes free(Set placed) const { return capacity - size(placed); }

  const Machine& machine;
  Freedom freedom;
  Bytes capacity;
  std::vector<TinyOp> op;
  std::vector<VersionId> named;           ///< by number: the version in the trace
  std::vector<Bytes> bytes;               ///< by version: bytes of its place
  std::vector<Nanos> time_in, time_out;   ///< of a copy, by version
  std::vector<Nanos> time_copy;           ///< of a copy within the device, by version
  std::vector<std::int8_t> producer;      ///< an op; -1: none
  std::vector<std::uint8_t> before_step;  ///< versions that existed before the step
  Set undefined = 0;                      ///< initial versions of buffers that the step allocates
  Set outputs = 0;                        ///< versions that must be on the device or on the host when the step ends
  Nanos submit, launch;                   ///< host time for a copy and for an op
  Nanos shift;                            ///< see scale()
  Set regenerable = 0;                    ///< made by ops that may run again
  Set overwritten = 0;                    ///< replaced by some version that overwrites them
  std::vector<Set> outputs_of;            ///< by version from before the step: outputs in the same buffer
  std::vector<std::array<std::uint8_t, 2>>
      carried;               ///< first and last version of each buffer that lives through the step
  Set carried_first = 0;     ///< the first versions in `carried`
  std::vector<Set> needed;   ///< by number of ops run: versions that the rest of the step needs and does not make
  std::vector<Set> useful;   ///< likewise: needed versions, and versions from which they may be recomputed
  std::vector<Set> may_run;  ///< likewise: streams on which something may still run
  std::size_t streams = 1;
  bool orders = false;     ///< some op waits for an op on another stream
  Bytes unit{1};           ///< with addresses: places begin at its multiples
  std::size_t units = 0;   ///< with addresses: number of units
  bool disturbed = false;  ///< the directions of the link slow each other down

 private:
  void number_versions(const Trace& trace);
  void read_ops(const Trace& trace);
  void find_ends(const Trace& trace);
  void find_needs();
  void price(const Trace& trace);
  void divide();
};

}  // namespace tidepool::optimum
