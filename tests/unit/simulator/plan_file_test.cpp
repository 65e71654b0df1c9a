#include "simulator/plan_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/plan_writer.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::plan_file_test {

using tests::PlanWriter;

namespace {

Trace small_trace() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 4096_B});
  const VersionId first = build.run({.duration = 1_us}, {{a, Access::kWrite}})[0];
  build.run({}, {{a, Access::kView, Evidence::kSchema, first}});
  build.run({.duration = 1_us}, {{a, Access::kReadWrite}});
  return build.finish();
}

/// A plan file with every verb, known and unknown addresses, and every field of the first line.
PlanFile full_file(const Trace& trace) {
  const VersionId a{0}, b{2};
  PlanWriter plan{trace};
  plan.reserve(0x7f00'0000'0000_B, 2_MiB, 1).alloc(a, 0x7f00'0000'0000_B).run(OpId{0}).swap_out(a).drop(a);
  plan.swap_in(a, kNoAddress).await(a).alloc(b, 0_B).copy(b).run_to(OpId{2}).scratch(b, 4096_B).run(OpId{2}).free(b);
  plan.map(5_GiB, 2_MiB, 0x3f8'0000).unmap(5_GiB, 2_MiB);
  plan.next(1).release(0x7f00'0000'0000_B, 2_MiB);
  PlanFile file{trace.hash(), {}, {}, plan.plan()};
  file.plan.actions[4].offset = 8_B, file.plan.actions[4].size = 9_B;
  file.spec.pool = "best-fit(alignment=256B)";
  file.spec.policy = "lru-swap+\"quoted\"";
  file.spec.capacity = 3_GiB;
  file.spec.machine = find_machine("titan-x-pcie3");
  file.spec.machine.segment_free = 7_ns;
  file.spec.machine.page_unmap = 8_ns;
  file.spec.machine.h2d.times = {{64_KiB, 17_us}, {1_MiB, 90_us}};
  file.spec.machine.h2d.duplex_ppm = 710'000, file.spec.machine.d2h.slowdown_ppm = 23'000;
  file.spec.machine.host = {128_GiB, true, 9_us, BytesPerSecond{10}};
  file.spec.machine.storage.write = {BytesPerSecond{17}, 18_ns, {{19_B, 20_ns}}};
  file.spec.machine.storage.read = {BytesPerSecond{21}, 22_ns};
  file.spec.machine.storage.capacity = 23_B;
  file.spec.machine.launch = 11_ns, file.spec.machine.submit = 12_ns, file.spec.machine.chunk = 13_B;
  file.spec.seed = ~std::uint64_t{0};
  file.spec.assume = Assumptions::find("simrd");
  file.spec.overhead_limit = 0.1;
  file.spec.iterations = 2;
  file.spec.steady = true;
  file.plan.cycle = 2;
  file.predicted = {1_ns, 2_B, 3_B, 4_ns, 5, 6, 7_B, 8_B, {9_ns, 10_ns, 11_ns, 12_ns}, 13, 14_ns, 15_B, 16_B};
  return file;
}

Input as_input(const std::string& text) { return Input{"run.plan", text}; }

}  // namespace

TEST_CASE("a plan file that is written is read back unchanged") {
  const Trace trace = small_trace();
  const PlanFile file = full_file(trace);
  const PlanFile read = parse_plan(as_input(plan_text(file)), &trace);
  CHECK(read.plan == file.plan);
  CHECK(read.predicted == file.predicted);
  CHECK(read.trace_hash == file.trace_hash);
  CHECK(read.spec.pool == file.spec.pool);
  CHECK(read.spec.policy == file.spec.policy);
  CHECK(read.spec.capacity == file.spec.capacity);
  CHECK(read.spec.seed == file.spec.seed);
  CHECK(read.spec.overhead_limit == file.spec.overhead_limit);
  CHECK(read.spec.iterations == file.spec.iterations);
  CHECK(read.spec.steady);
  CHECK(read.spec.assume.name == "simrd");
  CHECK(read.spec.assume.copy_on_write);
  CHECK(read.spec.machine == file.spec.machine);
  CHECK(plan_text(read) == plan_text(file));  // also compares members that are not named above

  PlanFile plain;
  plain.spec.capacity = kNoLimit;
  plain.spec.overhead_limit.reset();
  const PlanFile back = parse_plan(as_input(plan_text(plain)));
  CHECK(back.spec.capacity == kNoLimit);
  CHECK_FALSE(back.spec.overhead_limit);
  CHECK(plan_text(back) == plan_text(plain));
}

TEST_CASE("a plan file may have any overhead limit that a run may have") {
  for (const double limit : {1.0, 2e9, 1.5e300}) {
    PlanFile file;
    file.spec.overhead_limit = limit;
    CHECK(parse_plan(as_input(plan_text(file))).spec.overhead_limit == limit);
  }
}

TEST_CASE("a plan file is written as a whole, and compressed if its name ends that way") {
  const Trace trace = small_trace();
  const PlanFile file = full_file(trace);
  const auto folder = std::filesystem::temp_directory_path() / ("tidepool-plan-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  for (const char* name : {"run.plan", "run.plan.zst"}) {
    write_plan(folder / name, file);
    CHECK(plan_text(read_plan(folder / name, &trace)) == plan_text(file));
  }
  CHECK(std::filesystem::file_size(folder / "run.plan.zst") < std::filesystem::file_size(folder / "run.plan"));
  const auto files = std::filesystem::directory_iterator{folder};
  CHECK(std::distance(begin(files), end(files)) == 2);  // no temporary file is left
  CHECK_THROWS_AS(write_plan(folder / "none" / "run.plan", file), InputError);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a wrong plan file is refused with the number of its line") {
  const Trace trace = small_trace();
  const std::string text = plan_text(full_file(trace));
  const std::size_t second_line = text.find('\n') + 1;
  const auto refusal = [&](const std::string& wrong) {
    try {
      parse_plan(as_input(wrong), &trace);
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    REQUIRE(wrong.find(from) != std::string::npos);
    return refusal(wrong.replace(wrong.find(from), from.size(), to));
  };
  CHECK(refusal(text).empty());
  CHECK(refusal("") == "run.plan: is empty; expected a plan");
  CHECK_THAT(refusal("not a plan"), ContainsSubstring("run.plan:1: not JSON ("));
  CHECK(refusal("{}") == "run.plan:1: no 'tidepool_plan'; it is required");
  CHECK(replaced("\"tidepool_plan\":1", "\"tidepool_plan\":3") ==
        "run.plan:1: plan format 3; this tidepool reads formats 1 and 2");
  CHECK(replaced(trace.hash(), "0123456789abcdef") ==
        "run.plan:1: made for trace 0123456789abcdef; expected the trace given, " + trace.hash());
  CHECK(replaced("\"seed\":\"18446744073709551615\"", "\"seed\":\"18446744073709551616\"") ==
        "run.plan:1: 'seed' is \"18446744073709551616\"; expected 0 to 18446744073709551615");
  CHECK(replaced("\"overhead_limit\":\"0.1\"", "\"overhead_limit\":\"much\"") ==
        "run.plan:1: 'overhead_limit' is \"much\"; expected a finite number of at least 0");
  CHECK(replaced("\"overhead_limit\":\"0.1\"", "\"overhead_limit\":\"inf\"") ==
        "run.plan:1: 'overhead_limit' is \"inf\"; expected a finite number of at least 0");
  CHECK(replaced("\"peak_bytes\":2,", "") == "run.plan:1: no 'peak_bytes'; it is required");
  CHECK(replaced("\"do\":\"alloc\"", "\"do\":\"malloc\"") ==
        "run.plan:3: 'do' is \"malloc\"; expected reserve, release, map, unmap, alloc, scratch, free, run, copy, "
        "swap_out, swap_in, drop, await or next");
  CHECK(replaced("\"do\":\"alloc\",", "") == "run.plan:3: no 'do'; it is required");
  CHECK(replaced("\"alloc\",\"version\":0", "\"alloc\",\"version\":3") ==
        "run.plan:3: 'version' is 3; expected 0 to 2");
  CHECK(replaced("\"alloc\",\"version\":0", "\"alloc\",\"version\":1") ==
        "run.plan:3: version 1 is a view; expected the version it is a view of, 0");
  CHECK(replaced("\"run\",\"op\":0", "\"run\",\"op\":3") == "run.plan:4: 'op' is 3; expected 0 to 2");
  CHECK(replaced("\"run\",\"op\":0,\"before\":0", "\"run\",\"op\":0,\"before\":9") ==
        "run.plan:4: 'before' is 9; expected 0 to 2");
  CHECK(replaced("\"size_bytes\":4096", "\"size_bytes\":-5") ==
        "run.plan:3: 'size_bytes' is -5; expected 0 to 4611686018427387904");
  CHECK(replaced("\"size_bytes\":4096", "\"sise_bytes\":4096") == "run.plan:3: no 'size_bytes'; it is required");
  CHECK_THAT(replaced("\"do\":\"next\"", "\"sise_bytes\":4,\"do\":\"next\""),
             ContainsSubstring("run.plan:18: unknown key 'sise_bytes'; expected "));
  CHECK(refusal(text + "{\"do\":\"next\",\"iteration\":2}\n") ==
        "run.plan:20: one action more than the 18 that the first line says");
  CHECK(refusal(text.substr(0, text.rfind("{"))) == "run.plan: ends after 17 of 18 actions; expected a complete file");
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {  // without the last line feed, the text is still whole
    CHECK_FALSE(refusal(text.substr(0, size)).empty());
    if (size == second_line) size = text.size() - 200;  // only the first line and the last 200 bytes are tried
  }
}

}  // namespace tidepool::plan_file_test
