// Types of a kernel's parameters, from its mangled name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tidepool::cupti {

/// The declared type of a parameter. It is kUnknown for kernels whose names are not mangled C++, such as Triton's.
enum class ParameterType : std::uint8_t {
  kUnknown,
  kPointerToConst,  ///< T const*: the kernel only reads, unless it casts the const away
  kPointer,         ///< T*: reads, writes or both
  kValue,           ///< anything else; a struct may hold pointers
};

/// The types of the parameters of a kernel with this mangled name (Itanium C++ ABI), in order.
/// @return empty if the kernel has no parameters, and if the name is not mangled or not understood. Callers must
/// compare the number of types with the number of parameters that the driver reports.
std::vector<ParameterType> parameter_types(std::string_view mangled);

/// The same for a demangled name: "void f<int>(float const*, (lambda at x.cu:3:5), int*)".
std::vector<ParameterType> declared_parameter_types(std::string_view demangled);

}  // namespace tidepool::cupti
