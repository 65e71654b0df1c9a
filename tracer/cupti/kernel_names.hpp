// Parameters of a kernel according to its name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tidepool::cupti {

/// What a parameter is by its declared type. Kernels that are not C++ (Triton's, for one) do not say.
enum class ParameterType : std::uint8_t {
  kUnknown,
  kPointerToConst,  ///< T const*: the kernel reads through it, and writes only if it casts
  kPointer,         ///< T*: reads, writes or both
  kValue,           ///< anything else; a struct may hold pointers
};

/// The types of the parameters of a kernel with this mangled name (Itanium C++ ABI), in order.
/// @return empty if the name is not mangled, or not understood. Callers compare the number with what the driver says.
std::vector<ParameterType> parameter_types(std::string_view mangled);

/// The same for a demangled name: "void f<int>(float const*, (lambda at x.cu:3:5), int*)".
std::vector<ParameterType> declared_parameter_types(std::string_view demangled);

}  // namespace tidepool::cupti
