#include "simulator/structure/max_plus.hpp"

#include <algorithm>
#include <unordered_map>

namespace tidepool {
namespace {

constexpr Nanos kNever = MaxPlusMatrix::kNever;

Nanos later_by(Nanos time, Nanos more) { return time == kNever || more == kNever ? kNever : time + more; }

}  // namespace

MaxPlusMatrix MaxPlusMatrix::identity(std::size_t size) {
  MaxPlusMatrix matrix{size};
  for (std::size_t i = 0; i < size; ++i) matrix.at(i, i) = Nanos{};
  return matrix;
}

std::vector<Nanos> MaxPlusMatrix::operator*(const std::vector<Nanos>& times) const {
  std::vector<Nanos> product(size_, kNever);
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t j = 0; j < size_; ++j) product[i] = std::max(product[i], later_by(at(i, j), times[j]));
  return product;
}

MaxPlusMatrix MaxPlusMatrix::operator*(const MaxPlusMatrix& other) const {
  MaxPlusMatrix product{size_};
  for (std::size_t i = 0; i < size_; ++i)
    for (std::size_t k = 0; k < size_; ++k) {
      if (at(i, k) == kNever) continue;
      for (std::size_t j = 0; j < size_; ++j)
        product.at(i, j) = std::max(product.at(i, j), later_by(at(i, k), other.at(k, j)));
    }
  return product;
}

MaxPlusMatrix MaxPlusMatrix::power(std::int64_t exponent) const {
  MaxPlusMatrix result = identity(size_), square = *this;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = square * result;
    square = square * square;
  }
  return result;
}

std::optional<MaxPlusMatrix::Mean> MaxPlusMatrix::greatest_cycle_mean() const {
  // walks[k][i]: the longest walk of k edges that ends in i, from anywhere.
  std::vector<std::vector<Nanos>> walks{std::vector<Nanos>(size_)};
  for (std::size_t k = 0; k < size_; ++k) walks.push_back(*this * walks.back());
  std::optional<Mean> greatest;
  const auto less = [](const Mean& a, const Mean& b) {
    return static_cast<Int128>(a.time.count()) * b.copies < static_cast<Int128>(b.time.count()) * a.copies;
  };
  for (std::size_t i = 0; i < size_; ++i) {
    if (walks[size_][i] == kNever) continue;
    std::optional<Mean> least;
    for (std::size_t k = 0; k < size_; ++k) {
      if (walks[k][i] == kNever) continue;
      const Mean mean{walks[size_][i] - walks[k][i], static_cast<std::int64_t>(size_ - k)};
      if (!least || less(mean, *least)) least = mean;
    }
    if (least && (!greatest || less(*greatest, *least))) greatest = least;
  }
  return greatest;
}

LayerMatrix layer_matrix(const LaneProgram& program, const Repeat& repeat) {
  using Register = LaneProgram::Register;
  // The state: lanes, and the registers of versions that a copy uses, in the order of their first use.
  const auto registers_of = [&](std::uint32_t copy) {
    std::vector<Register> state;
    std::unordered_map<Register, std::size_t> known;
    const auto use = [&](Register one) {
      if (known.try_emplace(one, state.size()).second) state.push_back(one);
    };
    for (Register lane = 0; lane < program.lanes(); ++lane) use(lane);
    for (std::size_t i = 0; i < repeat.period; ++i)
      for (const LaneProgram::Instruction& one :
           program.instructions(repeat.first + copy * std::size_t{repeat.period} + i)) {
        for (const Register source : program.sources(one)) use(source);
        use(one.target);
      }
    return std::pair{state, known};
  };
  const auto [first, place] = registers_of(0);
  const auto next = registers_of(1).first;
  const std::size_t size = first.size();
  MaxPlusMatrix behind = MaxPlusMatrix::identity(size);  // of the state in front of the copy
  for (std::size_t i = 0; i < repeat.period; ++i)
    for (const LaneProgram::Instruction& one : program.instructions(repeat.first + i)) {
      std::vector<Nanos> row(size, kNever);
      for (const Register source : program.sources(one))
        for (std::size_t j = 0; j < size; ++j) row[j] = std::max(row[j], behind.at(place.at(source), j));
      for (std::size_t j = 0; j < size; ++j) behind.at(place.at(one.target), j) = later_by(row[j], one.more);
    }
  LayerMatrix layer{MaxPlusMatrix{size}, first};
  for (std::size_t i = 0; i < size; ++i)  // what the next copy finds, it finds where this one left it
    if (const auto found = place.find(next[i]); found != place.end())
      for (std::size_t j = 0; j < size; ++j) layer.matrix.at(i, j) = behind.at(found->second, j);
  return layer;
}

}  // namespace tidepool
