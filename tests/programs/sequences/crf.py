"""A bidirectional LSTM with a conditional random field: a forward algorithm under a mask, and Viterbi's on numbers."""

import torch
import torch.nn as nn

from tests.support.numbers import filled, integers


class CRF(nn.Module):
    """Lafferty et al., 2001, for batches."""

    def __init__(self, num_tags):
        super().__init__()
        self.num_tags = num_tags
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        nn.init.uniform_(self.start_transitions, -0.1, 0.1)
        nn.init.uniform_(self.end_transitions, -0.1, 0.1)

    def forward(self, emissions, tags, mask):
        numerator = self._compute_score(emissions, tags, mask)
        denominator = self._compute_normalizer(emissions, mask)
        llh = numerator - denominator
        return llh.sum() / mask.type_as(emissions).sum()

    def _compute_score(self, emissions, tags, mask):
        seq_length, batch_size = tags.shape
        mask = mask.type_as(emissions)
        score = self.start_transitions[tags[0]]
        score += emissions[0, torch.arange(batch_size), tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, torch.arange(batch_size), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        last_tags = tags[seq_ends, torch.arange(batch_size)]
        score += self.end_transitions[last_tags]
        return score

    def _compute_normalizer(self, emissions, mask):
        seq_length = emissions.size(0)
        score = self.start_transitions + emissions[0]
        for i in range(1, seq_length):
            broadcast_score = score.unsqueeze(2)
            broadcast_emissions = emissions[i].unsqueeze(1)
            next_score = broadcast_score + self.transitions + broadcast_emissions
            next_score = torch.logsumexp(next_score, dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
        score += self.end_transitions
        return torch.logsumexp(score, dim=1)

    def decode(self, emissions, mask):
        seq_length, batch_size = mask.shape
        score = self.start_transitions + emissions[0]
        history = []
        for i in range(1, seq_length):
            next_score = score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1)
            next_score, indices = next_score.max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
            history.append(indices)
        score += self.end_transitions
        seq_ends = mask.long().sum(dim=0) - 1
        best_tags_list = []
        for idx in range(batch_size):
            _, best_last_tag = score[idx].max(dim=0)
            best_tags = [best_last_tag.item()]
            for hist in reversed(history[: seq_ends[idx]]):
                best_last_tag = hist[idx][best_tags[-1]]
                best_tags.append(best_last_tag.item())
            best_tags.reverse()
            best_tags_list.append(best_tags)
        return best_tags_list


class BiLSTMCRF(nn.Module):
    """Words to emissions."""

    def __init__(self, vocab, dim, num_tags):
        super().__init__()
        self.word_embeds = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, dim // 2, bidirectional=True)
        self.hidden2tag = nn.Linear(dim, num_tags)
        self.crf = CRF(num_tags)

    def emissions(self, sentence):
        lstm_out, _ = self.lstm(self.word_embeds(sentence))
        return self.hidden2tag(lstm_out)


def main(compiled):
    model = filled(BiLSTMCRF(12, 6, 4))
    with torch.no_grad():
        model.crf.start_transitions.copy_(torch.linspace(-0.1, 0.1, 4))
        model.crf.end_transitions.copy_(torch.linspace(0.1, -0.1, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=1e-4)
    words = torch.from_numpy(integers(11, 4, 3)) + 1
    lengths = torch.tensor([4, 2, 3])
    mask = torch.arange(4)[:, None] < lengths[None, :]
    words.masked_fill_(~mask, 0)
    tags = words % 4

    @compiled
    def train_step(words, tags, mask):
        model.zero_grad()
        loss = -model.crf(model.emissions(words), tags, mask)
        loss.backward()
        optimizer.step()
        return loss

    losses = [train_step(words, tags, mask).item() for _ in range(5)]
    with torch.no_grad():
        paths = model.crf.decode(model.emissions(words), mask)
    for path in paths:
        losses += path
    return losses, {"model": model, "optimizer": optimizer}
