#include "tracer/dry/size_reduction.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace tidepool::dry {
namespace {

/// The first members of ReduceOp<int64_t, ...>, whose operator is an empty class.
struct Begin {
  std::uint64_t operation;
  std::int64_t identity;
  std::int32_t element_bytes, inputs, outputs;  // of ReduceConfig
};

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
  std::vector<std::int64_t> numbers(count);
  std::memcpy(numbers.data(), reinterpret_cast<const void*>(from), bytes());
  std::int64_t result = numbers.front();
  for (const std::int64_t number : std::span{numbers}.subspan(1)) {
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
  return SizeReduction{what, end.from, end.to, static_cast<std::uint32_t>(begin.inputs)};
}

}  // namespace tidepool::dry
