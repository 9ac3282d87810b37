"""A generative adversarial network of convolutions: two optimisers, labels refilled in place, `detach`."""

import torch
import torch.nn as nn
import torch.optim as optim

from tests.support.numbers import filled, normal

nz, ngf, ndf, nc = 6, 4, 4, 1
real_label, fake_label = 1.0, 0.0


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        torch.nn.init.constant_(m.weight, 1.0)
        torch.nn.init.zeros_(m.bias)


class Generator(nn.Module):
    """From noise to pictures of 8x8."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 2, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    """From pictures to the probability that they are real."""

    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 2, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def main(compiled):
    netG, netD = Generator(), Discriminator()
    netG.apply(weights_init)
    netD.apply(weights_init)
    filled(netG, seed=1)
    filled(netD, seed=2)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=0.002, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=0.002, betas=(0.5, 0.999))
    fixed_noise = torch.from_numpy(normal(3, nz, 1, 1, seed=3))
    batches = torch.from_numpy(normal(6, 5, nc, 8, 8)).tanh()
    noises = torch.from_numpy(normal(6, 5, nz, 1, 1, seed=4))

    def train_step(real, noise):
        # (1) Update D network: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        batch_size = real.size(0)
        label = torch.full((batch_size,), real_label, dtype=real.dtype)
        output = netD(real)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean()

        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()

        # (2) Update G network: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)  # fake labels are real for generator cost
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        return errD, errG, D_x, output.mean()

    train_step = compiled(train_step)
    losses = []
    for real, noise in zip(batches, noises):
        losses += [value.item() for value in train_step(real, noise)]
    with torch.no_grad():
        fake = netG(fixed_noise).detach().cpu()
    return losses, {"G": netG, "D": netD, "optimizerG": optimizerG, "optimizerD": optimizerD, "fake": fake}
