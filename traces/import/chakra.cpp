// Execution traces of Chakra (MLCommons): a stream of protobuf messages, each with its length in front (*.et); the same
// messages as JSON, one behind the other, as chakra_jsonizer writes them; or {"workload_graph": [...]}, which its
// feeder reads. The first message has the version; each other one is a node of a graph: a computation, a collective, a
// load or a store.
//
// Where nodes say whether they ran on the host (is_cpu_op), ops are those that did not; else, all nodes. Ops are in the
// order of the nodes' numbers, or later, if they depend on a node with a greater number. Tensors on a device, [tensor,
// storage, offset, elements, bytes of one, 'cuda:0'] in the texts of inputs and outputs, become buffers, one for each
// storage: it lives from the first op that has it to the last one, and before the trace too if that first op reads it.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <google/protobuf/util/json_util.h>
#include <schemas/chakra.pb.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

constexpr char kOnHost[] = "is_cpu_op";

std::vector<chakra::Node> nodes_of_stream(const Input& input) {
  const std::string_view bytes = input.bytes();
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (bytes.size() > kMost) refuse("has more than 2 GiB; expected less");
  google::protobuf::io::CodedInputStream stream{reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size())};
  using google::protobuf::util::ParseDelimitedFromCodedStream;
  bool end = false;
  chakra::Metadata metadata;
  std::vector<chakra::Node> nodes;
  if (!ParseDelimitedFromCodedStream(&metadata, &stream, &end))
    refuse("byte 0: no message; expected an execution trace of Chakra");
  while (true) {
    const int at = stream.CurrentPosition();
    if (ParseDelimitedFromCodedStream(&nodes.emplace_back(), &stream, &end)) continue;
    nodes.pop_back();
    if (!end) refuse("byte {}: a damaged message; expected a node", at);
    return nodes;
  }
}

/// A node of "workload_graph".
chakra::Node feeder_node(const simdjson::dom::element& record) {
  chakra::Node node;
  std::uint64_t number = 0;
  if (record["Id"].get(number) != simdjson::SUCCESS) refuse("a node without \"Id\"; expected a whole number");
  node.set_id(number);
  std::string_view name;
  if (record["Name"].get(name) == simdjson::SUCCESS) node.set_name(std::string{name});
  if (record["NodeType"].get(number) == simdjson::SUCCESS && chakra::NodeType_IsValid(static_cast<int>(number)))
    node.set_type(static_cast<chakra::NodeType>(number));
  if (record["runtime"].get(number) == simdjson::SUCCESS) node.set_duration_micros(number);
  if (simdjson::dom::array before; record["data_deps"].get(before) == simdjson::SUCCESS)
    for (const auto each : before)
      if (each.get(number) == simdjson::SUCCESS) node.add_data_deps(number);
  if (bool host = false; record[kOnHost].get(host) == simdjson::SUCCESS) {
    chakra::Attribute& attribute = *node.add_attr();
    attribute.set_name(kOnHost);
    attribute.set_bool_val(host);
  }
  return node;
}

std::vector<chakra::Node> nodes_of_json(const Input& input) {
  simdjson::dom::parser parser;
  simdjson::dom::document_stream documents;
  const std::string_view bytes = input.bytes();
  if (parser.parse_many(bytes.data(), bytes.size(), std::max<std::size_t>(bytes.size(), 1'000'000)).get(documents) !=
      simdjson::SUCCESS)
    refuse("no JSON; expected an execution trace of Chakra");
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  std::vector<chakra::Node> nodes;
  bool metadata = true;
  for (auto document = documents.begin(); document != documents.end(); ++document) {
    simdjson::dom::element element;
    if ((*document).get(element) != simdjson::SUCCESS)
      refuse("byte {}: no JSON; expected an object", document.current_index());
    if (simdjson::dom::array graph; element["workload_graph"].get(graph) == simdjson::SUCCESS) {
      for (const auto record : graph) nodes.push_back(feeder_node(record));
      return nodes;
    }
    if (std::exchange(metadata, false)) continue;
    const auto status =
        google::protobuf::util::JsonStringToMessage(simdjson::minify(element), &nodes.emplace_back(), options);
    if (!status.ok())
      refuse("byte {}: {}; expected a node", document.current_index(), excerpt(status.message().as_string()));
  }
  return nodes;
}

struct Tensor {
  std::int64_t storage = 0, bytes = 0;
  std::uint16_t device = 0;
};

/// The tensors on devices in a text such as "[[4, 5, 0, 1024, 4, 'cuda:0'], 1]". Other lists are skipped.
std::vector<Tensor> tensors_of(std::string_view text) {
  std::vector<Tensor> found;
  for (std::size_t open = text.find('['); open != std::string_view::npos; open = text.find('[', open + 1)) {
    std::string_view rest = text.substr(open + 1, text.find_first_of("[]", open + 1) - open - 1);
    std::int64_t numbers[5] = {};
    bool fits = true;
    for (std::int64_t& number : numbers) {
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      fits = fits && error == std::errc{} && end != rest.data() + rest.size() && *end == ',';
      if (!fits) break;
      rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
    }
    const std::size_t name = rest.find_first_not_of(" '\"");
    if (!fits || name == std::string_view::npos) continue;
    const std::string_view device = rest.substr(name, rest.find_first_of("'\"", name) - name);
    Tensor tensor{.storage = numbers[1]};
    const std::size_t colon = device.find(':');
    const auto index =
        colon == std::string_view::npos ? std::optional<std::int64_t>{0} : parse_whole(device.substr(colon + 1));
    constexpr std::int64_t kMostDevices = 1024;
    if (device.starts_with("cpu") || device.starts_with("meta") || !index || *index < 0 || *index >= kMostDevices)
      continue;
    tensor.device = static_cast<std::uint16_t>(*index);
    std::int64_t elements = 0;
    if (numbers[2] < 0 || numbers[3] <= 0 || numbers[4] <= 0 ||
        __builtin_add_overflow(numbers[2], numbers[3], &elements) ||
        __builtin_mul_overflow(elements, numbers[4], &tensor.bytes) || tensor.bytes > Total::kMost)
      continue;
    found.push_back(tensor);
  }
  return found;
}

class GraphTrace {
 public:
  explicit GraphTrace(std::vector<chakra::Node> nodes) : nodes_{std::move(nodes)} {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!by_id_.emplace(nodes_[i].id(), i).second) refuse("node {} comes twice", nodes_[i].id());
    if (nodes_.empty()) refuse("no nodes; expected at least one");
    put_in_order();
    if (const auto on_device = [](const chakra::Node& node) { return on_host(node) == false; };
        std::ranges::any_of(nodes_, on_device))
      std::erase_if(order_, [&](std::size_t i) { return !on_device(nodes_[i]); });
    find_storages();
  }

  Trace run() {
    std::vector<std::vector<std::size_t>> ends(order_.size());
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i].read_first)
        buffers_.push_back(builder_.existing(spec_of(storages_[i])));
      else
        buffers_.emplace_back();
      ends[storages_[i].last].push_back(i);
    }
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const chakra::Node& node = nodes_[order_[at]];
      std::vector<TraceBuilder::Touch> touches;
      const auto touch = [&](const chakra::Tensors& tensors, Access access, Evidence evidence) {
        for (const std::size_t i : used(tensors)) {
          if (!buffers_[i].valid()) buffers_[i] = builder_.alloc(spec_of(storages_[i]));
          touches.push_back({buffers_[i], access, evidence});
        }
      };
      touch(node.outputs(), Access::kWrite, Evidence::kSchema);
      const bool writes = !touches.empty();
      touch(node.inputs(), writes ? Access::kRead : Access::kTouch, writes ? Evidence::kSchema : Evidence::kInferred);
      builder_.run(op_of(node), touches);
      for (const std::size_t i : ends[at])
        if (!storages_[i].read_first) builder_.free(buffers_[i]);
    }
    builder_.meta()["source"] = "chakra";
    builder_.meta()["time"] = "measured";
    builder_.meta()["lifetimes"] = "from the first to the last node that uses the buffer: frees are not recorded";
    if (storages_.empty()) builder_.meta()["lacks"] = "tensors on a device: this is a graph of times only";
    return builder_.finish();
  }

 private:
  struct Storage {
    std::int64_t bytes = 0;
    std::uint16_t device = 0;
    std::size_t last = 0;  ///< in the order
    bool read_first = false;
  };

  /// Whether a node ran on the host; none: it does not say.
  static std::optional<bool> on_host(const chakra::Node& node) {
    for (const chakra::Attribute& attribute : node.attr())
      if (attribute.name() == kOnHost) return attribute.bool_val();
    return {};
  }

  /// Orders the nodes by their dependencies, then by their numbers. Dependencies of control do not count: those of
  /// PyTorch's converter name the call around a node, and make circles.
  void put_in_order() {
    std::vector<std::vector<std::size_t>> followers(nodes_.size());
    std::vector<std::size_t> waits(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::set<std::uint64_t> before{nodes_[i].data_deps().begin(), nodes_[i].data_deps().end()};
      for (const std::uint64_t id : before) {
        const auto found = by_id_.find(id);
        if (found == by_id_.end()) continue;  // a converter may leave out nodes
        followers[found->second].push_back(i);
        ++waits[i];
      }
    }
    using Next = std::pair<std::uint64_t, std::size_t>;
    std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (waits[i] == 0) ready.emplace(nodes_[i].id(), i);
    while (!ready.empty()) {
      const std::size_t node = ready.top().second;
      ready.pop();
      order_.push_back(node);
      for (const std::size_t i : followers[node])
        if (--waits[i] == 0) ready.emplace(nodes_[i].id(), i);
    }
    if (order_.size() != nodes_.size()) refuse("nodes depend on each other in a circle");
  }

  void find_storages() {
    Total sizes;
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const chakra::Node& node = nodes_[order_[at]];
      for (const bool reads : {true, false})
        for (const Tensor& tensor : tensors_of(reads ? node.inputs().values() : node.outputs().values())) {
          const auto [entry, added] = storage_of_.try_emplace({tensor.device, tensor.storage}, storages_.size());
          if (added) storages_.push_back({.device = tensor.device, .read_first = reads});
          Storage& storage = storages_[entry->second];
          storage.bytes = std::max(storage.bytes, tensor.bytes);
          storage.last = at;
        }
    }
    for (const Storage& storage : storages_) sizes.add(storage.bytes, "sizes");
  }

  /// The storages of a text, each once, in the order of the text.
  std::vector<std::size_t> used(const chakra::Tensors& tensors) const {
    std::vector<std::size_t> found;
    for (const Tensor& tensor : tensors_of(tensors.values()))
      if (const std::size_t i = storage_of_.at({tensor.device, tensor.storage});
          std::ranges::find(found, i) == found.end())
        found.push_back(i);
    return found;
  }

  static Buffer spec_of(const Storage& storage) {
    Buffer spec;
    spec.size = Bytes{storage.bytes};
    spec.device = storage.device;
    return spec;
  }

  Op op_of(const chakra::Node& node) {
    Op op;
    op.name = builder_.text(node.name());
    constexpr std::uint64_t kMost = static_cast<std::uint64_t>(Total::kMost) / 1000;
    if (node.duration_micros() > kMost) refuse("node {} takes {} us; expected less", node.id(), node.duration_micros());
    op.duration = Nanos{static_cast<std::int64_t>(node.duration_micros()) * 1000};
    durations_.add(op.duration.count(), "durations");
    const bool moves = node.type() == chakra::MEM_LOAD_NODE || node.type() == chakra::MEM_STORE_NODE;
    const bool joins = node.type() == chakra::COMM_COLL_NODE || node.type() == chakra::COMM_SEND_NODE ||
                       node.type() == chakra::COMM_RECV_NODE;
    op.kind = moves ? OpKind::kCopy : joins ? OpKind::kCollective : OpKind::kKernel;
    return op;
  }

  std::vector<chakra::Node> nodes_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;
  std::vector<std::size_t> order_;
  std::map<std::pair<std::uint16_t, std::int64_t>, std::size_t> storage_of_;  // by device and number
  std::vector<Storage> storages_;
  std::vector<BufferId> buffers_;  // by storage
  Total durations_;
  TraceBuilder builder_;
};

bool is_json(std::string_view head) { return head.starts_with('{'); }

/// The first message of a stream has a field 1, the version, or a field 2, an attribute with a name.
int sniff_chakra(std::string_view head) {
  if (is_json(head)) {
    const bool nodes =
        head.find("\"version\"") != std::string_view::npos && head.find("_NODE\"") != std::string_view::npos;
    return nodes || head.find("\"workload_graph\"") != std::string_view::npos ? 90 : 0;
  }
  if (head.size() < 8 || head[0] < 4) return 0;  // the length, below 128
  const std::string_view message = head.substr(1, static_cast<std::size_t>(head[0]));
  const bool attribute = message[0] == '\x12' && message[2] == '\x0a';
  const bool version = message[0] == '\x0a' && message[2] >= '0' && message[2] <= '9';
  return attribute || version ? 70 : 0;
}

const RegisterImporter kChakra{{"chakra",
                                "execution traces of Chakra, in protobuf (*.et) or as JSON",
                                {".et", ".json"},
                                sniff_chakra,
                                read_chakra}};

}  // namespace

Trace read_chakra(const Input& input) {
  return naming(input.path(), [&] {
    return GraphTrace{is_json(input.bytes()) ? nodes_of_json(input) : nodes_of_stream(input)}.run();
  });
}

}  // namespace tidepool
