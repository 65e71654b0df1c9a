// Readers of the JSON of rocprofv3 and of the IOPDDL contest.
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::rocprofiler_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::program;

namespace {

using Names = std::vector<std::string>;

constexpr const char* kProfile = R"x({"rocprofiler-sdk-tool": [{
  "agents": [{"id": {"handle": 10}, "type": 1, "product_name": "EPYC"},
    {"id": {"handle": 11}, "type": 2, "product_name": "AMD Instinct MI300X"}],
  "kernel_symbols": [{"kernel_id": 8, "formatted_kernel_name": "gemm(float*)"}],
  "strings": {"buffer_records": [{"kind": "NONE", "operations": []},
    {"kind": "MEMORY_COPY", "operations": ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE"]},
    {"kind": "MEMORY_ALLOCATION", "operations": ["MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
        "MEMORY_ALLOCATION_FREE"]}]},
  "buffer_records": {"kernel_dispatch": [{"start_timestamp": 300, "end_timestamp": 350,
        "stream_id": {"handle": 0}, "dispatch_info": {"agent_id": {"handle": 11}, "queue_id": {"handle": 16},
        "kernel_id": 8}}],
    "memory_copy": [{"kind": 1, "operation": 1, "start_timestamp": 200, "end_timestamp": 210,
        "dst_agent_id": {"handle": 11}, "src_agent_id": {"handle": 10}}],
    "memory_allocation": [{"kind": 2, "operation": 1, "start_timestamp": 100, "end_timestamp": 110,
        "agent_id": {"handle": 11}, "address": "0x7f00", "allocation_size": 4096},
      {"kind": 2, "operation": 1, "start_timestamp": 120, "end_timestamp": 130, "agent_id": {"handle": 10},
        "address": "0x9000", "allocation_size": 64},
      {"kind": 2, "operation": 2, "start_timestamp": 400, "end_timestamp": 410, "agent_id": {"handle": 0},
        "address": "0x9000", "allocation_size": 0},
      {"kind": 2, "operation": 2, "start_timestamp": 420, "end_timestamp": 430, "agent_id": {"handle": 0},
        "address": "0x7f00", "allocation_size": 0}]}}]})x";

/// The profile with a text in place of another.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kProfile;
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("a profile of rocprofv3 gives kernels, copies, and the memory of GPUs but not of the host") {
  const Trace trace = load_trace(Input{"1_results.json", kProfile});
  CHECK(program(trace) == Names{"alloc 0", "run MEMORY_COPY_HOST_TO_DEVICE", "run gemm(float*)", "free 0"});
  CHECK(trace.buffer(BufferId{0}).size == 4_KiB);
  CHECK(trace.buffer(BufferId{0}).address == 0x7f00);
  CHECK(trace.op(OpId{0}).kind == OpKind::kCopy);
  CHECK(trace.op(OpId{1}).duration == 50_ns);
  CHECK(trace.data().meta.at("device") == "AMD Instinct MI300X");
}

TEST_CASE("messages about profiles of rocprofv3") {
  CHECK(complaint(read_rocprofiler, "{}") ==
        "t.log: no JSON with a list \"rocprofiler-sdk-tool\"; expected what rocprofv3 --output-format json writes");
  CHECK(complaint(read_rocprofiler, changed("\"start_timestamp\": 300", "\"start_timestamp\": -1")) ==
        "t.log: a record has no \"start_timestamp\"; expected a time in ns");
  CHECK(complaint(read_rocprofiler, changed("\"end_timestamp\": 350", "\"end_timestamp\": 299")) ==
        "t.log: a record ends before it starts");
  CHECK(complaint(read_rocprofiler, changed("{\"agent_id\": {\"handle\": 11}", "{\"agent_id\": {\"handle\": 10}")) ==
        "t.log: a kernel of an agent that is no GPU in \"agents\"; expected one of these");
  CHECK(complaint(read_rocprofiler, changed("\"0x7f00\"", "7")) ==
        "t.log: an allocation has no operation or no address; expected both");
}

TEST_CASE("a problem of the IOPDDL contest gives a lifetime for each node") {
  const std::string problem =
      R"({"problem": {"name": "t", "nodes": {"intervals": [[0, 4], [2, 2], [3, 9]], "costs": [[1, 2], [1], [1]],
      "usages": [[64, 32], [7], [5]]}, "edges": {"nodes": [], "costs": []}, "usage_limit": 50})";
  const Trace least = load_trace(Input{"p.json", problem + "}"});
  CHECK(least.buffers().size() == 2);
  CHECK(least.ideal_peak() == 37_B);  // 32 + 5
  CHECK(least.data().meta.at("usage_limit") == "50");
  CHECK(load_trace(Input{"p.json", problem + R"(, "solution": [0, 0, 0]})"}).ideal_peak() == 69_B);
  CHECK(complaint(read_iopddl, problem + R"(, "solution": [2, 0, 0]})") ==
        "t.log: node 0: its strategy in \"solution\" is not one of its 2");
  CHECK(complaint(read_iopddl, problem + R"(, "solution": [0]})") ==
        "t.log: \"solution\" has 1 strategies; expected one for each of 3 nodes");
  CHECK(complaint(read_iopddl, "{}") ==
        "t.log: no \"problem\" with \"nodes\"; expected a problem of the IOPDDL contest as JSON");
  CHECK(complaint(read_iopddl, R"({"problem": {"nodes": {"intervals": [[4, 0]], "usages": [[1]]}}})") ==
        "t.log: node 0: its interval is not [lower, upper] with lower <= upper");
  CHECK(complaint(read_iopddl, R"({"problem": {"nodes": {"intervals": [[0, 4]], "usages": [[-1]]}}})") ==
        "t.log: \"usages\" 0 has -1; expected whole numbers from 0 to 2305843009213693952");
  CHECK(complaint(read_iopddl, R"({"problem": {"nodes": {"intervals": [[0, 4]], "usages": []}}})") ==
        "t.log: 1 intervals and 0 usages; expected one of each for a node");
}

}  // namespace tidepool::rocprofiler_test
