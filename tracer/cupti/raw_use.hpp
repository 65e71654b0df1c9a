// Record of a pointer that a kernel was given.
#pragma once

#include "tracer/cupti/parameter_scan.hpp"
#include "tracer/cupti/torch_kernels.hpp"
#include "tracer/raw/records.hpp"

namespace tidepool::cupti {

/// Read where the kernel's type says const; what a convention of PyTorch's says is inferred; else used in a way that is
/// not known.
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
