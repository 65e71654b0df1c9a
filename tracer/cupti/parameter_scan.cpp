#include "tracer/cupti/parameter_scan.hpp"

#include <cstring>

namespace tidepool::cupti {
namespace {

constexpr std::uint32_t kWord = 8;
// Device addresses are at least 4 GiB and less than 2^57, since the widest page tables translate 57 bits.
constexpr std::uint64_t kLowestAddress = 1ULL << 32, kHighestAddress = 1ULL << 57;

bool may_be_address(std::uint64_t word) { return word >= kLowestAddress && word < kHighestAddress; }

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, kWord);
  return word;
}

bool is_pointer(ParameterType type) {
  return type == ParameterType::kPointer || type == ParameterType::kPointerToConst;
}

}  // namespace

void apply_types(KernelLayout& layout, std::span<const ParameterType> types) {
  if (types.size() != layout.size()) return;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (is_pointer(types[i]) && layout[i].size != kWord) return;
  for (std::size_t i = 0; i < types.size(); ++i) layout[i].type = types[i];
}

void ParameterScan::scan_one(std::uint32_t index, const KernelParameter& parameter, const std::byte* bytes,
                             const LiveRanges& ranges, const TensorMaps& maps) {
  const bool whole = parameter.size == kWord;
  // Offset in the parameter of its first word that is aligned in the kernel's parameter buffer.
  std::uint32_t at = (kWord - parameter.offset % kWord) % kWord;
  while (parameter.size >= kWord && at <= parameter.size - kWord) {
    if (!maps.empty() && parameter.size - at >= kTensorMapBytes && (parameter.offset + at) % kTensorMapAlignment == 0)
      if (const auto address = maps.find(bytes + at)) {
        found_.push_back({*address, index, at, PointerPlace::kTensorMap, false, ranges.find(*address) != nullptr});
        at += kTensorMapBytes;
        continue;
      }
    const std::uint64_t word = word_at(bytes + at);
    const bool live = ranges.find(word) != nullptr;
    if (live || (may_be_address(word) && !(whole && parameter.type == ParameterType::kValue)))
      found_.push_back({word, index, at, whole ? PointerPlace::kParameter : PointerPlace::kInside,
                        parameter.type == ParameterType::kPointerToConst, live});
    at += kWord;
  }
}

void ParameterScan::scan(const KernelLayout& layout, const void* const* values, const LiveRanges& ranges,
                         const TensorMaps& maps) {
  found_.clear();
  if (values == nullptr) return;
  for (std::uint32_t i = 0; i < layout.size(); ++i)
    if (values[i] != nullptr) scan_one(i, layout[i], static_cast<const std::byte*>(values[i]), ranges, maps);
}

void ParameterScan::scan_packed(const KernelLayout& layout, std::span<const std::byte> bytes, const LiveRanges& ranges,
                                const TensorMaps& maps) {
  found_.clear();
  for (std::uint32_t i = 0; i < layout.size(); ++i)
    if (layout[i].offset <= bytes.size() && layout[i].size <= bytes.size() - layout[i].offset)
      scan_one(i, layout[i], bytes.data() + layout[i].offset, ranges, maps);
}

}  // namespace tidepool::cupti
