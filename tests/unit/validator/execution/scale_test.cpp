// The mapping of a device's addresses to words of a small arena.
#include "validator/execution/scale.hpp"

#include <array>
#include <vector>

#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "traces/builder.hpp"
#include "validator/execution/words.hpp"

namespace tidepool::scale_test {

using tidepool::tests::PlanWriter;

namespace {

struct Three {
  Trace trace;
  std::array<VersionId, 3> made;

  static Three make(Bytes size) {
    TraceBuilder build;
    std::array<VersionId, 3> made;
    for (VersionId& each : made) {
      const BufferId buffer = build.alloc({.size = size});
      each = build.run({}, {{buffer, Access::kWrite}})[0];
    }
    return {build.finish(), made};
  }
};

}  // namespace

TEST_CASE("places share words if and only if they share addresses, even on a coarse scale") {
  const Three three = Three::make(1_GiB);
  const Bytes apart = 1_GiB, together = 2_GiB - 1_B;
  const Plan plan = PlanWriter{three.trace}
                        .alloc(three.made[0], 0_B)
                        .alloc(three.made[1], apart)
                        .alloc(three.made[2], together)
                        .plan();
  const Bytes size = 1_GiB;
  // The parts are [0, 1 GiB), [1 GiB, 2 GiB - 1), the one byte that two places share, and the rest of the third place.
  const Scale coarse{three.trace, plan, 32_B};
  CHECK(coarse.unit() == 1_GiB);
  CHECK(coarse.arena_words() == 4);
  CHECK(coarse.word(0_B + size) == coarse.word(apart));
  CHECK(coarse.word(apart + size) == coarse.word(together) + 1);
  CHECK_THROWS(Scale(three.trace, plan, 31_B));
  const Scale fine{three.trace, plan, 1_MiB};
  CHECK(fine.unit() == 32_KiB);
  CHECK(fine.word(apart + size) == fine.word(together) + 1);
}

TEST_CASE("addresses that no place covers take no words") {
  const Three three = Three::make(1_MiB);
  const Bytes far{std::int64_t{1} << 60};
  const Plan plan =
      PlanWriter{three.trace}.alloc(three.made[0], 0_B).alloc(three.made[1], far).alloc(three.made[2], 512_KiB).plan();
  const Scale scale{three.trace, plan, 32_B};
  CHECK(scale.arena_words() == 4);
  CHECK(scale.word(far) == 3);
}

TEST_CASE("a wrong word of a content makes its copy wrong") {
  std::vector<std::uint64_t> from(7), to(2);
  for (std::size_t damaged = 0; damaged <= from.size(); ++damaged) {
    const Content source{from.data(), 2, from.size()}, copy{to.data(), 2, to.size()};
    fill_words(source, 42);
    if (damaged < from.size()) from[damaged] ^= 1;
    copy_words(copy, source);
    bool right = true;
    copy.for_each([&](std::uint64_t& word, std::size_t i) { right &= word == word_of(42, i); });
    CHECK(right == (damaged == from.size()));
  }
}

}  // namespace tidepool::scale_test
