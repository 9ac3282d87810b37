"""A Wasserstein network with a gradient penalty: a gradient of a gradient, and several steps of the critic for one."""

import torch
import torch.nn as nn
from torch.autograd import Variable, grad

from tests.support.numbers import filled, normal, uniform

LAMBDA, CRITIC_ITERS, BATCH_SIZE = 0.1, 2, 8


class Generator(nn.Module):
    """From noise to points of the plane."""

    def __init__(self, dim=12):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, dim), nn.ReLU(True), nn.Linear(dim, dim), nn.ReLU(True), nn.Linear(dim, 2)
        )

    def forward(self, noise, real_data):
        return self.main(noise) + real_data * 0.1


class Discriminator(nn.Module):
    """From points to a number."""

    def __init__(self, dim=12):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, dim), nn.Tanh(), nn.Linear(dim, dim), nn.ELU(), nn.Linear(dim, 1))

    def forward(self, inputs):
        return self.main(inputs).view(-1)


def calc_gradient_penalty(netD, real_data, fake_data, alpha):
    alpha = alpha.expand(real_data.size())
    interpolates = alpha * real_data + ((1 - alpha) * fake_data)
    interpolates = Variable(interpolates, requires_grad=True)
    disc_interpolates = netD(interpolates)
    gradients = grad(
        outputs=disc_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones(disc_interpolates.size()),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


def main(compiled):
    netG, netD = filled(Generator(), seed=1), filled(Discriminator(), seed=2)
    optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-2, betas=(0.5, 0.9))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-2, betas=(0.5, 0.9))
    one = torch.tensor(1.0)
    mone = one * -1
    data = torch.from_numpy(normal(5, CRITIC_ITERS, BATCH_SIZE, 2))
    noise = torch.from_numpy(normal(5, CRITIC_ITERS + 1, BATCH_SIZE, 2, seed=3))
    alphas = torch.from_numpy(uniform(5, CRITIC_ITERS, BATCH_SIZE, 1, seed=4))

    @compiled
    def iteration(real, noise, alpha):
        for p in netD.parameters():  # reset requires_grad
            p.requires_grad = True
        for iter_d in range(CRITIC_ITERS):
            netD.zero_grad()
            D_real = netD(real[iter_d]).mean()
            D_real.backward(mone)
            with torch.no_grad():
                noisev = noise[iter_d]
                fake = netG(noisev, real[iter_d])
            D_fake = netD(fake).mean()
            D_fake.backward(one)
            gradient_penalty = calc_gradient_penalty(netD, real[iter_d], fake, alpha[iter_d])
            gradient_penalty.backward()
            D_cost = D_fake - D_real + gradient_penalty
            optimizerD.step()

        for p in netD.parameters():
            p.requires_grad = False  # to avoid computation
        netG.zero_grad()
        G = netD(netG(noise[-1], real[-1])).mean()
        G.backward(mone)
        optimizerG.step()
        return D_cost, -G

    losses = []
    for batch in zip(data, noise, alphas):
        D_cost, G_cost = iteration(*batch)
        losses += [D_cost.cpu().data.numpy().item(), G_cost.cpu().data.numpy().item()]
    return losses, {"G": netG, "D": netD, "optimizerG": optimizerG, "optimizerD": optimizerD}
