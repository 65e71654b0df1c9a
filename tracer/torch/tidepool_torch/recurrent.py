"""The GPU's form of an LSTM, for fake tensors: one op for each layer and direction, and a reserve for backward.

PyTorch's CPU form does not show the content that must be kept for backward, and the size of cuDNN's reserve is not
public. This reserve has the content that backpropagation through time needs: the four gates and the cell state of every
time step. These are 5 x hidden values for each time step and sample.
"""

import torch

_LIBRARY = torch.library.Library("tidepool", "DEF")
_LIBRARY.define("lstm_layer(Tensor input, Tensor hidden, Tensor cell, Tensor[] weights, bool reverse)"
                " -> (Tensor, Tensor, Tensor, Tensor)")
_LIBRARY.define("lstm_layer_backward(Tensor grad_output, Tensor? grad_hidden, Tensor? grad_cell, Tensor input,"
                " Tensor hidden, Tensor cell, Tensor[] weights, Tensor output, Tensor reserve)"
                " -> (Tensor, Tensor, Tensor, Tensor[])")


@torch.library.register_fake("tidepool::lstm_layer")
def _layer(input, hidden, cell, weights, reverse):
    steps, batch, _ = input.shape
    width = hidden.shape[-1]
    return (input.new_empty(steps, batch, width), torch.empty_like(hidden), torch.empty_like(cell),
            input.new_empty(steps, batch, 5 * width))


@torch.library.register_fake("tidepool::lstm_layer_backward")
def _layer_backward(grad_output, grad_hidden, grad_cell, input, hidden, cell, weights, output, reserve):
    return (torch.empty_like(input), torch.empty_like(hidden), torch.empty_like(cell),
            [torch.empty_like(weight) for weight in weights])


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, hidden, cell, reverse, *weights):
        output, last_hidden, last_cell, reserve = torch.ops.tidepool.lstm_layer(input, hidden, cell, weights, reverse)
        ctx.save_for_backward(input, hidden, cell, output, reserve, *weights)
        ctx.set_materialize_grads(False)
        return output, last_hidden, last_cell

    @staticmethod
    def backward(ctx, grad_output, grad_hidden, grad_cell):
        input, hidden, cell, output, reserve, *weights = ctx.saved_tensors
        if grad_output is None:
            grad_output = torch.zeros_like(output)
        grad_input, grad_first_hidden, grad_first_cell, grad_weights = torch.ops.tidepool.lstm_layer_backward(
            grad_output, grad_hidden, grad_cell, input, hidden, cell, weights, output, reserve)
        return grad_input, grad_first_hidden, grad_first_cell, None, *grad_weights


def lstm(input, state, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """torch.lstm for padded input without projections, with the same arguments and results."""
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    hidden, cell = state
    x = input.transpose(0, 1) if batch_first else input
    last_hidden, last_cell = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            own = weights[index * each:(index + 1) * each]
            output, h, c = _Layer.apply(x, hidden[index], cell[index], direction == 1, *own)
            outputs.append(output)
            last_hidden.append(h)
            last_cell.append(c)
        x = torch.cat(outputs, -1) if directions == 2 else outputs[0]
        if train and dropout > 0 and layer + 1 < num_layers:
            x = torch.native_dropout(x, dropout, True)[0]
    x = x.transpose(0, 1) if batch_first else x
    return x, torch.stack(last_hidden), torch.stack(last_cell)
