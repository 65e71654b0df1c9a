// PyTorch's conventions for kernel parameters: which of the pointers in them are uses, and their accesses.
#include "tracer/cupti/torch_kernels.hpp"

#include "tests/catch.hpp"

namespace tidepool::cupti::torch_kernels_test {
namespace {

FoundPointer at(std::uint32_t offset, std::uint32_t parameter = 0) { return {0x1000, parameter, offset}; }

/// A parameter of `bytes` bytes in which block i works on tensor i / 2; these 16-bit indices begin at `offset`.
std::vector<std::byte> lists_of(std::uint32_t bytes, std::uint32_t offset, std::uint16_t blocks) {
  std::vector<std::byte> parameter(bytes, std::byte{0xff});  // stale bytes of earlier launches
  for (std::uint16_t block = 0; block < blocks; ++block) {
    parameter[offset + block * 2u] = static_cast<std::byte>(block / 2);
    parameter[offset + block * 2u + 1] = std::byte{0};
  }
  return parameter;
}

const std::string kPointwise =
    "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi3EEENS1_"
    "24PointwiseOpScalarFunctorI"
    "fLi3ELi3ELi0EEEJSt10multipliesIfEfEEEvT_T0_DpT1_";

TEST_CASE("of the tensors in a list, only those of this launch count, with the accesses that the functor makes") {
  // Three lists of at most 336 addresses and as many sizes; at most 2240 blocks, each with a 16-bit index and a 32-bit
  // chunk; and a number at the end: 4 * 336 * 8 + 2240 * (2 + 4) + 4, rounded up to whole words.
  constexpr std::uint32_t kBytes = 24200, kList = 336 * 8;
  const auto kernel = TorchKernel::recognise(kPointwise, {{0, kBytes}, {kBytes, 1}, {kBytes + 4, 4}});
  REQUIRE(kernel);
  const auto parameter = lists_of(kBytes, 4 * kList, 6);  // six blocks work on three tensors
  const void* const values[] = {parameter.data(), nullptr, nullptr};
  const std::vector<FoundPointer> found{
      at(0), at(16), at(24), at(kList), at(2 * kList + 16), at(2 * kList + 24), at(3 * kList), at(0, 1)};
  using enum Role;
  CHECK(kernel->roles(found, values, 6) ==
        std::vector<Role>{kReadWrite, kReadWrite, kNone, kRead, kRead, kNone, kNone, kUnknown});
  CHECK(kernel->roles(found, values, 2)[1] == kNone);  // the first two blocks work on the first tensor
}

TEST_CASE("lists with scalars, and lists in parameters of 4 KiB, have layouts of their own") {
  const std::string scalars =
      "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIfLi1EEENS1_"
      "25BinaryOpScalarList"
      "FunctorIfLi1ELi1ELi0EEEJSt7dividesIfEEEEvT_T0_DpT1_";
  constexpr std::uint32_t kBytes = 672 * (8 + 8 + 4) + 2240 * (2 + 4);
  const auto kernel = TorchKernel::recognise(scalars, {{0, kBytes}});
  REQUIRE(kernel);
  const auto parameter = lists_of(kBytes, 672 * 20, 2);
  const void* const values[] = {parameter.data()};
  CHECK(kernel->roles(std::vector{at(0), at(8)}, values, 2) == std::vector{Role::kReadWrite, Role::kNone});

  constexpr std::uint32_t kSmall = 4 * 48 * 8 + 320 * (1 + 4) + 8;
  CHECK(TorchKernel::recognise(kPointwise, {{0, kSmall}}));
  CHECK_FALSE(TorchKernel::recognise(kPointwise, {{0, kSmall + 8}}));
  CHECK_FALSE(TorchKernel::recognise(kPointwise, {}));
}

TEST_CASE("fused optimizers read their step counters, and the accesses to their lists are unknown") {
  const std::string fused =
      "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4EEENS1_"
      "20FusedAdamMathFunctorI"
      "fLi4EEEJEEEvT_T0_DpT1_";
  constexpr std::uint32_t kList = 252 * 8, kBytes = 6 * kList + 2240 * 6 + 8;  // 4 bytes of these are padding
  const auto kernel = TorchKernel::recognise(fused, {{0, kBytes}});
  REQUIRE(kernel);
  const auto parameter = lists_of(kBytes, 6 * kList, 2);
  const void* const values[] = {parameter.data()};
  CHECK(kernel->roles(std::vector{at(3 * kList), at(5 * kList), at(5 * kList + 8)}, values, 2) ==
        std::vector{Role::kUnknown, Role::kRead, Role::kNone});
}

TEST_CASE("element-wise kernels write their first address and read the others") {
  const std::string add =
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_";
  const KernelLayout layout{{0, 4}, {4, 8}, {16, 24}};
  const auto kernel = TorchKernel::recognise(add, layout);
  REQUIRE(kernel);
  CHECK(kernel->roles(std::vector{at(0, 1), at(0, 2), at(8, 2), at(16, 2)}, nullptr, 1) ==
        std::vector{Role::kUnknown, Role::kWrite, Role::kRead, Role::kRead});
  CHECK_FALSE(TorchKernel::recognise(add, {{0, 4}, {4, 8}, {16, 16}}));
  CHECK_FALSE(TorchKernel::recognise("_Z4axpyiPKfPf", layout));
}

}  // namespace
}  // namespace tidepool::cupti::torch_kernels_test
