#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "policies/planning/remat/chain.hpp"
#include "policies/planning/remat/chain_policy.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// Keeps every k-th input of n stages, k = floor(sqrt(n)).
ChainSequence by_root(const Chain& chain) {
  const auto each = static_cast<std::size_t>(std::sqrt(static_cast<double>(chain.size())));
  std::vector<std::size_t> starts;
  for (std::size_t i = each; i < chain.size(); i += std::max<std::size_t>(each, 1)) starts.push_back(i);
  return in_segments(chain.size(), starts);
}

/// A segment ends when the bytes that its stages save reach a limit b (algorithm 3). About 2 sqrt(n) values of b are
/// tried: the sum of all saved bytes divided by 1, 2, ...
ChainSequence greedy(const Chain& chain, Bytes room) {
  Bytes total;
  for (const Stage& stage : chain.stages) total += stage.options[0].saved;
  BestOrder best{chain, room};
  const auto tries = static_cast<std::int64_t>(2 * std::sqrt(static_cast<double>(chain.size()))) + 1;
  for (std::int64_t parts = 1; parts <= tries; ++parts) {
    const Bytes budget{(total.count() + parts - 1) / parts};
    std::vector<std::size_t> starts;
    Bytes sum;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (sum >= budget) starts.push_back(i), sum = Bytes{};
      sum += chain.stages[i].options[0].saved;
    }
    best.offer(in_segments(chain.size(), starts));
  }
  return best.take();
}

/// Nested segments: k checkpoints divide a segment, and each part is divided in turn. All k below n are tried.
ChainSequence recursive(const Chain& chain, Bytes room) {
  BestOrder best{chain, room};
  for (std::size_t k = 1; k < std::max<std::size_t>(chain.size(), 2); ++k)
    best.offer(in_nested_segments(chain.size(), k));
  return best.take();
}

/// Sublinear memory on a chain of n stages: keeps the inputs of some stages (checkpoints). When the backward phase
/// reaches the stages between two checkpoints, these stages run again as a whole.
///   sqrt       about sqrt(n) equal segments at any capacity: O(sqrt(n)) memory, one more forward phase
///   greedy     segments of about equal saved bytes, in the number that takes the least time among those that fit
///   recursive  O(k log_{k+1} n) memory, O(n log_{k+1} n) time, with the k that fits best
/// The chain is that of linearise(); the policy sqrt-n does the same as greedy for any graph of ops. Plans in O(n^2).
/// Paper: Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016, sections 4.1, 4.3, 4.4.
ChainSequence choose(const std::string& scheme, const Chain& chain, Bytes room) {
  if (scheme == "sqrt") return by_root(chain);
  return scheme == "greedy" ? greedy(chain, room) : recursive(chain, room);
}

const RegisterPolicy kChen{
    {.name = "chen",
     .kind = PolicyKind::kRemat,
     .summary = "keeps the inputs of some stages of a chain, and runs the segments between them again",
     .paper = "Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, section 4",
     .options = {{"scheme", "greedy", "sqrt|greedy|recursive",
                  "sqrt: about sqrt(n) equal segments; greedy: segments of equal bytes; recursive: nested ones"},
                 {"stages", "60", "number", "most stages; neighbours with few saved bytes are merged"}},
     .make = [](const Options& options) {
       return std::make_unique<ChainPolicy>(
           count_of("chen", options, "stages", 200),
           [scheme = options.word("scheme")](const Chain& chain, Bytes room) { return choose(scheme, chain, room); });
     }}};

}  // namespace
}  // namespace tidepool
