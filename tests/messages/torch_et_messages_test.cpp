// Messages of the importer of PyTorch's execution traces, word for word.
#include "tests/catch.hpp"
#include "tests/importing.hpp"
#include "traces/base/input.hpp"
#include "traces/import/importer.hpp"

namespace tidepool::torch_et_messages_test {

using tests::complaint;

namespace {

std::string said(std::string_view text) { return complaint(read_torch_et, text); }
std::string said_of(const std::string& nodes) { return said(R"({"schema": "1.0.1", "nodes": [)" + nodes + "]}"); }

}  // namespace

TEST_CASE("messages about execution traces") {
  CHECK(said("[]") == "t.log:byte 0: '['; expected '{'");
  CHECK(said("{}") == "t.log: no \"nodes\"; expected a list, as PyTorch's ExecutionTraceObserver writes it");
  CHECK(said(R"({"nodes": [{"id": 1)") == "t.log:byte 19: the JSON ends early; expected a complete file");
  CHECK(said_of("") == "t.log: no tensor on a device; expected the execution trace of a program on a GPU");
  CHECK(said_of("5") == "t.log:node 0: '5' is not JSON; expected an object");
  CHECK(said_of("{]") == "t.log:node 0: '{]' is not JSON; expected an object");
  CHECK(said_of("{\"id\"}") == "t.log:node 0: '{\"id\"}' is not JSON; expected an object");
  CHECK(said_of("{}") == "t.log:node 0: no \"id\"; expected a whole number");
  CHECK(said_of(R"({"id": "a"})") == "t.log:node 0: \"id\" is \"a\"; expected a whole number");
  CHECK(said_of(R"({"id": 1})") == "t.log:node 0: no \"name\"; expected a string");
  CHECK(said_of(R"({"id": 1, "name": "a", "parent": 1}, {"id": 1, "name": "b", "parent": 1})") ==
        "t.log: two nodes have the id 1");
  CHECK(said_of(R"({"id": 1, "name": "a", "parent": 1, "inputs": [[5, 6, -1, 2, 4, "cuda:0"]]})") ==
        "t.log:node 0: tensor 5 has 2 elements of 4 bytes from -1 on; expected at most 1125899906842624 bytes");
  const auto device = [](const Input& input) { find_importer(input, "torch-et").read_device(input, 2); };
  CHECK(
      complaint(device, R"({"nodes": [{"id": 1, "name": "a", "parent": 1, "inputs": [[5, 6, 0, 2, 4, "cuda:1"]]}]})") ==
      "t.log: no device 2; the file has 1");
}

}  // namespace tidepool::torch_et_messages_test
