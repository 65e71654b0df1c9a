// Scan of a kernel's launch parameters for pointers to buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tracer/cupti/kernel_names.hpp"
#include "tracer/cupti/live_ranges.hpp"
#include "tracer/cupti/tensor_maps.hpp"

namespace tidepool::cupti {

/// Where one parameter lies in the parameter buffer of its kernel, in bytes, and what its type is.
struct KernelParameter {
  std::uint32_t offset = 0, size = 0;
  ParameterType type = ParameterType::kUnknown;
};
using KernelLayout = std::vector<KernelParameter>;

/// Gives parameters the types that the kernel's name declares, if the name has as many as the layout and no pointer of
/// another size than eight bytes.
void apply_types(KernelLayout& layout, std::span<const ParameterType> types);

/// How a pointer was found.
enum class PointerPlace : std::uint8_t {
  kParameter,  ///< the whole parameter
  kInside,     ///< a word of a larger parameter, such as a struct passed by value
  kTensorMap,  ///< the address that a tensor-map descriptor was encoded for
};

/// A pointer among the parameters of a launch.
struct FoundPointer {
  std::uint64_t address = 0;
  std::uint32_t parameter = 0;  ///< its index
  std::uint32_t offset = 0;     ///< of the pointer within the parameter, in bytes
  PointerPlace place = PointerPlace::kParameter;
  bool read_only = false;  ///< the parameter is declared as a pointer to const
  bool live = true;        ///< false: no known memory; it merely looks like a device address

  bool operator==(const FoundPointer&) const = default;
};

/// Looks at every aligned word of every parameter. Words outside all live ranges are reported (as not live) only if
/// they could be user addresses; a caller that can ask the driver finds memory in this way that was allocated before it
/// began. O(words log ranges). What it cannot see: pointers in device memory (arrays of pointers), unaligned pointers,
/// constant memory. What it takes for a pointer although it is none: integers that equal an address in use.
class ParameterScan {
 public:
  /// @param values  as cuLaunchKernel takes them: one host pointer for each parameter
  void scan(const KernelLayout& layout, const void* const* values, const LiveRanges& ranges, const TensorMaps& maps);
  /// @param bytes   the parameter buffer itself (CU_LAUNCH_PARAM_BUFFER_POINTER)
  void scan_packed(const KernelLayout& layout, std::span<const std::byte> bytes, const LiveRanges& ranges,
                   const TensorMaps& maps);
  /// Of the last scan, in the order of the parameters; valid until the next.
  std::span<const FoundPointer> found() const { return found_; }

 private:
  void scan_one(std::uint32_t index, const KernelParameter& parameter, const std::byte* bytes, const LiveRanges& ranges,
                const TensorMaps& maps);

  std::vector<FoundPointer> found_;
};

}  // namespace tidepool::cupti
