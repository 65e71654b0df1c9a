"""VGG-16, batch of 64 images, SGD with momentum. Usage: python vgg16.py OUT.jsonl"""

import sys

import torch
import torch.nn.functional as F
import torchvision

import tidepool_torch

with tidepool_torch.fake_tensors():
    model = torchvision.models.vgg16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
    images = torch.randn(64, 3, 224, 224)
    labels = torch.randint(0, 1000, (64,))

    def step():
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "vgg16, batch 64"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
