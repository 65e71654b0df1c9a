"""Inception v3 with its auxiliary classifier, batch of 32 images, RMSprop. Usage: python inception_v3.py OUT.jsonl"""

import sys

import torch
import torch.nn.functional as F
import torchvision

import tidepool_torch

with tidepool_torch.fake_tensors():
    model = torchvision.models.inception_v3(aux_logits=True, init_weights=False)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.045, momentum=0.9, foreach=True)
    images = torch.randn(32, 3, 299, 299)
    labels = torch.randint(0, 1000, (32,))

    def step():
        logits, auxiliary = model(images)
        loss = F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    name = "inception_v3, batch 32"
    recorder = tidepool_torch.record_steps(step, model, optimizer, device="a100", name=name)
recorder.save(sys.argv[1])
