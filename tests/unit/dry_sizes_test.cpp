// Computations on sizes that a dry run does in place of PyTorch's kernels.
#include <array>
#include <cstring>
#include <vector>

#include "tests/catch.hpp"
#include "tracer/dry/size_reduction.hpp"

namespace tidepool::dry::dry_sizes_test {
namespace {

/// The parameter of PyTorch's reduction kernel: ReduceOp<int64_t, ..., uint32_t>.
class Parameter {
 public:
  Parameter(const void* from, void* to, std::int32_t count, std::int32_t stride, std::int32_t dimensions = 1) {
    put(16, std::array{8, count, 1});  // bytes of an element, inputs, outputs
    put(80, std::array{dimensions, count});
    put(384, stride);
    put(kBytes - 64, std::array{from, static_cast<const void*>(to)});
  }
  std::optional<SizeReduction> reduction(SizeReduction::Operator what) const {
    const void* const arguments[] = {bytes_.data()};
    return size_reduction(what, {{.offset = 0, .size = kBytes}}, arguments);
  }

 private:
  static constexpr std::uint32_t kBytes = 1056;
  template <class T>
  void put(std::size_t offset, const T& value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  std::array<std::byte, kBytes> bytes_{};
};

TEST_CASE("reductions of sizes read every number at its distance from the one before") {
  using enum SizeReduction::Operator;
  const std::array<std::int64_t, 8> numbers{1, 2, 3, 4, 5, 6, 7, 8};
  std::int64_t result = 0;
  const auto reduced = [&](SizeReduction::Operator what, std::int32_t count, std::int32_t stride) {
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
  CHECK_FALSE(Parameter{&number, &number, 8, 8, 2}.reduction(SizeReduction::Operator::kSum));
}

}  // namespace
}  // namespace tidepool::dry::dry_sizes_test
