#include <schemas/xplane.pb.h>

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::xplane_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::program;

namespace {

using Names = std::vector<std::string>;

enum EventName : std::int64_t { kAllocation = 1, kDeallocation = 2 };
enum StatName : std::int64_t { kAllocator = 1, kAddress = 2, kRequested = 3, kOp = 4, kGpu = 5, kHostAllocator = 6 };

xplane::Event& add_event(xplane::Line& line, std::int64_t name, std::int64_t offset_ns, std::int64_t duration_ns) {
  xplane::Event& event = *line.add_events();
  event.set_metadata_id(name);
  event.set_offset_ps(offset_ns * 1000);
  event.set_duration_ps(duration_ns * 1000);
  return event;
}

void add_memory(xplane::Line& line, EventName name, std::int64_t offset_ns, StatName allocator, std::int64_t address,
                std::int64_t size) {
  xplane::Event& event = add_event(line, name, offset_ns, 1);
  const auto stat = [&](StatName id) -> xplane::Stat& {
    xplane::Stat& added = *event.add_stats();
    added.set_metadata_id(id);
    return added;
  };
  stat(kAllocator).set_ref_value(static_cast<std::uint64_t>(allocator));
  stat(kAddress).set_int64_value(address);
  stat(kRequested).set_uint64_value(static_cast<std::uint64_t>(size));
  stat(kOp).set_str_value("MatMul");
}

xplane::Space profile() {
  xplane::Space space;
  xplane::Plane& host = *space.add_planes();
  host.set_name("/host:CPU");
  (*host.mutable_event_metadata())[kAllocation].set_name("MemoryAllocation");
  (*host.mutable_event_metadata())[kDeallocation].set_name("MemoryDeallocation");
  for (const auto& [id, name] : {std::pair{kAllocator, "allocator_name"},
                                 {kAddress, "addr"},
                                 {kRequested, "requested_bytes"},
                                 {kOp, "tf_op"},
                                 {kGpu, "GPU_1_bfc"},
                                 {kHostAllocator, "gpu_host_bfc"}})
    (*host.mutable_stat_metadata())[id].set_name(name);
  xplane::Line& thread = *host.add_lines();
  thread.set_timestamp_ns(1000);
  add_memory(thread, kAllocation, 0, kGpu, 0x100, 64);
  add_memory(thread, kAllocation, 5, kHostAllocator, 0x100, 9999);
  add_memory(thread, kDeallocation, 40, kGpu, 0x100, 64);
  xplane::Plane& device = *space.add_planes();
  device.set_name("/device:GPU:1 (Tesla)");
  (*device.mutable_event_metadata())[7].set_name("gemm");
  (*device.mutable_event_metadata())[8].set_name("MemcpyH2D");
  xplane::Line& stream = *device.add_lines();
  stream.set_name("Stream #13(Compute)");
  stream.set_id(13);
  stream.set_timestamp_ns(1000);
  add_event(stream, 7, 10, 20);
  add_event(stream, 8, 30, 5);
  xplane::Line& derived = *device.add_lines();
  derived.set_name("XLA Ops");
  add_event(derived, 7, 10, 20);
  return space;
}

}  // namespace

TEST_CASE("a profile of XLA gives the streams of a GPU and the events of its allocator") {
  const Trace trace = load_trace(Input{"vm.xplane.pb", profile().SerializeAsString()});
  CHECK(program(trace) == Names{"alloc 0", "run gemm", "run MemcpyH2D", "free 0"});
  CHECK(trace.buffer(BufferId{0}).size == 64_B);
  CHECK(trace.buffer(BufferId{0}).address == 0x100);
  CHECK(trace.buffer(BufferId{0}).device == 1);
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "MatMul");
  CHECK(trace.op(OpId{0}).duration == 20_ns);
  CHECK(trace.op(OpId{1}).kind == OpKind::kCopy);
}

TEST_CASE("of a TPU, the line of XLA's ops counts, and a profile without any op or allocation is refused") {
  xplane::Space space;
  xplane::Plane& device = *space.add_planes();
  device.set_name("/device:TPU:0");
  (*device.mutable_event_metadata())[1].set_name("fusion.1");
  for (const char* name : {"XLA Modules", "XLA Ops"}) {
    xplane::Line& line = *device.add_lines();
    line.set_name(name);
    add_event(line, 1, 0, 3);
  }
  CHECK(program(read_xplane(Input{"x.pb", space.SerializeAsString()})) == Names{"run fusion.1"});
  device.mutable_lines()->RemoveLast();
  CHECK(complaint(read_xplane, space.SerializeAsString()) ==
        "t.log: no op of a device and no event of an allocator; expected a profile of a GPU or a TPU");
  CHECK(complaint(read_xplane, "\x0a\x7f") ==
        "t.log: is damaged; expected a profile of XLA or TensorFlow (*.xplane.pb)");
}

}  // namespace tidepool::xplane_test
