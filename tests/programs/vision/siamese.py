"""A siamese network: one encoder for three pictures, a triplet loss and a contrastive one, a mean kept as a tensor."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from tests.support.numbers import filled, normal


class Triplets(Dataset):
    """An anchor, a picture of the same class, and one of another."""

    def __init__(self, size):
        self.data = normal(size, 3, 1, 8, 8)
        self.data[:, 1] = self.data[:, 0] + 0.3 * self.data[:, 1]

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        anchor, positive, negative = self.data[index]
        return torch.from_numpy(anchor), torch.from_numpy(positive), torch.from_numpy(negative)


class ContrastiveLoss(torch.nn.Module):
    """Hadsell et al., 2006."""

    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        euclidean_distance = (output1 - output2).norm(p=2, dim=1)
        loss_contrastive = torch.mean(
            (1 - label) * torch.pow(euclidean_distance, 2)
            + label * torch.pow(torch.clamp(self.margin - euclidean_distance, min=0.0), 2)
        )
        return loss_contrastive


class TripletLoss(nn.Module):
    """Schroff et al., 2015."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative, size_average=True):
        distance_positive = (anchor - positive).pow(2).sum(1)
        distance_negative = (anchor - negative).pow(2).sum(1)
        losses = F.relu(distance_positive - distance_negative + self.margin)
        return losses.mean() if size_average else losses.sum()


class SiameseNetwork(nn.Module):
    """Convolutions and a head, whose outputs have length 1."""

    def __init__(self):
        super().__init__()
        self.cnn1 = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(4),
            nn.ReflectionPad2d(1),
            nn.Conv2d(4, 4, kernel_size=3),
            nn.LeakyReLU(0.1, inplace=True),
            nn.AvgPool2d(2),
        )
        self.fc1 = nn.Sequential(nn.Linear(4 * 4 * 4, 16), nn.PReLU(), nn.Linear(16, 5))
        self.register_buffer("mean_distance", torch.zeros(()))
        self.register_buffer("num_batches", torch.tensor(0))

    def forward_once(self, x):
        output = self.cnn1(x)
        output = output.view(output.size()[0], -1)
        return F.normalize(self.fc1(output), dim=-1)

    def forward(self, anchor, positive, negative):
        out = self.forward_once(anchor), self.forward_once(positive), self.forward_once(negative)
        if self.training:
            with torch.no_grad():
                self.num_batches += 1
                distance = (out[0] - out[2]).norm(dim=1).mean()
                self.mean_distance += (distance - self.mean_distance) / self.num_batches
        return out


def main(compiled):
    train_dataloader = DataLoader(Triplets(10), batch_size=5, drop_last=False)
    net = filled(SiameseNetwork())
    criterion = ContrastiveLoss(margin=1.5)
    triplet_loss = TripletLoss(margin=0.5)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.02)

    @compiled
    def train_step(anchor, positive, negative):
        optimizer.zero_grad()
        a, p, n = net(anchor, positive, negative)
        same, other = torch.zeros(len(anchor)), torch.ones(len(anchor))
        loss_contrastive = criterion(torch.cat([a, a]), torch.cat([p, n]), torch.cat([same, other]))
        loss = loss_contrastive + triplet_loss(a, p, n)
        loss.backward()
        optimizer.step()
        return loss, (F.normalize(a) * F.normalize(p)).sum(1).detach()

    losses = []
    for _ in range(3):
        for i, (anchor, positive, negative) in enumerate(train_dataloader):
            loss, similarity = train_step(anchor, positive, negative)
            losses += [loss.item(), similarity.mean().item(), similarity[i % 2].item()]
    net.eval()
    anchor, positive, negative = next(iter(train_dataloader))
    with torch.inference_mode():
        a, p, _ = net(anchor, positive, negative)
        losses.append(torch.cdist(a, p).diagonal().max().item())
    return losses, {"net": net, "optimizer": optimizer}
