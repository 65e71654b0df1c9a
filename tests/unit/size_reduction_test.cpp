// Reductions of a few 64-bit integers, which a dry run computes on the host.
#include "tracer/dry/size_reduction.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "tests/catch.hpp"

namespace tidepool::dry::size_reduction_test {
namespace {

using Operator = SizeReduction::Operator;

/// A parameter of PyTorch's reduce_kernel (2.15), with numbers at the offsets that the stand-in reads.
struct Parameter {
  std::uint64_t operation = 0;
  std::int64_t identity = 0;
  std::int32_t element_bytes = 8, inputs = 3, outputs = 1;
  std::array<std::int32_t, 201> between{};
  std::uint64_t from = 0, to = 0, second_to = 0, buffers[3] = {};
  std::int64_t first_index = 0, rest = 0;
};
static_assert(sizeof(Parameter) == 16 + 12 + 804 + 64);

std::optional<SizeReduction> reduction(const Parameter& parameter, Operator what = Operator::kMax) {
  const void* const arguments[] = {&parameter};
  return size_reduction(what, {{0, sizeof parameter, {}}}, arguments);
}

TEST_CASE("reductions of 64-bit integers are recognised by their kernels' names") {
  const std::string begin = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpI", end = "EEEEjlLi4ELi4EEEEEvT1_";
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlNS0_13MaxNanFunctorIl" + end) == Operator::kMax);
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlNS0_13MinNanFunctorIl" + end) == Operator::kMin);
  CHECK(size_operator(begin + "lNS0_14func_wrapper_tIlZNS0_11sum_functorIlllEclERNS_14TensorIteratorEEUlllE_" + end) ==
        Operator::kSum);
  CHECK(!size_operator(begin + "fNS0_14func_wrapper_tIfNS0_13MaxNanFunctorIf" + end));
  CHECK(!size_operator("_Z4axpyiPKfPf"));
}

TEST_CASE("a reduction of sizes is computed from the numbers that its parameter names") {
  const std::vector<std::int64_t> numbers{5, 9, -3};
  for (const auto& [what, expected] : {std::pair{Operator::kMax, std::int64_t{9}},
                                       {Operator::kMin, std::int64_t{-3}},
                                       {Operator::kSum, std::int64_t{11}}}) {
    std::int64_t result = 0;
    Parameter parameter;
    parameter.from = reinterpret_cast<std::uint64_t>(numbers.data());
    parameter.to = reinterpret_cast<std::uint64_t>(&result);
    const auto found = reduction(parameter, what);
    REQUIRE(found);
    CHECK(found->bytes() == 24);
    found->compute();
    CHECK(result == expected);
  }
}

TEST_CASE("reductions are not computed if they have several results, many numbers or numbers of another size") {
  CHECK(reduction({.inputs = 4096}));
  CHECK(!reduction({.inputs = 4097}));
  CHECK(!reduction({.outputs = 2}));
  CHECK(!reduction({.element_bytes = 4}));
  CHECK(!reduction({.inputs = 0}));
}

}  // namespace
}  // namespace tidepool::dry::size_reduction_test
