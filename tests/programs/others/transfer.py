"""Transfer learning: a frozen body, another head, checkpoints in between, layers that thaw, groups that are added."""

import copy
import io

import torch
import torch.nn as nn

from tests.support.numbers import filled, integers, normal


class ConvNet(nn.Module):
    """A body and a head."""

    def __init__(self, num_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same", bias=False),
            nn.BatchNorm2d(4, momentum=None),
            nn.ReLU6(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, 3, groups=2),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(6, num_classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def set_parameter_requires_grad(model, feature_extracting):
    if feature_extracting:
        for param in model.parameters():
            param.requires_grad = False


def main(compiled):
    x = torch.from_numpy(normal(12, 1, 8, 8))
    y = torch.from_numpy(integers(3, 12))
    model = filled(ConvNet(10))
    set_parameter_requires_grad(model, True)
    num_ftrs = model.classifier.in_features
    model.classifier = filled(nn.Linear(num_ftrs, 3), seed=5)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))
    params_to_update = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params_to_update, lr=0.1, momentum=0.9)
    best_acc, best_model_wts = 0.0, copy.deepcopy(model.state_dict())

    @compiled
    def step(inputs, labels):
        optimizer.zero_grad()
        outputs = model(inputs)
        _, preds = torch.max(outputs, 1)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        return loss, torch.sum(preds == labels.data)

    @compiled
    def evaluate(inputs, labels):
        with torch.no_grad():
            outputs = model(inputs)
            return criterion(outputs, labels), (outputs.argmax(1) == labels).float().mean()

    losses, checkpoint = [], io.BytesIO()
    for epoch in range(5):
        if epoch == 2:  # thaw the last convolution, and learn it more slowly
            for param in model.features[4].parameters():
                param.requires_grad = True
            optimizer.add_param_group({"params": list(model.features[4].parameters()), "lr": 0.01})
        if epoch == 4:  # go on from the checkpoint
            checkpoint.seek(0)
            state = torch.load(checkpoint)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
        for phase in ("train", "val"):
            if phase == "train":
                model.train()
                for start in range(0, 8, 4):
                    loss, right = step(x[start : start + 4], y[start : start + 4])
                    losses += [loss.item(), right.item()]
            else:
                model.eval()
                loss, acc = evaluate(x[8:], y[8:])
                losses += [loss.item(), acc.item()]
                if acc >= best_acc:
                    best_acc, best_model_wts = acc, copy.deepcopy(model.state_dict())
        if epoch == 2:
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint)
    last = copy.deepcopy(model)
    model.load_state_dict(best_model_wts)
    return losses, {"best": model, "last": last, "optimizer": optimizer}
