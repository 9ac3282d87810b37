"""The tables of `test_promotion.py` are PyTorch's; run this file as a script to print them anew."""

import pytest

from minitorch import dtypes

torch = pytest.importorskip("torch")

SHORT = {f"torch.{dtype.name}": dtype.short for dtype in dtypes.ALL}
NUMBERS = {"True": True, "1": 1, "1.5": 1.5}


def tensors(shape):
    return {dtype.short: torch.ones(shape, dtype=getattr(torch, dtype.name)) for dtype in dtypes.ALL}


def answer(a, b):
    try:
        return SHORT[str(torch.result_type(a, b))]
    except RuntimeError:
        return "-"


def table(left, right):
    rows = [["", *right], *([name, *(answer(a, b) for b in right.values())] for name, a in left.items())]
    return "\n".join(" ".join(f"{cell:5}" for cell in row).rstrip() for row in rows)


def tables():
    full, none = tensors(2), tensors(())
    return {
        "full, full": table(full, full),
        "full, 0-d": table(full, none | NUMBERS),
        "0-d, 0-d": table(none, none | NUMBERS),
    }


def test_the_tables_are_what_pytorch_says():
    from tests.functional.types.test_promotion import TABLES

    for title, text in tables().items():
        assert text.split() == TABLES[title].split(), title


if __name__ == "__main__":
    for title, text in tables().items():
        print(title, text, sep="\n")
