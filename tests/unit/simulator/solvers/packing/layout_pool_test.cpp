#include <fstream>

#include "simulator/solvers/packing/layout_file.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/unit/pool_fixture.hpp"
#include "traces/base/error.hpp"

namespace tidepool::layout_pool_test {

using tidepool::testing::PoolUnderTest;

namespace {

/// 100 B at 0, 200 B at 128, then 50 B at 0 again: 384 B in granules of 64 B.
LayoutFile small_layout() {
  return {.trace_hash = "0123456789abcdef",
          .alignment = 64_B,
          .height = 384_B,
          .lower_bound = 384_B,
          .proof = "load",
          .existing = 0,
          .requests = {{100_B, 0_B}, {200_B, 128_B}, {50_B, 0_B}}};
}

struct Planned {
  ScratchFolder folder;
  PoolUnderTest under;
  explicit Planned(const std::string& fallback, Bytes capacity = 1_MiB) : under{spec(fallback), capacity} {}

  std::string spec(const std::string& fallback) const {
    const std::string path = folder.file("step.layout");
    std::ofstream{path} << layout_text(small_layout());
    return "layout(file=" + path + ",fallback=" + fallback + ")";
  }
  std::int64_t count(std::string_view name) const {
    for (const Count& one : under.pool->counts())
      if (one.name == name) return one.value;
    return -1;
  }
};

}  // namespace

TEST_CASE("requests get their planned places, with sizes in the layout's granules") {
  Planned planned{"64B"};
  const std::optional<Block> first = planned.under.place(100_B);
  CHECK(first == Block{0_B, 128_B});
  CHECK(planned.under.place(200_B) == Block{128_B, 256_B});
  planned.under.pool->release(*first);
  CHECK(planned.under.place(50_B) == Block{0_B, 64_B});
  CHECK(planned.count("planned") == 3);
  CHECK(planned.count("fallback") == 0);
  CHECK(planned.count("worst_case_bytes") == 448);
}

TEST_CASE("requests that are not planned go above the plan, then into its holes, then beyond the arena") {
  Planned planned{"128B"};
  CHECK(planned.under.place(64_B) == Block{384_B, 64_B});    // not planned: placed in the fallback region [384, 512)
  CHECK(planned.under.place(128_B) == Block{0_B, 128_B});    // larger than the region's last 64 B: in a plan's hole
  CHECK(planned.under.place(100_B) == Block{128_B, 128_B});  // planned at 0, which is taken: placed in the next hole
  CHECK(planned.under.place(40_B) == Block{448_B, 64_B});
  CHECK(planned.count("beyond") == 0);
  CHECK(planned.under.place(150_B) == Block{512_B, 192_B});
  CHECK(planned.count("beyond") == 1);
  CHECK(planned.count("fallback") == 5);
  CHECK(planned.count("planned") == 0);
}

TEST_CASE("a full device refuses a request, even a planned one") {
  Planned planned{"64B", 128_B};
  CHECK(planned.under.place(100_B) == Block{0_B, 128_B});
  CHECK_FALSE(planned.under.place(200_B));
  CHECK_FALSE(planned.under.place(1_MiB));
}

TEST_CASE("without a file, the layout pool takes the lowest place for every request") {
  PoolUnderTest under{"layout", 4_KiB};
  CHECK(under.place(100_B) == Block{0_B, 512_B});
  CHECK(under.place(100_B) == Block{512_B, 512_B});
}

TEST_CASE("a layout file that is written is read back unchanged") {
  const std::string text = layout_text(small_layout());
  CHECK(parse_layout(Input{"step.layout", text}) == small_layout());
}

TEST_CASE("a layout file that is cut off or wrong is refused with the position") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_layout(Input{"step.layout", text});
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string text = layout_text(small_layout());
  const std::string header = text.substr(0, text.find('\n') + 1);
  CHECK(refusal("") == "step.layout: is empty; expected a layout");
  CHECK(refusal("\n\n") == "step.layout: has empty lines only; expected a layout");
  CHECK(refusal(header + "{\"size_bytes\":100,\"offset_bytes\":0}\n") ==
        "step.layout: ends after 1 of 3 requests; expected a complete file");
  CHECK(refusal(text + "{\"size_bytes\":100,\"offset_bytes\":0}\n") ==
        "step.layout:5: one request more than the 3 that the first line says");
  CHECK(refusal(header + "{\"size_bytes\":-1,\"offset_bytes\":0}\n") ==
        "step.layout:2: 'size_bytes' is -1; expected 0 to 4611686018427387904");
  CHECK(refusal("{\"tidepool_layout\":2}\n") == "step.layout:1: layout format 2; this tidepool reads format 1");
}

}  // namespace tidepool::layout_pool_test
