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

/// Offset and size of a parameter in the parameter buffer of its kernel, in bytes, and its type.
struct KernelParameter {
  std::uint32_t offset = 0, size = 0;
  ParameterType type = ParameterType::kUnknown;
};
using KernelLayout = std::vector<KernelParameter>;

/// Gives parameters the types of the kernel's name. Does nothing if the name has another number of parameters than the
/// layout, or if a pointer does not have eight bytes.
void apply_types(KernelLayout& layout, std::span<const ParameterType> types);

/// The place of a pointer in the parameters.
enum class PointerPlace : std::uint8_t {
  kParameter,  ///< the whole parameter
  kInside,     ///< a word of a larger parameter, such as a struct passed by value
  kTensorMap,  ///< the address that a tensor-map descriptor was encoded for
};

/// A pointer among the parameters of a launch.
struct FoundPointer {
  std::uint64_t address = 0;
  std::uint32_t parameter = 0;  ///< index in the layout
  std::uint32_t offset = 0;     ///< of the pointer within the parameter, in bytes
  PointerPlace place = PointerPlace::kParameter;
  bool read_only = false;  ///< the parameter is declared as a pointer to const
  bool live = true;        ///< false: the address may be a device address, but is in no live range

  bool operator==(const FoundPointer&) const = default;
};

/// Tests every aligned word of eight bytes of every parameter. A word outside all live ranges is reported (as not live)
/// only if it could be a device address and is no whole parameter that is declared as a value: the caller may ask the
/// driver about it, and so find memory that was allocated before the recording. O(words log ranges). Not found:
/// pointers in device memory (arrays of pointers), unaligned pointers, pointers in constant memory. Wrongly found:
/// integers that equal an address in use.
class ParameterScan {
 public:
  /// @param values  the argument of cuLaunchKernel: one host pointer for each parameter
  void scan(const KernelLayout& layout, const void* const* values, const LiveRanges& ranges, const TensorMaps& maps);
  /// @param bytes   the parameter buffer itself (CU_LAUNCH_PARAM_BUFFER_POINTER)
  void scan_packed(const KernelLayout& layout, std::span<const std::byte> bytes, const LiveRanges& ranges,
                   const TensorMaps& maps);
  /// The pointers of the last scan, in the order of the parameters; valid until the next scan.
  std::span<const FoundPointer> found() const { return found_; }

 private:
  void scan_one(std::uint32_t index, const KernelParameter& parameter, const std::byte* bytes, const LiveRanges& ranges,
                const TensorMaps& maps);

  std::vector<FoundPointer> found_;
};

}  // namespace tidepool::cupti
