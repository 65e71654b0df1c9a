// Names of kernels as people know them.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

/// "at::native::reduce_kernel" for "_ZN2at6native13reduce_kernelILi512EfEEvPf": the qualified name, without template
/// arguments and parameters. (A full demangler may make gigabytes of a short name; this takes what it is given.) What
/// is no mangled name stays as it is.
std::string kernel_name(std::string_view mangled);

}  // namespace tidepool
