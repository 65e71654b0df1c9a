#include <fmt/format.h>

#include "traces/base/error.hpp"
#include "traces/synthetic/models.hpp"

namespace tidepool {
namespace {

struct Parameter {
  BufferId value, momentum, gradient;
  Bytes size;
};

/// A convolution with the normalisation after it, and the buffers that their backward ops read.
struct Convolution {
  Parameter kernel, norm;
  BufferId in, made, stats;
  Bytes in_size, out_size;
  double flops = 0;
};

struct Block {
  std::string module;
  Convolution first, second, beside;
  bool begins_stage = false;
  BufferId in, inner, out;  // outputs of ReLU: before, in and after the block
};

class ResnetWriter {
 public:
  ResnetWriter(const ResnetShape& shape, const Roofline& roofline)
      : shape_{shape}, write_{roofline, "synthetic: ResNet-like"} {}

  Trace run() {
    const std::int64_t blocks = (shape_.layers - 2) / 6;
    stem_ = convolution(3, shape_.width, shape_.image, shape_.image, 3);
    for (std::int64_t stage = 0; stage < 3; ++stage)
      for (std::int64_t i = 0; i < blocks; ++i) {
        Block block;
        block.module = fmt::format("layer{}.{}", stage + 1, i);
        block.begins_stage = stage > 0 && i == 0;
        const std::int64_t out = shape_.width << stage, in = block.begins_stage ? out / 2 : out;
        const std::int64_t side = shape_.image >> stage, from = block.begins_stage ? side * 2 : side;
        block.first = convolution(in, out, from, side, 3);
        block.second = convolution(out, out, side, side, 3);
        if (block.begins_stage) block.beside = convolution(in, out, from, side, 1);
        blocks_.push_back(block);
      }
    features_ = checked_size({shape_.batch, shape_.width * 4, kHalf});
    last_ = weight(shape_.width * 4 * kClasses);
    const BufferId images = write_.existing(stem_.in_size, BufferKind::kInput);
    write_.iteration();

    write_.phase(Phase::kForward);
    BufferId x = activate(convolve(stem_, images));
    for (Block& block : blocks_) x = forward(block, x);
    BufferId gradient = head(x);
    for (std::size_t i = blocks_.size(); i > 0; --i) gradient = backward(blocks_[i - 1], gradient);
    write_.module("");
    write_.op("relu_backward", 0, {reads(stem_out()), updates(gradient)});
    const BufferId of_convolution = norm_backward(stem_, gradient);
    weight_gradient(stem_, of_convolution);
    write_.free({of_convolution, gradient, stem_out()});

    write_.phase(Phase::kOptimizer);
    update(stem_);
    for (const Block& block : blocks_) {
      write_.module(block.module);
      update(block.first);
      update(block.second);
      if (block.begins_stage) update(block.beside);
    }
    write_.module("");
    update(last_);
    return write_.finish();
  }

 private:
  static constexpr std::int64_t kClasses = 10;

  Parameter weight(std::int64_t count) {
    const Bytes size = checked_size({count, kSingle});
    return {
        write_.existing(size, BufferKind::kParameter), write_.existing(size, BufferKind::kOptimizerState), {}, size};
  }

  Convolution convolution(std::int64_t in, std::int64_t out, std::int64_t from, std::int64_t to, std::int64_t side) {
    Convolution made;
    made.kernel = weight(in * out * side * side);
    made.norm = weight(2 * out);
    made.in_size = checked_size({shape_.batch, in, from, from, kHalf});
    made.out_size = checked_size({shape_.batch, out, to, to, kHalf});
    made.flops = 2.0 * static_cast<double>(shape_.batch * to * to) * static_cast<double>(in * out * side * side);
    return made;
  }

  BufferId stem_out() const { return blocks_.front().in; }

  /// Convolution and normalisation; the output of the convolution is kept for the backward pass.
  BufferId convolve(Convolution& one, BufferId in) {
    one.in = in;
    one.made = write_.alloc(one.out_size);
    write_.op("conv2d", one.flops, {reads(in), reads(one.kernel.value), writes(one.made)});
    const BufferId out = write_.alloc(one.out_size);
    one.stats = write_.alloc(one.norm.size);
    write_.op("batch_norm", 0, {reads(one.made), reads(one.norm.value), writes(out), writes(one.stats)});
    return out;
  }

  BufferId activate(BufferId x) {
    write_.op("relu_", 0, {updates(x)});
    return x;
  }

  BufferId forward(Block& block, BufferId x) {
    write_.module(block.module);
    block.in = x;
    block.inner = activate(convolve(block.first, x));
    block.out = convolve(block.second, block.inner);
    const BufferId beside = block.begins_stage ? convolve(block.beside, x) : x;
    write_.op("add_", 0, {reads(beside), updates(block.out)});
    if (block.begins_stage) write_.free({beside});
    return activate(block.out);
  }

  /// The mean of each channel, the last map and the loss, forward and backward. @return  the gradient of `x`
  BufferId head(BufferId x) {
    write_.module("head");
    const double flops = 2.0 * static_cast<double>(features_.count()) * kClasses / kHalf;
    const BufferId means = write_.alloc(features_),
                   logits = write_.alloc(checked_size({shape_.batch, kClasses, kHalf}));
    write_.op("mean", 0, {reads(x), writes(means)});
    write_.op("linear", flops, {reads(means), reads(last_.value), writes(logits)});
    write_.phase(Phase::kBackward);
    write_.op("cross_entropy", 0, {updates(logits)});
    last_.gradient = write_.alloc(last_.size, BufferKind::kGradient);
    write_.op("linear_weight", flops, {reads(logits), reads(means), writes(last_.gradient)});
    const BufferId of_means = write_.alloc(features_, BufferKind::kGradient);
    write_.op("linear_input", flops, {reads(logits), reads(last_.value), writes(of_means)});
    write_.free({logits, means});
    const BufferId gradient = write_.alloc(blocks_.back().second.out_size, BufferKind::kGradient);
    write_.op("mean_backward", 0, {reads(of_means), writes(gradient)});
    write_.free({of_means});
    return gradient;
  }

  /// The gradient of the convolution's output, from that of the normalisation's output.
  BufferId norm_backward(Convolution& one, BufferId gradient) {
    const BufferId of_convolution = write_.alloc(one.out_size, BufferKind::kGradient);
    one.norm.gradient = write_.alloc(one.norm.size, BufferKind::kGradient);
    write_.op("batch_norm_backward", 0,
              {reads(gradient), reads(one.made), reads(one.stats), reads(one.norm.value), writes(of_convolution),
               writes(one.norm.gradient)});
    write_.free({one.made, one.stats});
    return of_convolution;
  }

  void weight_gradient(Convolution& one, BufferId of_convolution) {
    one.kernel.gradient = write_.alloc(one.kernel.size, BufferKind::kGradient);
    write_.op("conv2d_weight", one.flops, {reads(of_convolution), reads(one.in), writes(one.kernel.gradient)});
  }

  /// The gradient of the convolution's input, from that of the normalisation's output.
  BufferId convolve_backward(Convolution& one, BufferId gradient) {
    const BufferId of_convolution = norm_backward(one, gradient);
    weight_gradient(one, of_convolution);
    const BufferId of_input = write_.alloc(one.in_size, BufferKind::kGradient);
    write_.op("conv2d_input", one.flops, {reads(of_convolution), reads(one.kernel.value), writes(of_input)});
    write_.free({of_convolution});
    return of_input;
  }

  BufferId backward(Block& block, BufferId gradient) {
    write_.module(block.module);
    write_.op("relu_backward", 0, {reads(block.out), updates(gradient)});
    write_.free({block.out});
    const BufferId of_inner = convolve_backward(block.second, gradient);
    write_.op("relu_backward", 0, {reads(block.inner), updates(of_inner)});
    write_.free({block.inner});
    const BufferId of_input = convolve_backward(block.first, of_inner);
    write_.free({of_inner});
    BufferId beside = gradient;
    if (block.begins_stage) {
      beside = convolve_backward(block.beside, gradient);
      write_.free({gradient});
    }
    write_.op("add_", 0, {reads(of_input), updates(beside)});
    write_.free({of_input});
    return beside;
  }

  void update(const Parameter& weight) {
    write_.op("sgd", 0, {reads(weight.gradient), updates(weight.value), updates(weight.momentum)});
    write_.free({weight.gradient});
  }
  void update(const Convolution& one) {
    update(one.kernel);
    update(one.norm);
  }

  ResnetShape shape_;
  StepWriter write_;
  Convolution stem_;
  std::vector<Block> blocks_;
  Parameter last_;
  Bytes features_;
};

}  // namespace

Trace resnet_step(const ResnetShape& shape, const Roofline& roofline) {
  if (shape.layers < 8 || (shape.layers - 2) % 6 != 0)
    throw InputError{fmt::format("{} layers; expected 6 n + 2, as 110", shape.layers)};
  if (shape.image < 4 || shape.image % 4 != 0)
    throw InputError{fmt::format("image of {} pixels; expected a multiple of 4", shape.image)};
  return ResnetWriter{shape, roofline}.run();
}

}  // namespace tidepool
