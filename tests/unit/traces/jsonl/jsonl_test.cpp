#include "traces/jsonl/jsonl.hpp"

#include <fstream>
#include <iterator>

#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/random_trace.hpp"
#include "traces/jsonl/relabel.hpp"

namespace tidepool::jsonl_test {

using tests::Random;
using tests::random_trace;

namespace {

Trace read(std::string_view text) { return read_jsonl(Input{"t.jsonl", text}); }

std::vector<std::uint32_t> identity(std::size_t size) {
  std::vector<std::uint32_t> numbers(size);
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return numbers;
}

/// The same trace with its buffers in a random order. Neighbouring versions are exchanged unless one is made from the
/// other.
Trace renumbered(const Trace& trace, std::uint64_t seed) {
  Random random{seed};
  std::vector<std::uint32_t> buffers = identity(trace.buffers().size());
  for (std::size_t i = buffers.size(); i > 1; --i) std::swap(buffers[i - 1], buffers[random.below(i)]);
  std::vector<std::uint32_t> versions = identity(trace.versions().size());
  for (std::size_t i = 1; i + 1 < versions.size(); ++i) {
    const VersionId parent = trace.versions()[i + 1].parent, own_parent = trace.versions()[i].parent;
    if (parent == VersionId{i} || (own_parent.valid() && versions[own_parent.index()] >= i)) continue;
    std::swap(versions[i], versions[i + 1]);
    ++i;
  }
  return relabel(trace, buffers, versions);
}

}  // namespace

TEST_CASE("JSON lines keep every field and every id") {
  for (const int ops : {0, 1, 10, 300})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Trace trace = random_trace(seed, ops);
      CHECK(read(to_jsonl(trace)).data() == trace.data());
    }
}

TEST_CASE("JSON lines keep ids that do not follow the order of appearance") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Trace trace = renumbered(random_trace(seed, 100), seed);
    CHECK(read(to_jsonl(trace)).data() == trace.data());
  }
}

TEST_CASE("JSON lines keep outputs, texts and streams in any order") {
  TraceBuilder build{{"compute", "copy"}};
  build.text("never used");
  const BufferId a = build.existing({.size = 1_B}), b = build.existing({.size = 2_B, .stream = StreamId{1}});
  build.output(build.current(b));
  build.output(build.current(a));
  const Trace trace = build.finish();
  CHECK(read(to_jsonl(trace)).data() == trace.data());

  build.existing({.size = 1_B});
  build.only_given_outputs();
  const Trace none = build.finish();
  CHECK(read(to_jsonl(none)).data() == none.data());
}

TEST_CASE("JSON lines keep lines of the user's code") {
  const std::string text =
      "{\"tidepool\":1}\n"
      "{\"alloc\":0,\"size_bytes\":8,\"line\":\"train.py:7\"}\n"
      "{\"run\":\"mm\",\"uses\":[[0,\"write\",\"schema\"]],\"line\":\"model.py:88\"}\n";
  const Trace trace = read(text);
  CHECK(trace.text(trace.buffer(BufferId{0}).line) == "train.py:7");
  CHECK(trace.text(trace.op(OpId{0}).line) == "model.py:88");
  CHECK(to_jsonl(trace).find(",\"line\":\"model.py:88\"") != std::string::npos);
  CHECK(read(to_jsonl(trace)).data() == trace.data());
}

TEST_CASE("JSON lines keep any text") {
  TraceBuilder build;
  build.meta()["a \"key\""] = "back\\slash, new\nline, tab\t, nul \0, snowman \xe2\x98\x83";
  build.mark(MarkKind::kRangeBegin, std::string_view{"\x01\x1f\x7f\0.", 5});
  const Trace trace = build.finish();
  CHECK(read(to_jsonl(trace)).data() == trace.data());
}

TEST_CASE("the line of a buffer comes before the line that forgets its initial version") {
  TraceBuilder build;
  const BufferId a = build.existing({.size = 1_B});
  build.forget(build.content(a));
  build.run({}, {{a, Access::kReadWrite}});
  const Trace trace = build.finish();
  CHECK(read(to_jsonl(trace)).data() == trace.data());
}

TEST_CASE("outputs may name the content of a buffer that no op uses") {
  const Trace trace = read(R"({"tidepool":1,"meta":{"source":"hand"}}
{"buffer":0,"born_before":true,"size_bytes":100}
{"alloc":2,"size_bytes":50}
{"buffer":1,"born_before":true,"size_bytes":10}
)");
  CHECK(read(to_jsonl(trace)).data() == trace.data());
}

TEST_CASE("a step can be written by hand") {
  // y = x * w, then y is updated in place, read through a view, and freed.
  const Trace trace = read(R"({"tidepool":1,"meta":{"source":"hand"}}
{"buffer":0,"born_before":true,"size_bytes":100,"kind":"parameter","name":"w"}
{"buffer":1,"born_before":true,"size_bytes":10,"kind":"input"}

{"mark":"iteration","name":"0"}
{"alloc":2,"size_bytes":50}
{"run":"mul","uses":[[1,"read","schema"],[0,"read","schema"],[2,"write","schema"]],"duration_ns":7}
{"run":"relu_","uses":[[2,"read_write","schema"]],"duration_ns":2}
{"forget":2}
{"run":"t","uses":[[2,"view","schema"]]}
{"run":"sum","uses":[[2,"read","schema",4],[0,"read_write","inferred"]],"stream":"side","waits_for":[1,2]}
{"free":2}
{"output_buffers":[0]}
{"losses":{"unmatched_frees":3}}
)");
  CHECK(trace.ideal_peak() == 160_B);
  REQUIRE(trace.ops().size() == 4);
  CHECK(trace.text(trace.op(OpId{1}).name) == "relu_");
  CHECK(trace.version(VersionId{3}).kind == VersionKind::kUpdate);
  CHECK(trace.version(VersionId{3}).parent == VersionId{2});
  CHECK(trace.root(VersionId{4}) == VersionId{3});
  CHECK(trace.readers(VersionId{3}).size() == 2);  // the view and the sum
  CHECK(trace.data().orders == std::vector<Order>{{OpId{1}, OpId{3}}, {OpId{2}, OpId{3}}});
  CHECK(trace.data().streams == std::vector<std::string>{"0", "side"});
  CHECK(trace.outputs().size() == 1);
  CHECK(trace.version(trace.outputs()[0]).kind == VersionKind::kUpdate);
  CHECK(trace.data().losses.unmatched_frees == 3);
  CHECK(trace.data().marks.size() == 1);
}

TEST_CASE("the example of a whole trace in FORMAT.md can be read") {
  std::ifstream file{paths::source_folder() + "/traces/FORMAT.md"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const std::string before = "A whole trace:\n```json\n";
  const std::size_t start = text.find(before);
  REQUIRE(start != std::string::npos);
  const std::size_t first = start + before.size();
  const Trace trace = read(text.substr(first, text.find("```", first) - first));
  CHECK(trace.ops().size() == 4);
  CHECK(trace.ideal_peak() == 880_B);  // the weight, its gradient, the input and the activation
}

}  // namespace tidepool::jsonl_test
