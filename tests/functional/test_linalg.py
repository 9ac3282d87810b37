"""Products: as NumPy, for all ranks, eagerly and recorded; few primitives, and no copies where views do."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minitorch as mt
from minitorch.errors import AutogradError, DTypeError, ShapeError
from minitorch.interpreters import Staging, interpreting
from minitorch.ir import Spec
from minitorch.tensor import with_value
from tests.support.helpers import check


def numbers(*shape):
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(np.float64)


# matmul ---------------------------------------------------------------------------------------------------

RANKS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((5, 0, 2, 3), (3, 4)),
]


@pytest.mark.parametrize(("left", "right"), RANKS)
def test_matmul_of_all_ranks(left, right):
    a, b = numbers(*left), numbers(*right)
    check(mt.matmul, a, b, expected=np.matmul(a, b))
    check(lambda a, b: a @ b, a.astype(np.int32), b.astype(np.int32))


def nodes_of(function, *shapes):
    staging = Staging("the test")
    with interpreting(staging):
        function(*[with_value(staging.input(Spec(shape, mt.float32), "x")) for shape in shapes])
    return staging.nodes


def primitives_of(function, *shapes):
    return [node.primitive.name for node in nodes_of(function, *shapes)]


def test_matmul_is_dot_and_views():
    assert primitives_of(mt.matmul, (2, 3), (3, 4)) == ["dot"]
    assert primitives_of(mt.matmul, (5, 2, 3), (5, 3, 4)) == ["dot"]
    assert primitives_of(mt.matmul, (5, 2, 3), (3, 4)) == ["reshape", "dot", "reshape"]  # one product, not five
    assert set(primitives_of(mt.matmul, (5, 1, 2, 3), (6, 3, 4))) == {"expand", "dot"}


def test_matmul_with_arrays():
    a = numbers(2, 3)
    assert (mt.tensor(a) @ a.T).tolist() == (a @ mt.tensor(a.T)).tolist() == (a @ a.T).tolist()
    with pytest.raises(TypeError, match="unsupported operand"):
        mt.tensor(a) @ "x"  # type: ignore[operator]


def test_half_precision_is_summed_in_float32():
    a = np.full((1, 4096), 1.0, np.float16)
    assert check(mt.matmul, a, a.T)[0].item() == 4096  # a sum in float16 stops growing at 2048


# The others -----------------------------------------------------------------------------------------------

A, B, V, W = numbers(2, 3), numbers(3, 4), numbers(3), numbers(4)
BATCH, OTHER = numbers(5, 2, 3), numbers(5, 3, 4)
ROWS = {
    "mm": (mt.mm, (A, B), A @ B),
    "bmm": (mt.bmm, (BATCH, OTHER), BATCH @ OTHER),
    "mv": (mt.mv, (A, V), A @ V),
    "dot": (mt.dot, (V, V), np.asarray(V @ V)),
    "outer": (mt.outer, (V, W), np.outer(V, W)),
    "inner": (mt.inner, (BATCH, A), np.inner(BATCH, A)),
    "inner with a number": (mt.inner, (A, np.float64(2)), A * 2),
    "tensordot": (lambda a, b: mt.tensordot(a, b, 1), (A, B), np.tensordot(A, B, 1)),
    "tensordot of nothing": (lambda a, b: mt.tensordot(a, b, 0), (A, V), np.tensordot(A, V, 0)),
    "tensordot over two": (
        lambda a, b: mt.tensordot(a, b, ([-1, 0], [1, 0])),
        (BATCH, OTHER),
        np.tensordot(BATCH, OTHER, ([-1, 0], [1, 0])),
    ),
    "tensordot of length 1": (
        lambda a, b: mt.tensordot(a, b, ([0, 1], [1, 2])),
        (A[:, :1], BATCH),
        np.tensordot(np.repeat(A[:, :1], 3, 1), BATCH, ([0, 1], [1, 2])),
    ),
    "kron": (mt.kron, (A, V), np.kron(A, V)),
    "trace": (mt.trace, (A,), np.asarray(np.trace(A))),
    "trace of integers": (mt.trace, (A.astype(np.int8),), np.asarray(np.trace(A), np.int64)),
    "cross": (mt.cross, (A, V[None]), np.cross(A, V[None])),
    "cross dim": (lambda a, b: mt.cross(a, b, 0), (B, B[::-1]), np.cross(B, B[::-1], axis=0)),
    "addmm": (lambda x, a, b: mt.addmm(x, a, b, beta=2, alpha=-1), (W, A, B), 2 * W - A @ B),
    "addmv": (mt.addmv, (A[:, 0], A, V), A[:, 0] + A @ V),
    "addr": (mt.addr, (B, V, W), B + np.outer(V, W)),
    "baddbmm": (mt.baddbmm, (W, BATCH, OTHER), W + BATCH @ OTHER),
    "addbmm": (mt.addbmm, (W, BATCH, OTHER), W + (BATCH @ OTHER).sum(0)),
    "addmm without": (lambda x, a, b: mt.addmm(x, a, b, beta=0), (W * np.nan, A, B), A @ B),
}


@pytest.mark.parametrize("name", ROWS)
def test_as_numpy(name):
    function, arrays, wanted = ROWS[name]
    check(function, *arrays, expected=wanted)


ERRORS = {
    "matmul lengths": (lambda: mt.zeros(2, 3) @ mt.zeros(2, 3), ShapeError, "transpose"),
    "matmul batched": (lambda: mt.zeros(2, 2, 3) @ mt.zeros(2, 3), ShapeError, "3 elements on the left and 2"),
    "matmul batches": (lambda: mt.zeros(2, 2, 3) @ mt.zeros(3, 3, 2), ShapeError, "broadcast"),
    "matmul of a number": (lambda: mt.zeros(()) @ mt.zeros(3), ShapeError, r"use a \* b"),
    "matmul types": (lambda: mt.zeros(2, 2) @ mt.zeros(2, 2, dtype=mt.int64), DTypeError, r"b\.to\(a\.dtype\)"),
    "mm of vectors": (lambda: mt.zeros(3).mm(mt.zeros(3)), ShapeError, "2 and 2 dimensions"),
    "bmm of batches": (lambda: mt.zeros(1, 2, 3).bmm(mt.zeros(2, 3, 2)), ShapeError, "equal batches"),
    "addmm of a wider": (
        lambda: mt.addmm(mt.zeros(2, 2, 2), mt.zeros(2, 2), mt.zeros(2, 2)),
        ShapeError,
        "does not broadcast to the product",
    ),
    "tensordot": (lambda: mt.tensordot(mt.zeros(2, 3), mt.zeros(2, 3), 1), ShapeError, "do not fit"),
    "inner of length 1": (lambda: mt.inner(mt.zeros(2, 3), mt.zeros(2, 1)), ShapeError, "inner"),
    "tensordot dims": (lambda: mt.tensordot(mt.zeros(1), mt.zeros(1), -1), ValueError, "summed over, not -1"),
    "einsum terms": (lambda: mt.einsum("ij,jk", mt.zeros(2, 2)), ValueError, "2 terms for 1 tensors"),
    "einsum names": (lambda: mt.einsum("ij", mt.zeros(2)), ValueError, "names 2 dimensions"),
    "einsum result": (lambda: mt.einsum("i->ij", mt.zeros(2)), ValueError, "no operand has"),
    "einsum twice": (lambda: mt.einsum("i->ii", mt.zeros(2)), ValueError, "twice"),
    "einsum letters": (lambda: mt.einsum("i1", mt.zeros(2, 2)), ValueError, "something else"),
    "einsum dots": (lambda: mt.einsum("..i", mt.zeros(2, 2)), ValueError, "not ..."),
    "einsum lengths": (lambda: mt.einsum("i,i", mt.zeros(2), mt.zeros(3)), ShapeError, "lengths 2 and 3"),
    "einsum diagonal": (lambda: mt.einsum("ii", mt.zeros(2, 3)), ShapeError, "lengths 2 and 3"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    function, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        function()


# einsum ---------------------------------------------------------------------------------------------------

EQUATIONS = {
    "ij->ji": (A,),
    "ij": (A,),
    "ba": (A,),
    "ij->": (A,),
    "ii": (numbers(3, 3),),
    "ii->i": (numbers(3, 3),),
    "iij->ji": (numbers(3, 3, 2),),
    "iji->j": (numbers(3, 2, 3),),
    "...ij->...ji": (BATCH,),
    "ij,jk": (A, B),
    "ij,jk->ki": (A, B),
    "bij,bjk->bik": (BATCH, OTHER),
    "bij,bjk->ik": (BATCH, OTHER),
    "bij,bjk->": (BATCH, OTHER),
    "...ij,jk->...ik": (BATCH, B),
    "...ij,...jk->i...": (BATCH, OTHER),
    "b...,...": (BATCH, A),
    "i,j->ij": (V, W),
    "i,j": (V, W),
    "i,i": (V, V),
    ",i": (np.float64(2), V),
    "ij,ij->ij": (A, A),
    "ij,kj->ik": (A, A),
    "ij,j,ik->k": (A, V, A),
    "ij,jk,kl->il": (A, B, B.T),
    "ij,jk,kl,lm->im": (A, B, B.T, A.T),
    "i j , j k -> i k": (A, B),
    "Ab,bA": (A, A.T),
    "ij,jj->i": (A, numbers(3, 3)),
    "ij,ij->": (A, numbers(2, 1)),
    "kj,ij->ij": (A, numbers(1, 3)),
    "i,i->i": (numbers(1), V),
    "i->": (numbers(0),),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_as_numpy(equation):
    arrays = EQUATIONS[equation]
    wanted = np.asarray(np.einsum(equation, *arrays))
    check(lambda *xs: mt.einsum(equation, *xs), *arrays, expected=wanted)


@st.composite
def products(draw):
    """Random equations: letters with lengths (1 broadcasts), dots in some terms, an explicit or implicit result."""
    length = {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    hidden = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, arrays = [], []
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.lists(st.sampled_from("abcd"), max_size=3))
        shape = [1 if draw(st.integers(0, 5)) == 0 and letters.count(x) == 1 else length[x] for x in letters]
        term = "".join(letters)
        if draw(st.booleans()):
            at = draw(st.integers(0, len(letters)))
            dots = hidden[draw(st.integers(0, len(hidden))) :]
            term = term[:at] + "..." + term[at:]
            shape[at:at] = dots
        terms.append(term)
        arrays.append(numbers(*shape))
    equation = ",".join(terms)
    letters = sorted({x for x in equation if x.isalpha()})
    if draw(st.booleans()):
        named = draw(st.lists(st.sampled_from(letters), unique=True)) if letters else []
        equation += "->" + ("..." if "..." in equation else "") + "".join(named)
    return equation, arrays


@given(products())
def test_random_einsums_as_numpy(case):
    equation, arrays = case
    wanted = np.asarray(np.einsum(equation, *arrays))
    check(lambda *xs: mt.einsum(equation, *xs), *arrays, expected=wanted)


def test_einsum_contracts_by_dot():
    assert primitives_of(lambda a, b: mt.einsum("ij,jk->ik", a, b), (2, 3), (3, 4)) == ["dot"]
    assert "dot" not in primitives_of(lambda a, b: mt.einsum("ij,ij->ij", a, b), (2, 3), (2, 3))
    names = primitives_of(lambda a, b: mt.einsum("bhqd,bhkd->bhqk", a, b), (2, 3, 4, 5), (2, 3, 6, 5))
    assert names == ["permute", "dot"]  # attention's scores: one batched product on views


def test_einsum_starts_with_the_cheapest_pair():
    nodes = nodes_of(lambda *xs: mt.einsum("ij,jk,k->i", *xs), (500, 2), (2, 500), (500,))
    assert max(node.spec.size for node in nodes) <= 1000  # never the 500 x 500 matrix


@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_dimensions_are_those_of_what_the_operands_are_broadcast_to(wrap):
    """A dimension counted from the end, or from the beginning, of operands with other ranks and lengths of 1."""
    functions: list[Callable[..., mt.Tensor]] = [mt.nn.functional.cosine_similarity, mt.cross]
    for function, a, b in itertools.product(functions, [(1, 3, 4), (3, 1), (2, 3, 4)], [(2, 1, 4), (1, 3, 1), (4,)]):
        x, y = mt.randn(a), mt.randn(b)
        full = mt.broadcast_tensors(x, y)
        for dim in (1, -2):
            if full[0].ndim == 3 and full[0].shape[dim] == 3:
                expected = function(full[0].contiguous(), full[1].contiguous(), dim=dim)
                found = wrap(lambda x, y, f=function, d=dim: f(x, y, dim=d))(x, y)
                assert mt.allclose(found, expected)


def test_cross_takes_the_first_dimension_of_three():
    x, y = mt.randn(2, 3, 3), mt.randn(2, 3, 3)
    assert mt.equal(mt.cross(x, y), mt.cross(x, y, dim=1))


def test_with_beta_0_the_first_operand_has_a_gradient_of_zero_and_its_nan_does_not_count():
    x, a = mt.full((2, 2), float("nan")).requires_grad_(), mt.ones(2, 2)
    result = mt.addmm(x, a, a, beta=0)
    result.sum().backward()
    assert result.tolist() == [[2, 2], [2, 2]] and x.grad.tolist() == [[0, 0], [0, 0]]


MATRIX = np.array([[4.0, 1.0, 2.0], [1.0, 5.0, 0.5], [2.0, 0.5, 6.0]])
FACTORS = {
    "cholesky": lambda x: (lambda low: low @ low.mT)(mt.linalg.cholesky(x)),
    "eigh": lambda x: (lambda f: f.eigenvectors @ (f.eigenvalues.unsqueeze(-1) * f.eigenvectors.mT))(mt.linalg.eigh(x)),
    "inv": lambda x: mt.linalg.inv(mt.linalg.inv(x)),
    "pinv": lambda x: x @ mt.linalg.pinv(x) @ x,
    "qr": lambda x: mt.linalg.multi_dot([*mt.linalg.qr(x)]),
    "solve": lambda x: mt.linalg.solve(mt.eye(3, dtype=x.dtype) * 2, x) * 2,
    "svd": lambda x: (lambda f: f.U @ (f.S.unsqueeze(-1) * f.Vh))(mt.linalg.svd(x)),
}


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("batch", [(), (2,), (0,)])
def test_the_product_of_a_matrixs_factors_is_the_matrix_in_every_mode(name, batch):
    x = mt.tensor(np.broadcast_to(MATRIX, (*batch, 3, 3)).copy(), requires_grad=True)
    for function in (FACTORS[name], mt.jit(FACTORS[name])):
        result = function(x)
        np.testing.assert_allclose(result.detach().numpy(), x.detach().numpy(), rtol=1e-10, atol=1e-12)
        (gradient,) = mt.autograd.grad((result * result).sum(), [x])
        wanted = 2 * x.detach().numpy()
        if name in ("cholesky", "eigh"):  # which read one triangle
            gradient = (gradient + gradient.mT) / 2
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("wrap", [lambda function: function, mt.jit], ids=["eager", "jit"])
def test_the_further_columns_of_a_complete_q_have_no_gradient(wrap):
    x = mt.randn(3, 3, requires_grad=True)
    for shown in (x, x[:2]):
        assert mt.autograd.grad(wrap(lambda x: mt.linalg.qr(x, "complete").R.sum())(shown), x)[0].isfinite().all()
    with pytest.raises(AutogradError, match=r"MT405: qr: no gradient for mode=.complete. of .* 3×2"):
        wrap(lambda x: mt.linalg.qr(x, "complete").R.sum())(x[:, :2]).backward()


@pytest.mark.parametrize("call", [mt.linalg.inv, lambda x: mt.linalg.solve(x, x), mt.linalg.cholesky])
def test_a_matrix_without_the_answer_is_refused_alike_in_every_mode(call):
    x = -mt.ones(2, 2)
    for function in (call, mt.jit(call), mt.jit(call, backend="interpret")):
        with pytest.raises(mt.linalg.LinAlgError, match=r"ingular|not positive"):
            function(x)
