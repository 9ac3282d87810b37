"""A denoising diffusion model: schedules in buffers, embeddings of time, a moving average with a counter, sampling."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, integers, normal


def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


class SinusoidalPosEmb(nn.Module):
    """Sines and cosines of the time."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=x.device) * -emb)
        emb = x[:, None] * emb[None, :]
        emb = torch.cat((emb.sin(), emb.cos()), dim=-1)
        return emb


class Denoiser(nn.Module):
    """Convolutions, shifted and scaled by the time."""

    def __init__(self, dim=6):
        super().__init__()
        self.time_mlp = nn.Sequential(
            SinusoidalPosEmb(dim), nn.Linear(dim, dim * 2), nn.SiLU(), nn.Linear(dim * 2, dim * 2)
        )
        self.conv_in = nn.Conv2d(1, dim, 3, padding=1)
        self.norm = nn.GroupNorm(2, dim)
        self.conv_out = nn.Conv2d(dim, 1, 3, padding=1)

    def forward(self, x, time):
        scale, shift = self.time_mlp(time)[:, :, None, None].chunk(2, dim=1)
        h = self.norm(self.conv_in(x))
        h = h * (scale + 1) + shift
        return self.conv_out(F.silu(h))


class GaussianDiffusion(nn.Module):
    """Ho et al., 2020."""

    def __init__(self, model, timesteps):
        super().__init__()
        self.model = model
        self.num_timesteps = timesteps
        betas = torch.linspace(1e-3, 0.3, timesteps, dtype=torch.float64)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))  # noqa: E731
        register_buffer("betas", betas)
        register_buffer("sqrt_recip_alphas", torch.rsqrt(alphas))
        register_buffer("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        register_buffer("sqrt_one_minus_alphas_cumprod", torch.sqrt(1.0 - alphas_cumprod))
        posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
        register_buffer("posterior_std", posterior_variance.clamp(min=1e-20).sqrt())
        snr = alphas_cumprod / (1 - alphas_cumprod)
        maybe_clipped_snr = snr.clone()
        maybe_clipped_snr.clamp_(max=5)
        register_buffer("loss_weight", maybe_clipped_snr / snr)

    @torch.no_grad()
    def p_sample(self, x, t, noise):
        batched_times = torch.full((x.shape[0],), t, device=x.device, dtype=torch.long)
        pred_noise = self.model(x, batched_times)
        scale = extract(self.betas / self.sqrt_one_minus_alphas_cumprod, batched_times, x.shape)
        mean = extract(self.sqrt_recip_alphas, batched_times, x.shape) * (x - scale * pred_noise)
        mean.clamp_(-3.0, 3.0)
        if t == 0:
            return mean
        return mean + extract(self.posterior_std, batched_times, x.shape) * noise

    def forward(self, img, t, noise):
        x = extract(self.sqrt_alphas_cumprod, t, img.shape) * img
        x += extract(self.sqrt_one_minus_alphas_cumprod, t, img.shape) * noise
        model_out = self.model(x, t)
        loss = F.mse_loss(model_out, noise, reduction="none")
        loss = loss.flatten(1).mean(dim=1)
        loss = loss * extract(self.loss_weight, t, loss.shape)
        return loss.mean()


class EMA(nn.Module):
    """A moving average of a model, which begins after some updates."""

    def __init__(self, model, beta=0.9, update_after_step=2):
        super().__init__()
        self.online_model = [model]
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
        self.beta = beta
        self.update_after_step = update_after_step
        self.register_buffer("initted", torch.tensor(False))
        self.register_buffer("step", torch.tensor(0))

    @torch.no_grad()
    def update(self):
        decay = torch.where(self.step < self.update_after_step, 0.0, (1 + self.step) / (10 + self.step)).clamp(
            max=self.beta
        )
        self.initted = self.initted | (self.step >= self.update_after_step)
        self.step += 1
        for (_, ma), (_, current) in zip(self.ema_model.named_parameters(), self.online_model[0].named_parameters()):
            ma.lerp_(current.data, 1.0 - decay)


def main(compiled):
    diffusion = GaussianDiffusion(filled(Denoiser()), timesteps=5)
    opt = torch.optim.Adam(diffusion.parameters(), lr=2e-2, betas=(0.9, 0.99))
    ema = EMA(diffusion)
    data = torch.from_numpy(np.tanh(normal(6, 4, 1, 6, 6)))
    times, noises = torch.from_numpy(integers(5, 6, 4)), torch.from_numpy(normal(6, 4, 1, 6, 6, seed=1))

    @compiled
    def train_step(img, t, noise):
        loss = diffusion(img, t, noise)
        loss.backward()
        nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        ema.update()
        return loss

    losses = [train_step(*each).item() for each in zip(data, times, noises)]
    ema.ema_model.eval()
    img = torch.from_numpy(normal(2, 1, 6, 6, seed=2))
    for t in reversed(range(5)):
        img = ema.ema_model.p_sample(img, t, noises[t, :2])
        losses.append(img.abs().mean().item())
    return losses, {"diffusion": diffusion, "ema": ema, "optimizer": opt, "img": img}
