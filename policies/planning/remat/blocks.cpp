#include "policies/planning/remat/blocks.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace tidepool {
namespace {

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
