#include "simulator/studies/audit/audit.hpp"
#include "tests/catch.hpp"
#include "traces/base/error.hpp"
#include "traces/builder.hpp"

namespace tidepool::cnmem_audit_test {

namespace {

/// 512 B at 0x1000000, then 2 MiB at `second`, which do not fit behind them in a segment of 1 MiB, then 512 B at
/// `third`.
Trace log_with(std::int64_t second, std::int64_t third) {
  TraceBuilder build;
  build.alloc({.size = 512_B, .address = 0x1000000});
  build.alloc({.size = 2_MiB, .address = second});
  build.alloc({.size = 512_B, .address = third});
  return build.finish();
}

}  // namespace

TEST_CASE("addresses that CnMem would have given match, whether segments are logged or not") {
  const Trace log = log_with(0x5000000, 0x1000200);
  const DeviceAudit inferred = audit_cnmem(log, 1_MiB, {}).total();
  CHECK(inferred.exact());
  CHECK(inferred.matched == 3);
  CHECK(inferred.inferred_segments == 2);
  const DeviceAudit logged = audit_cnmem(log, 1_MiB, parse_segments("list", "0x1000000 1\n0x5000000 2\n")).total();
  CHECK(logged.exact());
  CHECK(logged.segment_matched == 2);
  CHECK(logged.inferred_segments == 0);
}

TEST_CASE("an address that CnMem would not have given is reported with CnMem's answer") {
  const DeviceAudit audit = audit_cnmem(log_with(0x5000000, 0x1000400), 1_MiB, {}).total();
  CHECK(audit.matched == 2);
  CHECK(audit.first_mismatch == "device 0: event 2: the log shows 512 B at 0x1000400; the model gives 0x1000200");
}

TEST_CASE("a segment cannot begin inside another one") {
  CHECK(audit_cnmem(log_with(0x1000200, 0x1000400), 1_MiB, {}).total().first_mismatch ==
        "device 0: event 1: the model asks the device for 2097152 B; the log shows 0x1000200, which is in a segment "
        "already");
}

TEST_CASE("a logged segment of another size is reported") {
  const Trace log = log_with(0x5000000, 0x1000200);
  CHECK(audit_cnmem(log, 1_MiB, parse_segments("list", "0x1000000 1\n0x5000000 3\n")).total().first_mismatch ==
        "device 0: event 1: the log shows segment 1 of 3 MiB at 0x5000000; the model asks for 2097152 B");
  CHECK(audit_cnmem(log, 1_MiB, parse_segments("list", "0x1000000 1")).total().first_mismatch ==
        "device 0: event 1: the model asks for segment 1 of 2097152 B; the log has 1 segment");
}

TEST_CASE("a line that is no segment is refused with its number") {
  for (const char* line : {"0x7g 1", "7062c0000 256", "0x10", "0x10 -1", "0x10 1MiB", "0x10 1e99"})
    CHECK_THROWS_WITH(parse_segments("list", "0x10 1\n" + std::string{line}),
                      "list:2: '" + std::string{line} +
                          "' is not a segment; expected an address and a size in MiB, as in 0x7062c0000 256");
}

TEST_CASE("a trace without addresses cannot be audited") {
  TraceBuilder build;
  build.alloc({.size = 512_B});
  CHECK_THROWS_WITH(audit_cnmem(build.finish(), 1_MiB, {}),
                    "no allocation has a recorded address; expected a log that was recorded under CnMem");
}

}  // namespace tidepool::cnmem_audit_test
