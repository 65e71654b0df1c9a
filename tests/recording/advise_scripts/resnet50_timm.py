"""timm's ResNet-50 with AMP, a gradient scaler and an EMA of its weights. The change in a file given as argument is
applied."""
import runpy
import sys

import timm
import torch
from timm.utils import ModelEmaV3


def main():
    model = timm.create_model("resnet50", num_classes=100).cuda().to(memory_format=torch.channels_last)
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](model)
    average = ModelEmaV3(model, decay=0.999)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(96, 3, 224, 224), torch.randint(0, 100, (96,)))
    model.train()
    for images, labels in torch.utils.data.DataLoader(data, batch_size=32):
        images = images.cuda().to(memory_format=torch.channels_last)
        labels = labels.cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_of(model(images), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        average.update(model)
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
