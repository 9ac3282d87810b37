"""A recurrent network with its hidden state in an attribute, a hook, and means of all that was seen."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, normal


class StatefulGRU(nn.Module):
    """A GRU cell whose hidden state goes on from batch to batch."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.gru = nn.GRUCell(input_size, hidden_size)
        self.fc = nn.Linear(hidden_size, 1)

    def reset(self, batch_size):
        self.hidden = torch.zeros(batch_size, self.hidden_size)

    def forward(self, x):
        h = self.hidden.detach()
        outputs = torch.zeros(x.size(0), x.size(1))
        for t in range(x.size(1)):
            h = self.gru(x[:, t], h)
            outputs[:, t] = self.fc(h).squeeze(-1)
        self.hidden = h
        return outputs


class RunningMeanStd:
    """The mean and variance of what was seen, after Welford."""

    def __init__(self, shape):
        self.mean = torch.zeros(shape)
        self.var = torch.ones(shape)
        self.count = torch.tensor(1e-4)

    def update(self, x):
        batch_mean, batch_var, batch_count = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = batch_mean - self.mean
        tot_count = self.count + batch_count
        self.mean = self.mean + delta * batch_count / tot_count
        m_2 = self.var * self.count + batch_var * batch_count
        m_2 = m_2 + delta**2 * self.count * batch_count / tot_count
        self.var = m_2 / tot_count
        self.count = tot_count


def main(compiled):
    model = filled(StatefulGRU(2, 5))
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.02)
    rms = RunningMeanStd(2)
    series = torch.from_numpy(normal(3, 12, 2)).cumsum(1)
    target = series.diff(dim=1)[..., 0]
    activations = {}
    model.fc.register_forward_hook(lambda module, args, result: activations.__setitem__("fc", result.detach()))

    @compiled
    def train_step(x, y):
        rms.update(x.flatten(0, 1))
        x = (x - rms.mean) / torch.sqrt(rms.var + 1e-8)
        loss = F.huber_loss(model(x), y, delta=0.5)
        loss.backward()
        total_norm = 0
        for p in model.parameters():
            total_norm += p.grad.detach().data.norm(2) ** 2
        total_norm = total_norm**0.5
        optimizer.step()
        optimizer.zero_grad()
        return loss, activations["fc"], total_norm

    losses = []
    for _ in range(2):
        model.reset(3)
        for start in range(0, 6, 2):
            x, y = series[:, start : start + 2], target[:, start : start + 2]
            loss, act, norm = train_step(x, y)
            losses += [loss.item(), act.mean().item(), float(norm)]
    return losses, {
        "model": model,
        "hidden": model.hidden,
        "optimizer": optimizer,
        "rms": [rms.mean, rms.var, rms.count],
    }
