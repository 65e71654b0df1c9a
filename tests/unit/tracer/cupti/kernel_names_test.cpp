#include "tracer/cupti/kernel_names.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tracer/lower/lower.hpp"

namespace tidepool::kernel_names_test {

using namespace tidepool::cupti;
using Types = std::vector<ParameterType>;

namespace {
constexpr auto kConst = ParameterType::kPointerToConst;
constexpr auto kPointer = ParameterType::kPointer;
constexpr auto kValue = ParameterType::kValue;
}  // namespace

TEST_CASE("the mangled name of a kernel shows which pointers are to const") {
  CHECK(parameter_types("_Z3addPKfS0_Pfi") == Types{kConst, kConst, kPointer, kValue});  // S0_ is PKf again
  CHECK(parameter_types("_Z4copyIfEvPT_PKS0_m") == Types{kPointer, kConst, kValue});     // v: a template's result
  CHECK(parameter_types("_ZN2at6native12_GLOBAL__N_14fillEPfdPKl") == Types{kPointer, kValue, kConst});
  CHECK(parameter_types("_Z5applyPFfRKfEPS_") == Types{kValue, kConst});  // a pointer to a function; S_ is float const
  CHECK(parameter_types("_Z2ppPKPKfPPf") == Types{kConst, kPointer});     // to a const pointer, and to a pointer
}

TEST_CASE("kernels without parameters and names that are not C++ give no parameter types") {
  CHECK(parameter_types("_Z4nullv").empty());
  CHECK(parameter_types("triton_poi_fused_add_0").empty());
  CHECK(parameter_types("").empty());
  CHECK(parameter_types("_Z").empty());
  CHECK(parameter_types("_Z3addPKf!!").empty());
  CHECK(parameter_types("_Z" + std::string(1 << 20, 'P')).empty());
}

TEST_CASE("only commas outside of brackets separate the parameters of a demangled name") {
  CHECK(declared_parameter_types("void f<(anonymous namespace)::G, (int)2>(float const*, Array<char*, 3>, int*)") ==
        Types{kConst, kValue, kPointer});
  CHECK(declared_parameter_types("void h<k::operator()(int)::{lambda(int)#1}>(long, {lambda(int)#1}, float*)") ==
        Types{kValue, kValue, kPointer});
  CHECK(declared_parameter_types("f(float const (*) [3], float*) [clone .kd]") == Types{kValue, kPointer});
  CHECK(declared_parameter_types("f(a>b)").empty());
  CHECK(declared_parameter_types("nothing").empty());
}

TEST_CASE("kernels have readable names") {
  CHECK(tidepool::kernel_name("_ZN2at6native13reduce_kernelILi512EfEEvPf") == "at::native::reduce_kernel");
  CHECK(tidepool::kernel_name("_ZN12_GLOBAL__N_16kernelEv") == "(anonymous namespace)::kernel");
  CHECK(tidepool::kernel_name("_Z5scalePfi") == "scale");
  CHECK(tidepool::kernel_name("_ZL5scalePfi") == "scale");  // static, as are the next two
  CHECK(tidepool::kernel_name("_ZN2nsL5scaleIfEEvPT_i") == "ns::scale");
  CHECK(tidepool::kernel_name("_ZN12_GLOBAL__N_1L6kernelEv") == "(anonymous namespace)::kernel");
  CHECK(tidepool::kernel_name("ncclDevKernel_AllReduce") == "ncclDevKernel_AllReduce");
  CHECK(tidepool::kernel_name("_Z99x") == "_Z99x");
  CHECK(tidepool::kernel_name("_ZN") == "_ZN");
}

}  // namespace tidepool::kernel_names_test
