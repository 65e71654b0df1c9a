#include "tests/oracle/purpose.hpp"

#include <bit>

namespace tidepool::optimum {

/// Begins the next iteration. Content that ends with this one has no further use, except the host copies of the
/// step's outputs. @return  false if some content has ended without use
bool Purpose::next_iteration(const TinyStep& step, const State& before) {
  Purpose next;
  Set stays = 0;
  for (const auto& [first, last] : step.carried) {
    stays |= bit(last);
    next.brought |= has(brought, last) ? bit(first) : 0;
    next.copied_out |= has(copied_out, last) ? bit(first) : 0;
  }
  const Set handed_on = step.outputs & ~before.filled;
  const bool in_vain = (before.filled & (brought | recomputed) & ~stays) != 0 ||
                       (before.on_host & copied_out & ~stays & ~handed_on) != 0;
  *this = next;
  return !in_vain;
}

bool Purpose::note(const TinyStep& step, const State& before, const Move& move, const State& after) {
  const Set self = bit(move.subject);
  const Set made = after.filled & ~before.filled;
  switch (move.kind) {
    case MoveKind::kBeginOnDevice:
      if (step.freedom.swap) brought |= self;
      break;
    case MoveKind::kSwapOut:
      copied_out |= self;
      recomputed &= ~self;
      break;
    case MoveKind::kSwapIn:
      copied_out &= ~self;
      brought |= self;
      break;
    case MoveKind::kRun: {
      const Set reads = step.op[move.subject].reads;
      brought &= ~reads;
      recomputed &= ~reads;
      if (move.subject < before.position && std::popcount(made) == 1) recomputed |= made;
      fresh = made;
      break;
    }
    case MoveKind::kBeginOnHost:
    case MoveKind::kAlloc:
    case MoveKind::kAwait:
      break;
    case MoveKind::kNext:
      return next_iteration(step, before);
  }
  // If the directions slow each other down, a plan without this content may delay other copies.
  if (step.disturbed) return true;
  const Set gone = before.filled & ~after.filled, forgotten = before.on_host & ~after.on_host;
  return (gone & (brought | recomputed)) == 0 && (forgotten & copied_out) == 0;
}

}  // namespace tidepool::optimum
