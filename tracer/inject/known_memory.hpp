// The memory that launches may point to, shared by the job's threads.
#pragma once

#include <cstdint>
#include <shared_mutex>
#include <unordered_set>

#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/inject/library.hpp"

namespace tidepool::inject {

class KnownMemory {
 public:
  void add(std::uint64_t begin, std::uint64_t bytes);
  void remove(std::uint64_t begin);
  /// What was allocated and freed meanwhile was not seen: everything is unknown again.
  void forget();
  void remove_within(std::uint64_t begin, std::uint64_t bytes);
  bool holds(std::uint64_t address) const;
  void add_tensor_map(const void* descriptor, std::uint64_t address);

  /// The pointers among the parameters of a launch. `values` or, where it is nullptr, `packed` of so many bytes.
  void scan(cupti::ParameterScan& scan, const cupti::KernelLayout& layout, void* const* values, const void* packed,
            std::size_t packed_bytes) const;

  /// Asks the driver what an unknown address points to, once for each page that is no memory: the answer is no as long
  /// as no allocation is seen there. May be called inside a callback: the driver's call has none itself.
  /// @return whether the address points to memory, which is known from now on
  struct Answer {
    bool found = false, first = false;  ///< first: nobody knew of it before
    cupti::LiveRange range = {};
    CUmemorytype type = {};      ///< of what was found first
    std::uint32_t device = ~0U;  ///< its ordinal; ~0: not known
  };
  Answer resolve(const DriverLibrary& driver, std::uint64_t address);

 private:
  mutable std::shared_mutex mutex_;
  cupti::LiveRanges ranges_;
  cupti::TensorMaps maps_;
  std::unordered_set<std::uint64_t> nothing_;  ///< pages at which the driver knows no memory
};

}  // namespace tidepool::inject
