"""Solutions of exercise 01, eager execution."""

import numpy as np

from tests.grading.wrong_solutions import right, wrong

# --- unbroadcast ------------------------------------------------------------------------------------------------


@right("eager.unbroadcast")
def sums_all_dimensions_at_once(gradient, shape):
    front = gradient.ndim - len(shape)
    stretched = [front + dim for dim, length in enumerate(shape) if length == 1]
    dims = (*range(front), *stretched)
    return (gradient.sum(dims) if dims else gradient).reshape(shape)


@wrong("eager.unbroadcast", says="still has the shape of the broadcast", points=0)
def returns_it_as_it_is(gradient, shape):
    return gradient


@wrong("eager.unbroadcast", says="not every dimension that was expanded is summed", points=9)
def forgets_lengths_of_one(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    return gradient


@wrong("eager.unbroadcast", says="a dimension was summed that was not expanded", points=9)
def sums_the_last_dimensions(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(-1)
    for dim, length in enumerate(shape):
        if length == 1:
            gradient = gradient.sum(dim, keepdim=True)
    return gradient


@wrong("eager.unbroadcast", says="the shares were averaged")
def averages(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.mean(0)
    for dim, length in enumerate(shape):
        if length == 1:
            gradient = gradient.mean(dim, keepdim=True)
    return gradient


@wrong("eager.unbroadcast", says="the share of one copy was kept")
def takes_the_first_copy(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient[0]
    for dim, length in enumerate(shape):
        if length == 1:
            gradient = gradient.narrow(dim, 0, 1)
    return gradient


@wrong("eager.unbroadcast", says="a dimension of length 1 is lost", points=9)
def loses_dimensions(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(0)
    for dim in reversed(range(len(shape))):
        if shape[dim] == 1:
            gradient = gradient.sum(dim)
    return gradient


@wrong("eager.unbroadcast", says="a tensor was expected")
def answers_in_numpy(gradient, shape):
    array = gradient.numpy()
    while array.ndim > len(shape):
        array = array.sum(0)
    for dim, length in enumerate(shape):
        if length == 1:
            array = array.sum(dim, keepdims=True)
    return array


# --- observe ----------------------------------------------------------------------------------------------------


@right("eager.observe")
def goes_by_identity(ledger, primitive, operands, value):
    ledger["dispatches"] = ledger["dispatches"] + 1
    if not primitive.is_view:
        distinct = {id(operand): operand for operand in operands}
        ledger["read"] = ledger["read"] + sum(operand.itemsize * operand.size for operand in distinct.values())
        ledger["written"] = ledger["written"] + value.itemsize * value.size


@wrong("eager.observe", says="a view is a dispatch, too", points=27)
def ignores_views(ledger, primitive, operands, value):
    if primitive.is_view:
        return
    ledger["dispatches"] += 1
    ledger["read"] += sum({id(operand): operand.nbytes for operand in operands}.values())
    ledger["written"] += value.nbytes


@wrong("eager.observe", says="a view (primitive.is_view) only says how to look at memory", points=28)
def counts_views(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    ledger["read"] += sum({id(operand): operand.nbytes for operand in operands}.values())
    ledger["written"] += value.nbytes


@wrong("eager.observe", says="the two operands are one array, which is read once", points=28)
def reads_an_operand_twice(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    if not primitive.is_view:
        ledger["read"] += sum(operand.nbytes for operand in operands)
        ledger["written"] += value.nbytes


@wrong("eager.observe", says="these are elements")
def counts_elements(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    if not primitive.is_view:
        ledger["read"] += sum({id(operand): operand.size for operand in operands}.values())
        ledger["written"] += value.size


@wrong("eager.observe", says="every operand is read, not only the first")
def reads_the_first_operand(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    if not primitive.is_view:
        ledger["read"] += operands[0].nbytes
        ledger["written"] += value.nbytes


# --- mean_squared_error -----------------------------------------------------------------------------------------


@right("eager.mean_squared_error")
def divides_a_sum(prediction, target):
    if tuple(prediction.shape) == tuple(target.shape):
        difference = prediction - target
        return (difference * difference).sum() / difference.numel()
    raise ValueError("shapes " + str(list(prediction.shape)) + " and " + str(list(target.shape)) + " differ")


@wrong("eager.mean_squared_error", says="no ValueError is raised", points=6)
def broadcasts(prediction, target):
    return ((prediction - target) ** 2).mean()


@wrong("eager.mean_squared_error", says="that is the sum", points=9)
def adds_up(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError(f"{prediction.shape} and {target.shape}")
    return ((prediction - target) ** 2).sum()


@wrong("eager.mean_squared_error", says="no ValueError is raised", points=6)
def compares_the_first_dimension(prediction, target):
    if prediction.shape[:1] != target.shape[:1]:
        raise ValueError(f"{prediction.shape} and {target.shape}")
    return ((prediction - target) ** 2).mean()


@wrong("eager.mean_squared_error", says="the message should name both shapes", points=6)
def says_too_little(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError("the shapes are different")
    return ((prediction - target) ** 2).mean()


@wrong("eager.mean_squared_error", says="a tensor was expected", points=9)
def answers_with_a_number(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError(f"{prediction.shape} and {target.shape}")
    return ((prediction - target) ** 2).mean().item()


# --- first_bad --------------------------------------------------------------------------------------------------


@right("eager.first_bad")
def filters(records):
    def good(array):
        return bool(np.all(np.abs(array) < np.inf))

    found = [place for place, (_, reads, made) in enumerate(records) if not good(made) and all(map(good, reads))]
    return found[0] if found else None


@wrong("eager.first_bad", says="only passes on what it got", points=8)
def looks_at_results_alone(records):
    for position, (_, _, result) in enumerate(records):
        if np.isnan(result).any():
            return position
    return None


@wrong("eager.first_bad", says="an infinity counts, too")
def looks_for_nan_alone(records):
    for position, (_, operands, result) in enumerate(records):
        if np.isnan(result).any() and not any(np.isnan(each).any() for each in operands):
            return position
    return None


@wrong("eager.first_bad", says="a position or None was expected", points=0)
def names_the_operation(records):
    for name, operands, result in records:
        if not np.isfinite(result).all() and all(np.isfinite(each).all() for each in operands):
            return name
    return None


@wrong("eager.first_bad", says="only passes on what it got")
def takes_the_last(records):
    bad = [position for position, (_, _, result) in enumerate(records) if not np.isfinite(result).all()]
    return bad[-1] if bad else None


# --- found by a hostile reading ---------------------------------------------------------------------------------


@wrong("eager.observe", says="`is` tells arrays apart", points=28, part="an operand that is used twice")
def compares_operands_by_content(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    if not primitive.is_view:
        same = len(operands) > 1 and np.array_equal(operands[0], operands[1])
        ledger["read"] += sum(each.nbytes for each in (operands[:1] if same else operands))
        ledger["written"] += value.nbytes


@wrong("eager.mean_squared_error", says="it counts when equal shapes are not refused", points=0)
def always_refuses(prediction, target):
    raise ValueError(f"prediction {prediction.shape} and target {target.shape} have different shapes")


@wrong("eager.unbroadcast", says="[2, 3] back to [3]: it raises", part="new dimensions in front")
def raises_for_dimensions_in_front(gradient, shape):
    for dim, length in enumerate(shape):
        if gradient.ndim > len(shape) > 0:
            raise RuntimeError("what now?")
        if length == 1:
            gradient = gradient.sum(dim, keepdim=True)
    return gradient.reshape(*shape) if gradient.ndim == len(shape) else gradient.sum()
