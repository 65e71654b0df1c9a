// Additions of a few 64-bit integers, which a dry run computes on the host.
#include "tracer/dry/size_addition.hpp"

#include <array>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::dry::size_addition_test {
namespace {

using Operands = SizeAddition::Operands;
using Numbers = std::vector<std::int64_t>;

std::uint64_t address(const Numbers& numbers) { return reinterpret_cast<std::uint64_t>(numbers.data()); }

TEST_CASE("additions of 64-bit integers are recognised by their kernels' names") {
  const std::string vectorized = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_";
  const std::string unrolled = "_ZN2at6native27unrolled_elementwise_kernelINS0_";
  CHECK(size_operands(vectorized + "21CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EELb0EEEviT0_T1_") == Operands::kNumber);
  CHECK(size_operands(vectorized + "15CUDAFunctor_addIlEESt5arrayIPcLm3EELb0EEEviT0_T1_") == Operands::kSizes);
  CHECK(size_operands(unrolled + "15CUDAFunctor_addIlEE15LoadWithoutCast16StoreWithoutCast") == Operands::kSizes);
  CHECK(!size_operands(unrolled + "15CUDAFunctor_addIlEE12LoadWithCast13StoreWithCast"));
  CHECK(!size_operands(vectorized + "15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_"));
  CHECK(!size_operands("_Z4axpyiPKfPf"));
}

TEST_CASE("sizes are added to a number, to other sizes, and in place") {
  Numbers sizes{5, 9, -3}, others{1, 2, 3}, result(3);
  const std::int32_t count = 3;
  const std::array<std::int64_t, 2> number_and_factor{10, 2};
  const std::int64_t factor = -1;
  {
    const std::array addresses{address(result), address(sizes)};
    const void* const arguments[] = {&count, &number_and_factor, &addresses};
    const auto found = size_addition(Operands::kNumber, {{0, 4, {}}, {8, 16, {}}, {24, 16, {}}}, arguments);
    REQUIRE(found);
    CHECK(found->bytes() == 24);
    found->compute();
    CHECK(result == Numbers{25, 29, 17});
  }
  const std::array addresses{address(sizes), address(sizes), address(others)};
  const void* const arguments[] = {&count, &factor, &addresses};
  const cupti::KernelLayout layout{{0, 4, {}}, {8, 8, {}}, {16, 24, {}}};
  const auto found = size_addition(Operands::kSizes, layout, arguments);
  REQUIRE(found);
  found->compute();
  CHECK(sizes == Numbers{4, 7, -6});
  CHECK(!size_addition(Operands::kNumber, layout, arguments));
  const std::int32_t many = 65;
  const void* const too_many[] = {&many, &factor, &addresses};
  CHECK(!size_addition(Operands::kSizes, layout, too_many));
}

}  // namespace
}  // namespace tidepool::dry::size_addition_test
