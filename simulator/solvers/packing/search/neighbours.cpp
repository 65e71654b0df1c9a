#include "simulator/solvers/packing/search/neighbours.hpp"

#include <numeric>

namespace tidepool {

Neighbours::Neighbours(const PackingProblem& problem) : problem_{&problem}, begin_(problem.sections + std::size_t{2}) {
  while (leaves_ < problem.sections) leaves_ *= 2;
  nodes_.resize(2 * std::size_t{leaves_});
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i)
    for (const SectionRange range : problem.lives(problem.pieces[i])) {
      ++begin_[range.first + 1];
      for (std::uint32_t a = range.first + leaves_, b = range.last + leaves_; a < b; a >>= 1, b >>= 1) {
        if (a & 1) nodes_[a++].push_back(i);
        if (b & 1) nodes_[--b].push_back(i);
      }
    }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  starts_.resize(begin_.back());
  std::vector<std::uint32_t> next{begin_};
  for (std::uint32_t i = 0; i < problem.pieces.size(); ++i)
    for (const SectionRange range : problem.lives(problem.pieces[i])) starts_[next[range.first]++] = i;
}

}  // namespace tidepool
