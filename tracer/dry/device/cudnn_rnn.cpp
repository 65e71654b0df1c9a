// cuDNN's recurrent layers without a device.
#include <array>
#include <optional>

#include "tracer/dry/device/cudnn.hpp"

using namespace tidepool::dry;

namespace {

/// Arguments of cudnnSetRNNDescriptor_v8. A pseudo layer is one direction of a layer.
struct Layers {
  int algorithm = 0, cell = 0, bias = 0, direction = 0, input_mode = 0, type = 0, precision = 0, math = 0;
  std::int32_t input = 0, hidden = 0, projected = 0, layers = 0;

  std::size_t directions() const { return direction == 1 ? 2 : 1; }
  std::size_t pseudo_layers() const { return static_cast<std::size_t>(layers) * directions(); }
  /// Number of matrices of a pseudo layer for its input: RNN 1, LSTM 4, GRU 3. It has as many for its previous output.
  std::size_t gates() const { return cell == 2 ? 4 : cell == 3 ? 3 : 1; }
  std::size_t bytes_of_value() const {
    return type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4;
  }  // CUDNN_DATA_DOUBLE, HALF, BFLOAT16
  std::size_t width() const { return static_cast<std::size_t>(hidden); }
  std::size_t output() const { return static_cast<std::size_t>(projected > 0 ? projected : hidden); }
  std::size_t input_of(std::size_t pseudo_layer) const {
    return pseudo_layer < directions() ? static_cast<std::size_t>(input) : output() * directions();
  }
  bool projects() const { return projected > 0 && projected != hidden; }
  /// Bias vectors of a gate by cudnnRNNBiasMode_t: none, one for the input, two, one for the recurrent part.
  std::size_t biases_of_gate() const { return bias == 0 ? 0 : bias == 2 ? 2 : 1; }

  std::size_t matrix_values(std::size_t pseudo_layer) const {
    return gates() * width() * (input_of(pseudo_layer) + output()) + (projects() ? width() * output() : 0);
  }
  std::size_t all_matrix_values() const {
    std::size_t values = 0;
    for (std::size_t i = 0; i < pseudo_layers(); ++i) values += matrix_values(i);
    return values;
  }
  std::size_t bias_values() const { return biases_of_gate() * gates() * width(); }
};

std::optional<Layers> layers_of(const void* descriptor) {
  using Get = Status(const void*, int*, int*, int*, int*, int*, int*, int*, int*, std::int32_t*, std::int32_t*,
                     std::int32_t*, std::int32_t*, void**, std::uint32_t*);
  static Get* const get = real_cudnn<Get>("cudnnGetRNNDescriptor_v8");
  Layers l;
  void* dropout = nullptr;
  std::uint32_t flags = 0;
  if (get == nullptr ||
      get(descriptor, &l.algorithm, &l.cell, &l.bias, &l.direction, &l.input_mode, &l.type, &l.precision, &l.math,
          &l.input, &l.hidden, &l.projected, &l.layers, &dropout, &flags) != kSuccess)
    return std::nullopt;
  return l;
}

/// Time steps times samples of an input.
double rows_of(const void* data) {
  using Get = Status(const void*, int*, int*, int*, int*, int*, int, int*, void*);
  static Get* const get = real_cudnn<Get>("cudnnGetRNNDataDescriptor");
  int type = 0, layout = 0, steps = 0, batch = 0, width = 0;
  double fill = 0;
  if (get == nullptr || get(data, &type, &layout, &steps, &batch, &width, 0, nullptr, &fill) != kSuccess) return 0;
  return static_cast<double>(steps) * batch;
}

double flops_of(const void* descriptor, const void* data) {
  const auto layers = layers_of(descriptor);
  return layers ? 2 * rows_of(data) * static_cast<double>(layers->all_matrix_values()) : 0;
}

bool sixteen_bits(const void* descriptor) {
  const auto layers = layers_of(descriptor);
  return layers && layers->bytes_of_value() == 2;
}

Status describe_matrix(void* descriptor, const Layers& layers, std::size_t rows, std::size_t columns) {
  using Set = Status(void*, int, int, const int*, const int*);
  static Set* const set = real_cudnn<Set>("cudnnSetTensorNdDescriptor");
  const std::array<int, 3> sizes{1, static_cast<int>(rows), static_cast<int>(columns)},
      strides{sizes[1] * sizes[2], sizes[2], 1};
  return set == nullptr ? kNotSupported : set(descriptor, layers.type, 3, sizes.data(), strides.data());
}

void* at(const void* space, std::size_t values, const Layers& layers) {
  return const_cast<char*>(static_cast<const char*>(space)) + values * layers.bytes_of_value();
}

constexpr Status kBadParameter = 2000;  // CUDNN_STATUS_BAD_PARAM

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

Status cudnnGetRNNWeightSpaceSize(void*, const void* descriptor, std::size_t* bytes) {
  const auto layers = layers_of(descriptor);
  if (!layers) return kBadParameter;
  *bytes = (layers->all_matrix_values() + layers->pseudo_layers() * layers->bias_values()) * layers->bytes_of_value();
  return kSuccess;
}

/// The matrices of all pseudo layers come first, then the biases. Linear layers 0 to gates - 1 belong to the gates'
/// input, the next `gates` layers to their recurrent part, and one more to the projection.
Status cudnnGetRNNWeightParams(void*, const void* descriptor, std::int32_t pseudo_layer, std::size_t, const void* space,
                               std::int32_t linear, void* matrix_descriptor, void** matrix, void* bias_descriptor,
                               void** bias) {
  const auto layers = layers_of(descriptor);
  if (!layers || pseudo_layer < 0 || linear < 0) return kBadParameter;
  const auto layer = static_cast<std::size_t>(pseudo_layer), id = static_cast<std::size_t>(linear);
  const std::size_t gates = layers->gates(), width = layers->width(), input = layers->input_of(layer),
                    output = layers->output();
  std::size_t offset = 0;
  for (std::size_t i = 0; i < layer; ++i) offset += layers->matrix_values(i);
  const bool recurrent = id >= gates, projection = id == 2 * gates;
  offset += recurrent ? gates * width * input + (id - gates) * width * output : id * width * input;
  if (matrix != nullptr) {
    *matrix = at(space, offset, *layers);
    describe_matrix(matrix_descriptor, *layers, projection ? output : width,
                    projection  ? width
                    : recurrent ? output
                                : input);
  }
  const bool has_bias =
      !projection && (layers->bias == 2 || (layers->bias == 1 && !recurrent) || (layers->bias == 3 && recurrent));
  if (bias != nullptr && has_bias) {
    const std::size_t index = layers->bias == 2 ? id : id % gates;
    *bias = at(space, layers->all_matrix_values() + layer * layers->bias_values() + index * width, *layers);
    describe_matrix(bias_descriptor, *layers, width, 1);
  } else if (bias != nullptr) {
    *bias = nullptr;
  }
  return kSuccess;
}

/// cuDNN does not document the content of its reserve. Assumed here: the gates and the cell state of every step, layer
/// and direction, which backpropagation through time needs; no workspace.
Status cudnnGetRNNTempSpaceSizes(void*, const void* descriptor, int mode, const void* data, std::size_t* workspace,
                                 std::size_t* reserve) {
  constexpr int kTraining = 1;
  const auto layers = layers_of(descriptor);
  if (!layers) return kBadParameter;
  const std::size_t kept = (layers->gates() + 1) * layers->width() * layers->pseudo_layers() * layers->bytes_of_value();
  if (workspace != nullptr) *workspace = 0;
  if (reserve != nullptr) *reserve = mode == kTraining ? static_cast<std::size_t>(rows_of(data)) * kept : 0;
  return kSuccess;
}

Status cudnnRNNForward(void* handle, const void* descriptor, int, const std::int32_t*, const void* data, const void* x,
                       const void*, void* y, const void*, const void* hx, void* hy, const void*, const void* cx,
                       void* cy, std::size_t, const void* weights, std::size_t, void* workspace, std::size_t,
                       void* reserve) {
  call_library(cudnn_stream(handle), {"cudnnRNNForward",
                                      {{x, Access::kRead},
                                       {hx, Access::kRead},
                                       {cx, Access::kRead},
                                       {weights, Access::kRead},
                                       {y, Access::kWrite},
                                       {hy, Access::kWrite},
                                       {cy, Access::kWrite},
                                       {workspace, Access::kWrite},
                                       {reserve, Access::kWrite}},
                                      flops_of(descriptor, data),
                                      sixteen_bits(descriptor)});
  return kSuccess;
}
Status cudnnRNNBackwardData_v8(void* handle, const void* descriptor, const std::int32_t*, const void*, const void* y,
                               const void* dy, const void* data, void* dx, const void*, const void* hx, const void* dhy,
                               void* dhx, const void*, const void* cx, const void* dcy, void* dcx, std::size_t,
                               const void* weights, std::size_t, void* workspace, std::size_t, void* reserve) {
  call_library(cudnn_stream(handle), {"cudnnRNNBackwardData",
                                      {{y, Access::kRead},
                                       {dy, Access::kRead},
                                       {hx, Access::kRead},
                                       {dhy, Access::kRead},
                                       {cx, Access::kRead},
                                       {dcy, Access::kRead},
                                       {weights, Access::kRead},
                                       {dx, Access::kWrite},
                                       {dhx, Access::kWrite},
                                       {dcx, Access::kWrite},
                                       {workspace, Access::kWrite},
                                       {reserve, Access::kReadWrite}},
                                      flops_of(descriptor, data),
                                      sixteen_bits(descriptor)});
  return kSuccess;
}
Status cudnnRNNBackwardWeights_v8(void* handle, const void* descriptor, int, const std::int32_t*, const void* data,
                                  const void* x, const void*, const void* hx, const void*, const void* y, std::size_t,
                                  void* weights, std::size_t, void* workspace, std::size_t, void* reserve) {
  call_library(cudnn_stream(handle), {"cudnnRNNBackwardWeights",
                                      {{x, Access::kRead},
                                       {hx, Access::kRead},
                                       {y, Access::kRead},
                                       {reserve, Access::kRead},
                                       {weights, Access::kReadWrite},
                                       {workspace, Access::kWrite}},
                                      flops_of(descriptor, data),
                                      sixteen_bits(descriptor)});
  return kSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
