// The layers of a network, as one step runs them forward and backward: what layer-granular policies decide on.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planning/remat/saved.hpp"
#include "traces/trace.hpp"

namespace tidepool {

enum class LayerKind : std::uint8_t {
  kConvolution,
  kPool,
  kProduct,  ///< a product of matrices: fully connected layers, projections, attention, recurrent layers
  kOther,
};

struct Layer {
  std::uint32_t first = 0, behind = 0;              ///< its forward ops: [first, behind)
  std::uint32_t backward = 0, backward_behind = 0;  ///< its backward ops, likewise; may be none
  LayerKind kind = LayerKind::kOther;               ///< the first in the order above that one of its ops is
  bool operator==(const Layer&) const = default;
};

/// A version that the forward phase makes and the backward phase reads: what can be away in between.
struct Kept {
  Saved saved;
  std::uint32_t maker = 0;   ///< layer
  std::uint32_t origin = 0;  ///< the layer that wrote its buffer first, where later ones, as an activation behind a
                             ///< convolution, update it in place; otherwise the maker
  std::uint32_t reader = 0;  ///< the last layer that reads it forward; the maker if none does: it is no layer's input
  std::uint32_t due = 0;     ///< the layer whose backward ops read it first
};

struct Layers {
  std::vector<Layer> layers;                        ///< in forward order
  std::vector<Kept> kept;                           ///< in the order in which they are made
  std::uint32_t backward = 0, backward_behind = 0;  ///< the ops of the backward phase

  std::size_t size() const { return layers.size(); }
  /// The layer of a forward op. O(log layers).
  std::uint32_t layer_of(std::uint32_t op) const;
  /// What the network spends its time on: convolutions, or products of matrices in a network that has none.
  LayerKind heavy() const;
};

/// Finds them. Where ops carry module names, a layer is a run of forward ops of one module (ops of none are a module of
/// their own); otherwise it ends where an op reads something that it has made and that is kept, as a kernel library's
/// layers do (what is less than a thousandth of all kept bytes ends none). Kinds are told from op and module names.
///
/// Backward ops are followed in their order: one belongs to the last layer, not behind that of the op before it, that
/// makes or reads, forward, everything that it reads of the forward phase and of what existed before the step; one that
/// reads nothing of these belongs with the op before it. The loss is part of the last layers. O(uses + backward ops *
/// layers that share what they read).
Layers find_layers(const Trace& trace);

}  // namespace tidepool
