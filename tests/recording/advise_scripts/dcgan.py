"""A DCGAN: two models, each with its optimizer. With a file as argument, the change that it holds is applied to both."""
import runpy
import sys

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=100, width=64):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, width * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(width * 8), nn.ReLU(True),
            nn.ConvTranspose2d(width * 8, width * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 4), nn.ReLU(True),
            nn.ConvTranspose2d(width * 4, width * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 2), nn.ReLU(True),
            nn.ConvTranspose2d(width * 2, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width, width * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 2, width * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 4), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 4, width * 8, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 8), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(width * 8, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def forward(self, images):
        return self.main(images).view(-1)


def main():
    batch = 128
    generator, discriminator = Generator().cuda(), Discriminator().cuda()
    if len(sys.argv) > 1:
        runpy.run_path(sys.argv[1])["apply"](discriminator, generator)
    loss_of = nn.BCELoss()
    settings = {"lr": 2e-4, "betas": (0.5, 0.999)}
    of_discriminator = torch.optim.Adam(discriminator.parameters(), **settings)
    of_generator = torch.optim.Adam(generator.parameters(), **settings)
    data = torch.utils.data.TensorDataset(torch.randn(4 * batch, 3, 64, 64))
    for real, in torch.utils.data.DataLoader(data, batch, shuffle=True):
        discriminator.zero_grad()
        real, label = real.cuda(), torch.ones(batch, device="cuda")
        loss_of(discriminator(real), label).backward()
        fake = generator(torch.randn(batch, 100, 1, 1, device="cuda"))
        loss_of(discriminator(fake.detach()), torch.zeros_like(label)).backward()
        of_discriminator.step()
        generator.zero_grad()
        loss_of(discriminator(fake), label).backward()
        of_generator.step()
    print("peak", torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    main()
