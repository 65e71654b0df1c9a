#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"

namespace tidepool::dtr_test {

using namespace tidepool::literals;
using tests::program;

namespace {

/// Writes a log of instructions; the tests give only the fields that matter.
class Log {
 public:
  Log& constant(const std::string& name, int size) {
    return line(R"({"INSTRUCTION":"CONSTANT","NAME":")" + name + R"("})").memory(name, size);
  }
  /// A call with one result, which has a storage of its own.
  Log& call(const std::string& op, const std::string& args, const std::string& result, int size, int time = 1) {
    line(R"({"INSTRUCTION":"CALL","NAME":")" + op + R"(","ARGS":[)" + args + R"(],"RESULT":[")" + result +
         R"("],"TIME":")" + std::to_string(time) + R"("})");
    return memory(result, size).alias(result, -1);
  }
  Log& view(const std::string& of, const std::string& result) {
    line(R"({"INSTRUCTION":"CALL","NAME":"view","ARGS":[")" + of + R"("],"RESULT":[")" + result + R"("],"TIME":"1"})");
    return memory(result, 999).alias(result, 0);
  }
  Log& mutate(const std::string& args, const std::string& positions) {
    return line(R"({"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":[)" + args + R"(],"MUTATE":[)" + positions +
                R"(],"TIME":"1"})");
  }
  Log& copy(const std::string& to, const std::string& from, const std::string& how = "COPY") {
    return line(R"({"INSTRUCTION":")" + how + R"(","DST":")" + to + R"(","SRC":")" + from + R"("})");
  }
  Log& release(const std::string& name) { return line(R"({"INSTRUCTION":"RELEASE","NAME":")" + name + R"("})"); }
  Log& annotate(const std::string& what) {
    return line(R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":")" + what + R"("})");
  }
  Log& memory(const std::string& name, int size) {
    return line(R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" + std::to_string(size) + R"("})");
  }
  Log& alias(const std::string& name, int of) {
    return line(R"({"INSTRUCTION":"ALIAS","NAME":")" + name + R"(","ALIAS":")" + std::to_string(of) + R"("})");
  }
  Log& line(const std::string& text) {
    text_ += text + "\n";
    return *this;
  }
  Trace read() const { return read_dtr(Input{"t.log", text_}); }

 private:
  std::string text_;
};

std::vector<VersionKind> kinds(const Trace& trace) {
  std::vector<VersionKind> found;
  for (const Version& version : trace.versions()) found.push_back(version.kind);
  return found;
}

}  // namespace

TEST_CASE("a DTR constant is a source that fills a parameter") {
  const Trace trace = Log{}.constant("w", 100).read();
  REQUIRE(trace.ops().size() == 1);
  CHECK(trace.op(OpId{0}).kind == OpKind::kSource);
  CHECK(trace.buffer(BufferId{0}).kind == BufferKind::kParameter);
  CHECK(trace.buffer(BufferId{0}).size == 100_B);
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "w");
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run constant"});
}

TEST_CASE("a DTR call reads its arguments in order, twice if it names one twice, and then writes") {
  const Trace trace = Log{}.constant("a", 1).constant("b", 2).call("add", R"("b","a","b")", "c", 4, 70).read();
  const auto uses = trace.uses(OpId{2});
  REQUIRE(uses.size() == 4);
  CHECK(trace.version(uses[0].in).buffer == BufferId{1});
  CHECK(trace.version(uses[1].in).buffer == BufferId{0});
  CHECK(trace.version(uses[2].in).buffer == BufferId{1});
  CHECK(uses[3].access == Access::kWrite);
  CHECK(trace.version(uses[3].out).buffer == BufferId{2});
  CHECK(trace.op(OpId{2}).duration == 70_ns);
}

TEST_CASE("a DTR alias is a view without memory of its own, whatever its MEMORY line says") {
  const Trace trace = Log{}.constant("a", 8).view("a", "v").call("neg", R"("v")", "n", 8).read();
  CHECK(trace.buffers().size() == 2);
  CHECK(kinds(trace) == std::vector{VersionKind::kWrite, VersionKind::kView, VersionKind::kWrite});
  CHECK(trace.uses(OpId{2})[0].in == VersionId{1});  // through the view
  CHECK(trace.ideal_peak() == 16_B);
}

TEST_CASE("a DTR buffer ends when its last name, and the last name of its views, is released") {
  const Trace trace =
      Log{}.constant("a", 8).view("a", "v").copy("c", "v").release("a").release("v").release("c").release("x").read();
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run constant", "run view", "free 0"});
  CHECK(trace.outputs().empty());
}

TEST_CASE("a DTR mutation is in place if nothing reads or keeps the old value") {
  const Trace trace = Log{}.call("f", "", "a", 8).mutate(R"("a")", "0").call("g", R"("a")", "b", 8).read();
  CHECK(kinds(trace) == std::vector{VersionKind::kWrite, VersionKind::kUpdate, VersionKind::kWrite});
  // The old version has lost its only name, "a"; the buffer stays.
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run f", "run add_", "forget 0", "alloc 1", "run g"});
  CHECK(trace.uses(OpId{2})[0].in == VersionId{1});
}

TEST_CASE("a DTR mutation writes a copy if the old value is read later or is an output") {
  SECTION("read later through another name") {
    const Trace trace = Log{}
                            .call("f", "", "a", 8)
                            .copy("k", "a")
                            .mutate(R"("a")", "0")
                            .call("g", R"("k")", "b", 8)
                            .release("k")
                            .read();
    CHECK(kinds(trace) == std::vector{VersionKind::kWrite, VersionKind::kWrite, VersionKind::kWrite});
    CHECK(program(trace) ==
          std::vector<std::string>{"alloc 0", "run f", "alloc 1", "run add_", "alloc 2", "run g", "free 0"});
  }
  SECTION("read later through a view") {
    const Trace trace =
        Log{}.call("f", "", "a", 8).view("a", "v").mutate(R"("a")", "0").call("g", R"("v")", "b", 8).read();
    CHECK(trace.buffers().size() == 3);
  }
  SECTION("an output, since it has a name at the end") {
    const Trace trace = Log{}.call("f", "", "a", 8).copy("k", "a").mutate(R"("a")", "0").read();
    CHECK(trace.buffers().size() == 2);
    CHECK(trace.outputs().size() == 2);
  }
  SECTION("not if the other name is released unread") {
    const Trace trace = Log{}.call("f", "", "a", 8).copy("k", "a").mutate(R"("a")", "0").release("k").read();
    CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run f", "run add_", "forget 0"});
  }
}

TEST_CASE("a DTR buffer with several versions ends when all of them are forgotten") {
  const Trace trace = Log{}
                          .call("f", "", "a", 8)
                          .copy("k", "a")
                          .mutate(R"("a")", "0")
                          .mutate(R"("a")", "0")
                          .release("a")
                          .release("k")
                          .read();
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run f", "run add_", "run add_", "forget 1", "forget 2",
                                                   "forget 0", "free 0"});
}

TEST_CASE(
    "a DTR mutation keeps the order of its results, and it is in place only if that is the order of the arguments") {
  const auto two = [](const std::string& positions) {
    return Log{}.call("f", "", "a", 8).call("f", "", "b", 4).mutate(R"("a","b")", positions).read();
  };
  const Trace ascending = two("0,1"), descending = two("1,0");
  CHECK(ascending.buffers().size() == 2);
  REQUIRE(descending.buffers().size() == 4);
  CHECK(descending.buffer(BufferId{2}).size == 4_B);  // the copy of argument 1 comes first
  CHECK(descending.buffer(BufferId{3}).size == 8_B);
}

TEST_CASE("a DTR mutation of two arguments with one storage writes copies") {
  const Trace trace = Log{}.call("f", "", "a", 8).view("a", "v").mutate(R"("a","v")", "0,1").read();
  CHECK(trace.buffers().size() == 3);
}

TEST_CASE("a DTR mutation of a view changes the storage, and its result is no view") {
  const Trace trace = Log{}.call("f", "", "a", 8).view("a", "v").mutate(R"("v")", "0").release("a").read();
  CHECK(kinds(trace) == std::vector{VersionKind::kWrite, VersionKind::kView, VersionKind::kUpdate});
  CHECK(trace.uses(OpId{2})[0].in == VersionId{1});
  CHECK(program(trace).back() == "forget 0");  // "a" was the last name of the old content
}

TEST_CASE("COPY_FROM gives a DTR name to another tensor and frees the tensor that had it") {
  const Trace trace = Log{}.call("f", "", "a", 8).call("f", "", "b", 4).copy("a", "b", "COPY_FROM").release("b").read();
  CHECK(program(trace) == std::vector<std::string>{"alloc 0", "run f", "alloc 1", "run f", "free 0"});
  CHECK(std::vector(trace.outputs().begin(), trace.outputs().end()) == std::vector{VersionId{1}});
}

TEST_CASE("the names at the end of a DTR log are outputs, in the order of their first mention") {
  const Trace trace = Log{}
                          .call("f", "", "a", 8)
                          .call("f", "", "b", 8)
                          .call("f", "", "c", 8)
                          .copy("a", "c", "COPY_FROM")  // "a" keeps its place in the order
                          .release("c")
                          .read();
  CHECK(std::vector(trace.outputs().begin(), trace.outputs().end()) == std::vector{VersionId{2}, VersionId{1}});
}

TEST_CASE("a DTR log begins after its first START, and BACKWARD begins the backward phase") {
  const Trace trace = Log{}
                          .line("not even JSON")
                          .annotate("START")
                          .call("f", "", "a", 8)
                          .annotate("BACKWARD")
                          .call("g", R"("a")", "b", 8)
                          .read();
  CHECK(trace.op(OpId{0}).phase == Phase::kForward);
  CHECK(trace.op(OpId{1}).phase == Phase::kBackward);
  REQUIRE(trace.data().marks.size() == 2);
  CHECK(trace.data().marks[1].event == 2);
}

TEST_CASE("numbers in a DTR log may be JSON numbers") {
  const Trace trace = Log{}
                          .line(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":["a"],"TIME":7})")
                          .line(R"({"INSTRUCTION":"MEMORY","NAME":"a","MEMORY":12})")
                          .line(R"({"INSTRUCTION":"ALIAS","NAME":"a","ALIAS":-1})")
                          .read();
  CHECK(trace.op(OpId{0}).duration == 7_ns);
  CHECK(trace.ideal_peak() == 12_B);
}

TEST_CASE("DTR operators that draw random numbers are known by name") {
  const Trace trace = Log{}
                          .call("_fused_dropout", "", "a", 8)
                          .call("native_dropout_backward", "", "b", 8)
                          .call("normalize", "", "c", 8)
                          .call("bernoulli_", "", "d", 8)
                          .read();
  CHECK(trace.op(OpId{0}).random);
  CHECK_FALSE(trace.op(OpId{1}).random);
  CHECK_FALSE(trace.op(OpId{2}).random);
  CHECK(trace.op(OpId{3}).random);
}

}  // namespace tidepool::dtr_test
