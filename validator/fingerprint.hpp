// What every buffer should hold: one number for each version, from which all its words follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// One well mixed number from two; not symmetric.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

/// Word `i` of a content: no two words of it and no two contents are equal but by chance of 2^-64.
inline std::uint64_t word_of(std::uint64_t content, std::size_t i) {
  std::uint64_t z = content + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93;
  return z ^ (z >> 29);
}

/// What an op leaves in the outputs it writes depends on everything that may go wrong before:
/// @param inputs  contents as read, one for each use with a version read that is not a view, in use order
/// @param draw    what a random op drew from the generator, 0 for other ops
/// @param batch   what a source brought, 0 for other ops
std::uint64_t op_content(OpId op, std::span<const std::uint64_t> inputs, std::uint64_t draw, std::uint64_t batch);

/// Content of one output of an op.
inline std::uint64_t output_content(std::uint64_t op, VersionId output) { return mix(op, output.value()); }

/// Contents of all root versions in one iteration, as the program without any policy makes them.
struct Expected {
  std::vector<std::uint64_t> content;  ///< by version; meaningless for views
  std::uint64_t draws = 0;             ///< how often the generator has been drawn from when the iteration ends
  std::uint64_t iteration = 0;

  /// The first iteration. O(uses).
  static Expected first(const Trace& trace);
  /// The one after: buffers from before the trace that outlive it carry over, the others from before bring new content.
  Expected next(const Trace& trace) const;

 private:
  void run_program(const Trace& trace);
};

/// The version that each buffer holds when the step ends, by buffer.
std::vector<VersionId> last_versions(const Trace& trace);

}  // namespace tidepool
