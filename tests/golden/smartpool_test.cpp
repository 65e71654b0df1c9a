// SmartPool on the malloc strings that its authors recorded, against their reported results: usage over load 1.001
// (AlexNet) and 1.051 (VGG).
#include "policies/pool/smartpool/smartpool_pool.hpp"
#include "simulator/engine/segment_device.hpp"
#include "simulator/run_spec.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::smartpool_test {

namespace {

SmartPoolReport serve(const Trace& trace, SmartPoolFit fit) {
  SegmentDevice device{kNoLimit};
  SmartPool pool{fit};
  pool.start(trace, kNoLimit, device);
  std::vector<Block> places(trace.buffers().size());
  for (const Event& event : trace.events())
    if (event.kind == EventKind::kAlloc)
      places[event.id] = pool.place({trace.buffers()[event.id].size}).value();
    else if (event.kind == EventKind::kFree)
      pool.release(places[event.id]);
  return pool.report();
}

struct Expected {
  const char* file;
  SmartPoolPeriod period;
  std::int64_t pool, load, usage;
};

constexpr Expected kLogs[] = {
    {"memInfo_alex_20itr_100size_cudaMalloc.text.gz", {201, 188}, 37'589'024, 187'565'804, 187'883'116},
    {"memInfo_vgg_20itr_100size_cudaMalloc.text.gz", {2245, 1020}, 472'124'192, 671'823'924, 706'426'164},
};

}  // namespace

TEST_CASE("SmartPool gives its authors' results for their own logs, with either fit") {
  for (const Expected& expected : kLogs) {
    const auto path = tests::shared_data(std::string{"singa/"} + expected.file);
    if (!path) continue;
    INFO(expected.file);
    const Trace trace = load_trace(*path);
    for (const SmartPoolFit fit : {SmartPoolFit::kFirst, SmartPoolFit::kBest}) {
      const SmartPoolReport report = serve(trace, fit);
      CHECK(report.period == expected.period);
      CHECK(report.pool.count() == expected.pool);
      CHECK(report.load.count() == expected.load);
      CHECK(report.usage.count() == expected.usage);
    }
  }
}

}  // namespace tidepool::smartpool_test
