"""A variational autoencoder: reparametrised draws, binary cross-entropy and the divergence, summed losses."""

import torch
from torch import nn, optim
from torch.nn import functional as F

from tests.support.numbers import filled, normal, uniform


class VAE(nn.Module):
    """Kingma and Welling, 2013."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(25, 16)
        self.fc21 = nn.Linear(16, 3)
        self.fc22 = nn.Linear(16, 3)
        self.fc3 = nn.Linear(3, 16)
        self.fc4 = nn.Linear(16, 25)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps):
        std = torch.exp(0.5 * logvar)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps):
        mu, logvar = self.encode(x.view(-1, 25))
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 25), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main(compiled):
    model = filled(VAE())
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    data = torch.from_numpy(uniform(16, 1, 5, 5))
    noise = torch.from_numpy(normal(4, 16, 3))

    @compiled
    def train_step(data, eps):
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data, eps)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for epoch in range(2):
        train_loss = 0
        model.train()
        for batch_idx in range(4):
            loss = train_step(data[batch_idx::4], noise[epoch, batch_idx * 4 : batch_idx * 4 + 4])
            train_loss += loss.item()
            losses.append(loss.item() / 4)
        losses.append(train_loss / len(data))
        model.eval()
        with torch.no_grad():
            losses.append(loss_function(*model_outputs(model, data, noise[epoch + 2])).item())
    with torch.no_grad():
        sample = model.decode(torch.linspace(-1, 1, 6).view(2, 3)).view(2, 1, 5, 5)
    return losses, {"model": model, "optimizer": optimizer, "sample": sample}


def model_outputs(model, data, eps):
    recon_batch, mu, logvar = model(data, eps)
    return recon_batch, data, mu, logvar
