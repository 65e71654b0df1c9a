// The memory that launches may use: of devices, and pinned memory of the host.
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <unordered_set>

#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/inject/library.hpp"

namespace tidepool::inject {

/// One object for all threads of the job. Thread safe.
class KnownMemory {
 public:
  void add(std::uint64_t begin, std::uint64_t bytes);
  void remove(std::uint64_t begin);
  /// Forgets all memory, since allocations and frees were not seen for a time. Keeps the tensor maps.
  void forget();
  void remove_within(std::uint64_t begin, std::uint64_t bytes);
  bool holds(std::uint64_t address) const;
  void add_tensor_map(const void* descriptor, std::uint64_t address);

  /// Finds the pointers among the parameters of a launch, which are in `values` or, if that is nullptr, in `packed`.
  void scan(cupti::ParameterScan& scan, const cupti::KernelLayout& layout, void* const* values, const void* packed,
            std::size_t packed_bytes) const;

  struct Answer {
    bool found = false, first = false;  ///< first: the memory was unknown before
    cupti::LiveRange range = {};
    CUmemorytype type = {};      ///< of the memory, if `first`
    std::uint32_t device = ~0U;  ///< the device's ordinal; ~0: not known
  };
  /// Asks the driver about the memory of an unknown address. Does not ask again about a page of 4 KiB without memory;
  /// when it has remembered 2^20 such pages, it forgets them all. May be called inside a callback: the driver's call
  /// has no callback itself. @return whether the address is in memory, and the range, which is known from now on
  Answer resolve(const DriverLibrary& driver, std::uint64_t address);

 private:
  mutable std::shared_mutex mutex_;
  cupti::LiveRanges ranges_;
  cupti::TensorMaps maps_;
  std::unordered_set<std::uint64_t> nothing_;  ///< pages without memory, by the driver's answer
};

}  // namespace tidepool::inject
