"""Meta-learning on sine waves: an inner step by `autograd.grad` with a graph, functional forward, outer Adam."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.support.numbers import filled, uniform


class Learner(nn.Module):
    """A network whose forward takes its weights."""

    def __init__(self):
        super().__init__()
        self.vars = nn.ParameterList()
        for out_features, in_features in ((8, 1), (8, 8), (1, 8)):
            w = nn.Parameter(torch.ones(out_features, in_features))
            torch.nn.init.kaiming_normal_(w)
            self.vars.append(w)
            self.vars.append(nn.Parameter(torch.zeros(out_features)))

    def forward(self, x, vars=None):
        if vars is None:
            vars = self.vars
        for idx in range(0, len(vars), 2):
            w, b = vars[idx], vars[idx + 1]
            x = F.linear(x, w, b)
            if idx + 2 < len(vars):
                x = torch.tanh(x)
        return x

    def zero_grad(self, vars=None):
        with torch.no_grad():
            for p in self.vars if vars is None else vars:
                if p.grad is not None:
                    p.grad.zero_()


def main(compiled):
    net = filled(Learner())
    meta_optim = torch.optim.Adam(net.parameters(), lr=1e-2)
    inner_lr = nn.Parameter(torch.tensor(0.1))
    meta_optim.add_param_group({"params": [inner_lr], "lr": 1e-3})
    amplitude = torch.from_numpy(0.5 + uniform(6, 3, 1, 1))
    phase = torch.from_numpy(3 * uniform(6, 3, 1, 1, seed=1))
    points = torch.from_numpy(4 * uniform(6, 3, 10, 1, seed=2) - 2)
    waves = amplitude * torch.sin(points + phase)

    @compiled
    def meta_step(x, y):
        task_num = x.size(0)
        losses_q = [0 for _ in range(3)]
        for i in range(task_num):
            x_spt, y_spt, x_qry, y_qry = x[i, :5], y[i, :5], x[i, 5:], y[i, 5:]
            fast_weights = list(net.parameters())
            with torch.no_grad():
                losses_q[0] += F.mse_loss(net(x_qry, fast_weights), y_qry)
            for k in range(1, 3):
                loss = F.mse_loss(net(x_spt, fast_weights), y_spt)
                grad = torch.autograd.grad(loss, fast_weights, create_graph=True)
                fast_weights = list(map(lambda p: p[1] - inner_lr * p[0], zip(grad, fast_weights)))
                losses_q[k] += F.mse_loss(net(x_qry, fast_weights), y_qry)
        loss_q = losses_q[-1] / task_num
        meta_optim.zero_grad()
        loss_q.backward()
        meta_optim.step()
        return torch.stack(losses_q)

    losses = []
    for x, y in zip(points, waves):
        losses += meta_step(x, y).tolist()
    return losses, {"net": net, "inner_lr": inner_lr, "optimizer": meta_optim}
