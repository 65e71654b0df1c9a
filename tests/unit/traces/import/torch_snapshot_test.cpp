#include "traces/import/torch_snapshot.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/pickle_writer.hpp"
#include "traces/import/recorded_names.hpp"
#include "traces/summary.hpp"

namespace tidepool::torch_snapshot_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::Pickled;
using tests::program;

namespace {

Pickled event(std::string_view action, std::int64_t address, std::int64_t size, std::int64_t time_us = 1) {
  return Pickled::dict({{"action", Pickled::text(action)},
                        {"addr", Pickled::whole(address)},
                        {"size", Pickled::whole(size)},
                        {"stream", Pickled::whole(7)},
                        {"time_us", Pickled::whole(time_us)},
                        {"frames", Pickled::list({})}});
}

Pickled block(std::int64_t address, std::int64_t size, std::int64_t requested, std::string_view state) {
  return Pickled::dict({{"address", Pickled::whole(address)},
                        {"size", Pickled::whole(size)},
                        {"requested_size", Pickled::whole(requested)},
                        {"state", Pickled::text(state)}});
}

Pickled segment(Pickled blocks, std::int64_t device = 0) {
  return Pickled::dict({{"device", Pickled::whole(device)},
                        {"address", Pickled::whole(4096)},
                        {"total_size", Pickled::whole(2 << 20)},
                        {"stream", Pickled::whole(7)},
                        {"segment_type", Pickled::text("small")},
                        {"segment_pool_id", Pickled::tuple({Pickled::whole(0), Pickled::whole(3)})},
                        {"is_expandable", Pickled::none()},
                        {"blocks", blocks}});
}

std::string file(Pickled segments, Pickled traces) {
  return Pickled::dict({{"segments", segments}, {"device_traces", traces}}).pickle();
}

Trace trace_of(Pickled segments, Pickled traces) {
  return read_torch_snapshot(Input{"s.pickle", file(segments, traces)});
}

}  // namespace

TEST_CASE("the segments, blocks and events of a snapshot are read with all their fields") {
  const TorchSnapshot found = parse_torch_snapshot(file(
      Pickled::list({segment(Pickled::list({block(4096, 1024, 600, "active_allocated"), block(5120, 512, 0, "inactive"),
                                            block(5632, 512, 9, "active_awaiting_free")}))}),
      Pickled::list({Pickled::list({event("segment_alloc", 4096, 2 << 20), event("alloc", 4096, 600, 5)})})));
  REQUIRE(found.segments.size() == 1);
  const SnapshotSegment& first = found.segments[0];
  CHECK((first.small && !first.expandable && first.stream == 7 && first.size == 2_MiB));
  CHECK(first.pool == SnapshotPool{0, 3});
  REQUIRE(first.blocks.size() == 3);
  CHECK((first.blocks[0].requested == 600_B && first.blocks[0].size == 1_KiB));
  CHECK(first.blocks[0].state == BlockState::kActive);
  CHECK(first.blocks[1].state == BlockState::kInactive);
  CHECK(first.blocks[2].state == BlockState::kPendingFree);
  REQUIRE(found.device_traces.size() == 1);
  REQUIRE(found.device_traces[0].size() == 2);
  CHECK(found.device_traces[0][0].action == SnapshotAction::kSegmentAlloc);
  CHECK((found.device_traces[0][1].address == 4096 && found.device_traces[0][1].time_us == 5));
  CHECK_FALSE(found.settings.recorded);
}

TEST_CASE("no less memory was reserved than was allocated, even if a history lacks the segments") {
  const std::string bytes =
      file(Pickled::list({segment(Pickled::list({block(4096, 1024, 600, "active_allocated")}))}),
           Pickled::list(
               {Pickled::list({event("alloc", 4096, 600), event("alloc", 8192, 64 << 20),
                               event("free_requested", 8192, 64 << 20), event("free_completed", 8192, 64 << 20)})}));
  const RecordedMemory memory = recorded_memory(parse_torch_snapshot(bytes));
  CHECK((memory.most_reserved == 64_MiB + 600_B && memory.lacks_segments));
  CHECK_FALSE(read_torch_snapshot(Input{"s.pickle", bytes}).data().meta.contains("reserved_peak_bytes"));
}

TEST_CASE("events keep their order, however they are added to their list") {
  const auto opcodes = [](const Pickled& value) {
    const std::string file = value.pickle();
    return file.substr(2, file.size() - 3);
  };
  const std::string first = opcodes(event("alloc", 512, 8)), second = opcodes(event("alloc", 1024, 8)),
                    third = opcodes(event("alloc", 2048, 8));
  for (const std::string& added : {first + "a(" + second + third + "e", "(" + first + second + "e" + third + "a",
                                   "(" + first + "e" + second + "a(" + third + "e"}) {
    const TorchSnapshot found =
        parse_torch_snapshot(file(Pickled::list({}), Pickled::list({Pickled::raw("]" + added)})));
    std::vector<std::int64_t> addresses;
    for (const SnapshotEvent& each : found.device_traces.at(0)) addresses.push_back(each.address);
    CHECK(addresses == std::vector<std::int64_t>{512, 1024, 2048});
  }
}

TEST_CASE("an allocation has the innermost line of the user's code in its stack") {
  const auto frame = [](std::string_view file, std::int64_t line) {
    return Pickled::dict(
        {{"filename", Pickled::text(file)}, {"line", Pickled::whole(line)}, {"name", Pickled::text("f")}});
  };
  const auto alloc = [](std::int64_t address, Pickled frames) {
    return Pickled::dict({{"action", Pickled::text("alloc")},
                          {"addr", Pickled::whole(address)},
                          {"size", Pickled::whole(8)},
                          {"frames", frames}});
  };
  const Pickled stack = Pickled::list({frame("??", 0), frame("CUDACachingAllocator.cpp", 0),
                                       frame("/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", 114),
                                       frame("/home/ada/net/model.py", 88), frame("/home/ada/net/train.py", 7)});
  const Pickled old = Pickled::dict({{"address", Pickled::whole(4096)},
                                     {"size", Pickled::whole(512)},
                                     {"state", Pickled::text("active_allocated")},
                                     {"frames", Pickled::list({frame("C:\\net\\init.py", 3)})}});
  const Trace trace = trace_of(Pickled::list({segment(Pickled::list({old}))}),
                               Pickled::list({Pickled::list({alloc(8192, stack), alloc(9216, Pickled::list({})),
                                                             alloc(10240, Pickled::list({frame("ceval.c", 5)}))})}));
  std::vector<std::string_view> lines;
  for (const Buffer& buffer : trace.buffers()) lines.push_back(trace.text(buffer.line));
  CHECK(lines == std::vector<std::string_view>{"init.py:3", "model.py:88", "", ""});
  const Pickled nameless = Pickled::list({Pickled::dict({{"line", Pickled::whole(3)}})});
  CHECK(complaint(read_torch_snapshot, file(Pickled::list({}), Pickled::list({Pickled::list({alloc(8, nameless)})}))) ==
        "t.log: device 0, trace entry 0: no 'filename'; expected a text");
}

TEST_CASE("in a stack, code of packages, compilers and Python is not the user's code") {
  for (const char* file :
       {"/home/ada/train.py", "net/model.py", "D:\\net\\model.py", "<ipython-input-3-0a1b>", "/home/ada/torch/train.py",
        "/tmp/ipykernel_71/4242.py", "<stdin>", "/home/ada/lib/python_jobs/train.py"}) {
    CAPTURE(file);
    CHECK(is_user_code(file));
  }
  for (const char* file :
       {"", "??", "<string>", "<frozen importlib._bootstrap>", "ceval.c", "RegisterCUDA_0.cpp",
        "/opt/env/lib/python3.11/site-packages/einops/einops.py", "/usr/lib/python3/dist-packages/numpy/core.py",
        "/usr/lib/python3.11/threading.py", "/usr/lib64/python3.9/threading.py", "/opt/lib64/python2/os.py",
        "C:\\Python311\\Lib\\threading.py", "C:\\env\\Lib\\site-packages\\torch\\functional.py",
        "/src/pytorch/torch/nn/functional.py", "/tmp/torchinductor_ada/xy/cxyz.py"}) {
    CAPTURE(file);
    CHECK_FALSE(is_user_code(file));
  }
}

TEST_CASE("blocks in snapshots of 2023 have no address: it is the segment's plus the sizes of the blocks before") {
  const auto old_block = [](std::int64_t size) {
    return Pickled::dict({{"size", Pickled::whole(size)},
                          {"requested_size", Pickled::whole(1)},
                          {"state", Pickled::text("active_allocated")},
                          {"history", Pickled::list({Pickled::dict({{"addr", Pickled::whole(9)}})})}});
  };
  const TorchSnapshot found = parse_torch_snapshot(
      file(Pickled::list({segment(Pickled::list({old_block(512), old_block(1024)}))}), Pickled::list({})));
  CHECK(found.segments[0].blocks[0].address == 4096);
  CHECK(found.segments[0].blocks[1].address == 4608);
}

TEST_CASE("an out-of-memory event has the bytes that were free on the device") {
  const Pickled oom = Pickled::dict({{"action", Pickled::text("oom")},
                                     {"device_free", Pickled::whole(95)},
                                     {"size", Pickled::whole(500)},
                                     {"stream", Pickled::whole(0)}});
  const TorchSnapshot found = parse_torch_snapshot(file(Pickled::list({}), Pickled::list({Pickled::list({oom})})));
  CHECK(found.device_traces[0][0].action == SnapshotAction::kOom);
  CHECK(found.device_traces[0][0].address == 95);
  CHECK(found.device_traces[0][0].time_us == -1);
}

TEST_CASE("a snapshot's settings are read, in every notation of an unlimited split size") {
  for (const Pickled& unlimited :
       {Pickled::whole(-1), Pickled::raw(std::string{"\x8a\x09"} + std::string(8, '\xff') + '\0')}) {
    const std::string bytes =
        Pickled::dict({{"segments", Pickled::list({})},
                       {"device_traces", Pickled::list({})},
                       {"allocator_settings",
                        Pickled::dict({{"PYTORCH_CUDA_ALLOC_CONF", Pickled::text("expandable_segments:True")},
                                       {"max_split_size", unlimited},
                                       {"garbage_collection_threshold",
                                        Pickled::raw(std::string{"G\x3f\xe0"} + std::string(6, '\0'))},
                                       {"expandable_segments", Pickled::boolean(true)},
                                       {"roundup_power2_divisions", Pickled::dict({{"4", Pickled::whole(8)}})}})}})
            .pickle();
    const SnapshotSettings settings = parse_torch_snapshot(bytes).settings;
    CHECK(settings.recorded);
    CHECK(settings.max_split_size == Bytes{-1});
    CHECK(settings.garbage_collection_threshold == 0.5);
    CHECK(settings.expandable_segments);
    CHECK(settings.roundup_power2_divisions[1] == 0);
    CHECK(settings.roundup_power2_divisions[2] == 8);  // for sizes from 4 MiB on
  }
}

TEST_CASE("allocations of a snapshot become buffers that end when the free is completed") {
  const Trace trace = trace_of(
      Pickled::list({segment(Pickled::list({block(8192, 512, 100, "active_allocated")}))}),
      Pickled::list(
          {Pickled::list({event("alloc", 4096, 600), event("alloc", 8192, 100), event("free_requested", 4096, 600),
                          event("free_completed", 4096, 600), event("alloc", 4096, 50), event("snapshot", 0, 150)})}));
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "alloc 1", "free 0", "alloc 2"});
  CHECK(trace.buffer(BufferId{0}).size == 600_B);
  CHECK(trace.buffer(BufferId{0}).address == 4096);
  CHECK(trace.ideal_peak() == 700_B);
  CHECK(trace.data().losses == Losses{});
  CHECK(trace.data().streams[trace.buffer(BufferId{0}).stream.index()] == "7");
}

TEST_CASE("blocks from before the events of a snapshot exist before the trace") {
  const Trace trace = trace_of(
      Pickled::list(
          {segment(Pickled::list({block(8192, 512, 100, "active_allocated"),
                                  block(9216, 512, 300, "active_pending_free"), block(9728, 512, 5, "inactive")}))}),
      Pickled::list({Pickled::list({event("free_completed", 4096, 600), event("alloc", 4096, 10)})}));
  REQUIRE(trace.buffers().size() == 4);
  CHECK((trace.buffer(BufferId{0}).born_before && trace.buffer(BufferId{0}).size == 600_B));
  CHECK((trace.buffer(BufferId{1}).outlives && trace.buffer(BufferId{1}).size == 100_B));
  CHECK((trace.buffer(BufferId{2}).born_before && trace.buffer(BufferId{2}).size == 300_B));
  CHECK_FALSE(trace.buffer(BufferId{3}).born_before);
  CHECK(trace.ideal_peak() == 1000_B);
}

TEST_CASE("events that a snapshot has lost are counted") {
  const Trace trace =
      trace_of(Pickled::list({}),
               Pickled::list({Pickled::list({event("alloc", 1, 10), event("free_completed", 1, 10),
                                             event("free_completed", 1, 10),                // freed twice
                                             event("alloc", 2, 10), event("alloc", 2, 20),  // its free is missing
                                             event("from_the_future", 0, 0), event("user_defined", 0, 0)})}));
  CHECK(trace.data().losses.unmatched_frees == 1);
  CHECK(trace.data().losses.dropped_records == 2);
}

TEST_CASE("devices of a snapshot are merged by time, and each keeps its own streams") {
  const Trace trace = trace_of(Pickled::list({}),
                               Pickled::list({Pickled::list({event("alloc", 1, 10, 100), event("alloc", 2, 10, 300)}),
                                              Pickled::list({event("alloc", 1, 20, 200)})}));
  REQUIRE(trace.buffers().size() == 3);
  CHECK((trace.buffer(BufferId{1}).device == 1 && trace.buffer(BufferId{1}).size == 20_B));
  CHECK(trace.buffer(BufferId{0}).stream != trace.buffer(BufferId{1}).stream);
}

TEST_CASE("one of several devices of a snapshot can be read alone") {
  const Input input{"s.pickle", file(Pickled::list({}), Pickled::list({Pickled::list({event("alloc", 1, 10, 100)}),
                                                                       Pickled::list({event("alloc", 1, 20, 200)})}))};
  for (const std::size_t device : {0u, 1u}) {
    const Trace trace = read_torch_snapshot_device(input, device);
    REQUIRE(trace.buffers().size() == 1);
    CHECK((trace.buffers()[0].device == device && trace.buffers()[0].size == (device == 0 ? 10_B : 20_B)));
  }
  CHECK_THROWS_WITH(read_torch_snapshot_device(input, 2), "s.pickle: no device 2; expected 0 to 1");
}

TEST_CASE("segments alone are a snapshot without events") {
  const std::string bytes =
      Pickled::list({segment(Pickled::list({block(4096, 512, 100, "active_allocated")}))}).pickle();
  const Trace trace = read_torch_snapshot(Input{"s.pickle", bytes});
  CHECK(trace.buffers().size() == 1);
  CHECK(warnings(trace) ==
        std::vector<std::string>{"lacks events: it has only what was allocated when the snapshot was taken; call "
                                 "torch.cuda.memory._record_memory_history() before the step"});
}

TEST_CASE("a history of one event is what a call without max_entries keeps, and lacks the same") {
  const Pickled segments = Pickled::list({segment(Pickled::list({block(4096, 512, 100, "active_allocated")}))});
  const auto lacks = [&](Pickled events) {
    const Trace trace = trace_of(segments, Pickled::list({std::move(events)}));
    const auto found = trace.data().meta.find("lacks");
    return found == trace.data().meta.end() ? "" : found->second.substr(0, 6);
  };
  CHECK(lacks(Pickled::list({event("free_completed", 8192, 600)})) == "events");
  CHECK(lacks(Pickled::list({event("snapshot", 0, 0), event("free_completed", 8192, 600)})) == "events");
  CHECK(lacks(Pickled::list({event("alloc", 8192, 600), event("free_completed", 8192, 600)})).empty());
}

TEST_CASE("a history has lost its beginning if a block has the stack of its allocation, but no event") {
  const auto lacks = [](const char* user) {
    const Pickled frame = Pickled::dict(
        {{"filename", Pickled::text(user)}, {"line", Pickled::whole(12)}, {"name", Pickled::text("step")}});
    const Pickled old = Pickled::dict({{"address", Pickled::whole(4096)},
                                       {"size", Pickled::whole(512)},
                                       {"state", Pickled::text("active_allocated")},
                                       {"frames", Pickled::list({frame})}});
    const Trace trace =
        trace_of(Pickled::list({segment(Pickled::list({old}))}),
                 Pickled::list({Pickled::list({event("alloc", 8192, 600), event("free_completed", 8192, 600)})}));
    return trace.data().meta.contains("lacks") ? trace.data().meta.at("lacks").substr(0, 28) : "";
  };
  CHECK(lacks("/home/user/train.py") == "the beginning of its history");
  CHECK(lacks("??").empty());
}

TEST_CASE("the records of a trace have the numbers of the events that made them") {
  SnapshotHistory history;
  const std::string bytes =
      file(Pickled::list({}),
           Pickled::list(
               {Pickled::list({event("alloc", 1, 32, 5), event("alloc", 2, 96, 6), event("free_requested", 2, 96, 7),
                               event("free_completed", 2, 96, 9), event("alloc", 3, 16, 12)})}));
  const Trace trace = to_trace(parse_torch_snapshot(bytes), {}, &history);
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "alloc 1", "free 1", "alloc 2"});
  CHECK(history.of_record == std::vector<std::size_t>{0, 1, 3, 4});
  CHECK(history.time_us == std::vector<std::int64_t>{5, 6, 7, 9, 12});
}

TEST_CASE("the device that is judged has memory, and a failed request, then events, then reserved bytes decide") {
  const auto judged = [](Pickled segments, Pickled traces) {
    return recorded_memory(parse_torch_snapshot(file(std::move(segments), std::move(traces)))).device;
  };
  const Pickled alive = Pickled::list({block(4096, 512, 100, "active_allocated")});
  const Pickled many = Pickled::list({event("snapshot", 0, 0), event("snapshot", 0, 0)});
  CHECK(judged(Pickled::list({segment(alive, 1)}), Pickled::list({many, Pickled::list({})})) == 1);
  CHECK(judged(Pickled::list({segment(alive, 1)}), Pickled::list({})) == 1);
  CHECK(judged(Pickled::list({segment(alive, 0), segment(alive, 2), segment(alive, 2)}), Pickled::list({})) == 2);
  CHECK(judged(Pickled::list({segment(alive, 0), segment(alive, 0)}),
               Pickled::list({Pickled::list({}), Pickled::list({event("alloc", 1, 1)})})) == 1);
}

TEST_CASE("a snapshot states the most bytes that were reserved and allocated, unless a request failed") {
  const Pickled segments = Pickled::list({segment(Pickled::list({block(4096, 512, 100, "active_allocated")}))});
  const auto meta = [&](std::initializer_list<Pickled> events) {
    return trace_of(segments, Pickled::list({Pickled::list(events)})).data().meta;
  };
  const auto stated = meta({event("segment_free", 1 << 30, 6 << 20), event("alloc", 8192, 600)});
  CHECK(stated.at("reserved_peak_bytes") == std::to_string(8 << 20));
  CHECK(stated.at("allocated_peak_bytes") == "700");
  const Pickled oom = Pickled::dict({{"action", Pickled::text("oom")},
                                     {"device_free", Pickled::whole(10)},
                                     {"size", Pickled::whole(600)},
                                     {"stream", Pickled::whole(7)}});
  CHECK_FALSE(meta({event("alloc", 8192, 600), oom}).contains("reserved_peak_bytes"));
}

TEST_CASE("a malformed record of a snapshot is refused, and the message names it") {
  const auto said = [](Pickled segments, Pickled events) {
    return complaint(read_torch_snapshot, file(segments, Pickled::list({events})));
  };
  const Pickled nothing = Pickled::list({});
  CHECK(complaint(read_torch_snapshot, Pickled::dict({}).pickle()) ==
        "t.log: snapshot: no 'segments'; expected the dict that torch.cuda.memory._dump_snapshot writes");
  CHECK(complaint(read_torch_snapshot, Pickled::none().pickle()) == "t.log: snapshot: expected a dict");
  CHECK(complaint(read_torch_snapshot, std::string{"\x80\x04NNR."}) ==
        "t.log: byte 4: opcode REDUCE ('R') needs more than plain values; a snapshot holds only these");
  CHECK(said(nothing, Pickled::list({event("alloc", 1, 1), Pickled::dict({{"action", Pickled::text("alloc")}})})) ==
        "t.log: device 0, trace entry 1: no 'addr'; expected a whole number");
  CHECK(said(nothing, Pickled::list({Pickled::dict({})})) ==
        "t.log: device 0, trace entry 0: no 'action'; expected a text");
  CHECK(said(nothing, Pickled::list({Pickled::dict({{"action", Pickled::whole(3)}})})) ==
        "t.log: device 0, trace entry 0: 'action' is not a text");
  CHECK(said(nothing, Pickled::list({event("alloc", 1, -5)})) ==
        "t.log: device 0, trace entry 0: 'size' is -5; expected 0 to 2305843009213693952");
  CHECK(said(nothing, Pickled::none()) == "t.log: device 0: expected a list of trace entries");
  CHECK(said(Pickled::list({Pickled::whole(3)}), nothing) == "t.log: segment 0: expected a dict");
  CHECK(said(Pickled::list({segment(nothing), segment(Pickled::none())}), nothing) ==
        "t.log: segment 1: no 'blocks'; expected a list");
  CHECK(said(Pickled::list({segment(nothing, 300)}), nothing) ==
        "t.log: segment 0: 'device' is 300; expected 0 to 255");
  CHECK(said(Pickled::list({segment(Pickled::list({block(1, 2, 3, "inactive"), block(1, 2, 3, "gone")}))}), nothing) ==
        "t.log: segment 0, block 1: 'state' is 'gone'; expected active_allocated, active_pending_free, "
        "active_awaiting_free or inactive");
}

TEST_CASE("a record of more than 64 entries is refused, since a snapshot could refer to it again and again") {
  const auto with_entries = [](int entries) {
    std::string event = std::string{"}("} + "\x8c\x06" + "action" + "\x8c\x0c" + "user_defined";
    for (int i = 1; i < entries; ++i) event += std::string{"K"} + static_cast<char>(i) + "N";  // a number: None
    return file(Pickled::list({}), Pickled::list({Pickled::list({Pickled::raw(event + "u")})}));
  };
  CHECK(parse_torch_snapshot(with_entries(64)).device_traces.at(0).size() == 1);
  CHECK(complaint(read_torch_snapshot, with_entries(65)) ==
        "t.log: device 0, trace entry 0: a dict of 65 entries; expected at most 64");
}

TEST_CASE("a snapshot that repeats one record through the memo is refused before it grows without bound") {
  // A list that holds one list 201 times, which holds one event 201 times, so that there are more records than bytes.
  std::string events = event("alloc", 1, 1).pickle().substr(2);
  events.pop_back();
  std::string list = "](" + events + "q\x01";
  for (int i = 0; i < 200; ++i) list += "h\x01";
  list += "eq\x02";
  std::string traces = "](" + list;
  for (int i = 0; i < 200; ++i) traces += "h\x02";
  const std::string bytes =
      Pickled::dict({{"segments", Pickled::list({})}, {"device_traces", Pickled::raw(traces + "e")}}).pickle();
  CHECK_THAT(complaint(read_torch_snapshot, bytes), ContainsSubstring("more records than the file has room for"));
}

}  // namespace tidepool::torch_snapshot_test
