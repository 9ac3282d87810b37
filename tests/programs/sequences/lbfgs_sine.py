"""Sine waves that are continued by two LSTM cells, as in PyTorch's examples: LBFGS with a closure, in float64."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

from tests.support.numbers import filled


class Sequence(nn.Module):
    """Two cells and a linear layer, which may go on from its own predictions."""

    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 5)
        self.lstm2 = nn.LSTMCell(5, 5)
        self.linear = nn.Linear(5, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 5, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 5, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 5, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 5, dtype=torch.double)

        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):  # if we should predict the future
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        outputs = torch.cat(outputs, dim=1)
        return outputs


def main(compiled):
    T, L, N = 3, 6, 4
    x = np.empty((N, L), "int64")
    x[:] = np.array(range(L)) + np.arange(N).reshape(N, 1)
    data = np.sin(x / 1.0 / T).astype("float64")
    input = torch.from_numpy(data[1:, :-1])
    target = torch.from_numpy(data[1:, 1:])
    test_input = torch.from_numpy(data[:1, :-1])
    test_target = torch.from_numpy(data[:1, 1:])
    seq = Sequence()
    seq.double()
    filled(seq)
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4, history_size=3)

    @compiled
    def loss_and_gradients():
        optimizer.zero_grad()
        out = seq(input)
        loss = criterion(out, target)
        loss.backward()
        return loss

    losses = []

    def closure():
        loss = loss_and_gradients()
        losses.append(loss.item())
        return loss

    for _ in range(2):
        optimizer.step(closure)
        with torch.no_grad():
            future = 3
            pred = seq(test_input, future=future)
            loss = criterion(pred[:, :-future], test_target)
            losses.append(loss.item())
            y = pred.detach().numpy()
    return losses, {"seq": seq, "prediction": torch.from_numpy(y)}
