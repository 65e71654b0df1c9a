// Steps that deviate from the planned one, on bundled samples: the requests that the plan still serves, and the memory
// that this takes.
#include <fmt/format.h>

#include <functional>
#include <string>

#include "simulator/solvers/packing/pack.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/program.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::deviation_test {

namespace {

Trace sample(const std::string& name) {
  return load_trace(fmt::format("{}/traces/samples/{}.tide", paths::source_folder(), name));
}

Packing pack_with(const Trace& trace, const std::string& text) {
  const Spec spec{text};
  const PoolInfo& info = find_pool(spec.name);
  return pack(trace, info, Options{info.name, info.options, spec.options}, {});
}

/// The allocs and frees of a changed step. n counts the allocs of `step` from 0. `size_of(n, size)` is the new size of
/// alloc n, whose size is `size`; if it is negative, the alloc is left out. If `extra(n)` is not 0 B, a block of that
/// size is allocated before alloc n, and freed before alloc n + 20.
Trace changed(
    const Trace& step, const std::function<Bytes(int, Bytes)>& size_of,
    const std::function<Bytes(int)>& extra = [](int) { return 0_B; }) {
  TraceBuilder build;
  std::vector<BufferId> now(step.buffers().size());
  for (std::uint32_t id = 0; id < step.buffers().size(); ++id)
    if (step.buffers()[id].born_before) now[id] = build.existing({.size = step.buffers()[id].size});
  std::vector<std::pair<int, BufferId>> more;
  int count = 0;
  for (const Event& each : step.events()) {
    if (each.kind == EventKind::kFree && now[each.id].valid()) build.free(now[each.id]);
    if (each.kind != EventKind::kAlloc) continue;
    if (const Bytes size = extra(count); size > 0_B) more.emplace_back(count + 20, build.alloc({.size = size}));
    if (!more.empty() && more.front().first <= count) {
      build.free(more.front().second);
      more.erase(more.begin());
    }
    if (const Bytes size = size_of(count, step.buffers()[each.id].size); size >= 0_B)
      now[each.id] = build.alloc({.size = size});
    ++count;
  }
  return build.finish();
}

struct Served {
  std::int64_t planned = 0, fallback = 0, beyond = 0;
  Packing packing;
};

/// Serves the requests of `step` by the layout that is planned for `planned`.
Served serve(const Trace& planned, const Trace& step) {
  const ScratchFolder folder;
  const std::string path = folder.file("step.layout");
  write_file(path, layout_text(pack_with(planned, "tide-pool(effort=1)").layouts.at(0)));
  Served served;
  served.packing = pack_with(step, "layout(fallback=64MiB,file=" + path + ")");
  for (const Count& count : served.packing.count_sums()) {
    if (count.name == "planned") served.planned = count.value;
    if (count.name == "fallback") served.fallback = count.value;
    if (count.name == "beyond") served.beyond = count.value;
  }
  CHECK(served.planned + served.fallback == served.packing.buffers);
  return served;
}

const auto kSame = [](int, Bytes size) { return size; };

}  // namespace

TEST_CASE("the step that was planned finds every place") {
  for (const char* name : {"resnet50", "gpt2", "bilstm"}) {
    INFO(name);
    const Trace trace = sample(name);
    const Served served = serve(trace, changed(trace, kSame));
    CHECK(served.fallback == 0);
    CHECK(served.packing.height <= pack_with(trace, "tide-pool(effort=1)").height);
  }
}

TEST_CASE("a step that leaves allocations out keeps most planned places") {
  // If planned requests of one size follow each other, as in the layers of GPT-2, a request may be taken for the
  // planned one after its own, which lives longer.
  const std::vector<std::pair<std::string, int>> kPercent{{"resnet50", 95}, {"swin_t", 85}, {"gpt2", 85}};
  for (const auto& [name, percent] : kPercent) {
    INFO(name);
    const Trace trace = sample(name);
    const Served served = serve(trace, changed(trace, [](int n, Bytes size) { return n % 40 == 20 ? -1_B : size; }));
    CHECK(served.planned * 100 >= served.packing.buffers * percent);
    CHECK(served.beyond <= (name == "gpt2" ? 1 : 0));
  }
}

TEST_CASE("a step with extra allocations keeps its planned places and needs no more than the fallback region") {
  for (const char* name : {"resnet50", "gpt2", "swin_t"}) {
    INFO(name);
    const Trace trace = sample(name);
    const Served served = serve(trace, changed(trace, kSame, [](int n) { return n % 40 == 20 ? 3_MiB : 0_B; }));
    CHECK(served.beyond == 0);
    CHECK(served.planned * 100 >= served.packing.buffers * 90);
    CHECK(served.fallback > 0);
  }
}

TEST_CASE("a step of half the batch fits into the plan of the whole one") {
  for (const char* name : {"resnet50", "gpt2", "unet"}) {
    INFO(name);
    const Trace trace = sample(name);
    const Served served = serve(trace, changed(trace, [](int, Bytes size) { return size / 2; }));
    CHECK(served.beyond == 0);
  }
}

}  // namespace tidepool::deviation_test
