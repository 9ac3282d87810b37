"""A VQ-VAE whose codebook is a moving average: buffers are assigned in `forward`; gradients pass straight through."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, normal


class VectorQuantizerEMA(nn.Module):
    """Van den Oord et al., 2017, with exponential moving averages."""

    def __init__(self, num_embeddings, embedding_dim, commitment_cost, decay, epsilon=1e-5):
        super().__init__()
        self._embedding_dim = embedding_dim
        self._num_embeddings = num_embeddings
        self._embedding = nn.Embedding(self._num_embeddings, self._embedding_dim)
        self._embedding.weight.data.normal_()
        self._commitment_cost = commitment_cost
        self.register_buffer("_ema_cluster_size", torch.zeros(num_embeddings))
        self._ema_w = nn.Parameter(torch.Tensor(num_embeddings, self._embedding_dim))
        self._ema_w.data.normal_()
        self._decay = decay
        self._epsilon = epsilon

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        input_shape = inputs.shape
        flat_input = inputs.view(-1, self._embedding_dim)

        distances = (
            torch.sum(flat_input**2, dim=1, keepdim=True)
            + torch.sum(self._embedding.weight**2, dim=1)
            - 2 * torch.matmul(flat_input, self._embedding.weight.t())
        )
        encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
        encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings, device=inputs.device)
        encodings.scatter_(1, encoding_indices, 1)
        quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)

        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (1 - self._decay) * torch.sum(encodings, 0)
            # Laplace smoothing of the cluster size
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (
                (self._ema_cluster_size + self._epsilon) / (n + self._num_embeddings * self._epsilon) * n
            )
            dw = torch.matmul(encodings.t(), flat_input)
            self._ema_w.data.mul_(self._decay).add_(dw.detach(), alpha=1 - self._decay)
            self._embedding.weight.data = self._ema_w.data / self._ema_cluster_size.unsqueeze(1)

        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        loss = self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs).detach()
        avg_probs = torch.mean(encodings, dim=0)
        perplexity = torch.exp(-torch.sum(avg_probs * torch.log(avg_probs + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, encodings


class Model(nn.Module):
    """Encoder, codebook, decoder."""

    def __init__(self):
        super().__init__()
        self._encoder = nn.Sequential(nn.Conv2d(1, 6, 4, stride=2, padding=1), nn.ReLU(True), nn.Conv2d(6, 4, 1))
        self._vq_vae = VectorQuantizerEMA(8, 4, commitment_cost=0.25, decay=0.9)
        self._decoder = nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(True), nn.ConvTranspose2d(4, 1, 4, 2, 1))

    def forward(self, x):
        z = self._encoder(x)
        loss, quantized, perplexity, _ = self._vq_vae(z)
        return loss, self._decoder(quantized), perplexity


def main(compiled):
    model = filled(Model())
    data = torch.from_numpy(normal(6, 1, 8, 8))
    learned = [*model._encoder.parameters(), *model._decoder.parameters()]
    optimizer = torch.optim.Adam(learned, lr=1e-2, amsgrad=False)
    data_variance = torch.var(data / 1.0)

    @compiled
    def train_step(data):
        optimizer.zero_grad()
        vq_loss, data_recon, perplexity = model(data)
        recon_error = F.mse_loss(data_recon, data) / data_variance
        loss = recon_error + vq_loss
        loss.backward()
        optimizer.step()
        return recon_error, perplexity

    model.train()
    train_res_recon_error, train_res_perplexity = [], []
    for i in range(6):
        recon_error, perplexity = train_step(data[i % 3 :: 3])
        train_res_recon_error.append(recon_error.item())
        train_res_perplexity.append(perplexity.item())
    model.eval()
    with torch.no_grad():
        train_res_recon_error.append(model(data)[0].item())
    return train_res_recon_error + train_res_perplexity, {"model": model, "optimizer": optimizer}
