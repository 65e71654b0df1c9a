// The raw record of a pointer among a kernel's parameters.
#pragma once

#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/cupti/torch_kernels.hpp"
#include "tracer/raw/records.hpp"

namespace tidepool::cupti {

/// A pointer to const is a read. A role that follows from a convention of PyTorch has the evidence kInferred. Any other
/// pointer is a touch. The role must not be kNone.
inline raw::BufferUse use_of(const FoundPointer& found, Role role) {
  raw::BufferUse use{found.address,       0,
                     found.offset,        static_cast<std::uint16_t>(found.parameter),
                     raw::Access::kTouch, raw::Evidence::kParameter};
  if (found.read_only) {
    use.access = raw::Access::kRead;
    use.evidence = raw::Evidence::kConst;
  } else if (role != Role::kUnknown) {
    use.access = role == Role::kRead    ? raw::Access::kRead
                 : role == Role::kWrite ? raw::Access::kWrite
                                        : raw::Access::kReadWrite;
    use.evidence = raw::Evidence::kInferred;
  }
  return use;
}

}  // namespace tidepool::cupti
