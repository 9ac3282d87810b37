"""Handwritten digits included in scikit-learn: 1797 images of 8 x 8 pixels, no download."""

from __future__ import annotations

import numpy as np

from ..functional.creation.data import from_numpy
from ..functional.creation.generator import Generator
from ..functional.creation.random import randperm
from ..tensor import Tensor

Part = tuple[Tensor, Tensor]

TEST_SAMPLES = 360  # a fifth


def load_digits() -> tuple[Part, Part]:
    """Return images and labels of handwritten digits, for training and for testing; the split is always the same.

    Returns:
        ``(images, labels), (test_images, test_labels)``: float32 [n, 64] from 0 to 1, and int64 [n]; n is 1437 and 360.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed.

    Example:
        >>> import minitorch as mt
        >>> (x, y), (x_test, y_test) = mt.data.load_digits()
        >>> x.shape, y.shape, x_test.shape, x.max()
        ((1437, 64), (1437,), (360, 64), tensor(1.))
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "load_digits reads the digits that scikit-learn brings along, which is not installed: "
            "pip install scikit-learn"
        ) from None
    pixels, classes = datasets.load_digits(return_X_y=True)
    order = randperm(len(pixels), generator=Generator().manual_seed(0)).numpy()
    images = from_numpy((pixels[order] / 16).astype(np.float32))
    labels = from_numpy(classes[order].astype(np.int64))
    first = len(order) - TEST_SAMPLES
    return (images[:first], labels[:first]), (images[first:], labels[first:])
