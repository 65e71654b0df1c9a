#include "tracer/dry/size_addition.hpp"

#include <cstring>

namespace tidepool::dry {
namespace {

constexpr std::int32_t kMostSums = 64;

std::uint64_t size_at(std::uint64_t begin, std::uint32_t index) {
  std::uint64_t size = 0;
  std::memcpy(&size, reinterpret_cast<const void*>(begin + std::uint64_t{index} * SizeAddition::kBytes), sizeof size);
  return size;
}

}  // namespace

void SizeAddition::compute() const {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t added = others != 0 ? size_at(others, i) : static_cast<std::uint64_t>(number);
    const std::uint64_t sum = size_at(from, i) + static_cast<std::uint64_t>(factor) * added;
    std::memcpy(reinterpret_cast<void*>(to + std::uint64_t{i} * kBytes), &sum, sizeof sum);
  }
}

std::optional<SizeAddition::Operands> size_operands(std::string_view mangled) {
  const auto has = [&](std::string_view part) { return mangled.find(part) != std::string_view::npos; };
  const bool contiguous = has("vectorized_elementwise_kernelI") ||
                          (has("unrolled_elementwise_kernelI") && has("LoadWithoutCast") && has("StoreWithoutCast"));
  if (!contiguous) return {};
  if (has("CUDAFunctorOnSelf_addIlE")) return SizeAddition::Operands::kNumber;
  if (has("CUDAFunctor_addIlE")) return SizeAddition::Operands::kSizes;
  return {};
}

std::optional<SizeAddition> size_addition(SizeAddition::Operands operands, const cupti::KernelLayout& layout,
                                          const void* const* arguments) {
  const bool number = operands == SizeAddition::Operands::kNumber;
  std::int32_t count = 0;
  std::int64_t constants[2] = {};   // of the functor: the number and the factor, or only the factor without a number
  std::uint64_t addresses[3] = {};  // of the result, the sizes and, without a number, the other sizes
  const std::size_t constant_bytes = number ? 16 : 8, address_bytes = number ? 16 : 24;
  if (layout.size() < 3 || layout[0].size != sizeof count || layout[1].size != constant_bytes ||
      layout[2].size != address_bytes)
    return {};
  std::memcpy(&count, arguments[0], sizeof count);
  std::memcpy(constants, arguments[1], constant_bytes);
  std::memcpy(addresses, arguments[2], address_bytes);
  if (count < 1 || count > kMostSums) return {};
  return SizeAddition{.from = addresses[1],
                      .others = addresses[2],
                      .to = addresses[0],
                      .number = number ? constants[0] : 0,
                      .factor = number ? constants[1] : constants[0],
                      .count = static_cast<std::uint32_t>(count)};
}

}  // namespace tidepool::dry
