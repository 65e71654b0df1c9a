// Tests that imported traces have no data about people and machines.
#include "traces/redact.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/program.hpp"
#include "tests/raw_log.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::redact_test {

using namespace tidepool::literals;

TEST_CASE("redaction removes the folders of paths and the addresses of people") {
  CHECK(redacted("/home/ada/net/train.py(12): step") == "train.py(12): step");
  CHECK(redacted("at C:\\Users\\ada\\net.py:3") == "at net.py:3");
  CHECK(redacted("~/net/train.py") == "train.py");
  CHECK(redacted("ada/net/train.py:7 forward") == "train.py:7 forward");
  CHECK(redacted("from /usr/lib/libnccl.so.2, /opt/x") == "from libnccl.so.2, x");
  CHECK(redacted("by ada@lab.example") == "by ...");
  CHECK(redacted("/home/\xc3\xa4/x") == "x");
}

TEST_CASE("redaction removes the names of users from paths of every form") {
  for (const char* path :
       {"/home/ada", "/Users/ada", "C:\\Users\\ada", "c:/users/ada", "\\\\host\\users\\ada", "C:\\\\Users\\\\ada",
        "C:\\Documents and Settings\\ada", "/export/home/ada.lovelace", "/scratch//ada", "~ada"})
    CHECK(redacted(path) == "...");
  CHECK(redacted("file:///home/ada") == "file:...");
  CHECK(redacted("\"/home/ada lovelace\" is full") == "\"...\" is full");
  CHECK(redacted("HOME=/home/ada:/root") == "HOME=...:root");
  CHECK(redacted("/home/ada/") == "");
  CHECK(redacted("~ada/net") == "net");
  CHECK(redacted("cd ~ada; ls") == "cd ...; ls");
  CHECK(redacted("ada@box:/data/x ada@box:~/x") == "...:x ...:x");
  CHECK(redacted("-I/home/ada/include") == "include");
  CHECK(redacted("-I/home/ada -L~/lib @../ada/args") == "... lib args");
  CHECK(redacted("-L~ada/lib -o/home/ada --with/home/ada/x -I../ada/inc -I./x") == "lib ... x inc x");
  CHECK(redacted("by ~ada; HOME=~ada, home: ~ada, '~ada'") == "by ...; HOME=..., home: ..., '...'");
  CHECK(redacted("ls ~ada && true") == "ls ... && true");
  CHECK(redacted("ssh://ada@box and https://ada:key@lab.example") == "ssh:... and https:...");
  CHECK(redacted("file://box/home/ada lovelace/net") == "file:net");
}

TEST_CASE("redaction knows folders with blanks and other characters") {
  CHECK(redacted("/home/ada lovelace/net/train.py(12): step") == "train.py(12): step");
  CHECK(redacted("/home/ada k. lovelace/net/out") == "out");
  CHECK(redacted("/mnt/My Disk/ada lovelace/net/train.py") == "train.py");
  CHECK(redacted("at C:\\Program Files (x86)\\ada\\x.dll, or so") == "at x.dll, or so");
  CHECK(redacted("/home/O'Brien/net/train.py") == "train.py");
  CHECK(redacted("file:///home/ada%20lovelace/net") == "file:net");
  CHECK(redacted("open('/data/ada & co/b.py', 'r')") == "open('b.py', 'r')");
  CHECK(redacted("/opt/x and /opt/y and a / b") == "x and y and a / b");
  CHECK(redacted("/opt/x\na/b") == "x\na/b");
}

TEST_CASE("redaction keeps the names of program files that lie in a folder named like one for users") {
  CHECK(redacted("/srv/app/users/model.py(5): forward") == "model.py(5): forward");
  CHECK(redacted("/scratch/train.py(12): step model/dense/MatMul") == "train.py(12): step model/dense/MatMul");
  CHECK(redacted("./user/model.py(5): f") == "model.py(5): f");
  CHECK(redacted("/data/home/x.so /u/libx.so.2") == "x.so libx.so.2");
  CHECK(redacted("/home/ada.lovelace") == "...");
  CHECK(redacted("/scratch/ada.py/net") == "net");
}

TEST_CASE("names of operators behind a path are not redacted") {
  CHECK(redacted("/tmp/x: model/dense/Add, model/dense/MatMul") == "x: model/dense/Add, model/dense/MatMul");
  CHECK(redacted("file /tmp/a; op model/x") == "file a; op model/x");
  CHECK(redacted("/tmp/a,model/x") == "a,model/x");
  CHECK(redacted("/tmp/a (model/x)") == "a (model/x)");
  CHECK(redacted("/tmp/a {model/x} | /tmp/b [model/y]") == "a {model/x} | b [model/y]");
  CHECK(redacted("/tmp/a -b/c") == "a -b/c");
  CHECK(redacted("/job:worker/replica:0/task:3/device:GPU:0") == "job:worker/replica:0/task:3/device:GPU:0");
  CHECK(redacted("see https://lab.example:80/issues/1 in model/dense/MatMul") == "see https:1 in model/dense/MatMul");
  CHECK(redacted("(https://lab.example/1) model/x") == "(https:1) model/x");
}

TEST_CASE("names of operators and kernels are not redacted") {
  for (const char* name :
       {"aten::add.out", "model/dense/MatMul", "void at::native::f<float>(float*, int)", "x @ w", "a / b",
        "void A::~A()", "a // b", "x ~ y", "-1/2", "50%", "user/embedding", "kernel@sm_90", "1.5/2", "", "/",
        "encoder.layer.0.attention", "ProfilerStep#3", "autograd::engine::evaluate_function: AddBackward0"})
    CHECK(redacted(name) == name);
}

TEST_CASE("terms of expressions are not redacted") {
  for (const char* term : {"where(~mask)", "y = ~mask & x", "f(a, ~mask)", "x[~mask]", "~mask | x", "~mask^x", "A::~A",
                           "~mask == x", "x & ~mask", "x -a/b", "-loss/n", "+a/b", "-x.grad/n", "-1/2/n", "-.5/n"})
    CHECK(redacted(term) == term);
}

TEST_CASE("a redacted trace differs only in its texts") {
  TraceBuilder build;
  build.meta()["command"] = "python /home/ada/train.py --key=secret";
  build.meta()["env.HOME"] = "/home/ada";
  build.meta()["capture"] = "cupti";
  build.mark(MarkKind::kRangeBegin, "/home/ada/a.py");
  const BufferId a = build.alloc({.size = 8_B, .name = build.text("a.py"), .line = build.text("/home/ada/a.py:3")});
  build.run({.name = build.text("/tmp/ada/a.py"),
             .module = build.text("net.conv"),
             .line = build.text("C:\\Users\\ada\\net.py:7")},
            {{a, Access::kWrite}});
  const Trace trace = redacted(build.finish());
  CHECK(trace.data().meta == std::map<std::string, std::string>{{"capture", "cupti"}});
  CHECK(trace.text(trace.op(OpId{0}).name) == "a.py");
  CHECK(trace.text(trace.op(OpId{0}).module) == "net.conv");
  CHECK(trace.text(trace.buffer(BufferId{0}).name) == "a.py");
  CHECK(trace.text(trace.data().marks[0].name) == "a.py");
  CHECK(trace.text(trace.buffer(BufferId{0}).line) == "a.py:3");
  CHECK(trace.text(trace.op(OpId{0}).line) == "net.py:7");
  const Trace again = redacted(trace);
  CHECK(again.hash() == trace.hash());
}

TEST_CASE("import redacts unless an option says otherwise") {
  const ScratchFolder scratch;
  std::string text =
      "{'tidepool_raw': 1, 'process': 1, 'source': 'cupti', 'clock': 'monotonic_raw'}\n"
      "{'kind': 'info', 'key': 'command', 'value': 'python train.py --key=secret'}\n"
      "{'kind': 'info', 'key': 'env.USER', 'value': 'ada'}\n"
      "{'kind': 'memory', 'operation': 'alloc', 'memory': 'device', 'time': 1, 'address': 4096, 'size': 8,"
      " 'source': '/home/ada/lib/libx.so'}\n";
  for (char& c : text)
    if (c == '\'') c = '"';
  write_file(scratch.file("1.cupti.jsonl"), text);
  const auto import = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"import", scratch.file("1.cupti.jsonl"), "-o", scratch.file("run.tide")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CHECK(run_program(arguments).code == 0);
    return load_trace(scratch.file("run.tide"));
  };
  const Trace redacted_one = import({});
  CHECK(redacted_one.data().meta.count("command") == 0);
  CHECK(redacted_one.text(redacted_one.buffer(BufferId{0}).name) == "libx.so");
  const Trace whole = import({"--no-redact"});
  CHECK(whole.data().meta.at("env.USER") == "ada");
  CHECK(whole.text(whole.buffer(BufferId{0}).name) == "/home/ada/lib/libx.so");
}

}  // namespace tidepool::redact_test
