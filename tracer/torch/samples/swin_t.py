"""Swin-T, batch of 32 images, AdamW. Usage: python swin_t.py OUT.jsonl"""

import sys

import torch
import torch.nn.functional as F
import torchvision

import tidepool_torch

real = torchvision.models.swin_t()  # its initialisation looks at values
with tidepool_torch.fake_tensors():
    model = tidepool_torch.fake_copy(real)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, foreach=True)
    images = torch.randn(32, 3, 224, 224)
    labels = torch.randint(0, 1000, (32,))

    def step():
        F.cross_entropy(model(images), labels, label_smoothing=0.1).backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "swin_t, batch 32"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
