// Names and parameters of kernels: any text as a name, any layout, any bytes as values. Nothing crashes.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tracer/cupti/parameter_scan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool::cupti;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  // The demangler is left out: it belongs to the C++ library, and is slow on malicious names.
  const auto types = declared_parameter_types(text);
  KernelLayout layout;
  for (std::size_t at = 0; at + 8 <= size && layout.size() < 64; at += 8) {
    KernelParameter parameter;
    std::memcpy(&parameter.offset, data + at, 4);
    std::memcpy(&parameter.size, data + at + 4, 4);
    layout.push_back(parameter);
  }
  apply_types(layout, types);
  LiveRanges ranges;
  if (size >= 16) {
    std::uint64_t begin = 0, bytes = 0;
    std::memcpy(&begin, data, 8);
    std::memcpy(&bytes, data + 8, 8);
    ranges.add(begin, bytes);
    ranges.remove_within(begin, bytes / 2);
  }
  TensorMaps maps;
  if (size >= kTensorMapBytes) maps.add(reinterpret_cast<const std::byte*>(data), 4096);
  ParameterScan scan;
  scan.scan_packed(layout, {reinterpret_cast<const std::byte*>(data), size}, ranges, maps);
  return 0;
}
