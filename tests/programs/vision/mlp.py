"""A multilayer perceptron, with the loops of PyTorch's quickstart: batches, a schedule, an evaluation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.support.numbers import filled, normal


class NeuralNetwork(nn.Module):
    """Three linear layers on flattened pictures."""

    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(6 * 6, 32),
            nn.ReLU(inplace=True),
            nn.Dropout(p=0.0),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def test(dataloader, model, loss_fn):
    size = len(dataloader.dataset)
    num_batches = len(dataloader)
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    return test_loss / num_batches, correct / size


def main(compiled):
    device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
    inputs = torch.from_numpy(normal(40, 1, 6, 6))
    targets = inputs.flatten(1)[:, :10].argmax(dim=1)
    training_data, test_data = TensorDataset(inputs[:32], targets[:32]), TensorDataset(inputs[32:], targets[32:])
    train_dataloader = DataLoader(training_data, batch_size=8, shuffle=False)
    test_dataloader = DataLoader(test_data, batch_size=4)

    model = filled(NeuralNetwork()).to(device)
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)

    @compiled
    def train_step(X, y):
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = []
    for _ in range(2):
        model.train()
        for X, y in train_dataloader:
            X, y = X.to(device), y.to(device)
            loss = train_step(X, y)
            losses.append(loss.item())
        scheduler.step()
        losses += test(test_dataloader, model, loss_fn)
    return losses, {"model": model, "optimizer": optimizer, "scheduler": scheduler}
