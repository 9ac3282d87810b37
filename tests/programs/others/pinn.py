"""A physics-informed network for Burgers' equation: second derivatives by `autograd.grad`, learned coefficients."""

import math
from collections import OrderedDict

import torch

from tests.support.numbers import filled, uniform


class DNN(torch.nn.Module):
    """Linear layers with tanh between them, under names."""

    def __init__(self, layers):
        super().__init__()
        self.depth = len(layers) - 1
        self.activation = torch.nn.Tanh
        layer_list = list()
        for i in range(self.depth - 1):
            layer_list.append((f"layer_{i}", torch.nn.Linear(layers[i], layers[i + 1])))
            layer_list.append((f"activation_{i}", self.activation()))
        layer_list.append((f"layer_{self.depth - 1}", torch.nn.Linear(layers[-2], layers[-1])))
        self.layers = torch.nn.Sequential(OrderedDict(layer_list))

    def forward(self, x):
        return self.layers(x)


class PhysicsInformedNN:
    """A network, and what its derivatives have to obey."""

    def __init__(self, X, u, layers, compiled):
        self.x = torch.tensor(X[:, 0:1], requires_grad=True).float()
        self.t = torch.tensor(X[:, 1:2], requires_grad=True).float()
        self.u = torch.tensor(u).float()
        self.lambda_1 = torch.nn.Parameter(torch.tensor([0.0]))
        self.lambda_2 = torch.nn.Parameter(torch.tensor([-6.0]))
        self.dnn = filled(DNN(layers))
        self.dnn.register_parameter("lambda_1", self.lambda_1)
        self.dnn.register_parameter("lambda_2", self.lambda_2)
        self.optimizer_Adam = torch.optim.Adam(self.dnn.parameters(), lr=1e-2)
        self.iter = 0
        self.loss_func = compiled(self._loss_func)

    def net_u(self, x, t):
        return self.dnn(torch.cat([x, t], dim=1))

    def net_f(self, x, t):
        lambda_1, lambda_2 = self.lambda_1, torch.exp(self.lambda_2)
        u = self.net_u(x, t)
        u_t = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), retain_graph=True, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=torch.ones_like(u_x), retain_graph=True, create_graph=True)[0]
        return u_t + lambda_1 * u * u_x - lambda_2 * u_xx

    def _loss_func(self):
        u_pred = self.net_u(self.x, self.t)
        f_pred = self.net_f(self.x, self.t)
        loss = torch.mean((self.u - u_pred) ** 2) + torch.mean(f_pred**2)
        self.optimizer_Adam.zero_grad()
        loss.backward()
        self.optimizer_Adam.step()
        return loss

    def train(self, nIter):
        self.dnn.train()
        losses = []
        for _ in range(nIter):
            loss = self.loss_func()
            self.iter += 1
            losses += [loss.item(), self.lambda_1.item(), torch.exp(self.lambda_2.detach()).item()]
        return losses

    def predict(self, X):
        x = torch.tensor(X[:, 0:1], requires_grad=True).float()
        t = torch.tensor(X[:, 1:2], requires_grad=True).float()
        self.dnn.eval()
        u = self.net_u(x, t)
        f = self.net_f(x, t)
        return u.detach().cpu().numpy(), f.detach().cpu().numpy()


def main(compiled):
    X = uniform(24, 2) * 2 - 1
    u = -(X[:, :1] * math.pi).clip(-3, 3) * 0.3
    model = PhysicsInformedNN(X, u, [2, 10, 10, 1], compiled)
    losses = model.train(6)
    u_pred, f_pred = model.predict(X[:5])
    return [*losses, model.iter], {
        "dnn": model.dnn,
        "optimizer": model.optimizer_Adam,
        "predictions": torch.tensor(u_pred),
        "residuals": torch.from_numpy(f_pred),
    }
