// Values that are assumed because a dry run does not know them.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tracer/native/operands.hpp"

namespace tidepool::values {

/// How rows are spread over the places that they choose, as tokens over experts.
enum class Routing {
  kBalanced,  ///< each place is chosen equally often
  kZipf,      ///< the i-th place is chosen in proportion to 1 / i
  kWorst,     ///< each place is chosen once, and then all rows choose the same places
  kGiven,     ///< the user gives the shares of as many places; other numbers of places are chosen as in kBalanced
};

/// Where values come from. Later ones are less certain.
enum class Origin {
  kReal,
  kCompared,  ///< booleans, and counts of them, that follow from assumed integers
  kAssumed,   ///< assumed integers
};

/// The sums of the first shares of the places, up to 1; empty if rows are not spread by shares.
/// @param given  shares in any unit
inline std::vector<double> sums_of_shares(Routing routing, std::int64_t places, const std::vector<double>& given) {
  std::vector<double> sums;
  if (routing == Routing::kGiven && std::ssize(given) == places) sums = given;
  if (routing == Routing::kZipf)
    for (std::int64_t i = 1; i <= places; ++i) sums.push_back(1 / static_cast<double>(i));
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  for (double& sum : sums) sum /= sums.back();
  return sums;
}

/// Choice number i of a row among `places`. By shares, the choices of a row lie at equal distances in the sums of
/// shares, so that a place with more than one of them is followed by the next places.
inline std::int64_t choice(Routing routing, std::int64_t row, std::int64_t i, std::int64_t chosen, std::int64_t places,
                           const std::vector<double>& sums) {
  constexpr double kGolden = 0.6180339887498949;  // its multiples spread evenly over [0, 1)
  if (!sums.empty()) {
    const double at = static_cast<double>(row) * kGolden;
    const double part = (at - std::floor(at) + static_cast<double>(i)) / static_cast<double>(chosen);
    return std::upper_bound(sums.begin(), sums.end() - 1, part) - sums.begin();
  }
  const bool same = routing == Routing::kWorst && row * chosen >= places;
  return ((same ? 0 : row * chosen) + i) % places;
}

/// Indices that an op might have chosen along its dimension, as a host tensor. Each row chooses different places.
/// @param arguments  those of the call
/// @param indices    its result
/// @param given      shares of places, for kGiven
inline at::Tensor assumed_choice(const Operator& facts, const Stack& arguments, const at::Tensor& indices,
                                 Routing routing, const std::vector<double>& given) {
  const at::Tensor& from = arguments[0].toTensor();
  const bool flat = facts.dim < 0 ? facts.name != "aten::multinomial" : !arguments[facts.dim].isInt();
  std::int64_t dim = flat || facts.dim < 0 ? -1 : arguments[facts.dim].toInt();
  if (dim < 0) dim += std::max<std::int64_t>(from.dim(), 1);
  const bool keeps = !flat && from.dim() == indices.dim() && from.dim() > 0;
  const std::int64_t places = flat || from.dim() == 0 ? std::max<std::int64_t>(from.numel(), 1) : from.size(dim);
  const std::int64_t chosen = keeps ? indices.size(dim) : 1;
  std::int64_t inner = 1;
  for (std::int64_t each = keeps ? dim + 1 : indices.dim(); each < indices.dim(); ++each) inner *= indices.size(each);
  const std::vector<double> sums = sums_of_shares(routing, places, given);
  at::Tensor made = at::empty(indices.sizes(), at::kLong);
  auto* const to = made.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < made.numel() / std::max<std::int64_t>(chosen, 1); ++row) {
    auto* const start = to + row / inner * inner * chosen + row % inner;
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < chosen; ++i) {
      const std::int64_t place = choice(routing, row, i, chosen, places, sums);
      start[i * inner] = sums.empty() ? place : std::max(next, place) % places;
      next = start[i * inner] + 1;
    }
  }
  return made;
}

/// Values of a tensor's shape and type, none zero and, of numbers, no two the same: as many are found as there can be.
inline at::Tensor all_different(const at::Tensor& tensor) {
  const auto options = tensor.options().device(at::kCPU);
  if (tensor.scalar_type() == at::kBool) return at::ones(tensor.sizes(), options);
  return at::arange(1, tensor.numel() + 1, options).view(tensor.sizes());
}

}  // namespace tidepool::values
