#include "tracer/dry/size_reduction.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tidepool::dry {
namespace {

/// The first members of ReduceOp<int64_t, ...>, whose operator is an empty class.
struct Begin {
  std::uint64_t operation;
  std::int64_t identity;
  std::int32_t element_bytes, inputs, outputs, others[13];  // of ReduceConfig
  // Of the OffsetCalculator of the input; strides are in bytes.
  static constexpr std::size_t kMostDimensions = 25;
  struct Divider {
    std::uint32_t size, multiplier, shift;
  };
  std::int32_t dimensions;
  Divider sizes[kMostDimensions];
  std::uint32_t strides[kMostDimensions];
};
static_assert(offsetof(Begin, strides) == 384);

/// The last members of ReduceOp<int64_t, ...>.
struct End {
  std::uint64_t from, to, second_to, accumulation, staging, semaphores;
  std::int64_t first_index;
  bool accumulates, final;
  std::int32_t outputs;
};
static_assert(sizeof(End) == 64);

constexpr std::uint32_t kMostNumbers = 4096;

}  // namespace

void SizeReduction::compute() const {
  const auto number_at = [&](std::uint32_t index) {
    std::int64_t number = 0;
    std::memcpy(&number, reinterpret_cast<const void*>(from + std::uint64_t{index} * stride), sizeof number);
    return number;
  };
  std::int64_t result = number_at(0);
  for (std::uint32_t i = 1; i < count; ++i) {
    const std::int64_t number = number_at(i);
    if (what == Operator::kMax)
      result = std::max(result, number);
    else if (what == Operator::kMin)
      result = std::min(result, number);
    else
      result = static_cast<std::int64_t>(static_cast<std::uint64_t>(result) + static_cast<std::uint64_t>(number));
  }
  std::memcpy(reinterpret_cast<void*>(to), &result, sizeof result);
}

std::optional<SizeReduction::Operator> size_operator(std::string_view mangled) {
  const auto has = [&](std::string_view part) { return mangled.find(part) != std::string_view::npos; };
  if (!has("reduce_kernelI") || !has("8ReduceOpIl")) return {};
  if (has("13MaxNanFunctorIl")) return SizeReduction::Operator::kMax;
  if (has("13MinNanFunctorIl")) return SizeReduction::Operator::kMin;
  if (has("11sum_functorIlll")) return SizeReduction::Operator::kSum;
  return {};
}

std::optional<SizeReduction> size_reduction(SizeReduction::Operator what, const cupti::KernelLayout& layout,
                                            const void* const* arguments) {
  if (layout.size() != 1 || layout[0].size < sizeof(Begin) + sizeof(End)) return {};
  Begin begin;
  End end;
  std::memcpy(&begin, arguments[0], sizeof begin);
  std::memcpy(&end, static_cast<const std::byte*>(arguments[0]) + layout[0].size - sizeof end, sizeof end);
  if (begin.element_bytes != static_cast<std::int32_t>(SizeReduction::kBytes) || begin.outputs != 1 ||
      begin.inputs < 1 || begin.inputs > static_cast<std::int32_t>(kMostNumbers))
    return {};
  const auto count = static_cast<std::uint32_t>(begin.inputs);
  if (count > 1 && (begin.dimensions != 1 || begin.sizes[0].size != count)) return {};
  return SizeReduction{what, end.from, end.to, count, count > 1 ? begin.strides[0] : 0};
}

}  // namespace tidepool::dry
