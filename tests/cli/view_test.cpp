#include "simulator/studies/report/view.hpp"

#include <nlohmann/json.hpp>

#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/machines.hpp"
#include "tests/paths.hpp"
#include "tests/plan_writer.hpp"
#include "tests/program.hpp"
#include "tests/trace_file.hpp"
#include "traces/builder.hpp"

namespace tidepool::view_test {

namespace {

/// Op 0 of 1 ms makes a, of 100 MiB; op 1 makes b; op 2 reads a. Peak 200 MiB.
Trace small_trace() {
  TraceBuilder build;
  const BufferId a = build.alloc({.size = 100_MiB, .kind = BufferKind::kActivation});
  build.run({.duration = 1_ms}, {{a, Access::kWrite}});
  const BufferId b = build.alloc({.size = 100_MiB, .kind = BufferKind::kGradient});
  build.run({.duration = 1_ms}, {{b, Access::kWrite}});
  build.run({.duration = 1_ms}, {{a, Access::kRead}});
  build.free(a);
  build.free(b);
  return build.finish();
}

}  // namespace

TEST_CASE("a view plots memory by kind, the peak, the largest buffers and the lanes") {
  const Trace trace = small_trace();
  const RunSpec spec{.capacity = 300_MiB};
  const History history = history_of(trace, spec, simulate(trace, spec, true).realised);
  const std::string view = view_text(trace, history, spec.capacity, {.width = 42});
  // 300 MiB are twelve rows, 100 MiB four; 30 columns for 3 ms.
  CHECK(view ==
        "   300 MiB|------------------------------\n"
        "          |\n          |\n          |\n"
        "   200 MiB|          aaaaaaaaaaaaaaaaaaaa\n"
        "          |          aaaaaaaaaaaaaaaaaaaa\n"
        "          |          aaaaaaaaaaaaaaaaaaaa\n"
        "          |          aaaaaaaaaaaaaaaaaaaa\n"
        "   100 MiB|aaaaaaaaaagggggggggggggggggggg\n"
        "          |aaaaaaaaaagggggggggggggggggggg\n"
        "          |aaaaaaaaaagggggggggggggggggggg\n"
        "          |aaaaaaaaaagggggggggggggggggggg\n"
        "       0 B+------------------------------\n"
        "           0                         3 ms\n"
        "           - capacity 300 MiB\n"
        "\n"
        "peak 200 MiB at 1 ms\n"
        "  g gradient           100 MiB  50.0 %  ########\n"
        "  a activation         100 MiB  50.0 %  ########\n"
        "\n"
        "largest buffers then, of 2\n"
        "     100 MiB  activation      buffer 0\n"
        "     100 MiB  gradient        buffer 1\n"
        "\n"
        "lanes, and how much of the time they are busy\n"
        "  compute ####################### 100.0 %\n"
        "  to host                           0.0 %\n"
        "from host                           0.0 %\n");
  const std::string wide = view_text(trace, history, spec.capacity, {.width = 100, .colour = true, .utf8 = true});
  CHECK(wide.find("\x1b[32m█\x1b[0m") != std::string::npos);
  CHECK(view.find('\x1b') == std::string::npos);
}

TEST_CASE("a view has lanes of their own for copies to and from storage") {
  // Both buffers leave after op 0. Host memory has room for a alone: 1 us out and 1 us back. b goes to storage: 2 us to
  // there, 4 us back.
  TraceBuilder build;
  const BufferId first = build.alloc({.size = 1000_B}), second = build.alloc({.size = 1000_B});
  const auto made = build.run({.duration = 1_us}, {{first, Access::kWrite}, {second, Access::kWrite}});
  build.run({.duration = 1_us}, {});
  build.run({.duration = 1_us}, {{first}, {second}});
  build.free(first), build.free(second);
  const Trace trace = build.finish();
  const VersionId a = made[0], b = made[1];
  tests::PlanWriter plan{trace};
  plan.alloc(a, 0_B).alloc(b, 1000_B).run(OpId{0}).swap_out(a).swap_out(b).drop(a).drop(b).run(OpId{1});
  plan.swap_in(a, 0_B).swap_in(b, 1000_B).run(OpId{2}).free(a).free(b);
  RunSpec spec{.pool = "best-fit(alignment=1B)", .machine = tests::byte_per_nano()};
  spec.machine.host.capacity = 1000_B;
  spec.machine.storage = {
      .write = {BytesPerSecond{500'000'000}, 0_ns}, .read = {BytesPerSecond{250'000'000}, 0_ns}, .capacity = 1000_B};
  const std::string view =
      view_text(trace, history_of(trace, spec, plan.plan()), spec.capacity, {.width = 54});  // 32 columns for 8 us
  CHECK_THAT(view, ContainsSubstring("     compute ########                    ####  37.5 %\n"
                                     "     to host     ####                          12.5 %\n"
                                     "   from host         ####                      12.5 %\n"
                                     "  to storage     ########                      25.0 %\n"
                                     "from storage             ################      50.0 %\n"));
}

TEST_CASE("simulate --view shows an out-of-memory run up to the failure, and refuses several runs") {
  const ScratchFolder scratch;
  const std::string path = tests::write_trace(scratch, "small", small_trace());
  const ProgramResult result = run_program({"simulate", "--view", path, "--capacity", "0.5x"});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with(path + ": none on best-fit, a100-pcie4, 100 MiB: out_of_memory\n"));
  CHECK_THAT(result.out, ContainsSubstring("wants 100 MiB for buffer 1; 100 MiB are held of 100 MiB"));
  CHECK_THAT(result.out, ContainsSubstring("peak 100 MiB"));
  const ProgramResult two = run_program({"simulate", "--view", path, "--capacity", "0.5x,1x"});
  CHECK(two.code == 2);
  CHECK(two.err == "tidepool: the lists ask for 2 runs; expected one\n");
}

TEST_CASE("a view names buffers by parameter, module and line") {
  TraceBuilder build;
  const BufferId weight = build.existing({.size = 3_MiB, .name = build.text("fc1.weight")});
  const BufferId hidden = build.alloc({.size = 2_MiB});
  const Op product{
      .name = build.text("aten::mm"), .module = build.text("fc1"), .duration = 1_ms, .line = build.text("model.py:88")};
  build.run(product, {{weight}, {hidden, Access::kWrite}});
  const BufferId lost = build.alloc({.size = 1_MiB, .line = build.text("train.py:7")});
  build.run({.duration = 1_ms}, {{lost, Access::kWrite}});
  const Trace trace = build.finish();
  const RunSpec spec{.capacity = 10_MiB};
  const History history = history_of(trace, spec, simulate(trace, spec, true).realised);
  CHECK_THAT(view_text(trace, history, spec.capacity, {.width = 80}),
             ContainsSubstring("       3 MiB  unknown         buffer 0 (fc1.weight)\n"
                               "       2 MiB  unknown         buffer 1 (fc1, model.py:88)\n"
                               "       1 MiB  unknown         buffer 2 (train.py:7)\n"));
}

TEST_CASE("simulate --view names the modules of the largest buffers") {
  const std::string sample = paths::source_folder() + "/traces/samples/gpt2.tide";
  const ProgramResult result = run_program({"simulate", "--view", sample});
  CHECK_THAT(result.out, ContainsSubstring(" (lm_head)\n"));
}

}  // namespace tidepool::view_test
