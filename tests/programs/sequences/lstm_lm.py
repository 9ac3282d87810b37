"""A language model with an LSTM, as in PyTorch's examples: a hidden state that is carried along, clipped gradients."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, integers


class RNNModel(nn.Module):
    """An encoder, a recurrent module, and a decoder that may share the encoder's weights."""

    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.0, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.nhid = nhid
        self.nlayers = nlayers

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        output = self.drop(output)
        decoded = self.decoder(output)
        decoded = decoded.view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Wrap hidden states in new tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt=5):
    seq_len = min(bptt, len(source) - 1 - i)
    data = source[i : i + seq_len]
    target = source[i + 1 : i + 1 + seq_len].view(-1)
    return data, target


def main(compiled):
    ntokens, lr = 11, 2.0
    train_data = batchify(torch.from_numpy(integers(ntokens, 4 * 11 + 3)), 4)
    model = filled(RNNModel(ntokens, 8, 8, nlayers=2, tie_weights=True))
    criterion = nn.NLLLoss()

    @compiled
    def train_step(data, targets, hidden, lr):
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        return loss, hidden

    losses = []
    for _ in range(2):
        hidden = model.init_hidden(4)
        total_loss = 0.0
        for i in range(0, train_data.size(0) - 1, 5):
            data, targets = get_batch(train_data, i)
            loss, hidden = train_step(data, targets, hidden, lr)
            total_loss += loss.item()
            losses.append(math.exp(loss.item()))
        losses.append(total_loss)
        lr /= 4.0
    model.eval()
    words, input, hidden = [], torch.zeros(1, 1, dtype=torch.long), model.init_hidden(1)
    with torch.no_grad():
        for _ in range(6):
            output, hidden = model(input, hidden)
            word_idx = output.squeeze().argmax()
            input.fill_(word_idx)
            words.append(word_idx.item())
    return losses, {"model": model, "hidden": hidden, "words": torch.tensor(words)}
