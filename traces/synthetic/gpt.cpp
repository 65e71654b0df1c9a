#include <fmt/format.h>

#include <array>

#include "traces/base/error.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool {
namespace {

/// A parameter with its gradient and its optimizer state.
struct Weight {
  BufferId value, moments, master, gradient;
  Bytes size;
  bool summed = false;  // an earlier micro-batch has made the gradient
};

enum Role : std::size_t { kNorm1, kQkv, kProjection, kNorm2, kUp, kDown, kRoles };

struct Layer {
  std::array<Weight, kRoles> weights;
  BufferId in, rows1, norm1, qkv, attended, sums, middle, rows2, norm2, up, gelu;  // the backward pass reads these
};

class GptWriter {
 public:
  GptWriter(const GptShape& shape, const Roofline& roofline)
      : shape_{shape},
        tokens_{shape.batch * shape.sequence},
        write_{roofline, "synthetic: GPT-like"},
        layers_(static_cast<std::size_t>(shape.layers)) {}

  Trace run() {
    const std::int64_t h = shape_.hidden;
    embedding_ = weight(shape_.vocabulary * h);
    positions_ = weight(shape_.sequence * h);
    for (Layer& layer : layers_)
      layer.weights = {weight(2 * h), weight(3 * h * h), weight(h * h),
                       weight(2 * h), weight(4 * h * h), weight(4 * h * h)};
    last_norm_ = weight(2 * h);
    const BufferId ids = write_.existing(checked_size({tokens_, 8}), BufferKind::kInput);
    write_.iteration();
    for (std::int64_t i = 0; i < shape_.micro_batches; ++i) micro_batch(ids);
    write_.phase(Phase::kOptimizer);
    update(embedding_);
    update(positions_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      write_.module("layers." + std::to_string(i));
      for (const Weight& one : layers_[i].weights) update(one);
    }
    write_.module("");
    update(last_norm_);
    return write_.finish();
  }

 private:
  Bytes wide(std::int64_t factor = 1) const { return checked_size({tokens_, shape_.hidden, factor, kHalf}); }
  Bytes rows() const { return checked_size({tokens_, 2, kSingle}); }
  double linear(std::int64_t in, std::int64_t out) const {
    return 2.0 * static_cast<double>(tokens_) * static_cast<double>(in) * static_cast<double>(out);
  }
  /// Operations of attention. Half of all pairs of positions have a score and a term in a sum. Both together take 4
  /// operations for each number of the hidden state.
  double attention() const {
    return 2.0 * static_cast<double>(tokens_) * static_cast<double>(shape_.sequence) *
           static_cast<double>(shape_.hidden);
  }

  Weight weight(std::int64_t count) {
    const Bytes size = checked_size({count, kHalf});
    return {.value = write_.existing(size, BufferKind::kParameter),
            .moments = write_.existing(checked_size({count, 2, kSingle}), BufferKind::kOptimizerState),
            .master = write_.existing(checked_size({count, kSingle}), BufferKind::kOptimizerState),
            .gradient = {},
            .size = size};
  }

  /// An op that makes the gradient of a weight, or adds to it.
  void add_gradient(std::string_view name, double flops, Weight& weight, std::vector<StepWriter::Touch> touches) {
    if (!weight.summed) weight.gradient = write_.alloc(weight.size, BufferKind::kGradient);
    touches.push_back(weight.summed ? updates(weight.gradient) : writes(weight.gradient));
    weight.summed = true;
    write_.op(name, flops, touches);
  }

  void update(const Weight& weight) {
    write_.op("adam", 0,
              {reads(weight.gradient), updates(weight.value), updates(weight.moments), updates(weight.master)});
    write_.free({weight.gradient});
  }

  void micro_batch(BufferId ids) {
    write_.phase(Phase::kForward);
    BufferId x = write_.alloc(wide());
    write_.op("embedding", 0, {reads(ids), reads(positions_.value), writes(x)});
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      write_.module("layers." + std::to_string(i));
      x = forward(layers_[i], x);
    }
    write_.module("head");
    BufferId gradient = head(x, ids);
    for (std::size_t i = layers_.size(); i > 0; --i) {
      write_.module("layers." + std::to_string(i - 1));
      backward(layers_[i - 1], gradient);
    }
    write_.module("");
    add_gradient("embedding_backward", 0, embedding_, {reads(gradient), reads(ids)});
    add_gradient("position_backward", 0, positions_, {reads(gradient)});
    write_.free({gradient});
  }

  BufferId forward(Layer& layer, BufferId x) {
    const std::int64_t h = shape_.hidden;
    const auto value = [&](Role role) { return reads(layer.weights[role].value); };
    layer.in = x;
    layer.norm1 = write_.alloc(wide()), layer.rows1 = write_.alloc(rows());
    write_.op("layer_norm", 0, {reads(x), value(kNorm1), writes(layer.norm1), writes(layer.rows1)});
    layer.qkv = write_.alloc(wide(3));
    write_.op("linear", linear(h, 3 * h), {reads(layer.norm1), value(kQkv), writes(layer.qkv)});
    layer.attended = write_.alloc(wide()), layer.sums = write_.alloc(checked_size({tokens_, shape_.heads, kSingle}));
    write_.op("attention", attention(), {reads(layer.qkv), writes(layer.attended), writes(layer.sums)});
    const BufferId projected = write_.alloc(wide());
    write_.op("linear", linear(h, h), {reads(layer.attended), value(kProjection), writes(projected)});
    layer.middle = write_.alloc(wide());
    write_.op("add", 0, {reads(x), reads(projected), writes(layer.middle)});
    write_.free({projected});
    layer.norm2 = write_.alloc(wide()), layer.rows2 = write_.alloc(rows());
    write_.op("layer_norm", 0, {reads(layer.middle), value(kNorm2), writes(layer.norm2), writes(layer.rows2)});
    layer.up = write_.alloc(wide(4));
    write_.op("linear", linear(h, 4 * h), {reads(layer.norm2), value(kUp), writes(layer.up)});
    layer.gelu = write_.alloc(wide(4));
    write_.op("gelu", 0, {reads(layer.up), writes(layer.gelu)});
    const BufferId down = write_.alloc(wide());
    write_.op("linear", linear(4 * h, h), {reads(layer.gelu), value(kDown), writes(down)});
    const BufferId out = write_.alloc(wide());
    write_.op("add", 0, {reads(layer.middle), reads(down), writes(out)});
    write_.free({down});
    return out;
  }

  /// The last norm, the output map and the loss, forward and backward. @return  the gradient of `x`
  BufferId head(BufferId x, BufferId ids) {
    const double flops = linear(shape_.hidden, shape_.vocabulary);
    const BufferId norm = write_.alloc(wide()), stats = write_.alloc(rows());
    write_.op("layer_norm", 0, {reads(x), reads(last_norm_.value), writes(norm), writes(stats)});
    const BufferId logits = write_.alloc(checked_size({tokens_, shape_.vocabulary, kHalf}));
    write_.op("linear", flops, {reads(norm), reads(embedding_.value), writes(logits)});
    write_.phase(Phase::kBackward);
    write_.op("cross_entropy", 0, {reads(ids), updates(logits)});
    add_gradient("linear_weight", flops, embedding_, {reads(logits), reads(norm)});
    const BufferId of_norm = write_.alloc(wide(), BufferKind::kGradient);
    write_.op("linear_input", flops, {reads(logits), reads(embedding_.value), writes(of_norm)});
    write_.free({logits, norm});
    const BufferId gradient = write_.alloc(wide(), BufferKind::kGradient);
    add_gradient("layer_norm_backward", 0, last_norm_,
                 {reads(of_norm), reads(x), reads(stats), reads(last_norm_.value), writes(gradient)});
    write_.free({of_norm, stats, x});
    return gradient;
  }

  /// The backward ops of a linear map with the input `read`. `made` is the gradient of its output.
  /// @return  the gradient of its input
  BufferId linear_backward(Weight& weight, std::int64_t in, std::int64_t out, BufferId made, BufferId read) {
    const BufferId gradient = write_.alloc(checked_size({tokens_, in, kHalf}), BufferKind::kGradient);
    write_.op("linear_input", linear(in, out), {reads(made), reads(weight.value), writes(gradient)});
    add_gradient("linear_weight", linear(in, out), weight, {reads(made), reads(read)});
    return gradient;
  }

  /// Converts the gradient of a layer's output to that of its input, in place.
  void backward(Layer& layer, BufferId gradient) {
    const std::int64_t h = shape_.hidden;
    auto& weights = layer.weights;
    const auto norm_backward = [&](Role role, BufferId of_norm, BufferId read, BufferId stats) {
      const BufferId branch = write_.alloc(wide(), BufferKind::kGradient);
      add_gradient("layer_norm_backward", 0, weights[role],
                   {reads(of_norm), reads(read), reads(stats), reads(weights[role].value), writes(branch)});
      write_.free({of_norm, read, stats});
      write_.op("add_", 0, {reads(branch), updates(gradient)});
      write_.free({branch});
    };
    const BufferId of_gelu = linear_backward(weights[kDown], 4 * h, h, gradient, layer.gelu);
    write_.free({layer.gelu});
    const BufferId of_up = write_.alloc(wide(4), BufferKind::kGradient);
    write_.op("gelu_backward", 0, {reads(of_gelu), reads(layer.up), writes(of_up)});
    write_.free({of_gelu, layer.up});
    const BufferId of_norm2 = linear_backward(weights[kUp], h, 4 * h, of_up, layer.norm2);
    write_.free({of_up, layer.norm2});
    norm_backward(kNorm2, of_norm2, layer.middle, layer.rows2);
    const BufferId of_attended = linear_backward(weights[kProjection], h, h, gradient, layer.attended);
    const BufferId of_qkv = write_.alloc(wide(3), BufferKind::kGradient);
    write_.op("attention_backward", 2.5 * attention(),
              {reads(of_attended), reads(layer.qkv), reads(layer.attended), reads(layer.sums), writes(of_qkv)});
    write_.free({of_attended, layer.qkv, layer.attended, layer.sums});
    const BufferId of_norm1 = linear_backward(weights[kQkv], h, 3 * h, of_qkv, layer.norm1);
    write_.free({of_qkv, layer.norm1});
    norm_backward(kNorm1, of_norm1, layer.in, layer.rows1);
  }

  GptShape shape_;
  std::int64_t tokens_;
  StepWriter write_;
  std::vector<Layer> layers_;
  Weight embedding_, positions_, last_norm_;
};

}  // namespace

Trace gpt_step(const GptShape& shape, const Roofline& roofline) {
  if (shape.hidden % shape.heads != 0)
    throw InputError{fmt::format("{} heads; expected a divisor of the width, {}", shape.heads, shape.hidden)};
  return GptWriter{shape, roofline}.run();
}

}  // namespace tidepool
