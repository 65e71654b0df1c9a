#include <stdexcept>

#include "simulator/instance.hpp"
#include "simulator/planner.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"

namespace tidepool::packing_instance_test {

namespace {

std::string refusal_of(const Instance& instance) {
  try {
    check(instance);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// Items 0 to 2 live together; item 3 begins when item 1 ends.
Instance four() {
  Instance instance;
  instance.add(64_B, 0, 9);
  instance.add(32_B, 1, 3);
  instance.add(16_B, 2, 9);
  instance.add(32_B, 3, 9);
  return instance;
}

std::string overlap_of(const Instance& instance, std::vector<Bytes> offsets) {
  try {
    verified_height(instance, offsets);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "fits";
}

}  // namespace

TEST_CASE("an item that ends at a position is not part of the load there") {
  CHECK(load_of(four()) == 112_B);
  CHECK(load_of(Instance{}) == 0_B);
}

TEST_CASE("an item lives in all of its intervals and not between them") {
  Instance instance;
  const std::vector<Interval> around{{0, 2}, {5, 6}};
  instance.add(8_B, around);
  instance.add(4_B, 2, 5);
  CHECK(load_of(instance) == 8_B);
  CHECK(verified_height(instance, {0_B, 0_B}) == 8_B);
  instance.add(1_B, 5, 6);
  CHECK(load_of(instance) == 9_B);
  CHECK(overlap_of(instance, {0_B, 0_B, 7_B}) == "layout: buffers 0 and 2 overlap at position 5");
}

TEST_CASE("the check of a layout finds overlaps, wrong alignments, moved fixed items and a wrong number of offsets") {
  Instance instance = four();
  CHECK(verified_height(instance, {0_B, 64_B, 96_B, 64_B}) == 112_B);
  CHECK(overlap_of(instance, {0_B, 64_B, 95_B, 64_B}) == "layout: buffers 1 and 2 overlap at position 2");
  CHECK(overlap_of(instance, {0_B, 64_B, 96_B}) == "layout: 3 offsets for 4 buffers");
  CHECK(overlap_of(instance, {0_B, 64_B, 96_B, -1_B}) == "layout: buffer 3 cannot lie at -1 B");
  instance.items[1].alignment = 128_B;
  CHECK(overlap_of(instance, {0_B, 64_B, 96_B, 64_B}) == "layout: buffer 1 cannot lie at 64 B");
  instance.items[1].alignment = 64_B;
  instance.items[0].fixed = 128_B;
  CHECK(overlap_of(instance, {0_B, 64_B, 96_B, 64_B}) == "layout: buffer 0 cannot lie at 0 B");
}

TEST_CASE("an instance that no layout can satisfy is refused, and the message names its buffers") {
  CHECK(refusal_of(four()) == "accepted");
  Instance instance = four();
  instance.add(1_B, 7, 7);
  CHECK(refusal_of(instance) == "buffer 4: lives [7, 7); expected a lifetime that ends after it begins");

  instance = four();
  const std::vector<Interval> touching{{7, 8}, {8, 12}};
  instance.add(1_B, touching);
  CHECK(refusal_of(instance) ==
        "buffer 4: lives [7, 8) and then [8, 12); expected ascending lifetimes with a gap between them");

  instance = four();
  instance.add(-8_B, 7, 8);
  CHECK(refusal_of(instance) == "buffer 4: size is -8 B; expected at least 0 B");

  instance = four();
  instance.items[2].alignment = 0_B;
  CHECK(refusal_of(instance) == "buffer 2: alignment is 0 B; expected at least 1 B");

  instance = four();
  instance.items[2].fixed = -16_B;
  CHECK(refusal_of(instance) == "buffer 2: is fixed at -16 B; expected at least 0 B");
  instance.items[2].fixed = 24_B;
  instance.items[2].alignment = 16_B;
  CHECK(refusal_of(instance) == "buffer 2: is fixed at 24 B, which is no multiple of its alignment, 16 B");
}

TEST_CASE("fixed offsets that overlap are refused, and the message names both buffers") {
  Instance instance = four();
  instance.items[0].fixed = 0_B;
  instance.items[3].fixed = 32_B;
  CHECK(refusal_of(instance) == "buffers 0 and 3: both live at position 3 and are fixed at [0, 64) B and [32, 64) B");
  instance.items[3].fixed = 64_B;
  CHECK(refusal_of(instance) == "accepted");
  instance.items[1].fixed = 64_B;  // item 1 ends when item 3 begins
  CHECK(refusal_of(instance) == "accepted");
}

TEST_CASE("sizes whose sum overflows are refused") {
  Instance instance;
  instance.add(Bytes{std::int64_t{1} << 61}, 0, 1);
  instance.add(Bytes{std::int64_t{1} << 61}, 1, 2);
  CHECK(refusal_of(instance) == "accepted");
  instance.add(1_B, 2, 3);
  CHECK(refusal_of(instance) == "buffer 2: the sizes up to here exceed 4611686018427387904 B");
  instance.items[0].fixed = Bytes{INT64_MAX};
  CHECK(refusal_of(instance) == "buffer 0: the sizes up to here exceed 4611686018427387904 B");
}

}  // namespace tidepool::packing_instance_test
