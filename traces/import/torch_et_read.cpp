#include <simdjson.h>

#include <algorithm>
#include <unordered_map>

#include "traces/base/lines.hpp"
#include "traces/import/json_walk.hpp"
#include "traces/import/torch_et.hpp"

namespace tidepool {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::int64_t kMostEtDevices = 256;

/// "cuda:1" -> 1, "cuda" -> 0; -1 for tensors that have no bytes on a device.
std::int64_t device_number(std::string_view name) {
  if (name.empty() || name.starts_with("cpu") || name.starts_with("meta")) return -1;
  const std::size_t colon = name.find(':');
  const std::int64_t number = colon == std::string_view::npos ? 0 : parse_whole(name.substr(colon + 1)).value_or(-1);
  return number < kMostEtDevices ? number : -1;
}

class EtReader {
 public:
  explicit EtReader(const Input& input) : input_{input}, walk_{input} { text(""); }

  ExecutionTrace run() {
    bool nodes = false;
    while (walk_.next_member()) {
      if (walk_.key() != "nodes" || !walk_.is_array()) {
        walk_.value();
        continue;
      }
      for (nodes = true; walk_.next_element(); ++index_) read_node(walk_.element());
    }
    if (!nodes)
      throw InputError{input_.path() +
                       ": no \"nodes\"; expected a list, as PyTorch's ExecutionTraceObserver writes it"};
    check_ids();
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(
        fmt::format("{}:node {}", input_.path(), index_));
  }

  std::uint32_t text(std::string_view value) {
    const auto [entry, added] = texts_.try_emplace(std::string{value}, static_cast<std::uint32_t>(out_.texts.size()));
    if (added) out_.texts.emplace_back(value);
    return entry->second;
  }

  void read_node(std::string_view json) {
    object record;
    if (parser_.parse(reinterpret_cast<const std::uint8_t*>(json.data()), json.size(), false).get(record) !=
        simdjson::SUCCESS)
      refuse("'{}' is not JSON; expected an object", excerpt(json));
    EtNode node;
    node.id = whole(record, "id").value_or(-1);
    if (node.id < 0) refuse("no \"id\"; expected a whole number");
    std::string_view name;
    if (record["name"].get(name) != simdjson::SUCCESS) refuse("no \"name\"; expected a string");
    node.name = text(name);
    const bool flat = record["ctrl_deps"].error() != simdjson::SUCCESS;  // as in schema 1.0.1
    node.parent = whole(record, flat ? "parent" : "ctrl_deps").value_or(0);
    if (flat)
      read_flat(record, node);
    else
      read_attributes(record, node);
    tensors(flat ? record["inputs"] : record["inputs"]["values"], node.inputs);
    tensors(flat ? record["outputs"] : record["outputs"]["values"], node.outputs);
    out_.nodes.push_back(std::move(node));
  }

  void read_flat(const object& record, EtNode& node) {
    node.record_function = whole(record, "rf_id").value_or(-1);
    node.sequence = whole(record, "seq_id").value_or(-1);
    node.thread = whole(record, "tid").value_or(0);
    std::string_view schema;
    if (record["op_schema"].get(schema) == simdjson::SUCCESS) node.schema = text(schema);
  }

  void read_attributes(const object& record, EtNode& node) {
    array attributes;
    if (record["attrs"].get(attributes) != simdjson::SUCCESS) return;
    for (const element attribute : attributes) {
      std::string_view name, value;
      if (attribute["name"].get(name) != simdjson::SUCCESS) continue;
      std::int64_t number = 0;
      if (name == "rf_id" && attribute["value"].get(number) == simdjson::SUCCESS) node.record_function = number;
      if (name == "seq_id" && attribute["value"].get(number) == simdjson::SUCCESS) node.sequence = number;
      if (name == "tid" && attribute["value"].get(number) == simdjson::SUCCESS) node.thread = number;
      if (attribute["value"].get(value) != simdjson::SUCCESS) continue;
      if (name == "op_schema") node.schema = text(value);
      if (name == "kernel_backend") node.generated = !value.empty();
    }
  }

  std::optional<std::int64_t> whole(const object& record, std::string_view key) const {
    const simdjson::simdjson_result<element> found = record[key];
    if (found.error() != simdjson::SUCCESS) return {};
    std::int64_t number = 0;
    if (found.get(number) != simdjson::SUCCESS)
      refuse("\"{}\" is {}; expected a whole number", key, excerpt(simdjson::minify(found.value_unsafe())));
    return number;
  }

  void tensors(simdjson::simdjson_result<element> values, std::vector<EtTensor>& out) {
    array arguments;
    if (values.get(arguments) != simdjson::SUCCESS) return;
    std::uint32_t argument = 0;
    for (const element value : arguments) add_tensors(value, argument++, out);
  }

  /// Adds a tensor, or those of a list, at any depth that simdjson accepts.
  void add_tensors(element value, std::uint32_t argument, std::vector<EtTensor>& out) {
    array items;
    if (value.get(items) != simdjson::SUCCESS) return;
    if (items.size() == 6 && add_tensor(items, argument, out)) return;
    for (const element item : items) add_tensors(item, argument, out);
  }

  /// Adds a tensor given as [tensor, storage, offset, number of elements, bytes of one, "cuda:0"].
  /// @return  false if the list is something else
  bool add_tensor(const array& items, std::uint32_t argument, std::vector<EtTensor>& out) const {
    std::int64_t number[5] = {};
    std::size_t i = 0;
    std::string_view device;
    for (const element item : items) {
      if (i < 5 ? item.get(number[i]) != simdjson::SUCCESS : item.get(device) != simdjson::SUCCESS) return false;
      ++i;
    }
    const auto [id, storage, offset, elements, size] = number;
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    EtTensor tensor{argument, storage, device_number(device), 0, 0};
    if (offset < 0 || elements < 0 || size < 0 || offset > kMost || elements > kMost ||
        __builtin_mul_overflow(elements, size, &tensor.bytes) ||
        __builtin_mul_overflow(offset + elements, size, &tensor.end) || tensor.end > kMost)
      refuse("tensor {} has {} elements of {} bytes from {} on; expected at most {} bytes", id, elements, size, offset,
             kMost);
    if (storage > 0 && tensor.bytes > 0) out.push_back(tensor);  // others have no memory
    return true;
  }

  void check_ids() {
    std::stable_sort(out_.nodes.begin(), out_.nodes.end(),
                     [](const EtNode& a, const EtNode& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < out_.nodes.size(); ++i)
      if (out_.nodes[i].id == out_.nodes[i - 1].id)
        throw InputError{fmt::format("{}: two nodes have the id {}", input_.path(), out_.nodes[i].id)};
  }

  const Input& input_;
  JsonWalk walk_;
  std::size_t index_ = 0;
  simdjson::dom::parser parser_;
  ExecutionTrace out_;
  std::unordered_map<std::string, std::uint32_t> texts_;
};

}  // namespace

ExecutionTrace parse_execution_trace(const Input& input) { return EtReader{input}.run(); }

}  // namespace tidepool
