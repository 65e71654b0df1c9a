"""The training programs behind published tables of measured memory, each made from a row of its table.

`TABLES` has an entry for the file of each table: which rows count, the name of a row, and its program. A program runs
only a few of the measured steps, because later steps need no more memory.
"""
import dataclasses
import typing

STEPS = 3  # the allocator's reserved memory does not grow after them
SAMPLES = 4096  # of the data set that the perceptrons train on


@dataclasses.dataclass
class Table:
    counts: typing.Callable  # whether a row is valid: its program ran, and was measured alone
    name: typing.Callable  # the name of a row
    train: typing.Callable
    sizes: str  # MiB of devices that its jobs may fit on
    modules: tuple = ()  # modules that the programs import besides PyTorch
    fitted: bool = False  # whether its rows of even index gave the context of `tidepool fit`


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
        rest = 0  # the measured program failed there: a single sample has no variance
    for rows in [batch] * min(STEPS, SAMPLES // batch) + [rest] * (rest > 0):
        inputs = torch.randn(rows, size).cuda()
        labels = torch.randint(0, int(row["output_size"]), (rows,)).cuda()
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels.float().view(-1, 1) if binary else labels)
        loss.backward()
        optimizer.step()
        loss.item()


def train_images(torch, model, batch, side, optimizer):
    criterion = torch.nn.CrossEntropyLoss()
    for _ in range(STEPS):
        inputs, labels = torch.empty(batch, 3, side, side).cuda(), torch.randint(0, 1000, (batch,)).cuda()
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        loss.item()


def image_model(torch, name):
    import timm

    with torch.device("meta"):  # on "cuda" the initialisation would read values
        model = timm.create_model(name)
    return model.to_empty(device="cuda").train()


def train_timm(row):
    import torch

    model = image_model(torch, row["model"])
    side = model.default_cfg["input_size"][1]  # not 224: with 224, darknet53 would not agree with the table's estimate
    train_images(torch, model, int(row["batch"]), side, torch.optim.Adam(model.parameters()))


def train_real(row):
    import torch

    model = image_model(torch, row["model"])
    side = 299 if row["model"] == "inception_v3" else 224
    model(torch.empty(2, 3, side, side).cuda())  # the summary that is printed before training
    train_images(torch, model, int(row["batch"]), side, torch.optim.Adam(model.parameters()))


# Flags of runs that failed, or were not measured alone.
DOUBTFUL = {"near_capacity", "estimate_over_capacity", "below_estimate", "non_monotone", "same_as_other_batch"}

PERCEPTRON_SIZES, IMAGE_SIZES = "1536,1792,2048,3072,4096", "4096,6144,8192,11264,16384,24576"

TABLES = {
    # The programs of rows with flags crashed before training, because the labels do not fit the loss.
    "mlp_step1": Table(lambda row: not row["flags"], lambda row: row["config"], lambda row: train_perceptron(row, False),
                       PERCEPTRON_SIZES, fitted=True),
    "mlp_step2": Table(lambda row: True, lambda row: row["config"], lambda row: train_perceptron(row, True),
                       PERCEPTRON_SIZES),
    "timm": Table(lambda row: not DOUBTFUL & set(row["flags"].split(";")), lambda row: f"{row['model']}:{row['batch']}",
                  train_timm, IMAGE_SIZES, ("timm",)),
    "real_models": Table(lambda row: "torchvision" in row["how"], lambda row: f"{row['model']}:{row['batch']}",
                         train_real, IMAGE_SIZES, ("timm",)),
}
