// Activity of the host at each launch and request for memory, from the ranges of a Kineto file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/import/kineto.hpp"

namespace tidepool {

/// What the ranges around a moment say.
struct KinetoContext {
  Phase phase = Phase::kUnknown;  ///< as phase_inside() finds it
  std::string module;             ///< the nn.Modules around it, outermost first, with dots between, cut at 1000 bytes;
                                  ///< "" = none known
  std::optional<KinetoText> operator_name;   ///< the outermost operator around it
  std::int64_t record_function = -1;         ///< of the innermost range around it that has one
  std::optional<std::size_t> communication;  ///< the innermost range "nccl:..." around it, in Kineto::ranges
};

/// The phase inside a call: the phase around the call, if it is known; else backward for a node of autograd's graph,
/// optimizer for the step of an optimizer, forward if `differentiated`; else unknown.
/// @param differentiated  autograd recorded the call, or it is a call of an nn.Module
Phase phase_inside(Phase around, std::string_view name, bool differentiated);

/// A moment on a thread of the host.
struct KinetoMoment {
  std::optional<std::int64_t> thread;  ///< none = not known: no range is around the moment
  Nanos time;
};

/// The context of each moment. O(n log n) in ranges and moments.
std::vector<KinetoContext> find_contexts(const Kineto& file, const std::vector<KinetoMoment>& moments);

}  // namespace tidepool
