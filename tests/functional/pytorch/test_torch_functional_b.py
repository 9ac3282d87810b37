"""Shapes, indices, products, order and text against PyTorch: one program, run by both; values, types and gradients."""

import numpy as np
import pytest

import minitorch as mt

torch = pytest.importorskip("torch")

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]


def both(array, dtype="float64", requires_grad=False):
    """The same values as a tensor of ours, and one of theirs."""
    theirs = torch.tensor(np.asarray(array)).to(getattr(torch, dtype))
    ours = mt.tensor(theirs.double().numpy(), dtype=getattr(mt, dtype))
    return ours.requires_grad_(requires_grad), theirs.requires_grad_(requires_grad)


def tensors(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def agree(ours, theirs):
    ours, theirs = tensors(ours), tensors(theirs)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert str(mine.dtype) == str(other.dtype).replace("torch", "minitorch")
        assert mine.shape == tuple(other.shape)
        wanted = other.detach().double().numpy()
        np.testing.assert_allclose(np.array(mine.tolist(), np.float64).reshape(mine.shape), wanted, rtol=1e-6)


X = np.random.default_rng(0).permutation(24).reshape(2, 3, 4) % 13
M = np.arange(12).reshape(3, 4) % 7

# (library, x) -> result; x is X, of each type.
OF_X = {
    "reshape": lambda lib, x: x.reshape(4, -1),
    "flatten": lambda lib, x: lib.flatten(x, 1),
    "unflatten": lambda lib, x: x.unflatten(-1, (2, 2)),
    "squeeze": lambda lib, x: x[:, :1].squeeze((0, 1)),
    "transpose": lambda lib, x: lib.transpose(x, 0, -1),
    "permute": lambda lib, x: lib.permute(x, (2, 0, 1)),
    "movedim": lambda lib, x: lib.movedim(x, (0, 1), (-1, 0)),
    "mT": lambda lib, x: x.mT,
    "expand": lambda lib, x: x[:, :1].expand(5, -1, 3, 4),
    "atleast_3d": lambda lib, x: lib.atleast_3d(x[0], x[0, 0]),
    "unbind": lambda lib, x: x.unbind(-1),
    "split": lambda lib, x: x.split([1, 3], 2),
    "chunk": lambda lib, x: lib.chunk(x, 3, 2),
    "tensor_split": lambda lib, x: x.tensor_split(3, 2),
    "narrow": lambda lib, x: x.narrow(2, -3, 2),
    "unfold": lambda lib, x: x.unfold(2, 2, 1).unfold(1, 2, 1),
    "diagonal": lambda lib, x: lib.diagonal(x, 1, -1, 0),
    "cat": lambda lib, x: lib.cat([x, x[:, :1], lib.ones(2, 1, 4, dtype=lib.int8)], 1),
    "stack": lambda lib, x: lib.stack([x, x], -2),
    "hstack": lambda lib, x: lib.hstack([x, x]),
    "vstack": lambda lib, x: lib.vstack([x[0], x[0, 0]]),
    "meshgrid": lambda lib, x: lib.meshgrid(x[0, 0], x[0, :, 0], indexing="xy"),
    "flip": lambda lib, x: lib.flip(x, [0, -1]),
    "fliplr": lambda lib, x: lib.fliplr(x),
    "roll": lambda lib, x: x.roll((1, -2), (0, 2)),
    "roll all": lambda lib, x: x.roll(5),
    "repeat": lambda lib, x: x.repeat(2, 1, 2, 1),
    "tile": lambda lib, x: x.tile(2, 2),
    "repeat_interleave": lambda lib, x: x.repeat_interleave(2, 1),
    "repeat_interleave data": lambda lib, x: x.repeat_interleave(lib.tensor([2, 0, 1]), dim=1),
    "diag": lambda lib, x: (lib.diag(x[0], -1), lib.diag(x[0, 0], 1)),
    "diag_embed": lambda lib, x: lib.diag_embed(x, -1, 0, 2),
    "tril": lambda lib, x: x.tril(1),
    "triu": lambda lib, x: lib.triu(x, -1),
    "pad": lambda lib, x: (mt.pad if lib is mt else torch.nn.functional.pad)(x, (1, -1, 0, 2), value=1),
    "index": lambda lib, x: x[1, ..., None, ::2],
    "index arrays": lambda lib, x: x[:, [0, 2, 2], [1, 1, 0]],
    "index apart": lambda lib, x: x[[0, 1], :, [1, 1]],
    "index int and array": lambda lib, x: x[0, :, [1, 3]],
    "index 0-d and array": lambda lib, x: x[lib.tensor(0), :, [1, 3]],
    "index mask": lambda lib, x: x[:, lib.tensor([True, False, True]), 1],
    "index mask of two": lambda lib, x: x[0][x[0] > 5],
    "index bool": lambda lib, x: x[True, 0],
    "gather": lambda lib, x: x.gather(1, lib.tensor([[[2, 0], [1, 1]]])),
    "scatter": lambda lib, x: x.scatter(2, lib.tensor([[[2, 0]], [[3, 1]]]), x[:, :1, 2:]),
    "scatter number": lambda lib, x: x.scatter(0, lib.tensor([[[1, 0, 1]]]), 1),
    "scatter_add": lambda lib, x: x.scatter_add(0, lib.tensor([[[1, 0, 1, 1]], [[1, 1, 1, 1]]]), x[:, 1:2]),
    "take_along_dim": lambda lib, x: lib.take_along_dim(x, lib.tensor([[[1], [0], [3]]]), 2),
    "take": lambda lib, x: lib.take(x, lib.tensor([[0, 23], [5, 5]])),
    "index_select": lambda lib, x: x.index_select(2, lib.tensor([3, 0, 3])),
    "index_add": lambda lib, x: x.index_add(1, lib.tensor([2, 2]), x[:, :2]),
    "index_copy": lambda lib, x: x.index_copy(1, lib.tensor([2, 0]), x[:, :2]),
    "index_fill": lambda lib, x: x.index_fill(1, lib.tensor([2, 0]), 1),
    "masked_fill": lambda lib, x: x.masked_fill(lib.tensor([True, False, False, True]), 1),
    "masked_select": lambda lib, x: x.masked_select(x > 5),
    "sort": lambda lib, x: x.sort(dim=1, stable=True),
    "sort descending": lambda lib, x: lib.sort(x, dim=-1, descending=True, stable=True),
    "argsort": lambda lib, x: x.argsort(dim=0, stable=True),
    "msort": lambda lib, x: lib.msort(x),
    "topk": lambda lib, x: x.topk(2, 1).values,
    "topk smallest": lambda lib, x: x.topk(2, 2, largest=False).values,
    "median": lambda lib, x: lib.median(x),
    "median dim": lambda lib, x: x.median(1, keepdim=True).values,
    "nonzero": lambda lib, x: x.nonzero(),
    "argwhere": lambda lib, x: lib.argwhere(x),
    "unique": lambda lib, x: lib.unique(x, return_inverse=True, return_counts=True),
    "unique dim": lambda lib, x: x[:, 0].unique(dim=1, return_inverse=True),
    "searchsorted": lambda lib, x: lib.searchsorted(x[0, 0].sort().values, x, right=True),
    "bucketize": lambda lib, x: lib.bucketize(x, x[0, 0].sort().values),
    "trace": lambda lib, x: lib.trace(x[0]),
    "kron": lambda lib, x: lib.kron(x[0, :2], x[1]),
    "outer": lambda lib, x: lib.outer(x[0, 0], x[0, :, 0]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_X)
def test_one_tensor(name, dtype):
    function = OF_X[name]
    ours, theirs = both(X, dtype)
    try:
        wanted = function(torch, theirs)
    except (RuntimeError, NotImplementedError) as error:
        assert any(text in str(error) for text in ("not implemented for", "not supported", "bool", "Half"))
        pytest.skip("PyTorch has no kernel for the type")
    agree(function(mt, ours), wanted)


def floats(result):
    return [each for each in tensors(result) if each.is_floating_point() and each.requires_grad]


def gradients_agree(function, arrays):
    """The gradients of a weighted sum of all results."""
    pairs = [both(array, requires_grad=True) for array in arrays]
    for side, lib in enumerate((mt, torch)):
        total = 0
        for each in floats(function(lib, *[pair[side] for pair in pairs])):
            weights = lib.arange(1, each.numel() + 1, dtype=lib.float64).reshape(each.shape)
            total = total + (each * weights).sum()
        if isinstance(total, int):
            return
        total.backward()
    used = [(ours.grad, theirs.grad) for ours, theirs in pairs if theirs.grad is not None]
    agree([ours for ours, _ in used], [theirs for _, theirs in used])


@pytest.mark.parametrize("name", OF_X)
def test_gradients_of_one_tensor(name):
    distinct = np.random.default_rng(1).permutation(24).reshape(2, 3, 4) + 1.0  # no ties: they share differently
    gradients_agree(OF_X[name], [distinct])


A, B, V, W = M[:2, :3] + 1.0, M[:, :4] - 2.0, M[0, :3] + 1.0, M[1, :4] - 3.0
PRODUCTS = {
    "vector vector": (lambda lib, a, b: lib.matmul(a, b), [V, V]),
    "matrix vector": (lambda lib, a, b: a @ b, [A, V]),
    "vector matrix": (lambda lib, a, b: a @ b, [V, B]),
    "matrix matrix": (lambda lib, a, b: a @ b, [A, B]),
    "batch matrix": (lambda lib, a, b: a @ b, [X, X[0].T]),
    "matrix batch": (lambda lib, a, b: a @ b, [X[0].T, X]),
    "batch vector": (lambda lib, a, b: a @ b, [X, W]),
    "vector batch": (lambda lib, a, b: a @ b, [V, X]),
    "batches": (lambda lib, a, b: a[:, None] @ b.mT, [X, X]),
    "mm": (lambda lib, a, b: lib.mm(a, b), [A, B]),
    "bmm": (lambda lib, a, b: lib.bmm(a, b.mT), [X, X]),
    "mv": (lambda lib, a, b: a.mv(b), [A, V]),
    "dot": (lambda lib, a, b: a.dot(b), [V, V]),
    "inner": (lambda lib, a, b: lib.inner(a, b), [X, B]),
    "outer": (lambda lib, a, b: lib.outer(a, b), [V, W]),
    "kron": (lambda lib, a, b: lib.kron(a, b), [A, X]),
    "cross": (lambda lib, a, b: lib.cross(a, b, dim=-1), [A, A[::-1].copy()]),
    "tensordot": (lambda lib, a, b: lib.tensordot(a, b, dims=([0, 2], [0, 2])), [X, X]),
    "addmm": (lambda lib, a, b: lib.addmm(b[0], a, b, beta=0.5, alpha=2), [A, B]),
    "addmv": (lambda lib, a, b: lib.addmv(a[:, 0], a, b), [A, V]),
    "addr": (lambda lib, a, b: lib.addr(a[0, 0], a[0], b), [A, W]),
    "baddbmm": (lambda lib, a, b: lib.baddbmm(a[:, :, :3], a, b.mT, alpha=3), [X, X]),
    "addbmm": (lambda lib, a, b: lib.addbmm(b[0, :, :3], a, b.mT), [X, X]),
    "einsum attention": (lambda lib, a, b: lib.einsum("bqd,bkd->bqk", a, b), [X, X]),
    "einsum dots": (lambda lib, a, b: lib.einsum("...d,ed->...e", a, b), [X, B]),
    "einsum diagonal": (lambda lib, a, b: lib.einsum("ii,ij->ij", a, b), [X[0, :, :3], B]),
    "einsum sum": (lambda lib, a, b: lib.einsum("ij,jk->", a, b), [A, B]),
    "einsum of three": (lambda lib, a, b: lib.einsum("ij,jk,lk->il", a, b, b), [A, B]),
    "einsum broadcast": (lambda lib, a, b: lib.einsum("ij,ij->ij", a, b), [A, A[:1]]),
    "einsum of one": (lambda lib, a, b: lib.einsum("bij->ji", a), [X, A]),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    function, arrays = PRODUCTS[name]
    pairs = [both(array, dtype) for array in arrays]
    try:
        wanted = function(torch, *[theirs for _, theirs in pairs])
    except (RuntimeError, NotImplementedError) as error:
        assert "not implemented for" in str(error) or "beta" in str(error)
        pytest.skip("PyTorch has no kernel for the type")
    if dtype == "int32" and name == "einsum sum":
        wanted = wanted.int()  # what its einsum sums before a product, PyTorch sums in int64
    agree(function(mt, *[ours for ours, _ in pairs]), wanted)


@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_of_products(name):
    function, arrays = PRODUCTS[name]
    gradients_agree(function, arrays)


# Item assignment ------------------------------------------------------------------------------------------

WRITES = {
    "int": lambda lib, x: x.__setitem__(0, 1),
    "slice": lambda lib, x: x.__setitem__((slice(None), slice(0, None, 2)), x[:, :1] + 1),
    "lists": lambda lib, x: x.__setitem__(([0, 1], slice(None), [1, 2]), lib.tensor([[1], [2]]).to(x.dtype)),
    "list and slice": lambda lib, x: x.__setitem__((slice(None), [0, 2]), x[0, :2] * 2),
    "mask": lambda lib, x: x.__setitem__(x > 5, 0),
    "mask and values": lambda lib, x: x.__setitem__(x > 5, lib.arange(int((x > 5).sum())).to(x.dtype)),
    "mask of a dimension": lambda lib, x: x.__setitem__((0, lib.tensor([True, False, True])), x[1, 0]),
    "dots and int": lambda lib, x: x.__setitem__((..., -1), 2),
    "surplus dimensions": lambda lib, x: x.__setitem__((0, 0), lib.ones(1, 1, 4)),
    "through a view": lambda lib, x: x.transpose(0, 2)[1].t().__setitem__((0, 0), 3),
    "augmented": lambda lib, x: x[1].__iadd__(1),
}


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
@pytest.mark.parametrize("name", WRITES)
def test_writing(name, dtype):
    ours, theirs = both(X, dtype)
    WRITES[name](mt, ours)
    WRITES[name](torch, theirs)
    agree(ours, theirs)


WRONG = {
    "index outside": lambda lib, x: x[5],
    "too many indices": lambda lib, x: x[0, 0, 0, 0],
    "step backwards": lambda lib, x: x[::-1],
    "mask of another shape": lambda lib, x: x[lib.tensor([True, False, True])],
    "float index": lambda lib, x: x[lib.tensor([0.5])],
    "reshape": lambda lib, x: x.reshape(5, -1),
    "view of a transpose": lambda lib, x: x.transpose(0, 1).view(-1),
    "expand": lambda lib, x: x.expand(4, 3, 4),
    "permute": lambda lib, x: x.permute(0, 1),
    "squeeze": lambda lib, x: x.squeeze(3),
    "cat": lambda lib, x: lib.cat([x, x[0]]),
    "split": lambda lib, x: x.split([1, 2], 2),
    "matmul": lambda lib, x: x @ x,
    "matmul types": lambda lib, x: x @ lib.ones(4, 4, dtype=lib.float64),
    "mm": lambda lib, x: lib.mm(x, x),
    "topk": lambda lib, x: x.topk(9),
    "gather": lambda lib, x: x.gather(0, lib.tensor([0])),
    "gather outside": lambda lib, x: x.gather(2, lib.tensor([[[4]]])),
    "scatter types": lambda lib, x: x.scatter(0, lib.zeros(2, 3, 4, dtype=lib.int64), lib.zeros(2, 3, 4).double()),
    "einsum": lambda lib, x: lib.einsum("ij", x),
    "write too much": lambda lib, x: x.__setitem__(0, lib.ones(5)),
    "bool of many": lambda lib, x: bool(x),
    "item of many": lambda lib, x: x.item(),
    "iterate a number": lambda lib, x: iter(x[0, 0, 0]),
    "numpy of a leaf": lambda lib, x: lib.ones(2, requires_grad=True).numpy(),
}


@pytest.mark.parametrize("name", WRONG)
def test_both_refuse(name):
    ours, theirs = both(X, "float32")
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
        WRONG[name](torch, theirs)
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError)):
        WRONG[name](mt, ours)


# Text -----------------------------------------------------------------------------------------------------

RANDOM = np.random.default_rng(2)
PRINTED = {
    "integers": X,
    "fractions": X / 7,
    "whole": X * 10.0,
    "negative": 5.0 - X,
    "wide": np.exp(X * 1.0),
    "large": X * 1e9,
    "tiny": X * 1e-6,
    "zero": np.zeros((2, 3)),
    "specials": np.array([1.0, np.nan, -np.inf, 0.5]),
    "whole specials": np.array([1.0, np.nan, -np.inf, 20.0]),
    "only nan": np.array([np.nan, np.inf]),
    "number": np.array(0.3),
    "nothing": np.zeros((0,)),
    "nothing of two": np.zeros((2, 0)),
    "one long row": RANDOM.normal(size=50),
    "summary": RANDOM.normal(size=2000),
    "summary of a matrix": RANDOM.normal(size=(40, 50)),
    "summary of four": RANDOM.normal(size=(7, 8, 9, 10)),
    "wide matrix": RANDOM.normal(size=(3, 30)),
    "narrow summary": RANDOM.normal(size=(600, 2)),
    "batches": RANDOM.integers(0, 1000, (2, 2, 2, 2)),
}


@pytest.mark.parametrize("dtype", [*DTYPES, "int8", "int16", "uint32"])
@pytest.mark.parametrize("name", PRINTED)
def test_repr(name, dtype):
    array = PRINTED[name]
    if "float" not in dtype:
        array = np.clip(np.nan_to_num(array), 0, 100)
    ours, theirs = both(array, dtype)
    assert repr(ours) == repr(theirs).replace("torch.", "minitorch.").replace("size=torch.Size", "size=")
    if ours.is_floating_point() and ours.numel():
        ours.requires_grad_()
        assert repr(ours).split() == repr(theirs.requires_grad_()).replace("torch.", "minitorch.").split()


@pytest.mark.parametrize("options", [{"precision": 2}, {"threshold": 5, "edgeitems": 2}, {"linewidth": 40},
                                     {"sci_mode": True}, {"sci_mode": False}, {"profile": "short"}])  # fmt: skip
def test_set_printoptions(options):
    try:
        for library in (mt, torch):
            library.set_printoptions(**options)
        for array in (X * 1.5, X * 1e6, RANDOM.normal(size=40), RANDOM.normal(size=(40, 30))):
            ours, theirs = both(array, "float64")
            assert repr(ours).split() == repr(theirs).replace("torch.", "minitorch.").split()
    finally:
        for library in (mt, torch):
            library.set_printoptions(profile="default")


# DLPack ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bfloat16"])
def test_dlpack_with_pytorch(dtype):
    ours, theirs = both(X % 2, dtype)
    there, here = torch.from_dlpack(ours), mt.from_dlpack(theirs)
    agree(ours, there)
    agree(here, theirs)
    ours[0] = 1
    theirs[0] = 1
    agree(ours, there)
    agree(here, theirs)


def test_dlpack_refuses_bfloat16():
    ours, theirs = both(X, "bfloat16")
    with pytest.raises(BufferError, match="float"):
        torch.from_dlpack(ours)
    with pytest.raises(TypeError, match="MT202"):
        mt.from_dlpack(theirs)
