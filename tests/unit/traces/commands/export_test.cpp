// Traces that are exported and imported again stay the same, as far as the format can represent them.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "tests/program.hpp"
#include "tests/shared_data.hpp"
#include "tests/skip.hpp"
#include "traces/builder.hpp"
#include "traces/export/exporter.hpp"
#include "traces/import/importer.hpp"
#include "traces/iteration.hpp"
#include "traces/summary.hpp"

namespace tidepool::export_test {

using namespace tidepool::literals;

namespace {

std::string written(const std::string& form, const Trace& trace) {
  const Exporter& exporter = find_exporter(form);
  return exporter.write ? exporter.write(trace) : exporter.write_recording(recording_of(trace));
}

using Read = Trace (*)(const Input&);

Trace back(Read read, const std::string& form, const Trace& trace) {
  return read(Input{"exported", written(form, trace)});
}

/// Two iterations on two streams, with buffers from before, addresses that are used again, and ops that wait for
/// another stream.
Trace two_steps() {
  TraceBuilder build{{"7", "8"}};
  build.meta()["device"] = "A GPU";
  const StreamId other = build.stream("8");
  const auto buffer = [&](Bytes size, std::int64_t address, StreamId stream, const char* name) {
    Buffer spec;
    spec.size = size, spec.address = address, spec.stream = stream, spec.name = build.text(name);
    return spec;
  };
  const BufferId kept = build.existing(buffer(512_B, 0x1000, StreamId{0}, "kept"));
  const BufferId old = build.existing(buffer(100_B, 0x9000, StreamId{0}, "old"));
  for (int step = 0; step < 2; ++step) {
    build.mark(MarkKind::kIteration, std::to_string(step));
    const std::int64_t at = 1000 + 10'000 * step;
    const auto run = [&](const char* name, OpKind kind, StreamId stream, int launch, int start, int duration) {
      Op op;
      op.name = build.text(name), op.kind = kind, op.stream = stream;
      op.launch = Nanos{at + launch}, op.start = Nanos{at + start}, op.duration = Nanos{duration};
      build.run(op, {});
      return build.last_op();
    };
    const BufferId a = build.alloc(buffer(256_B, 0x2000, StreamId{0}, "a"));
    const OpId made = run("gemm", OpKind::kKernel, StreamId{0}, 100, 150, 700);
    const BufferId b = build.alloc(buffer(64_B, 0x3000, other, "b"));
    build.order(made, run("relu \"x\"", OpKind::kKernel, other, 200, 900, 300));
    build.free(a);
    run("memset", OpKind::kMemset, StreamId{0}, 300, 950, 10);
    run("memcpy DtoH", OpKind::kCopy, other, 400, 1300, 50);
    build.free(b);
    if (step == 0) build.free(old);
  }
  build.alloc(buffer(128_B, 0x2000, other, "last"));
  CHECK(build.live(kept));
  return build.finish();
}

/// For each buffer: size, address, stream, device, and the positions of its alloc and free among all allocs and frees.
using Life = std::tuple<std::int64_t, std::int64_t, std::string, int, int, int>;
std::multiset<Life> lives(const Trace& trace) {
  std::vector<std::pair<int, int>> span(trace.buffers().size(), {-1, 1 << 30});
  int position = 0;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) span[event.id].first = position++;
    if (event.kind == EventKind::kFree) span[event.id].second = position++;
  }
  std::multiset<Life> found;
  for (std::size_t i = 0; i < span.size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    found.emplace(buffer.size.count(), buffer.address, trace.data().streams[buffer.stream.index()], buffer.device,
                  span[i].first, span[i].second);
  }
  return found;
}

/// lives() without the buffers that exist before and after the trace, which some formats cannot represent.
std::multiset<Life> passing_lives(const Trace& trace) {
  std::multiset<Life> found = lives(trace);
  std::erase_if(found, [](const Life& life) { return std::get<4>(life) == -1 && std::get<5>(life) == 1 << 30; });
  return found;
}

void check_same_ops(const Trace& trace, const Trace& original) {
  REQUIRE(trace.ops().size() == original.ops().size());
  const auto delay = [](const Trace& t) { return t.ops().front().launch; };
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    CAPTURE(i);
    const Op &op = trace.ops()[i], &was = original.ops()[i];
    CHECK(trace.text(op.name) == original.text(was.name));
    CHECK(op.kind == was.kind);
    CHECK(op.duration == was.duration);
    CHECK(op.launch - delay(trace) == was.launch - delay(original));
    CHECK(op.start - delay(trace) == was.start - delay(original));
    CHECK(trace.data().streams[op.stream.index()] == original.data().streams[was.stream.index()]);
  }
}

}  // namespace

TEST_CASE("a trace exported as a memory snapshot has the same lifetimes") {
  const Trace original = two_steps();
  const Trace trace = back(read_torch_snapshot, "torch-snapshot", original);
  CHECK(lives(trace) == lives(original));
  CHECK(trace.ideal_peak() == original.ideal_peak());
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE("a memory snapshot of several devices keeps each one's lifetimes and live blocks apart") {
  TraceBuilder build{{"0"}};
  std::vector<BufferId> buffers;
  for (const std::uint16_t device : std::vector<std::uint16_t>{3, 0, 3, 1})
    for (int i = 0; i < 2; ++i)
      buffers.push_back(
          build.alloc({.size = Bytes{64 + device}, .address = 0x1000 * (1 + std::ssize(buffers)), .device = device}));
  build.free(buffers[2]);
  build.free(buffers[5]);
  const Trace original = build.finish();
  const Trace trace = back(read_torch_snapshot, "torch-snapshot", original);
  std::map<std::uint16_t, Bytes> sizes, expected{{0, 128_B}, {1, 130_B}, {3, 268_B}};
  for (const Buffer& buffer : trace.buffers()) sizes[buffer.device] += buffer.size;
  CHECK(sizes == expected);
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE("a memory snapshot keeps the order of events on different devices, and the lines that allocated") {
  TraceBuilder build{{"0"}};
  build.existing({.size = 32_B, .address = 0x8000, .line = build.text("train.py:3")});
  for (int i = 0; i < 3; ++i) {
    const std::int64_t at = 0x1000 * (i + 1);
    const BufferId high = build.alloc({.size = 100_B, .address = at, .device = 1, .line = build.text("model.py:88")});
    const BufferId low = build.alloc({.size = 100_B, .address = at, .line = build.text("<stdin>:1")});
    build.free(i == 1 ? low : high);
    build.free(i == 1 ? high : low);
  }
  const Trace original = build.finish();
  const Trace trace = back(read_torch_snapshot, "torch-snapshot", original);
  CHECK(tests::program(trace) == tests::program(original));
  REQUIRE(trace.buffers().size() == original.buffers().size());
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    CAPTURE(i);
    CHECK(trace.buffers()[i].device == original.buffers()[i].device);
    CHECK(trace.text(trace.buffers()[i].line) == original.text(original.buffers()[i].line));
  }
}

TEST_CASE("real memory snapshots are the same when exported and imported again") {
  for (const char* name : {"torch_snapshot/js_eor_nn.pickle.xz", "torch_snapshot/bc_mem.pickle.xz"})
    if (const auto path = tests::shared_data(name)) {
      const Trace original = load_trace(*path);
      CHECK(lives(back(read_torch_snapshot, "torch-snapshot", original)) == lives(original));
    }
}

TEST_CASE("Python can read an exported memory snapshot") {
  if (std::system("python3 -c 'pass' > /dev/null 2>&1") != 0) return tests::skip("no python3");
  const ScratchFolder scratch;
  const std::string path = scratch.file("run.pickle");
  write_file(path, written("torch-snapshot", two_steps()));
  const std::string check = fmt::format(
      "python3 -c \"import pickle; s = pickle.load(open('{}', 'rb')); t = s['device_traces'][0]; "
      "assert [e['action'] for e in t].count('alloc') == 5; assert t[0]['addr'] == 0x2000 and t[0]['size'] == 256; "
      "assert t[0]['frames'][0]['name'] == 'a'; "
      "assert sum(b['size'] for g in s['segments'] for b in g['blocks'] if b['state'] == 'active_allocated') == 640; "
      "assert all(g['total_size'] == sum(b['size'] for b in g['blocks']) for g in s['segments'])\"",
      path);
  CHECK(std::system(check.c_str()) == 0);
}

TEST_CASE("a trace exported as a log of RMM has the same lifetimes") {
  const Trace original = two_steps();
  const Trace trace = back(read_rmm, "rmm", original);
  CHECK(passing_lives(trace) == passing_lives(original));
}

TEST_CASE("a trace exported as a database of Nsight Systems is the same when it is imported again") {
  const Trace original = two_steps();
  const Trace trace = back(read_nsys, "sqlite", original);
  check_same_ops(trace, original);
  CHECK(passing_lives(trace) == passing_lives(original));
  CHECK(trace.data().orders == original.data().orders);
  CHECK(summarize(trace).iterations == 2);
  CHECK(trace.data().meta.at("device") == "A GPU");
}

TEST_CASE("a database keeps the direction of copies that torch.profiler named") {
  TraceBuilder build;
  for (const char* name : {"Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)", "Memcpy DtoD"})
    build.run({.name = build.text(name), .kind = OpKind::kCopy, .duration = 5_ns}, {});
  CHECK(tests::program(back(read_nsys, "sqlite", build.finish())) ==
        std::vector<std::string>{"run memcpy HtoD", "run memcpy DtoH", "run memcpy DtoD"});
}

TEST_CASE(
    "an allocation right behind the mark of an iteration stays in the iteration when it is exported and imported") {
  TraceBuilder build;
  for (int step = 0; step < 2; ++step) {
    build.mark(MarkKind::kIteration, std::to_string(step));
    const BufferId buffer = build.alloc({.size = 8_B, .address = 0x1000});
    build.run({.duration = 5_ns}, {});
    build.free(buffer);
  }
  const Trace original = build.finish();
  for (const auto& [form, read] : std::map<std::string, Read>{{"sqlite", read_nsys}, {"chrome", read_kineto}}) {
    CAPTURE(form);
    const Trace second = one_iteration(back(read, form, original), 1);
    REQUIRE(second.buffers().size() == 1);
    CHECK_FALSE(second.buffers()[0].born_before);
    CHECK_FALSE(second.buffers()[0].outlives);
  }
}

TEST_CASE("an op at the time 0 behind the mark of an iteration keeps its time when it is exported") {
  TraceBuilder build;
  build.mark(MarkKind::kIteration, "0");
  build.run({.start = 0_ns, .launch = 0_ns, .duration = 5_ns}, {});
  const Recording recording = recording_of(build.finish());
  REQUIRE(recording.ops.size() == 1);
  CHECK(recording.ops[0].launch == 0_ns);
  REQUIRE(recording.ranges.size() == 1);
  CHECK(recording.ranges[0].start == 0_ns);
}

TEST_CASE("a trace with ranges has the same marks however often it is exported as a database and imported again") {
  const auto marks = [](const Trace& trace) {
    std::vector<std::tuple<std::uint32_t, MarkKind, std::string>> found;
    for (const Mark& mark : trace.data().marks) found.emplace_back(mark.event, mark.kind, trace.text(mark.name));
    return found;
  };
  TraceBuilder build;
  const auto run = [&] { build.run({.duration = 5_ns}, {}); };
  for (const char* step : {"0", "1"}) {
    build.mark(MarkKind::kIteration, step);
    build.mark(MarkKind::kRangeBegin, "forward");
    run();
    build.mark(MarkKind::kRangeEnd, "forward");
    run();
  }
  const Trace first = back(read_nsys, "sqlite", build.finish());
  const Trace second = back(read_nsys, "sqlite", first), third = back(read_nsys, "sqlite", second);
  CHECK(summarize(first).iterations == 2);
  CHECK(marks(first).size() == 10);  // of each iteration: the iteration, and two ends of two ranges
  CHECK(marks(second) == marks(first));
  CHECK(marks(third) == marks(first));
}

TEST_CASE("lanes without a number in their name get numbers that no other lane has") {
  const auto numbers = [](const std::vector<std::string>& lanes) {
    Recording recording;
    recording.lanes = lanes;
    return lane_numbers(recording);
  };
  using Numbers = std::vector<std::int64_t>;
  CHECK(numbers({"7", "1:7", "default", "8"}) == Numbers{7, 7, 2, 8});
  CHECK(numbers({"2", "b", "c"}) == Numbers{2, 1, 3});
  CHECK(numbers({"7", "0:7", "-1", "copy:7"}) == Numbers{7, 1, 2, 3});
}

TEST_CASE("lanes with the same number in their names keep it unless both are used on one device") {
  TraceBuilder build{{"7", "1:7", "8", "1:8"}};
  for (const char* stream : {"7", "1:7", "8", "1:8"}) {
    Buffer buffer;
    buffer.size = 8_B, buffer.stream = build.stream(stream);
    buffer.device = std::string{stream} == "8" ? 0 : 1;  // stream 7 is on device 1
    build.alloc(buffer);
    build.run({.stream = build.stream(stream), .duration = 5_ns}, {});
  }
  const Trace trace = build.finish();
  CHECK(lane_numbers(recording_of(trace)) == std::vector<std::int64_t>{7, 1, 8, 8});
  const nlohmann::json timeline = nlohmann::json::parse(written("chrome", trace));
  std::set<std::pair<int, int>> lanes;
  for (const nlohmann::json& event : timeline["traceEvents"])
    if (event["name"] == "thread_name") lanes.emplace(event["pid"].get<int>(), event["tid"].get<int>());
  CHECK(lanes == std::set<std::pair<int, int>>{{1, 7}, {1, 1}, {0, 8}, {1, 8}});
}

TEST_CASE("a timeline names each stream in the process of its device") {
  TraceBuilder build{{"0:7", "1:7", "unused"}};
  for (const char* stream : {"0:7", "1:7", "0:7"}) build.run({.stream = build.stream(stream), .duration = 5_ns}, {});
  const nlohmann::json timeline = nlohmann::json::parse(written("chrome", build.finish()));
  std::map<std::pair<int, int>, std::string> names, expected{{{0, 7}, "stream 0:7"}, {{1, 7}, "stream 1:7"}};
  for (const nlohmann::json& event : timeline["traceEvents"])
    if (event["name"] == "thread_name")
      names[{event["pid"].get<int>(), event["tid"].get<int>()}] = event["args"]["name"].get<std::string>();
  CHECK(names == expected);
}

TEST_CASE("a trace exported as a timeline is read as output of torch.profiler, with the same ops and addresses") {
  const Trace original = two_steps();
  const Trace trace = back(read_kineto, "chrome", original);
  check_same_ops(trace, original);
  CHECK(summarize(trace).iterations == 2);
  CHECK(trace.ideal_peak() == original.ideal_peak());
  std::multiset<std::int64_t> allocated, was;
  for (const Buffer& buffer : trace.buffers())
    if (!buffer.born_before) allocated.insert(buffer.address);
  for (const Buffer& buffer : original.buffers())
    if (!buffer.born_before) was.insert(buffer.address);
  CHECK(allocated == was);
  CHECK(trace.data().losses == Losses{});
}

TEST_CASE("a trace exported for Perfetto has a slice for each op and a counter of bytes") {
  // A message is a list of fields. A field begins with a varint: its number * 8 + type. With type 0 a varint follows,
  // with type 2 a length and as many bytes.
  struct Field {
    std::uint64_t number, value;
    std::string_view bytes;
  };
  const auto parse = [](std::string_view message) {
    std::vector<Field> found;
    const auto varint = [&] {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        REQUIRE_FALSE(message.empty());
        const auto byte = static_cast<unsigned char>(message.front());
        message.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (!message.empty()) {
      const std::uint64_t key = varint(), value = varint();
      REQUIRE((key % 8 == 0 || key % 8 == 2));
      if (key % 8 == 2) REQUIRE(value <= message.size());
      found.push_back({key / 8, value, key % 8 == 2 ? message.substr(0, value) : std::string_view{}});
      if (key % 8 == 2) message.remove_prefix(value);
    }
    return found;
  };
  const std::string bytes = written("perfetto", two_steps());
  std::multiset<std::string_view> begun;
  std::int64_t most = 0;
  int depth = 0;
  std::uint64_t last_time = 0;
  for (const Field& packet : parse(bytes)) {
    CHECK(packet.number == 1);
    std::uint64_t type = 0;
    for (const Field& field : parse(packet.bytes)) {
      if (field.number == 8) {
        CHECK(field.value >= last_time);
        last_time = field.value;
      }
      if (field.number != 11) continue;
      for (const Field& part : parse(field.bytes)) {
        if (part.number == 9) type = part.value;
        if (part.number == 23) begun.insert(part.bytes);
        if (part.number == 30) most = std::max(most, static_cast<std::int64_t>(part.value));
      }
      depth += type == 1 ? 1 : type == 2 ? -1 : 0;
    }
  }
  CHECK(depth == 0);
  CHECK(begun.count("gemm") == 2);
  CHECK(begun.count("memcpy DtoH") == 2);
  CHECK(begun.count("ProfilerStep#1") == 1);
  CHECK(most == two_steps().ideal_peak().count());
}

TEST_CASE("formats of allocations refuse a trace without addresses") {
  TraceBuilder build;
  build.alloc({.size = 8_B});
  const Trace trace = build.finish();
  for (const char* form : {"torch-snapshot", "rmm", "sqlite"})
    CHECK_THROWS_WITH(
        written(form, trace),
        "1 of the allocations and frees has no address, which this form needs; run simulate --plan-out with a "
        "pool, and export the plan");
}

}  // namespace tidepool::export_test
