#include "tracer/cupti/torch_kernels.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace tidepool::cupti {
namespace {

/// The numbers at the beginning of `text` that are mangled template arguments of type int and have one digit: 3, 2 and
/// 0 of "Li3ELi2ELi0E".
std::vector<std::uint32_t> template_numbers(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  while (text.size() >= 4 && text.starts_with("Li") && std::isdigit(static_cast<unsigned char>(text[2])) &&
         text[3] == 'E') {
    numbers.push_back(static_cast<std::uint32_t>(text[2] - '0'));
    text.remove_prefix(4);
  }
  return numbers;
}

/// The part of `text` after `word`; empty if `word` does not occur.
std::string_view behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? std::string_view{} : text.substr(at + word.size());
}

constexpr std::uint32_t kMostDepth = 5;
/// Limits of a launch: the most tensors by depth (the number of lists, from 1), without and with a scalar for each
/// tensor, and the most blocks. A table has, for each block, the number of its tensor, in `index_bytes` bytes. One
/// layout has 4 KiB of parameters, the other 32 KiB (CUDA 13).
struct Layout {
  std::array<std::uint32_t, kMostDepth> plain, with_scalars;
  std::uint32_t blocks, index_bytes;
};
constexpr std::array<Layout, 2> kLayouts{{{{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
                                          {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2}}};
constexpr std::uint32_t kPointerBytes = 8;

constexpr std::uint32_t round_up(std::uint32_t bytes, std::uint32_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Bytes of a scalar by the letter of its mangled type: float, int, double or long; 0 for other letters.
std::uint32_t scalar_bytes(char letter) {
  switch (letter) {
    case 'f':
    case 'i':
      return 4;
    case 'd':
    case 'l':
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::optional<TorchKernel::Lists> TorchKernel::lists(std::string_view mangled, std::uint32_t bytes) {
  const std::string_view kernel = behind(mangled, "multi_tensor_apply_kernelI");
  if (kernel.empty()) return std::nullopt;
  std::string_view rest = behind(kernel, "TensorListMetadataI");
  const bool fused = kernel.find("FusedOptimizerTensorListMetadataI") != std::string_view::npos;
  std::uint32_t scalar = 0;
  if (rest.empty()) {
    rest = behind(kernel, "TensorListScalarListMetadataI");
    if (rest.empty() || (scalar = scalar_bytes(rest.front())) == 0) return std::nullopt;
    rest.remove_prefix(1);
  }
  const auto depth = template_numbers(rest);
  if (depth.size() != 1 || depth[0] == 0 || depth[0] > kMostDepth) return std::nullopt;
  for (const Layout& layout : kLayouts) {
    Lists lists;
    lists.depth = depth[0];
    lists.room = (scalar != 0 ? layout.with_scalars : layout.plain)[depth[0] - 1];
    const std::uint32_t sizes = lists.depth * lists.room * kPointerBytes,
                        behind_sizes = sizes + lists.room * kPointerBytes;
    lists.states = fused ? behind_sizes : 0;
    lists.block_to_tensor = behind_sizes + lists.room * (fused ? kPointerBytes : scalar);
    lists.index_bytes = layout.index_bytes;
    lists.most_blocks = layout.blocks;
    const std::uint32_t chunks = round_up(lists.block_to_tensor + layout.blocks * layout.index_bytes, 4);
    const std::uint32_t end = chunks + layout.blocks * 4 + (scalar != 0 ? 0 : 4);
    if (round_up(end, kPointerBytes) != bytes) continue;
    // The functor's template arguments: value type, depth, number of lists that are read, index of the written list.
    for (std::size_t at = rest.find("Functor"); at != std::string_view::npos; at = rest.find("Li", at + 2)) {
      const auto numbers = template_numbers(rest.substr(at));
      if (numbers.size() < 3 || numbers[0] != lists.depth || numbers[1] > lists.depth || numbers[2] >= lists.depth)
        continue;
      lists.read = numbers[1];
      lists.written = numbers[2];
      break;
    }
    return lists;
  }
  return std::nullopt;
}

std::optional<TorchKernel> TorchKernel::recognise(std::string_view mangled, const KernelLayout& layout) {
  TorchKernel kernel;
  if (!layout.empty() && (kernel.lists_ = lists(mangled, layout[0].size))) return kernel;
  if (mangled.find("vectorized_elementwise_kernelI") == std::string_view::npos &&
      mangled.find("unrolled_elementwise_kernelI") == std::string_view::npos)
    return std::nullopt;
  // (int n, functor, std::array<char*, N>, ...): N, from the name, must agree with the size of the parameter.
  const std::string_view array = behind(mangled, "St5arrayIPcLm");
  const std::size_t digits = std::min(array.find('E'), std::size_t{3});
  std::uint32_t count = 0;
  for (const char digit : array.substr(0, digits)) count = count * 10 + static_cast<std::uint32_t>(digit - '0');
  constexpr std::uint32_t kArray = 2;
  if (count == 0 || layout.size() <= kArray || layout[kArray].size != count * kPointerBytes) return std::nullopt;
  kernel.array_ = kArray;
  return kernel;
}

Role TorchKernel::role_in_lists(const FoundPointer& pointer, std::uint32_t tensors) const {
  const std::uint32_t word = pointer.offset / kPointerBytes, list = word / lists_->room, slot = word % lists_->room;
  if (list < lists_->depth) {
    if (slot >= tensors) return Role::kNone;
    if (!lists_->written) return Role::kUnknown;
    const bool reads = list < lists_->read, writes = list == *lists_->written;
    return reads && writes ? Role::kReadWrite : writes ? Role::kWrite : reads ? Role::kRead : Role::kUnknown;
  }
  const std::uint32_t first_state = lists_->states / kPointerBytes;
  const bool state = lists_->states != 0 && word >= first_state && word - first_state < tensors;
  return state ? Role::kRead : Role::kNone;
}

std::vector<Role> TorchKernel::roles(std::span<const FoundPointer> found, const void* const* values,
                                     std::uint32_t blocks) const {
  std::vector<Role> roles;
  if (!lists_) {
    for (const FoundPointer& pointer : found)
      roles.push_back(pointer.parameter != array_ ? Role::kUnknown : pointer.offset == 0 ? Role::kWrite : Role::kRead);
    return roles;
  }
  std::uint32_t tensors = 0;
  const auto* const indices = static_cast<const std::byte*>(values[0]) + lists_->block_to_tensor;
  for (std::uint32_t block = 0; block < std::min(blocks, lists_->most_blocks); ++block) {
    std::uint32_t index = 0;
    std::memcpy(&index, indices + block * lists_->index_bytes, lists_->index_bytes);
    tensors = std::max(tensors, index + 1);
  }
  for (const FoundPointer& pointer : found)
    roles.push_back(pointer.parameter == 0 ? role_in_lists(pointer, tensors) : Role::kUnknown);
  return roles;
}

}  // namespace tidepool::cupti
