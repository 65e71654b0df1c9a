// Reductions of a few 64-bit integers, which a dry run computes on the host in place of PyTorch's kernels.
#include "tracer/dry/size_reduction.hpp"

#include <array>
#include <cstring>
#include <string>

#include "tests/catch.hpp"

namespace tidepool::dry::size_reduction_test {
namespace {

using Operator = SizeReduction::Operator;

/// What the dry device reads of the parameter of PyTorch's reduce_kernel (2.15): ReduceOp<int64_t, ..., uint32_t>.
struct Parameter {
  const void* from = nullptr;
  void* to = nullptr;
  std::int32_t inputs = 3, stride = 8, dimensions = 1, outputs = 1, element_bytes = 8;

  std::optional<SizeReduction> reduction(Operator what = Operator::kSum) const {
    constexpr std::uint32_t kBytes = 1056;
    std::array<std::byte, kBytes> bytes{};
    const auto put = [&](std::size_t offset, const auto& value) {
      std::memcpy(bytes.data() + offset, &value, sizeof value);
    };
    put(16, std::array{element_bytes, inputs, outputs});
    put(80, std::array{dimensions, inputs});
    put(384, stride);
    put(kBytes - 64, std::array{from, static_cast<const void*>(to)});
    const void* const arguments[] = {bytes.data()};
    return size_reduction(what, {{.offset = 0, .size = kBytes}}, arguments);
  }
};

TEST_CASE("reductions of 64-bit integers are recognised by their kernels' names") {
  const std::string begin = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpI", end = "EEEEjlLi4ELi4EEEEEvT1_";
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlNS0_13MaxNanFunctorIl" + end) == Operator::kMax);
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlNS0_13MinNanFunctorIl" + end) == Operator::kMin);
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlZNS0_11sum_functorIlllEclERNS_14TensorIteratorEEUlllE_" + end) ==
        Operator::kSum);
  CHECK(!size_operator(begin + "fNS0_14func_wrapper_tIfNS0_13MaxNanFunctorIf" + end));
  CHECK(!size_operator("_Z4axpyiPKfPf"));
}

TEST_CASE("reductions of sizes read every number at its distance from the one before") {
  using enum SizeReduction::Operator;
  const std::array<std::int64_t, 8> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  std::int64_t result = 0;
  const auto reduced = [&](Operator what, std::int32_t count, std::int32_t stride) {
    const auto reduction = Parameter{numbers.data(), &result, count, stride}.reduction(what);
    REQUIRE(reduction);
    CHECK(reduction->bytes() == static_cast<std::uint64_t>((count - 1) * stride + 8));
    reduction->compute();
    return result;
  };
  CHECK(reduced(kSum, 8, 8) == 36);
  CHECK(reduced(kSum, 4, 16) == 1 + 3 + 5 + 7);
  CHECK(reduced(kMax, 4, 16) == 7);
  CHECK(reduced(kMin, 3, 24) == 1);
  CHECK(reduced(kSum, 5, 0) == 5);  // a number that is expanded
  CHECK(reduced(kSum, 1, 0) == 1);
}

TEST_CASE("reductions of sizes at unequal distances are left to the kernel, which computes nothing") {
  std::int64_t number = 0;
  CHECK_FALSE(Parameter{&number, &number, 8, 8, 2}.reduction());
}

TEST_CASE("reductions are not computed if they have several results, many numbers or numbers of another size") {
  CHECK(Parameter{.inputs = 4096}.reduction());
  CHECK(!Parameter{.inputs = 4097}.reduction());
  CHECK(!Parameter{.outputs = 2}.reduction());
  CHECK(!Parameter{.element_bytes = 4}.reduction());
  CHECK(!Parameter{.inputs = 0}.reduction());
}

}  // namespace
}  // namespace tidepool::dry::size_reduction_test
