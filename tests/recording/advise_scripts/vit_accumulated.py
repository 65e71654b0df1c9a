"""A vision transformer of timm in a loop of its own: AMP with a gradient scaler, two batches for each update, an average
of the weights, and a validation. The change in a file given as argument is applied."""
import copy
import runpy
import sys

import timm
import torch

ACCUMULATED = 2


class Average:
    def __init__(self, model, decay=0.999):
        self.module, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for held, now in zip(self.module.state_dict().values(), model.state_dict().values()):
            held.copy_(held * self.decay + now.detach() * (1 - self.decay))


@torch.no_grad()
def validate(model, loader):
    right = 0
    for images, labels in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            right += (model(images.cuda()).argmax(1) == labels.cuda()).sum().item()
    return right


def loader_of(count):
    data = torch.utils.data.TensorDataset(torch.randn(count, 3, 224, 224), torch.randint(0, 10, (count,)))
    return torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, pin_memory=True)


def main():
    model = timm.create_model("vit_tiny_patch16_224", num_classes=10).cuda()
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](model)
    average = Average(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
    scaler = torch.amp.GradScaler("cuda")
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    training, validation = loader_of(128), loader_of(32)
    for epoch in range(2):
        model.train()
        for number, (images, labels) in enumerate(training, 1):
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = loss_of(model(images), labels) / ACCUMULATED
            scaler.scale(loss).backward()
            if number % ACCUMULATED == 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                average.update(model)
                schedule.step()
        validate(average.module, validation)
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
