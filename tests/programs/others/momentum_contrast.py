"""Momentum contrast: a key encoder that follows the query encoder, and a queue of keys in a buffer with a pointer."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, normal


class MoCo(nn.Module):
    """He et al., 2019."""

    def __init__(self, base_encoder, dim=4, K=12, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = base_encoder(dim)
        self.encoder_k = base_encoder(dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", torch.from_numpy(normal(dim, K)))
        self.queue = nn.functional.normalize(self.queue, dim=0)
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        assert self.K % batch_size == 0
        places = (self.queue_ptr + torch.arange(batch_size)) % self.K
        self.queue[:, places] = keys.T
        self.queue_ptr[0] = (self.queue_ptr[0] + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = self.encoder_q(im_q)
        q = nn.functional.normalize(q, dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = self.encoder_k(im_k)
            k = nn.functional.normalize(k, dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1)
        logits /= self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


class AverageMeter:
    """The mean of what was seen so far."""

    def __init__(self):
        self.sum = self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        batch_size = target.size(0)
        _, pred = output.topk(max(topk), 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / batch_size) for k in topk]


def main(compiled):
    def encoder(dim):
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, dim))

    torch.manual_seed(0)
    model = MoCo(encoder)
    filled(model.encoder_q)
    model.encoder_k.load_state_dict(model.encoder_q.state_dict())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        [p for p in model.parameters() if p.requires_grad], 0.05, momentum=0.9, weight_decay=1e-4
    )
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
    views = torch.from_numpy(normal(6, 4, 6))
    other = views + 0.1 * torch.from_numpy(normal(6, 4, 6, seed=1))

    @compiled
    def train_step(im_q, im_k):
        output, target = model(im_q=im_q, im_k=im_k)
        loss = criterion(output, target)
        acc1, acc3 = accuracy(output, target, topk=(1, 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, acc1, acc3

    meter, losses = AverageMeter(), []
    for im_q, im_k in zip(views, other):
        loss, acc1, acc3 = train_step(im_q, im_k)
        meter.update(loss.item(), im_q.size(0))
        losses += [loss.item(), acc1[0].item(), acc3.item(), meter.avg]
        scheduler.step()
    with torch.no_grad():
        losses.append(F.softmax(model.queue, dim=0).max().item())
    return losses, {"model": model, "optimizer": optimizer}
