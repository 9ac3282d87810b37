"""An encoder-decoder transformer that reverses sequences: masks, sinusoids in a buffer, a schedule, greedy decoding."""

import math

import torch
import torch.nn as nn

from tests.support.numbers import filled, integers

PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2


class PositionalEncoding(nn.Module):
    """Sinusoids, added to the embeddings."""

    def __init__(self, emb_size, dropout, maxlen=20):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        pos_embedding = pos_embedding.unsqueeze(-2)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding)

    def forward(self, token_embedding):
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class Seq2SeqTransformer(nn.Module):
    """`nn.Transformer` between embeddings and a generator."""

    def __init__(self, num_layers, emb_size, nhead, vocab_size, dim_feedforward):
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=emb_size,
            nhead=nhead,
            num_encoder_layers=num_layers,
            num_decoder_layers=num_layers,
            dim_feedforward=dim_feedforward,
            dropout=0.0,
        )
        self.generator = nn.Linear(emb_size, vocab_size)
        self.tok_emb = nn.Embedding(vocab_size, emb_size, padding_idx=PAD_IDX)
        self.emb_size = emb_size
        self.positional_encoding = PositionalEncoding(emb_size, dropout=0.0)

    def embed(self, tokens):
        return self.positional_encoding(self.tok_emb(tokens.long()) * math.sqrt(self.emb_size))

    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        outs = self.transformer(
            self.embed(src),
            self.embed(trg),
            src_mask,
            tgt_mask,
            None,
            src_padding_mask,
            tgt_padding_mask,
            memory_key_padding_mask,
        )
        return self.generator(outs)


def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz))) == 1).transpose(0, 1)
    mask = mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)
    return mask


def create_mask(src, tgt):
    src_seq_len = src.shape[0]
    tgt_mask = generate_square_subsequent_mask(tgt.shape[0])
    src_mask = torch.zeros((src_seq_len, src_seq_len)).type(torch.bool)
    src_padding_mask = (src == PAD_IDX).transpose(0, 1)
    tgt_padding_mask = torch.zeros(tgt.shape[1], tgt.shape[0]).masked_fill(tgt.T == PAD_IDX, float("-inf"))
    return src_mask, tgt_mask, src_padding_mask, tgt_padding_mask


def batch(seed):
    src = torch.from_numpy(integers(8, 5, 4, seed=seed)) + 3
    src[3:, 1] = PAD_IDX
    bos, eos = torch.full((1, 4), BOS_IDX), torch.full((1, 4), EOS_IDX)
    tgt = torch.cat([bos, src.flip(0).where(src.flip(0) != PAD_IDX, EOS_IDX), eos])
    return src, tgt


def main(compiled):
    transformer = Seq2SeqTransformer(1, 8, 2, vocab_size=11, dim_feedforward=16)
    for p in transformer.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    filled(transformer)
    transformer.double()
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX, label_smoothing=0.1)
    optimizer = torch.optim.Adam(transformer.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    noam = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: 8**-0.5 * min((t + 1) ** -0.5, (t + 1) * 8**-1.5))

    @compiled
    def train_step(src, tgt):
        tgt_input = tgt[:-1, :]
        src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input)
        logits = transformer(
            src, tgt_input, src_mask, tgt_mask.double(), src_padding_mask, tgt_padding_mask.double(), src_padding_mask
        )
        optimizer.zero_grad()
        tgt_out = tgt[1:, :]
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    transformer.train()
    for step in range(6):
        loss = train_step(*batch(step % 2))
        noam.step()
        losses.append(loss.item())
    transformer.eval()
    src, _ = batch(0)
    ys = torch.ones(1, 4).fill_(BOS_IDX).type(torch.long)
    with torch.no_grad():
        memory = transformer.transformer.encoder(transformer.embed(src), src_key_padding_mask=(src == PAD_IDX).T)
        for _ in range(4):
            tgt_mask = torch.nn.Transformer.generate_square_subsequent_mask(ys.size(0)).double()
            out = transformer.transformer.decoder(transformer.embed(ys), memory, tgt_mask)
            prob = transformer.generator(out.transpose(0, 1)[:, -1])
            _, next_word = torch.max(prob, dim=1)
            ys = torch.cat([ys, next_word.unsqueeze(0)], dim=0)
    return losses, {"transformer": transformer, "optimizer": optimizer, "memory": memory, "ys": ys}
