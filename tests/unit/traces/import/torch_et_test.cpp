// PyTorch's execution traces, rule by rule: small files made here, and the traces that they give.
#include <fmt/format.h>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/torch_schema.hpp"
#include "traces/summary.hpp"

namespace tidepool::torch_et_test {

using tests::program;

namespace {

using Names = std::vector<std::string>;

/// A tensor of floats, on device 0 by default. The first number, the tensor's id, does not matter.
std::string tensor(int storage, int elements, int offset = 0, const std::string& device = "cuda:0") {
  return fmt::format(R"([1, {}, {}, {}, 4, "{}"])", storage, offset, elements, device);
}

/// A node as in schema 1.1.1. `schema` is the operator's schema without the name.
std::string node(int id, int parent, const std::string& name, const std::string& schema, const std::string& inputs,
                 const std::string& outputs, const std::string& backend = "") {
  return fmt::format(
      R"({{"id": {}, "name": "{}", "ctrl_deps": {}, "inputs": {{"values": [{}], "shapes": []}}, "outputs": {{"values":)"
      R"( [{}], "shapes": []}}, "attrs": [{{"name": "rf_id", "type": "uint64", "value": {}}}, {{"name": "seq_id",)"
      R"( "type": "int64", "value": -1}}, {{"name": "op_schema", "type": "string", "value": "{}"}},)"
      R"( {{"name": "kernel_backend", "type": "string", "value": "{}"}}]}})",
      id, name, parent, inputs, outputs, id, schema.empty() ? "" : name + schema, backend);
}

std::string file(const Names& nodes) {
  std::string text = R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [)";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i > 0 ? ", " : "") + nodes[i];
  return text + "]}";
}

Trace read(const Names& nodes) { return read_torch_et(Input{"et.json", file(nodes)}); }

const std::string kUnary = "(Tensor self) -> Tensor";
const std::string kInPlace = "(Tensor(a!) self) -> Tensor(a!)";
const std::string kEmpty = "(SymInt[] size) -> Tensor";

Names uses(const Trace& trace, std::size_t op) {
  const std::vector<std::string> words{"read", "write", "read_write", "touch", "view"};
  Names out;
  for (const Use& use : trace.uses(OpId{op})) {
    const VersionId named = use.in.valid() ? use.in : use.out;
    out.push_back(
        fmt::format("{} {}", words[static_cast<std::size_t>(use.access)], trace.version(named).buffer.value()));
  }
  return out;
}

}  // namespace

TEST_CASE("an execution trace is recognised by its first bytes") {
  CHECK(find_importer(Input{"et", file({})}, "auto").name == "torch-et");
}

TEST_CASE("schemas say which arguments are written") {
  const auto arguments = schema_arguments(
      "aten::add.out(Tensor self, Tensor[] others, *, Scalar alpha=[1, 2], Tensor(a!) out) -> Tensor(a!)");
  REQUIRE(arguments.size() == 4);
  CHECK(arguments[1].name == "others");
  CHECK(arguments[2].name == "alpha");
  CHECK(!arguments[2].written);
  CHECK(arguments[3].name == "out");
  CHECK(arguments[3].written);
  CHECK(schema_arguments("aten::t(Tensor(a) self) -> Tensor(a)")[0].written == false);
  CHECK(schema_arguments("").empty());
  CHECK(schema_arguments("aten::rand() -> Tensor").empty());
  CHECK(operator_name("aten::add_.Tensor(Tensor(a!) self)") == "add_");
  CHECK(operator_name("detach") == "detach");
  CHECK(overwrites("_foreach_zero_"));
  CHECK(overwrites("_foreach_copy_"));
  CHECK_FALSE(overwrites("_foreach_add_"));
}

TEST_CASE("a storage is a buffer from the operator that returns it to the last operator that gets it") {
  const Trace trace = read({node(2, 1, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(3, 1, "aten::neg", kUnary, tensor(8, 10), tensor(9, 10)),
                            node(4, 1, "aten::abs", kUnary, tensor(7, 10), tensor(10, 10))});
  CHECK(program(trace) == Names{"alloc 1", "run aten::relu", "alloc 2", "run aten::neg", "free 1", "free 2", "alloc 3",
                                "run aten::abs", "free 3"});
  CHECK(trace.buffers()[0].born_before);
  CHECK(trace.buffers()[0].outlives);
  CHECK(trace.buffers()[1].size == 40_B);
  CHECK(uses(trace, 0) == Names{"read 0", "write 1"});
  CHECK(trace.data().uses[0].evidence == Evidence::kSchema);
  CHECK(warnings(trace) == Names{"lacks durations: import with --with PROFILE of the same run"});
}

TEST_CASE("a view runs nothing, and keeps its whole storage alive") {
  const std::string view = "(Tensor(a) self, SymInt[] size) -> Tensor(a)";
  const Trace trace = read({node(2, 1, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(3, 1, "aten::neg", kUnary, tensor(7, 10), tensor(9, 10)),
                            node(4, 1, "aten::view", view, tensor(8, 10), tensor(8, 5, 10))});
  CHECK(program(trace) == Names{"alloc 1", "run aten::relu", "alloc 2", "run aten::neg", "free 2", "free 1"});
}

TEST_CASE("a storage that is allocated again is another buffer") {
  const Trace trace = read({node(2, 1, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(3, 1, "aten::neg", kUnary, tensor(8, 10), tensor(9, 10)),
                            node(4, 1, "aten::empty", kEmpty, "[20]", tensor(8, 20)),
                            node(5, 1, "aten::zero_", kInPlace, tensor(8, 20), tensor(8, 20))});
  REQUIRE(trace.buffers().size() == 4);
  CHECK(trace.buffers()[1].size == 40_B);
  CHECK(trace.buffers()[3].size == 80_B);
  CHECK(program(trace) == Names{"alloc 1", "run aten::relu", "alloc 2", "run aten::neg", "free 1", "free 2", "alloc 3",
                                "run aten::zero_", "free 3"});
}

TEST_CASE("in-place operators update a storage, and operators that fill overwrite all of it or update a part") {
  const std::string out = "(Tensor self, *, Tensor(a!) out) -> Tensor(a!)";
  const std::string copy = "(Tensor(a!) self, Tensor src) -> Tensor(a!)";
  const Trace trace =
      read({node(2, 1, "aten::relu_", kInPlace, tensor(7, 10), tensor(7, 10)),
            node(3, 1, "aten::zero_", kInPlace, tensor(7, 10), tensor(7, 10)),
            node(4, 1, "aten::zero_", kInPlace, tensor(7, 5, 5), tensor(7, 5, 5)),
            node(5, 1, "aten::neg.out", out, tensor(7, 10) + ", " + tensor(8, 10), tensor(8, 10)),
            node(6, 1, "aten::copy_", copy, tensor(7, 10) + ", " + tensor(8, 10), tensor(7, 10)),
            node(7, 1, "aten::copy_", copy, tensor(7, 10) + ", " + tensor(3, 10, 0, "cpu"), tensor(7, 10)),
            node(8, 1, "aten::copy_", copy, tensor(3, 10, 0, "cpu") + ", " + tensor(7, 10), tensor(3, 10, 0, "cpu"))});
  REQUIRE(trace.ops().size() == 7);
  CHECK(uses(trace, 0) == Names{"read_write 0"});
  CHECK(uses(trace, 1) == Names{"write 0"});
  CHECK(uses(trace, 2) == Names{"read_write 0"});
  CHECK(uses(trace, 3) == Names{"read 0", "write 1"});
  CHECK(uses(trace, 4) == Names{"read 1", "write 0"});
  CHECK(trace.op(OpId{4}).kind == OpKind::kKernel);
  CHECK(trace.op(OpId{5}).kind == OpKind::kSource);
  CHECK(uses(trace, 6) == Names{"read 0"});
  CHECK(trace.op(OpId{6}).kind == OpKind::kCopy);
}

TEST_CASE("the innermost operator that writes something becomes the op, together with its own allocations") {
  const Trace trace = read({node(2, 1, "aten::batch_norm", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(3, 2, "aten::cudnn_batch_norm", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(4, 3, "aten::empty_like", kEmpty, tensor(7, 10), tensor(8, 10)),
                            node(5, 4, "aten::empty", kEmpty, "[10]", tensor(8, 10))});
  CHECK(program(trace) == Names{"alloc 1", "run aten::cudnn_batch_norm", "free 1"});
  CHECK(uses(trace, 0) == Names{"read 0", "write 1"});
}

TEST_CASE("an operator that writes more than the operators it calls runs after them") {
  const Trace trace =
      read({node(2, 1, "aten::convolution_backward", kUnary, tensor(7, 10), tensor(8, 10) + ", " + tensor(9, 10)),
            node(3, 2, "aten::sum", kUnary, tensor(7, 10), tensor(9, 10))});
  CHECK(program(trace) ==
        Names{"alloc 1", "run aten::sum", "alloc 2", "run aten::convolution_backward", "free 1", "free 2"});
}

TEST_CASE("uses that do not follow from a schema have weaker evidence") {
  const Trace trace =
      read({node(2, 1, "c10d::allreduce_", "(Tensor[] tensors, int op) -> int", "[" + tensor(7, 10) + "]", ""),
            node(3, 1, "triton_poi_fused_0", "", tensor(7, 10) + ", " + tensor(8, 10), "", "triton"),
            node(4, 1, "record_param_comms", "", tensor(7, 10), "")});
  CHECK(program(trace) == Names{"run c10d::allreduce_", "run triton_poi_fused_0"});
  CHECK(trace.op(OpId{0}).kind == OpKind::kCollective);
  CHECK(uses(trace, 0) == Names{"read_write 0"});
  CHECK(trace.uses(OpId{0})[0].evidence == Evidence::kInferred);
  CHECK(uses(trace, 1) == Names{"touch 0", "touch 1"});
  CHECK(trace.uses(OpId{1})[0].evidence == Evidence::kParameter);
}

TEST_CASE("the phase of an operator in an execution trace comes from its enclosing nodes") {
  const Trace trace = read({node(2, 1, "autograd::engine::evaluate_function: X", "", "", ""),
                            node(3, 2, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                            node(4, 1, "Optimizer.step#SGD.step", "", "", ""),
                            node(5, 4, "aten::bernoulli_", kInPlace, tensor(7, 10), tensor(7, 10))});
  CHECK(trace.op(OpId{0}).phase == Phase::kBackward);
  CHECK(trace.op(OpId{1}).phase == Phase::kOptimizer);
  CHECK(!trace.op(OpId{0}).random);
  CHECK(trace.op(OpId{1}).random);
}

TEST_CASE("nodes are read in the order of their ids, also with the keys of schema 1.0.1") {
  const std::string flat =
      R"({"name": "aten::relu", "id": 2, "rf_id": 3, "parent": 1, "seq_id": 4, "op_schema": "aten::relu(Tensor self))"
      R"( -> Tensor", "inputs": [[1, 7, 0, 10, 4, "cuda:0"]], "outputs": [[1, 8, 0, 10, 4, "cuda:0"]]})";
  const Trace trace = read({node(5, 1, "aten::neg", kUnary, tensor(8, 10), tensor(9, 10)), flat});
  CHECK(program(trace) == Names{"alloc 1", "run aten::relu", "alloc 2", "run aten::neg", "free 1", "free 2"});
  CHECK(trace.op(OpId{0}).phase == Phase::kForward);
}

TEST_CASE("durations and streams come from the profile of the same run") {
  const auto call = [](int id, const std::string& name, int begin) {
    return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "tid": 1, "ts": {}, "dur": 9, "args":)"
                       R"( {{"External id": 77, "Record function id": {}}}}},)",
                       name, begin, id);
  };
  const auto kernel = [](int correlation, int launch, int duration) {
    return fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "l", "tid": 1, "ts": {}, "args":)"
                       R"( {{"correlation": {}}}}}, {{"ph": "X", "cat": "kernel", "name": "k", "ts": 90, "dur": {},)"
                       R"( "args": {{"stream": 20, "correlation": {}}}}})",
                       launch, correlation, duration, correlation);
  };
  const Input nodes{"et.json",
                    file({node(2, 1, "aten::linear", kUnary, tensor(7, 10), tensor(8, 10)),
                          node(3, 2, "aten::addmm", kUnary, tensor(7, 10), tensor(8, 10)),
                          node(4, 3, "aten::expand", "(Tensor(a) self) -> Tensor(a)", tensor(7, 10), tensor(7, 10))})};
  const auto profile = [&](const std::string& name) {
    return Input{"p.json", R"({"traceEvents": [)" + call(2, "aten::linear", 10) + call(3, name, 11) +
                               call(4, "aten::expand", 12) + kernel(1, 15, 3) + "," + kernel(2, 16, 4) + "," +
                               kernel(3, 50, 9) + "]}"};
  };
  const Trace trace = read_torch_et_with(nodes, profile("aten::addmm"), {});
  REQUIRE(trace.ops().size() == 1);
  CHECK(trace.op(OpId{0}).duration == 7_us);
  CHECK(trace.data().streams[trace.op(OpId{0}).stream.index()] == "20");
  CHECK(trace.data().meta.at("durations") == "2 of the profile's 3 kernels, copies and memsets belong to an op");
  const Input other{"p.json", R"({"traceEvents": [)" + call(2, "aten::mm", 10) + call(3, "aten::addmm", 11) +
                                  call(9, "aten::t", 12) + kernel(1, 15, 3) + "]}"};
  CHECK_THROWS_WITH(read_torch_et_with(nodes, other, {}),
                    "et.json: 1 of 3 operators of the profile have a number and a name of the execution trace; "
                    "expected a profile of the same run");
}

TEST_CASE("streams of different devices are different, and activities of a device that is not read do not count") {
  const Input nodes{"et.json",
                    file({node(2, 1, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                          node(3, 1, "aten::neg", kUnary, tensor(7, 10, 0, "cuda:1"), tensor(8, 10, 0, "cuda:1"))})};
  const auto launched = [](int id, const std::string& name, int begin, int device, int duration) {
    return fmt::format(
        R"({{"ph": "X", "cat": "cpu_op", "name": "{0}", "tid": 1, "ts": {1}, "dur": 9, "args": {{"External id": 77,)"
        R"( "Record function id": {2}}}}}, {{"ph": "X", "cat": "cuda_runtime", "name": "l", "tid": 1, "ts": {3},)"
        R"( "args": {{"correlation": {3}}}}}, {{"ph": "X", "cat": "kernel", "name": "k", "ts": 90, "dur": {5},)"
        R"( "args": {{"device": {4}, "stream": 7, "correlation": {3}}}}})",
        name, begin, id, begin + 1, device, duration);
  };
  // The second kernel of "relu" ran on the other device, as a kernel of an operator that copies between devices may.
  const Input profile{"p.json", R"({"traceEvents": [)" + launched(2, "aten::relu", 10, 0, 3) + "," +
                                    launched(2, "aten::relu", 30, 1, 4) + "," + launched(3, "aten::neg", 50, 1, 5) +
                                    "]}"};
  const Trace both = read_torch_et_with(nodes, profile, {});
  REQUIRE(both.ops().size() == 2);
  const auto stream = [&](std::size_t op) { return both.data().streams[both.op(OpId{op}).stream.index()]; };
  CHECK(stream(0) == "7");
  CHECK(stream(1) == "1:7");
  CHECK(both.op(OpId{0}).duration == 7_us);
  const Trace first = read_torch_et_with(nodes, profile, 0);
  CHECK(first.op(OpId{0}).duration == 3_us);
  CHECK(first.data().meta.at("durations") == "1 of the profile's 1 kernels, copies and memsets belong to an op");
}

TEST_CASE("one of several devices of an execution trace can be read alone") {
  const Names nodes{node(2, 1, "aten::relu", kUnary, tensor(7, 10), tensor(8, 10)),
                    node(3, 1, "aten::neg", kUnary, tensor(7, 10, 0, "cuda:1"), tensor(8, 10, 0, "cuda:1"))};
  CHECK(read(nodes).buffers().size() == 4);
  const Trace trace = find_importer(Input{"et", file({})}, "torch-et").read_device(Input{"et.json", file(nodes)}, 1);
  CHECK(program(trace) == Names{"alloc 1", "run aten::neg", "free 1"});
  CHECK(trace.buffers()[0].device == 1);
}

}  // namespace tidepool::torch_et_test
