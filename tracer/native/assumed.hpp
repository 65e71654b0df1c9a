// Values that are assumed because a dry run does not know them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "tracer/native/operands.hpp"

namespace tidepool::values {

/// How rows are spread over the places that they choose, as tokens over experts.
enum class Routing {
  kBalanced,  ///< each place is chosen equally often
  kZipf,      ///< the i-th place is chosen in proportion to 1 / i
  kWorst,     ///< each place is chosen once, and then all rows choose the same places
};

/// Where values come from. Later ones are less certain.
enum class Origin {
  kReal,
  kCompared,  ///< booleans, and counts of them, that follow from assumed integers
  kAssumed,   ///< assumed integers
};

/// The first choice of a row among `places`.
inline std::int64_t first_choice(Routing routing, std::int64_t row, std::int64_t chosen, std::int64_t places,
                                 const std::vector<double>& shares) {
  if (routing == Routing::kBalanced || (routing == Routing::kWorst && row * chosen < places))
    return row * chosen % places;
  if (routing == Routing::kWorst) return 0;
  constexpr double kGolden = 0.6180339887498949;  // its multiples spread evenly over [0, 1)
  const double at = static_cast<double>(row) * kGolden;
  return std::lower_bound(shares.begin(), shares.end() - 1, at - static_cast<double>(static_cast<std::int64_t>(at))) -
         shares.begin();
}

/// Indices that an op might have chosen along its dimension, as a host tensor. Each row chooses different places.
/// @param arguments  those of the call
/// @param indices    its result
inline at::Tensor assumed_choice(const Operator& facts, const Stack& arguments, const at::Tensor& indices,
                                 Routing routing) {
  const at::Tensor& from = arguments[0].toTensor();
  const bool flat = facts.dim < 0 ? facts.name != "aten::multinomial" : !arguments[facts.dim].isInt();
  std::int64_t dim = flat || facts.dim < 0 ? -1 : arguments[facts.dim].toInt();
  if (dim < 0) dim += std::max<std::int64_t>(from.dim(), 1);
  const bool keeps = !flat && from.dim() == indices.dim() && from.dim() > 0;
  const std::int64_t places = flat || from.dim() == 0 ? std::max<std::int64_t>(from.numel(), 1) : from.size(dim);
  const std::int64_t chosen = keeps ? indices.size(dim) : 1;
  std::int64_t inner = 1;
  for (std::int64_t each = keeps ? dim + 1 : indices.dim(); each < indices.dim(); ++each) inner *= indices.size(each);
  std::vector<double> shares(static_cast<std::size_t>(routing == Routing::kZipf ? places : 0));
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = sum += 1 / static_cast<double>(i + 1);
  for (double& each : shares) each /= sum;
  at::Tensor made = at::empty(indices.sizes(), at::kLong);
  auto* const to = made.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < made.numel() / std::max<std::int64_t>(chosen, 1); ++row) {
    const std::int64_t first = first_choice(routing, row, chosen, places, shares);
    auto* const start = to + row / inner * inner * chosen + row % inner;
    for (std::int64_t i = 0; i < chosen; ++i) start[i * inner] = (first + i) % places;
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
