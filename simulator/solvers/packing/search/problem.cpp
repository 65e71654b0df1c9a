#include "simulator/solvers/packing/search/problem.hpp"

#include <algorithm>
#include <numeric>

namespace tidepool {
namespace {

/// Numbers the kinds: pieces of one kind can change places.
void count_kinds(PackingProblem& problem) {
  std::vector<std::uint32_t> order(problem.pieces.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto compare = [&](std::uint32_t a, std::uint32_t b) {
    const auto &one = problem.pieces[a], &other = problem.pieces[b];
    if (one.size != other.size) return one.size < other.size ? -1 : 1;
    if (one.alignment != other.alignment) return one.alignment < other.alignment ? -1 : 1;
    if (one.fixed != other.fixed) return one.fixed < other.fixed ? -1 : 1;
    const auto left = problem.lives(one), right = problem.lives(other);
    if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (left[k].first != right[k].first) return left[k].first < right[k].first ? -1 : 1;
      if (left[k].last != right[k].last) return left[k].last < right[k].last ? -1 : 1;
    }
    return 0;
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) < 0; });
  std::uint32_t kind = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && compare(order[k - 1], order[k]) != 0) ++kind;
    problem.pieces[order[k]].kind = kind;
  }
}

}  // namespace

std::vector<std::int64_t> PackingProblem::loads() const {
  std::vector<std::int64_t> loads(sections + std::size_t{1}, 0);
  for (const Piece& piece : pieces)
    for (const SectionRange range : lives(piece)) {
      loads[range.first] += piece.size;
      loads[range.last] -= piece.size;
    }
  std::partial_sum(loads.begin(), loads.end(), loads.begin());
  loads.pop_back();
  return loads;
}

PackingProblem reduce(const Instance& instance, const Sections& sections) {
  PackingProblem problem;
  std::int64_t common = 0;
  for (const Item& item : instance.items) {
    if (item.size == Bytes{}) continue;
    common = std::gcd(common, item.size.count());
    if (item.fixed) common = std::gcd(common, item.fixed->count());
  }
  problem.unit = std::max<std::int64_t>(common, 1);
  for (const Item& item : instance.items)
    if (item.size > Bytes{} && common % item.alignment.count() != 0)
      problem.unit = std::gcd(problem.unit, item.alignment.count());
  problem.sections = sections.count();
  for (std::uint32_t i = 0; i < instance.items.size(); ++i) {
    const Item& item = instance.items[i];
    if (item.size == Bytes{}) continue;
    PackingProblem::Piece& piece = problem.pieces.emplace_back();
    piece.size = item.size.count() / problem.unit;
    piece.alignment = item.alignment.count() / std::gcd(item.alignment.count(), problem.unit);
    if (item.fixed) piece.fixed = item.fixed->count() / problem.unit;
    const auto lives = sections.of(i);
    piece.first = static_cast<std::uint32_t>(problem.ranges.size());
    problem.ranges.insert(problem.ranges.end(), lives.begin(), lives.end());
    piece.last = static_cast<std::uint32_t>(problem.ranges.size());
    piece.item = i;
    problem.has_fixed |= piece.fixed >= 0;
    problem.has_gaps |= lives.size() > 1;
    problem.has_alignment |= piece.alignment > 1;
  }
  count_kinds(problem);
  return problem;
}

PackingProblem part_of(const PackingProblem& problem, std::span<const std::uint32_t> chosen) {
  // As in Sections, a section is closed where an end follows a beginning.
  std::vector<std::uint8_t> begins(problem.sections + std::size_t{1}, 0), ends(begins);
  for (const std::uint32_t i : chosen)
    for (const SectionRange range : problem.lives(problem.pieces[i])) begins[range.first] = ends[range.last] = 1;
  std::vector<std::uint32_t> number(problem.sections + std::size_t{1}, 0);
  PackingProblem part;
  part.unit = problem.unit;
  bool open = false;
  for (std::uint32_t s = 0; s <= problem.sections; ++s) {
    if (ends[s] && open) {
      ++part.sections;
      open = false;
    }
    number[s] = part.sections;
    open |= begins[s] != 0;
  }
  for (const std::uint32_t i : chosen) {
    PackingProblem::Piece piece = problem.pieces[i];
    const auto lives = problem.lives(piece);
    piece.first = static_cast<std::uint32_t>(part.ranges.size());
    for (const SectionRange range : lives) {
      const SectionRange mapped{number[range.first], number[range.last]};
      if (part.ranges.size() > piece.first && part.ranges.back().last >= mapped.first)
        part.ranges.back().last = mapped.last;
      else
        part.ranges.push_back(mapped);
    }
    piece.last = static_cast<std::uint32_t>(part.ranges.size());
    part.has_fixed |= piece.fixed >= 0;
    part.has_gaps |= piece.last - piece.first > 1;
    part.has_alignment |= piece.alignment > 1;
    part.pieces.push_back(piece);
  }
  count_kinds(part);
  return part;
}

}  // namespace tidepool
