#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/json_util.h>
#include <schemas/chakra.pb.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::chakra_test {

using namespace tidepool::literals;
using tests::complaint;
using tests::program;

namespace {

using Names = std::vector<std::string>;

chakra::Node node(std::uint64_t id, const char* name, std::vector<std::uint64_t> after, const char* inputs,
                  const char* outputs, bool on_host = false) {
  chakra::Node made;
  made.set_id(id);
  made.set_name(name);
  made.set_type(chakra::COMP_NODE);
  made.set_duration_micros(id);
  for (const std::uint64_t each : after) made.add_data_deps(each);
  made.mutable_inputs()->set_values(inputs);
  made.mutable_outputs()->set_values(outputs);
  chakra::Attribute& attribute = *made.add_attr();
  attribute.set_name("is_cpu_op");
  attribute.set_bool_val(on_host);
  return made;
}

/// x is older; gemm makes y of it; relu has a smaller number, but needs y, and changes it.
std::vector<chakra::Node> nodes() {
  return {node(3, "relu", {5}, "[[7, 20, 0, 8, 4, 'cuda:0']]", "[[8, 20, 0, 8, 4, 'cuda:0']]"),
          node(5, "gemm", {}, "[[[6, 10, 4, 4, 2, 'cuda:0'], [9, 11, 0, 4, 2, 'cpu']], 1.5, True]",
               "[[7, 20, 0, 8, 4, 'cuda:0']]"),
          node(4, "aten::relu", {}, "[]", "[]", true)};
}

chakra::Metadata metadata() {
  chakra::Metadata made;
  made.set_version("0.0.4");
  return made;
}

std::string stream() {
  std::ostringstream out;
  google::protobuf::util::SerializeDelimitedToOstream(metadata(), &out);
  for (const chakra::Node& each : nodes()) google::protobuf::util::SerializeDelimitedToOstream(each, &out);
  return out.str();
}

}  // namespace

TEST_CASE("an execution trace of Chakra gives ops in the order of their dependencies, and storages") {
  const Trace trace = load_trace(Input{"rank.0.et", stream()});
  CHECK(program(trace) == Names{"alloc 1", "run gemm", "run relu", "free 1"});
  REQUIRE(trace.buffers().size() == 2);
  CHECK(trace.buffer(BufferId{0}).size == 16_B);  // the elements [4, 8) of 2 B
  CHECK(trace.buffer(BufferId{0}).born_before);
  CHECK(trace.buffer(BufferId{1}).size == 32_B);
  CHECK(trace.op(OpId{0}).duration == 5_us);
  REQUIRE(trace.uses(OpId{0}).size() == 2);
}

TEST_CASE("Chakra's JSON gives what its protobuf gives") {
  std::string text;
  const auto add = [&](const google::protobuf::Message& message) {
    std::string json;
    google::protobuf::util::JsonPrintOptions options;
    options.add_whitespace = true;
    REQUIRE(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
    text += json + "\n";
  };
  add(metadata());
  for (const chakra::Node& each : nodes()) add(each);
  CHECK(load_trace(Input{"et.json", text}).hash() == read_chakra(Input{"rank.0.et", stream()}).hash());
  const Trace feeder = load_trace(
      Input{"f.json", R"({"workload_graph": [{"Id": 2, "Name": "nccl", "NodeType": 7, "data_deps": [5], "runtime": 28,
      "is_cpu_op": false}, {"Id": 5, "Name": "gemm", "NodeType": 4, "data_deps": [], "runtime": 4, "is_cpu_op": false},
      {"Id": 1, "Name": "aten::mm", "NodeType": 4, "data_deps": [], "runtime": 99, "is_cpu_op": true}]})"});
  CHECK(program(feeder) == Names{"run gemm", "run nccl"});
  CHECK(feeder.op(OpId{1}).kind == OpKind::kCollective);
}

TEST_CASE("messages about execution traces of Chakra") {
  CHECK(complaint(read_chakra, "\x09") == "t.log: byte 0: no message; expected an execution trace of Chakra");
  const std::string whole = stream();
  CHECK(complaint(read_chakra, whole.substr(0, whole.size() - 3)) ==
        "t.log: byte 229: a damaged message; expected a node");
  CHECK(complaint(read_chakra, R"({"version": "1"} {"id": "x"})") ==
        "t.log: byte 17: (id): invalid value \"x\" for type TYPE_UINT64; expected a node");
  CHECK(complaint(read_chakra, R"({"version": "1"} {"id": "1"} {"id": "1"})") == "t.log: node 1 comes twice");
  CHECK(complaint(read_chakra, R"({"version": "1"} {"id": "1", "dataDeps": ["1"]})") ==
        "t.log: nodes depend on each other in a circle");
  CHECK(complaint(read_chakra, R"({"version": "1"})") == "t.log: no nodes; expected at least one");
  CHECK(complaint(read_chakra, R"({"workload_graph": [{}]})") ==
        "t.log: a node without \"Id\"; expected a whole number");
}

}  // namespace tidepool::chakra_test
