// Addresses that were recorded on real devices, against the models of their allocators. The expected counts are those
// of the files.
#include "simulator/studies/audit/audit.hpp"

#include "tests/catch.hpp"
#include "tests/shared_data.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::audit_test {

namespace {

AuditReport audit_file(const std::string& path) {
  const TorchSnapshot snapshot = parse_torch_snapshot(read_input(path).bytes());
  return audit_snapshot(snapshot, recorded_config(snapshot.settings));
}

struct Expected {
  const char* file;
  std::int64_t allocations, segments, releases, failures;
  const char* start_state;
};

constexpr Expected kSnapshots[] = {
    {"at_memory_snapshot_True_ctx128", 2'187, 0, 0, 0, "device 0: ambiguous: 45 blocks, first at 0x1305920000"},
    {"bc_mem", 2'162, 0, 0, 0, "device 0: ambiguous: 15 blocks, first at 0x737a68900000"},
    {"cr_ftcourse", 3'505, 152, 0, 0, "determined"},
    {"cs_code_location", 3'025, 293, 6, 1, "determined"},
    {"js_eor_nn", 1'935, 7, 0, 0, "determined"},
    {"kk_memory_ctx128_fullstep_", 6'770, 782, 430, 0, "determined"},
    {"nh_memory_snapshot_forward", 4'138, 0, 0, 0, "determined"},
    {"wl_medium_128_training", 6'526, 0, 0, 0, "determined"},
    {"wl_medium_512_inference", 1'666, 0, 0, 0, "determined"},
    {"yy_oom_snapshot", 0, 0, 0, 0, "no events are recorded"},
};

}  // namespace

TEST_CASE("every address of the real PyTorch snapshots is predicted, and every request for device memory") {
  for (const Expected& expected : kSnapshots) {
    const auto path = tests::shared_data(std::string{"torch_snapshot/"} + expected.file + ".pickle.xz");
    if (!path) continue;
    const DeviceAudit total = audit_file(*path).total();
    INFO(expected.file << ": " << total.first_mismatch.value_or("no mismatch"));
    CHECK(total.exact());
    CHECK(total.allocations == expected.allocations);
    CHECK(total.segment_allocations == expected.segments);
    CHECK(total.segment_releases == expected.releases);
    CHECK(total.out_of_memory == expected.failures);
    CHECK(total.start_state == expected.start_state);
  }
}

TEST_CASE("an audit gives the peaks of memory of a job on a real GPU") {
  const auto path = tests::shared_data("torch_snapshot/kk_memory_ctx128_fullstep_.pickle.xz");
  if (!path) return;
  const AuditReport report = audit_file(*path);
  REQUIRE(report.devices[0].peaks);
  CHECK(report.devices[0].peaks->allocated.count() == 55'079'000'576);
  CHECK(report.devices[0].peaks->reserved.count() == 61'111'009'280);
}

TEST_CASE("an audit detects a snapshot that no allocator made") {
  const auto path = tests::shared_data("torch_snapshot/SYNTHETIC_mosaic_test_output.pickle.xz");
  if (!path) return;
  const DeviceAudit total = audit_file(*path).total();
  CHECK_FALSE(total.exact());
  CHECK(total.matched == 0);
  CHECK(total.start_state == "device 0: contradiction: trace entry 999: allocates in no segment, at 0x343e4b6023956");
}

TEST_CASE("every address that CnMem gave AlexNet and VGG is predicted") {
  if (const auto path = tests::shared_data("singa/memInfo_alex_20_20_3.text.gz")) {
    const DeviceAudit alex = audit_cnmem(load_trace(*path), 256_MiB, {}).total();
    CHECK(alex.exact());
    CHECK(alex.matched == 7'649);
    CHECK(alex.inferred_segments == 1);
  }
  const auto path = tests::shared_data("singa/memInfo_vgg_20_20_3.text.gz");
  const auto list = tests::shared_data("singa/cnmem_vgg_segments_addr_MiB.txt");
  if (!path || !list) return;
  const std::vector<LoggedSegment> segments = parse_segments(*list, read_input(*list).bytes());
  const DeviceAudit vgg = audit_cnmem(load_trace(*path), 256_MiB, segments).total();
  CHECK(vgg.exact());
  CHECK(vgg.matched == 37'881);
  CHECK(vgg.segment_matched == 65);
  CHECK(vgg.inferred_segments == 0);
}

TEST_CASE("an audit does not take raw cudaMalloc addresses for CnMem's") {
  const auto path = tests::shared_data("singa/memInfo_alex_20itr_100size_cudaMalloc.text.gz");
  if (!path) return;
  const DeviceAudit audit = audit_cnmem(load_trace(*path), 256_MiB, {}).total();
  CHECK_FALSE(audit.exact());
  CHECK(audit.matched == 1);
}

}  // namespace tidepool::audit_test
