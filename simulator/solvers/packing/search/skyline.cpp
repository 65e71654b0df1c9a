#include "simulator/solvers/packing/search/skyline.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "simulator/solvers/packing/search/random_numbers.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Prefix sums of counts, starting with 0.
std::vector<std::uint32_t> begins_of(const std::vector<std::uint32_t>& counts) {
  std::vector<std::uint32_t> begins(counts.size() + 1, 0);
  for (std::size_t k = 0; k < counts.size(); ++k) begins[k + 1] = begins[k] + counts[k];
  return begins;
}

}  // namespace

Skyline::Skyline(const PackingProblem& problem, std::int64_t capacity) : problem_{&problem}, capacity_{capacity} {
  const std::size_t pieces = problem.pieces.size(), sections = problem.sections;
  low_.resize(pieces);
  placed_.resize(pieces);
  first_section_.resize(pieces);
  first_cell_.resize(pieces);
  floor_.resize(sections);
  rest_.resize(sections);
  witness_.resize(sections);
  joint_.resize(sections + 1);
  key_low_.resize(sections);
  key_high_.resize(sections);
  count_.assign(sections, 0);
  std::vector<std::uint32_t> starting(sections, 0);
  std::uint32_t cells = 0;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const auto lives = problem.lives(problem.pieces[i]);
    first_section_[i] = lives.front().first;
    first_cell_[i] = cells;
    for (const SectionRange range : lives) {
      ++starting[range.first];
      cells += range.last - range.first;
      for (std::uint32_t s = range.first; s < range.last; ++s) ++count_[s];
    }
  }
  begin_ = begins_of(count_);
  start_begin_ = begins_of(starting);
  cells_.resize(cells);
  place_in_.resize(cells);
  starts_.resize(start_begin_.back());
  std::vector<std::uint32_t> next{begin_}, next_start{start_begin_};
  std::vector<std::uint32_t> shortest_first(pieces);
  std::iota(shortest_first.begin(), shortest_first.end(), 0U);
  const auto length = [&](std::uint32_t i) { return (i + 1 < pieces ? first_cell_[i + 1] : cells) - first_cell_[i]; };
  std::stable_sort(shortest_first.begin(), shortest_first.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return length(a) < length(b); });
  for (const std::uint32_t i : shortest_first) {
    std::uint32_t own = first_cell_[i];
    for (const SectionRange range : problem.lives(problem.pieces[i])) {
      starts_[next_start[range.first]++] = i;
      for (std::uint32_t s = range.first; s < range.last; ++s, ++own) {
        cells_[next[s]] = {i, own};
        place_in_[own] = next[s]++;
      }
    }
  }
  if (problem.has_fixed) {
    walls_begin_.assign(pieces + 1, 0);
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::size_t from = walls_.size();
      for_neighbours(i, [&](std::uint32_t j) {
        if (j != i && problem.pieces[j].fixed >= 0) walls_.push_back(j);
      });
      const auto begin = walls_.begin() + static_cast<std::ptrdiff_t>(from);
      std::sort(begin, walls_.end(),
                [&](std::uint32_t a, std::uint32_t b) { return problem.pieces[a].fixed < problem.pieces[b].fixed; });
      walls_.erase(std::unique(begin, walls_.end()), walls_.end());
      walls_begin_[i + 1] = static_cast<std::uint32_t>(walls_.size());
    }
  }
}

bool Skyline::reset(std::int64_t capacity) {
  capacity_ = capacity;
  trail_.clear();
  std::fill(placed_.begin(), placed_.end(), std::uint8_t{0});
  std::fill(rest_.begin(), rest_.end(), 0);
  std::fill(floor_.begin(), floor_.end(), 0);
  std::fill(joint_.begin(), joint_.end(), 0U);
  std::fill(count_.begin(), count_.end(), 0U);
  std::fill(key_low_.begin(), key_low_.end(), 0U);
  std::fill(key_high_.begin(), key_high_.end(), 0U);
  for (std::uint32_t i = 0; i < low_.size(); ++i) {
    low_[i] = 0;
    enter(i);
    count_key(i, true);
  }
  bool feasible = true;
  over_ = false;
  for (std::uint32_t s = 0; s < problem_->sections; ++s) {
    witness_[s] = waiter(s, 0);
    feasible &= rest_[s] <= capacity_;
  }
  for (std::uint32_t i = 0; i < low_.size(); ++i) raise(i, std::max<std::int64_t>(problem_->pieces[i].fixed, 0));
  const SectionRange all{0, problem_->sections};
  feasible &= settle({&all, 1});
  trail_.clear();
  return feasible;
}

void Skyline::enter(std::uint32_t piece) {
  const std::int64_t size = problem_->pieces[piece].size;
  for (const SectionRange range : problem_->lives(problem_->pieces[piece])) {
    for (std::uint32_t s = range.first; s < range.last; ++s) {
      ++count_[s];
      rest_[s] += size;
    }
    for (std::uint32_t s = range.first + 1; s < range.last; ++s) ++joint_[s];
  }
}

void Skyline::leave(std::uint32_t piece) {
  const std::int64_t size = problem_->pieces[piece].size;
  std::uint32_t own = first_cell_[piece];
  for (const SectionRange range : problem_->lives(problem_->pieces[piece])) {
    for (std::uint32_t s = range.first; s < range.last; ++s, ++own) {
      const std::uint32_t last = begin_[s] + --count_[s], here = place_in_[own];
      std::swap(cells_[here], cells_[last]);
      place_in_[cells_[here].position] = here;
      place_in_[own] = last;
      rest_[s] -= size;
    }
    for (std::uint32_t s = range.first + 1; s < range.last; ++s) --joint_[s];
  }
}

template <class Visit>
void Skyline::for_neighbours(std::uint32_t i, const Visit& visit) const {
  for (const SectionRange range : problem_->lives(problem_->pieces[i])) {
    for (std::uint32_t k = 0; k < count_[range.first]; ++k) visit(waiter(range.first, k));
    for (std::uint32_t k = start_begin_[range.first + 1]; k < start_begin_[range.last]; ++k)
      if (!placed_[starts_[k]]) visit(starts_[k]);
  }
}

std::int64_t Skyline::admissible(std::uint32_t piece, std::int64_t offset) const {
  const auto& own = problem_->pieces[piece];
  const auto aligned = [&](std::int64_t value) {
    return own.alignment == 1 ? value : (value + own.alignment - 1) / own.alignment * own.alignment;
  };
  offset = aligned(offset);
  if (walls_begin_.empty() || own.fixed >= 0) return offset;
  for (std::uint32_t k = walls_begin_[piece]; k < walls_begin_[piece + 1]; ++k) {
    const auto& wall = problem_->pieces[walls_[k]];
    if (offset < wall.fixed + wall.size && offset + own.size > wall.fixed) offset = aligned(wall.fixed + wall.size);
  }
  return offset;
}

void Skyline::count_key(std::uint32_t piece, bool add) {
  const std::uint64_t one =
      spread(problem_->pieces[piece].kind * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(low_[piece]));
  const std::uint64_t two = spread(one ^ 0x1234567812345678U);
  const std::uint32_t s = first_section_[piece];
  key_low_[s] += add ? one : -one;
  key_high_[s] += add ? two : -two;
}

void Skyline::set_low(std::uint32_t piece, std::int64_t low) {
  count_key(piece, false);
  low_[piece] = low;
  count_key(piece, true);
}

std::int64_t Skyline::raise(std::uint32_t piece, std::int64_t offset) {
  offset = admissible(piece, offset);
  if (offset > low_[piece]) {
    trail_.push_back({low_[piece], piece, Change::kLow});
    set_low(piece, offset);
    if (offset + problem_->pieces[piece].size > capacity_) {
      over_ = true;
      failed_ = first_section_[piece];
    }
  }
  return offset;
}

void Skyline::set_floor(std::uint32_t section, std::int64_t floor) {
  trail_.push_back({floor_[section], section, Change::kFloor});
  floor_[section] = floor;
}

void Skyline::place(std::uint32_t piece) {
  const std::int64_t top = low_[piece] + problem_->pieces[piece].size;
  trail_.push_back({0, piece, Change::kPlaced});
  placed_[piece] = 1;
  count_key(piece, false);
  leave(piece);
  for (const SectionRange range : problem_->lives(problem_->pieces[piece]))
    for (std::uint32_t s = range.first; s < range.last; ++s)
      if (count_[s] > 0) set_floor(s, top);
  for_neighbours(piece, [&](std::uint32_t j) {
    if (low_[j] < top) raise(j, top);
  });
}

bool Skyline::settle(std::span<const SectionRange> sections) {
  if (over_) return over_ = false;
  for (const SectionRange range : sections)
    for (std::uint32_t s = range.first; s < range.last; ++s) {
      if (count_[s] == 0 || (!placed_[witness_[s]] && low_[witness_[s]] == floor_[s])) continue;
      std::int64_t least = kNever;
      for (std::uint32_t k = 0; k < count_[s]; ++k) {
        const std::uint32_t i = waiter(s, k);
        if (low_[i] >= least) continue;
        least = low_[i];
        witness_[s] = i;
        if (least <= floor_[s]) break;
      }
      if (least != floor_[s]) set_floor(s, least);
      if (least + rest_[s] > capacity_) {
        failed_ = s;
        return false;
      }
    }
  return true;
}

std::int64_t Skyline::next_rest(std::uint32_t piece) const {
  std::int64_t next = kNever;
  const std::int64_t here = low_[piece];
  for_neighbours(piece, [&](std::uint32_t j) {
    if (j != piece) next = std::min(next, std::max(here + 1, low_[j] + problem_->pieces[j].size));
  });
  return next == kNever ? kNever : admissible(piece, next);
}

void Skyline::undo(std::size_t mark) {
  while (trail_.size() > mark) {
    const Entry entry = trail_.back();
    trail_.pop_back();
    switch (entry.change) {
      case Change::kLow:
        set_low(entry.subject, entry.before);
        break;
      case Change::kFloor:
        floor_[entry.subject] = entry.before;
        break;
      case Change::kPlaced:
        placed_[entry.subject] = 0;
        enter(entry.subject);
        count_key(entry.subject, true);
        break;
    }
  }
}

}  // namespace tidepool
