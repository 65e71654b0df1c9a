// The loops that SmartPool's authors recorded: CnMem's reserved bytes, SmartPool's, and one iteration on a circle.
#include "simulator/solvers/packing/pack_loop.hpp"
#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::periodic_test {

namespace {

LoopPacking pack_with(const std::string& text, const Trace& trace, std::span<const Bytes> segments = {}) {
  const Spec spec{text};
  const PoolInfo& info = find_pool(spec.name);
  return pack_loop(trace, find_loops(trace), info, Options{info.name, info.options, spec.options}, {}, segments);
}

struct Expected {
  const char* file;
  std::int64_t load, cnmem, smartpool, circle, served;
};

constexpr Expected kLogs[] = {
    {"memInfo_alex_20itr_100size_cudaMalloc.text.gz", 187'565'804, 268'435'456, 187'883'116, 187'873'004, 1'815},
    {"memInfo_vgg_20itr_100size_cudaMalloc.text.gz", 671'823'924, 741'731'328, 706'426'164, 681'326'644, 9'445},
};

}  // namespace

TEST_CASE("an iteration planned on its circle needs less than SmartPool and CnMem, and serves all other iterations") {
  const auto list = tests::shared_data("singa/cnmem_vgg_segments_addr_MiB.txt");
  if (!list) return;
  std::vector<Bytes> segments;
  for (const LoggedSegment& segment : parse_segments(*list, read_input(*list).bytes()))
    segments.push_back(segment.address);
  for (const Expected& expected : kLogs) {
    const auto path = tests::shared_data(std::string{"singa/"} + expected.file);
    if (!path) continue;
    INFO(expected.file);
    const Trace trace = load_trace(*path);
    CHECK(trace.ideal_peak().count() == expected.load);
    CHECK(pack_with("cnmem", trace, segments).bytes.count() == expected.cnmem);
    const LoopPacking smartpool = pack_with("smartpool", trace);
    CHECK(smartpool.count == LoopCount::kCounted);
    CHECK(smartpool.bytes.count() == expected.smartpool);
    const LoopPacking circle = pack_with("one-pass(alignment=1B)", trace);
    CHECK(circle.count == LoopCount::kPlanned);
    CHECK(circle.bytes.count() == expected.circle);
    CHECK(circle.replay == LoopReplay{expected.served, 0, 0});
  }
}

}  // namespace tidepool::periodic_test
