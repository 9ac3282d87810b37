"""Domain-adversarial training: an `autograd.Function` that reverses gradients, hooks on tensors, a growing strength."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Function

from tests.support.numbers import filled, integers, normal


class ReverseLayerF(Function):
    """Ganin and Lempitsky, 2015."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        output = grad_output.neg() * ctx.alpha
        return output, None


class MySoftplus(torch.autograd.Function):
    """A function with saved tensors and a mask."""

    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return torch.log1p(i.exp())

    @staticmethod
    def backward(ctx, grad_output):
        (i,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input *= torch.sigmoid(i)
        grad_input[i < -20] = 0
        return grad_input


class CNNModel(nn.Module):
    """Features, classes, domains."""

    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential()
        self.feature.add_module("f_fc1", nn.Linear(5, 8, bias=False))
        self.feature.add_module("f_bn1", nn.BatchNorm1d(8))
        self.class_classifier = nn.Sequential(nn.Linear(8, 3), nn.LogSoftmax(dim=1))
        self.domain_classifier = nn.Sequential(nn.Linear(8, 2), nn.LogSoftmax(dim=1))

    def forward(self, input_data, alpha):
        feature = MySoftplus.apply(self.feature(input_data))
        reverse_feature = ReverseLayerF.apply(feature, alpha)
        return self.class_classifier(feature), self.domain_classifier(reverse_feature), feature


def main(compiled):
    net = filled(CNNModel())
    optimizer = torch.optim.Adamax(net.parameters(), lr=1e-2)
    loss_class, loss_domain = torch.nn.NLLLoss(), torch.nn.NLLLoss()
    source, labels = torch.from_numpy(normal(3, 6, 5)), torch.from_numpy(integers(3, 3, 6))
    target = torch.from_numpy(normal(3, 6, 5, seed=1) + 1)

    @compiled
    def train(s_img, s_label, t_img, alpha):
        net.zero_grad()
        batch_size = len(s_label)
        class_output, domain_output, feature = net(s_img, alpha)
        seen = []
        feature.register_hook(lambda grad: seen.append(grad.abs().max()))
        feature.retain_grad()
        err_s_label = loss_class(class_output, s_label)
        err_s_domain = loss_domain(domain_output, torch.zeros(batch_size).long())
        _, domain_output, _ = net(t_img, alpha=alpha)
        err_t_domain = loss_domain(domain_output, torch.ones(batch_size).long())
        err = err_t_domain + err_s_domain + err_s_label
        err.backward()
        optimizer.step()
        return err_s_label, err_t_domain, seen[0], feature.grad.norm()

    losses, len_dataloader, n_epoch = [], 3, 2
    for epoch in range(n_epoch):
        for i in range(len_dataloader):
            p = float(i + epoch * len_dataloader) / n_epoch / len_dataloader
            alpha = torch.tensor(2.0 / (1.0 + np.exp(-10 * p)) - 1, dtype=torch.float32)
            losses += [each.item() for each in train(source[i], labels[i], target[i], alpha)]
    return losses, {"net": net, "optimizer": optimizer}
