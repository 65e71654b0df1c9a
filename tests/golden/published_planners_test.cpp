// The results of published planners for two bundled samples.
#include <fmt/format.h>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/run.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::published_planners_test {

TEST_CASE("published planners give the recorded results for samples") {
  struct Line {
    const char *sample, *policy;
    Nanos makespan;
    Bytes out, in;
    Nanos recompute;
  };
  const Line lines[] = {
      {"resnet50", "g10", 192'102'590_ns, 1'873'983'120_B, 1'901'442'856_B, 0_ns},
      {"resnet50", "flashneuron", 166'904'674_ns, 2'414'880'256_B, 2'003'838'464_B, 0_ns},
      {"resnet50", "swapadvisor(with=swap,effort=20)", 236'441'400_ns, 3'007'315'968_B, 2'960'130'048_B, 0_ns},
      {"resnet50", "swapadvisor(effort=20)", 251'504'332_ns, 2'941'346'248_B, 2'941'346'760_B, 0_ns},
      {"resnet50", "mimose+dtr", 118'249'054_ns, 0_B, 0_B, 19'589'837_ns},
      {"resnet50", "pooch(effort=500)", 115'859'825_ns, 765'061'120_B, 712'900'608_B, 5'067'770_ns},
      {"resnet50", "capuchin", 106'695'412_ns, 603'111'424_B, 603'111'424_B, 5'713'713_ns},
      {"gpt2", "g10", 958'406'845_ns, 9'262'645'496_B, 9'262'579'888_B, 0_ns},
      {"gpt2", "flashneuron", 932'491'388_ns, 8'793'794'744_B, 8'793'794'736_B, 0_ns},
      {"gpt2", "swapadvisor(with=swap,effort=20)", 588'149'789_ns, 6'342'199'388_B, 5'617'947'736_B, 0_ns},
      {"gpt2", "swapadvisor(effort=20)", 571'644'881_ns, 5'869'930'608_B, 5'869'930'608_B, 0_ns},
      {"gpt2", "mimose+dtr", 476'337'853_ns, 0_B, 0_B, 62'036'786_ns},
      {"gpt2", "capuchin", 492'907'366_ns, 5'497'722'880_B, 5'497'722'880_B, 7'328'995_ns},
  };
  for (const Line& line : lines) {
    INFO(fmt::format("{} {}", line.sample, line.policy));
    const Trace trace = load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), line.sample));
    const RunSpec spec{.policy = line.policy,
                       .capacity = parse_capacity("0.7x", trace.ideal_peak()),
                       .machine = find_machine("a100-pcie4")};
    const Result result = simulate(trace, spec);
    CHECK(result.outcome == Outcome::kOk);
    CHECK(result.totals.makespan.count() == line.makespan.count());
    CHECK(result.totals.swap_out.count() == line.out.count());
    CHECK(result.totals.swap_in.count() == line.in.count());
    CHECK(result.totals.recompute.count() == line.recompute.count());
  }
}

}  // namespace tidepool::published_planners_test
