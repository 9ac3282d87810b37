"""A graph convolutional network after Kipf and Welling, with a dense adjacency matrix: masks, and early stopping."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.parameter import Parameter

from tests.support.numbers import filled, integers, normal, uniform


class GraphConvolution(nn.Module):
    """Simple GCN layer, similar to https://arxiv.org/abs/1609.02907."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.mm(adj, support)
        if self.bias is not None:
            return output + self.bias
        return output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GCN(nn.Module):
    """Two layers."""

    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adj)
        return F.log_softmax(x, dim=1)


def normalize(mx):
    rowsum = np.array(mx.sum(1))
    r_inv = np.power(rowsum, -1).flatten()
    r_inv[np.isinf(r_inv)] = 0.0
    return np.diag(r_inv).dot(mx).astype("float32")


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    correct = correct.sum()
    return correct / len(labels)


def main(compiled):
    adj = uniform(20, 20) > 0.8
    adj = torch.FloatTensor(normalize((adj | adj.T) + np.eye(20)))
    features, labels = torch.FloatTensor(normal(20, 7)), torch.LongTensor(integers(3, 20))
    features[torch.arange(20), labels] += 1.0
    idx_train, idx_val = torch.LongTensor(range(12)), torch.LongTensor(range(12, 16))
    test_mask = torch.zeros(20, dtype=torch.bool)
    test_mask[16:] = True
    model = filled(GCN(nfeat=features.shape[1], nhid=6, nclass=labels.max().item() + 1, dropout=0.0))
    optimizer = optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)

    @compiled
    def train(epoch_weight):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train], weight=epoch_weight)
        acc_train = accuracy(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        return loss_train, acc_train

    @compiled
    def validate():
        model.eval()
        output = model(features, adj)
        return F.nll_loss(output[idx_val], labels[idx_val])

    losses, best, best_loss = [], None, float("inf")
    for epoch in range(6):
        loss_train, acc_train = train(torch.tensor([1.0, 1.0 + epoch, 0.5]))
        loss_val = validate().item()
        if loss_val < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), loss_val
        losses += [loss_train.item(), acc_train.item(), loss_val]
    last = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best)
    model.eval()
    output = model(features, adj)
    losses += [
        F.nll_loss(output[test_mask], labels[test_mask]).item(),
        accuracy(output[test_mask], labels[test_mask]).item(),
    ]
    return losses, {"model": model, "last": last, "optimizer": optimizer}
