"""Neural style transfer: losses that are modules and keep their value, an optimised picture, a frozen network."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from tests.support.numbers import filled, uniform


class ContentLoss(nn.Module):
    """Pass the features on, and keep their distance from a target."""

    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class StyleLoss(nn.Module):
    """Pass the features on, and keep the distance of their Gram matrix from a target's."""

    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        G = gram_matrix(input)
        self.loss = F.mse_loss(G, self.target)
        return input


class Normalization(nn.Module):
    """Subtract a mean and divide by a deviation, for each channel."""

    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean.clone().detach().view(-1, 1, 1)
        self.std = std.clone().detach().view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def get_style_model_and_losses(cnn, style_img, content_img):
    normalization = Normalization(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225]))
    content_losses, style_losses = [], []
    model = nn.Sequential(normalization)
    i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
            name = f"conv_{i}"
        elif isinstance(layer, nn.ReLU):
            name = f"relu_{i}"
            layer = nn.ReLU(inplace=False)
        elif isinstance(layer, nn.MaxPool2d):
            name = f"pool_{i}"
        else:
            raise RuntimeError(f"Unrecognized layer: {layer.__class__.__name__}")
        model.add_module(name, layer)
        if name == "conv_2":
            target = model(content_img).detach()
            content_loss = ContentLoss(target)
            model.add_module(f"content_loss_{i}", content_loss)
            content_losses.append(content_loss)
        if name in ("conv_1", "conv_2"):
            target_feature = model(style_img).detach()
            style_loss = StyleLoss(target_feature)
            model.add_module(f"style_loss_{i}", style_loss)
            style_losses.append(style_loss)
    for i in range(len(model) - 1, -1, -1):
        if isinstance(model[i], (ContentLoss, StyleLoss)):
            break
    return model[: (i + 1)], style_losses, content_losses


def main(compiled):
    vgg = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(True), nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2)
    )
    vgg = filled(vgg).eval()
    style_img, content_img = torch.tensor(uniform(1, 3, 9, 9, seed=1)), torch.tensor(uniform(1, 3, 9, 9, seed=2))
    input_img = content_img.clone()
    model, style_losses, content_losses = get_style_model_and_losses(copy.deepcopy(vgg), style_img, content_img)
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = optim.Adam([input_img], lr=0.02)

    @compiled
    def step():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = 0
        content_score = 0
        for sl in style_losses:
            style_score += sl.loss
        for cl in content_losses:
            content_score += cl.loss
        style_score *= 1e3
        loss = style_score + content_score
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for _ in range(6):
        loss = step()
        losses += [loss.item(), *(each.loss.item() for each in style_losses), content_losses[0].loss.item()]
    input_img.data.clamp_(0, 1)
    return losses, {"image": input_img, "optimizer": optimizer}
