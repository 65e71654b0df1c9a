#include "tests/oracle/places.hpp"

#include <algorithm>

namespace tidepool::optimum {
namespace {

/// The interval in which a version uses one place. Each move has three instants: its drops, its new places, and the
/// places that end with it.
struct Life {
  std::size_t units = 0;
  std::size_t first = 0, last = 0;   ///< instants [first, last)
  std::size_t move = 0, output = 0;  ///< number of the move that begins it, and of the output
  std::size_t at = 0;                ///< first unit of the place
};

std::vector<Life> lives_of(const TinyStep& step, const std::vector<Move>& moves) {
  std::vector<Life> lives;
  std::array<std::size_t, kMostVersions> life_of = {};
  State state;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const Move& move = moves[i];
    const Set before = state.placed;
    Mover{step, state}.apply(move);
    for_each(before & move.drops, [&](std::size_t v) { lives[life_of[v]].last = 3 * i; });
    const auto begin = [&](std::size_t v, std::size_t output) {
      life_of[v] = lives.size();
      lives.push_back({static_cast<std::size_t>(step.bytes[v] / step.unit), 3 * i + 1, 0, i, output, 0});
    };
    Set ended = before & ~move.drops & ~state.placed;
    if (move.kind == MoveKind::kRun) {
      const TinyOp& op = step.op[move.subject];
      for (std::size_t output = 0; output < op.output_count; ++output) {
        const std::size_t v = op.outputs[output].version;
        if (move.writes[output] == Writes::kTakesOver) {
          const auto parent = static_cast<std::size_t>(op.outputs[output].parent);
          life_of[v] = life_of[parent];
          ended &= ~bit(parent);
        } else if (move.writes[output] == Writes::kScratch) {
          const std::size_t kept = life_of[v];
          begin(v, output);
          lives.back().last = 3 * i + 3;
          life_of[v] = kept;
        } else if (move.writes[output] == Writes::kOwnPlace && !has(before & ~move.drops, v)) {
          begin(v, output);
        }
        if (!has(state.placed, v) && move.writes[output] != Writes::kScratch) ended |= bit(v);
      }
    } else if (move.kind == MoveKind::kBeginOnDevice || move.kind == MoveKind::kSwapIn ||
               move.kind == MoveKind::kAlloc) {
      begin(move.subject, 0);
      if (!has(state.placed, move.subject)) ended |= bit(move.subject);  // it is not used and freed by the same move
    }
    for_each(ended, [&](std::size_t v) { lives[life_of[v]].last = 3 * i + 3; });
  }
  for_each(state.placed, [&](std::size_t v) { lives[life_of[v]].last = 3 * moves.size() + 1; });
  return lives;
}

class Packing {
 public:
  Packing(std::vector<Life>& lives, std::size_t units) : lives_{lives}, units_{units} {
    std::sort(lives_.begin(), lives_.end(),
              [](const Life& a, const Life& b) { return a.units * (a.last - a.first) > b.units * (b.last - b.first); });
  }
  bool fits() { return place(0); }

 private:
  static constexpr int kTries = 5'000;

  bool place(std::size_t i) {
    if (i == lives_.size()) return true;
    if (++tries_ > kTries) return false;
    Life& life = lives_[i];
    for (std::size_t at = 0; at + life.units <= units_; ++at) {
      life.at = at;
      bool apart = true;
      for (std::size_t j = 0; j < i && apart; ++j) {
        const Life& other = lives_[j];
        apart = life.first >= other.last || other.first >= life.last || at >= other.at + other.units ||
                other.at >= at + life.units;
      }
      if (apart && place(i + 1)) return true;
    }
    return false;
  }

  std::vector<Life>& lives_;
  const std::size_t units_;
  int tries_ = 0;
};

}  // namespace

std::optional<std::vector<Move>> find_places(const TinyStep& step, std::vector<Move> moves) {
  std::vector<Life> lives = lives_of(step, moves);
  if (!Packing{lives, step.units}.fits()) return std::nullopt;
  for (const Life& life : lives) moves[life.move].unit_at[life.output] = static_cast<std::uint8_t>(life.at);
  return moves;
}

}  // namespace tidepool::optimum
