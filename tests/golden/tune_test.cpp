// The memory that PyTorch's allocator reserved in real programs, and what other settings would have reserved.
#include "simulator/studies/audit/tune.hpp"

#include "simulator/run_spec.hpp"
#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/base/input.hpp"

namespace tidepool::tune_test {

namespace {

struct Expected {
  const char* file;
  std::int64_t recorded;  ///< most reserved, as the snapshot says
  std::int64_t defaults;  ///< most that the default settings reserve, if they begin on an empty device
  const char* best;
  std::int64_t least;
};

// The first two began with the defaults on an empty, or nearly empty, device, so the prediction equals the record.
constexpr Expected kSnapshots[] = {
    {"js_eor_nn", 134'217'728, 134'217'728, "expandable_segments:True", 113'246'208},
    {"kk_memory_ctx128_fullstep_", 61'111'009'280, 61'111'009'280, "expandable_segments:True", 55'511'613'440},
    {"cr_ftcourse", 6'471'811'072, 6'492'782'592, "expandable_segments:True,large_segment_size_mb:32", 5'911'871'488},
    {"wl_medium_128_training", 7'235'174'400, 7'210'008'576, "expandable_segments:True", 7'075'790'848},
};

TorchSnapshot snapshot_of(const std::string& path) { return parse_torch_snapshot(read_input(path).bytes()); }

}  // namespace

TEST_CASE("the best setting for real snapshots reserves less than was recorded") {
  for (const Expected& expected : kSnapshots) {
    const auto path = tests::shared_data(std::string{"torch_snapshot/"} + expected.file + ".pickle.xz");
    if (!path) continue;
    INFO(expected.file);
    const TorchSnapshot snapshot = snapshot_of(*path);
    const RecordedMemory recorded = recorded_memory(snapshot);
    CHECK(recorded.most_reserved.count() == expected.recorded);
    const std::vector<TunedSetting> tuned =
        tune(device_trace(snapshot, recorded.device), allocator_settings(false), kNoLimit);
    CHECK(tuned.front().setting.conf == expected.best);
    CHECK(tuned.front().reserved.count() == expected.least);
    for (const TunedSetting& one : tuned)
      if (one.setting.conf.empty()) CHECK(one.reserved.count() == expected.defaults);
  }
}

TEST_CASE("a program whose tensors exceed the device's memory fits under no setting") {
  const auto path = tests::shared_data("torch_snapshot/cs_code_location.pickle.xz");
  if (!path) return;
  const TorchSnapshot snapshot = snapshot_of(*path);
  const RecordedMemory recorded = recorded_memory(snapshot);
  CHECK(recorded.device == 1);
  CHECK(recorded.failed_request == Bytes{5'308'694'528});
  REQUIRE(recorded.capacity == Bytes{84'298'432'512});
  const Trace trace = device_trace(snapshot, recorded.device);
  CHECK(trace.ideal_peak() > *recorded.capacity);
  for (const TunedSetting& one : tune(trace, allocator_settings(true), *recorded.capacity))
    CHECK(one.outcome == Outcome::kOutOfMemory);
}

}  // namespace tidepool::tune_test
