#include "policies/planning/remat/layers.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidepool {

namespace {

bool contains(std::string_view text, std::string_view word, std::string_view unless = "") {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (unless.empty() || text.substr(at).substr(0, unless.size()) != unless) return true;
  return false;
}

/// The kind of an op, from its name and the last part of its module's name.
LayerKind kind_of(const Trace& trace, OpId op) {
  const auto lower = [](std::string_view text) {
    std::string result{text};
    for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
  };
  const std::string name = lower(trace.text(trace.op(op).name));
  std::string module = lower(trace.text(trace.op(op).module));
  module.erase(0, module.rfind('.') + 1);
  if (contains(name, "conv", "convert") || contains(module, "conv", "convert")) return LayerKind::kConvolution;
  if (contains(name, "pool") || contains(module, "pool")) return LayerKind::kPool;
  for (const std::string_view word : {"addmm", "matmul", "gemm", "linear", "::mm", "::bmm", "attention", "lstm"})
    if (contains(name, word)) return LayerKind::kProduct;
  return LayerKind::kOther;
}

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_{trace} {
    const auto ops = static_cast<std::uint32_t>(trace.ops().size());
    result_.backward = std::min(first_backward_op(trace), ops);
    result_.backward_behind = result_.backward;
    while (result_.backward_behind < ops && trace.op(OpId{result_.backward_behind}).phase != Phase::kOptimizer)
      ++result_.backward_behind;
    if (result_.backward == 0) return;
    std::vector<Saved> saved = saved_versions(trace, result_.backward);
    std::erase_if(saved, [&](const Saved& each) { return each.first_again >= result_.backward_behind; });
    cut(saved);
    for (Layer& layer : result_.layers)
      for (std::uint32_t op = layer.first; op < layer.behind; ++op)
        layer.kind = std::min(layer.kind, kind_of(trace, OpId{op}));
    follow_backward();
    for (const Saved& each : saved)
      result_.kept.push_back({each, layer_of_[each.made], origin_of(each.version), layer_of_[each.last_forward],
                              layer_of_[each.first_again]});
  }

  Layers take() { return std::move(result_); }

 private:
  void cut(const std::vector<Saved>& saved) {
    const auto named = [&](std::uint32_t op) { return trace_.text(trace_.op(OpId{op}).module) != ""; };
    bool has_modules = false;
    for (std::uint32_t op = 0; op < result_.backward; ++op) has_modules |= named(op);
    Bytes total;
    for (const Saved& each : saved) total += trace_.size(each.version);
    std::vector<bool> ends_layers(trace_.versions().size());
    for (const Saved& each : saved) ends_layers[each.version.index()] = trace_.size(each.version) * 1000 >= total;

    layer_of_.assign(trace_.ops().size(), 0);
    for (std::uint32_t op = 0; op < result_.backward; ++op) {
      bool begins = op == 0;
      if (has_modules)
        begins |= op > 0 && trace_.op(OpId{op}).module != trace_.op(OpId{op - 1}).module;
      else
        for (const Use& use : trace_.uses(OpId{op})) {
          if (!use.in.valid() || !ends_layers[trace_.root(use.in).index()]) continue;
          begins |= trace_.version(trace_.root(use.in)).producer.value() >= result_.layers.back().first;
        }
      if (begins) result_.layers.push_back({.first = op, .behind = op});
      result_.layers.back().behind = op + 1;
      layer_of_[op] = static_cast<std::uint32_t>(result_.layers.size() - 1);
    }
  }

  std::uint32_t origin_of(VersionId v) const {
    for (VersionId before = trace_.version(v).parent; before.valid() && trace_.version(before).producer.valid();
         before = trace_.version(v).parent)
      v = before;
    return layer_of_[trace_.version(v).producer.index()];
  }

  /// Layers whose forward ops make or read a version, ascending. Computed once for each version, as some have many
  /// readers.
  const std::vector<std::uint32_t>& touching(VersionId v) {
    const auto [found, is_new] = touching_.try_emplace(v.value());
    std::vector<std::uint32_t>& layers = found->second;
    if (!is_new) return layers;
    const auto add = [&](OpId op) {
      if (op.valid() && op.value() < result_.backward) layers.push_back(layer_of_[op.index()]);
    };
    add(trace_.version(v).producer);
    for (const OpId reader : trace_.readers(v)) add(reader);
    for (const OpId viewer : trace_.viewers(v)) add(viewer);
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
  }

  /// The last layer up to `most` that makes or reads all inputs of a backward op, except those that no layer makes or
  /// reads; `most` if there is none.
  std::uint32_t layer_of_backward(OpId op, std::uint32_t most) {
    std::vector<std::uint32_t> common;
    bool any = false;
    for (const Use& use : trace_.uses(op)) {
      if (!use.in.valid()) continue;
      const std::vector<std::uint32_t>& layers = touching(trace_.root(use.in));
      if (layers.empty()) continue;
      if (!any) {
        common = layers;
      } else {
        std::vector<std::uint32_t> both;
        std::set_intersection(common.begin(), common.end(), layers.begin(), layers.end(), std::back_inserter(both));
        common = std::move(both);
      }
      any = true;
    }
    const auto behind = std::upper_bound(common.begin(), common.end(), most);
    return behind == common.begin() ? most : *std::prev(behind);
  }

  void follow_backward() {
    std::uint32_t layer = static_cast<std::uint32_t>(result_.layers.size()) - 1;
    result_.layers[layer].backward = result_.backward;
    const auto go_down = [&](std::uint32_t to, std::uint32_t op) {
      while (layer > to) {
        result_.layers[layer].backward_behind = op;
        result_.layers[--layer].backward = op;
      }
    };
    for (std::uint32_t op = result_.backward; op < result_.backward_behind; ++op) {
      go_down(layer_of_backward(OpId{op}, layer), op);
      layer_of_[op] = layer;
    }
    go_down(0, result_.backward_behind);
    result_.layers[0].backward_behind = result_.backward_behind;
  }

  const Trace& trace_;
  Layers result_;
  std::vector<std::uint32_t> layer_of_;                                     // by op
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> touching_;  // by version
};

/// A module's path up to its first number; "" without one.
std::string_view numbered_part(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    if (!part.empty() && std::all_of(part.begin(), part.end(), is_digit)) return path.substr(0, end);
    begin = end + 1;
  }
  return "";
}

/// By layer: its block, or kOutside if its module's path has no number. If no path has one, each layer is a block.
std::vector<std::size_t> blocks_of_layers(const Trace& trace, const Layers& layers) {
  std::vector<std::size_t> block_of(layers.size(), NetworkBlocks::kOutside);
  std::map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (const auto part = numbered_part(trace.text(trace.op(OpId{layers.layers[i].first}).module)); !part.empty())
      block_of[i] = numbers.emplace(part, numbers.size()).first->second;
  if (numbers.empty())
    for (std::size_t i = 0; i < layers.size(); ++i) block_of[i] = i;
  return block_of;
}

}  // namespace

LayerKind Layers::heavy() const {
  for (const Layer& layer : layers)
    if (layer.kind == LayerKind::kConvolution) return LayerKind::kConvolution;
  return LayerKind::kProduct;
}

std::uint32_t Layers::layer_of(std::uint32_t op) const {
  const auto behind = std::upper_bound(layers.begin(), layers.end(), op,
                                       [](std::uint32_t value, const Layer& layer) { return value < layer.first; });
  return static_cast<std::uint32_t>(behind - layers.begin()) - 1;
}

Layers find_layers(const Trace& trace) { return Finder{trace}.take(); }

NetworkBlocks find_blocks(const Trace& trace, const Layers& layers) {
  const std::vector<std::size_t> block_of = blocks_of_layers(trace, layers);
  NetworkBlocks found;
  found.of_op.assign(trace.ops().size(), NetworkBlocks::kOutside);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (block_of[i] == NetworkBlocks::kOutside) continue;
    if (block_of[i] == found.size()) found.blocks.emplace_back();
    NetworkBlock& block = found.blocks[block_of[i]];
    const Layer& layer = layers.layers[i];
    block.first = std::min(block.first, layer.first);
    block.behind = std::max(block.behind, layer.behind);
    for (std::uint32_t op = layer.first; op < layer.behind; ++op) found.of_op[op] = block_of[i];
    if (layer.backward == layer.backward_behind) continue;
    block.backward = std::min(block.backward, layer.backward);
    block.backward_behind = std::max(block.backward_behind, layer.backward_behind);
    for (std::uint32_t op = layer.backward; op < layer.backward_behind; ++op) found.of_op[op] = block_of[i];
  }
  return found;
}

}  // namespace tidepool
