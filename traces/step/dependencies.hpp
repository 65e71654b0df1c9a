// Pairs of ops of a step that must stay in the recorded order, with the reasons. Division of ops on lists of tensors
// into one op for each tensor.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The reason why an op must stay behind another one.
enum class Reason : std::uint8_t {
  kData,        ///< it reads a version that the other one made
  kOverwrite,   ///< it overwrites a version that the other one uses
  kRandom,      ///< both draw random numbers: the generator's state passes from one to the next
  kHost,        ///< at one of them the host waits for the device, or it brings bytes from outside
  kCollective,  ///< both talk to other devices, which expect them in this order
  kUnknown,     ///< uses of one of them are unknown, or only guessed from launch parameters, order or sizes
};
inline constexpr std::size_t kReasons = 6;
std::string_view to_text(Reason reason);

/// A partial order of the ops of a step: every order that keeps it computes the same bytes.
struct Dependencies {
  std::vector<std::vector<std::uint32_t>> before;  ///< by op: ops that must run earlier; sorted, each once
  std::vector<std::vector<std::uint32_t>> after;   ///< the same pairs, the other way
  std::array<std::int64_t, kReasons> pairs{};      ///< by reason; a pair with several counts for the first one found
};

/// Dependencies of a step of one stream. Where evidence is weak, order is kept: an op whose uses are not known, a host
/// wait and a source stay between the ops around them. O(uses + pairs).
/// @throws InputError  "3 streams; expected one: the recording lacks some dependencies between streams"
Dependencies dependencies_of(const Trace& trace);

/// PyTorch's optimizers call operators such as `aten::_foreach_add_(self[], other[])`, which do the same to every
/// tensor of their lists, independently: PyTorch documents each as a loop over the lists (torch/_refs, torch.optim's
/// `foreach=False`). The result has one op for each tensor in their place. The i-th op uses the i-th entry of every
/// list, and its share of the time is its share of the bytes. An op stays whole if its uses do not divide into lists of
/// one length whose i-th entries have one size (a larger one where an entry is read and shares its buffer), or if the
/// evidence for its uses is weaker than the operator's schema.
Trace split_foreach(const Trace& trace);

}  // namespace tidepool
