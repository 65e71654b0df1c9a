// Readable names of kernels.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

/// "at::native::reduce_kernel" for "_ZN2at6native13reduce_kernelILi512EfEEvPf": the qualified name, without template
/// arguments and parameters. The result is less than twice as long as the input, while a full demangler may make
/// gigabytes of a short name. A name that is not mangled, or that cannot be read, is returned unchanged.
std::string kernel_name(std::string_view mangled);

}  // namespace tidepool
