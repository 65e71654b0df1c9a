"""The training programs behind published tables of measured memory, each made from a row of its table.

`TABLES` has them by the name of the table's file: which rows count, what a row is called, and its program, which runs as far as
the memory of the device goes: a few steps of those that were measured.
"""
import dataclasses
import typing

STEPS = 3  # what the allocator reserves does not grow later
SAMPLES = 4096  # of the data set that the perceptrons train on


@dataclasses.dataclass
class Table:
    counts: typing.Callable  # whether a row's measurement is one of its program
    name: typing.Callable  # of a row
    train: typing.Callable


def widths(row):
    """(inputs, outputs) of every linear layer."""
    here, out, depth = int(row["input_size"]), int(row["output_size"]), int(row["depth"])
    decrement = (here - out) // depth
    smaller = {"pyramid": lambda f: max(f // 2, out), "bottleneck": lambda f: max(f // 2, out), "uniform": lambda f: f,
               "gradual": lambda f: max(f - decrement, out)}[row["arch"]]
    layers = []
    for _ in range(depth + (row["arch"] == "bottleneck")):
        layers.append((here, smaller(here)))
        here = layers[-1][1]
    return layers + [(here, out)]


def activation(nn, name):
    return {"relu": nn.ReLU, "elu": nn.ELU, "gelu": nn.GELU, "identity": nn.Identity, "leaky_relu": nn.LeakyReLU,
            "mish": nn.Mish, "prelu": nn.PReLU, "selu": nn.SELU, "softplus": nn.Softplus, "swish": nn.SiLU,
            "tanh": nn.Tanh}[name]()


def perceptron(torch, row, last):
    """@param last  modules behind the last linear layer"""
    nn = torch.nn
    *hidden, output = widths(row)
    layers = []
    for inputs, outputs in hidden:
        layers.append(nn.Linear(inputs, outputs))
        if row["use_batch_norm"] == "1":
            layers.append(nn.BatchNorm1d(outputs))
        layers.append(activation(nn, row["activation"]))
        if row["use_dropout"] == "1":
            layers.append(nn.Dropout(float(row["dropout_p"])))
    model = nn.Sequential(*layers, nn.Linear(*output), *last)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters != int(row["params"]):
        raise SystemExit(f"{row['config']}: {parameters} parameters; expected {row['params']}")
    return model


def train_perceptron(row, softmax):
    import torch

    binary = row["output_size"] == "1"
    with torch.device("cuda"):
        model = perceptron(torch, row, [torch.nn.Softmax(dim=1)] if softmax and not binary else [])
    size, batch = int(row["input_size"]), int(row["batch"])
    model(torch.rand(2, size).cuda())  # the summary that is printed before training
    criterion = torch.nn.BCEWithLogitsLoss() if binary else torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    rest = SAMPLES % batch
    if rest == 1 and row["use_batch_norm"] == "1":
        rest = 0  # the program ended there: no variance of a single sample
    for rows in [batch] * min(STEPS, SAMPLES // batch) + [rest] * (rest > 0):
        inputs = torch.randn(rows, size).cuda()
        labels = torch.randint(0, int(row["output_size"]), (rows,)).cuda()
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels.float().view(-1, 1) if binary else labels)
        loss.backward()
        optimizer.step()
        loss.item()


TABLES = {
    # Rows with flags crashed before training: the labels do not fit the loss.
    "mlp_step1": Table(lambda row: not row["flags"], lambda row: row["config"], lambda row: train_perceptron(row, False)),
    "mlp_step2": Table(lambda row: True, lambda row: row["config"], lambda row: train_perceptron(row, True)),
}
