#include "tracer/cupti/tensor_maps.hpp"

#include <cstring>
#include <string_view>
#include <utility>

namespace tidepool::cupti {
namespace {

constexpr std::size_t kGeneration = 1U << 15;  // most descriptors in young_, and in old_

}  // namespace

std::size_t TensorMaps::Hash::operator()(const Descriptor& descriptor) const {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(descriptor.data()), descriptor.size()});
}

void TensorMaps::add(const std::byte* descriptor, std::uint64_t address) {
  if (young_.size() >= kGeneration) {
    old_ = std::move(young_);
    young_.clear();
  }
  Descriptor key;
  std::memcpy(key.data(), descriptor, key.size());
  young_.insert_or_assign(key, address);
}

std::optional<std::uint64_t> TensorMaps::find(const std::byte* descriptor) const {
  Descriptor key;
  std::memcpy(key.data(), descriptor, key.size());
  for (const auto* generation : {&young_, &old_})
    if (const auto found = generation->find(key); found != generation->end()) return found->second;
  return std::nullopt;
}

}  // namespace tidepool::cupti
