"""Solutions of exercise 14, export."""

from minitorch_grading.harness.export import emit
from tests.grading.wrong_solutions import right, variants, wrong

# --- hard_swish -------------------------------------------------------------------------------------------------


@right("export.hard_swish")
def clips(x, y):
    numbers = {"three": 3.0, "zero": 0.0, "six": 6.0}
    return [
        *[("Constant", [], [name], {"value_float": value}) for name, value in numbers.items()],
        ("Add", (x, "three"), ("sum",), {}),
        ("Clip", ["sum", "zero", "six"], ["clipped"], {}),
        ("Mul", [x, "clipped"], ["product"], {}),
        ("Div", ["product", "six"], [y], {}),
    ]


@wrong("export.hard_swish", says="it came with version 14", points=0)
def takes_the_operator(x, y):
    return [("HardSwish", [x], [y], {})]


@wrong("export.hard_swish", says="the alpha of HardSigmoid is 0.2 if nothing is said", points=5)
def leaves_alpha_out(x, y):
    return [("HardSigmoid", [x], ["factor"], {}), ("Mul", [x, "factor"], [y], {})]


@wrong("export.hard_swish", says="multiply it by x", points=5)
def returns_the_factor(x, y):
    return [("HardSigmoid", [x], [y], {"alpha": 1 / 6, "beta": 0.5})]


@wrong("export.hard_swish", says="topologically sorted", points=0)
def reads_before_it_writes(x, y):
    return [("Mul", [x, "factor"], [y], {}), ("HardSigmoid", [x], ["factor"], {"alpha": 1 / 6, "beta": 0.5})]


@wrong("export.hard_swish", says="ONNX refuses the model", points=0)
def names_two_values_alike(x, y):
    return [
        ("HardSigmoid", [x], ["factor"], {"alpha": 1 / 6, "beta": 0.5}),
        ("Mul", [x, "factor"], ["factor"], {}),
        ("Identity", ["factor"], [y], {}),
    ]


@wrong("export.hard_swish", says="ONNX refuses the model", part="right numbers")
def knows_the_names(x, y):
    return [("HardSigmoid", ["x"], ["factor"], {"alpha": 1 / 6, "beta": 0.5}), ("Mul", ["x", "factor"], ["y"], {})]


@wrong("export.hard_swish", says="a list of nodes was expected", points=0)
def returns_one_node(x, y):
    return "HardSigmoid"


@wrong("export.hard_swish", says="a node is (operator, inputs, outputs, attributes)", points=0)
def forgets_the_attributes(x, y):
    return [("Relu", [x], [y])]


@wrong("export.hard_swish", says="above 3 the factor stays 1", points=5)
def forgets_the_upper_end(x, y):
    return [
        ("Constant", [], ["three"], {"value_float": 3.0}),
        ("Constant", [], ["six"], {"value_float": 6.0}),
        ("Add", [x, "three"], ["sum"], {}),
        ("Relu", ["sum"], ["positive"], {}),
        ("Mul", [x, "positive"], ["product"], {}),
        ("Div", ["product", "six"], [y], {}),
    ]


# --- masked_softmax ---------------------------------------------------------------------------------------------


@right("export.masked_softmax")
def composes_it(scores, mask, shares):
    return [
        ("Constant", [], ["low"], {"value_float": float("-inf")}),
        ("Constant", [], ["one"], {"value_float": 1.0}),
        ("Constant", [], ["zero"], {"value_float": 0.0}),
        ("Constant", [], ["last"], {"value_ints": [-1]}),
        ("Where", [mask, scores, "low"], ["kept"], {}),
        ("ReduceMax", ["kept"], ["largest"], {"axes": [-1], "keepdims": 1}),
        ("Sub", ["kept", "largest"], ["below"], {}),
        ("Exp", ["below"], ["all"], {}),
        ("Where", [mask, "all", "zero"], ["raised"], {}),
        ("ReduceSum", ["raised", "last"], ["total"], {"keepdims": 1}),
        ("Equal", ["total", "zero"], ["empty"], {}),
        ("Where", ["empty", "one", "total"], ["divisor"], {}),
        ("Div", ["raised", "divisor"], [shares], {}),
    ]


@wrong("export.masked_softmax", says="-10000 is not below every score", part="large scores", points=9)
def adds_ten_thousand(scores, mask, shares):
    return [
        ("Cast", [mask], ["kept"], {"to": 1}),
        ("Constant", [], ["one"], {"value_float": 1.0}),
        ("Constant", [], ["low"], {"value_float": -10000.0}),
        ("Sub", ["one", "kept"], ["left"], {}),
        ("Mul", ["left", "low"], ["bias"], {}),
        ("Add", [scores, "bias"], ["sum"], {}),
        ("Softmax", ["sum"], [shares], {}),
    ]


@wrong("export.masked_softmax", says="in a row in which no place counts all shares are 0", points=15)
def divides_zero_by_zero(scores, mask, shares):
    return [
        ("Constant", [], ["low"], {"value_float": float("-inf")}),
        ("Where", [mask, scores, "low"], ["kept"], {}),
        ("Softmax", ["kept"], [shares], {}),
    ]


@wrong("export.masked_softmax", says="mask before the softmax", points=0)
def masks_afterwards(scores, mask, shares):
    return [
        ("Constant", [], ["zero"], {"value_float": 0.0}),
        ("Softmax", [scores], ["all"], {}),
        ("Where", [mask, "all", "zero"], [shares], {}),
    ]


@wrong("export.masked_softmax", says="the other way round", part="right numbers")
def turns_the_mask(scores, mask, shares):
    return [
        ("Constant", [], ["low"], {"value_float": -3e38}),
        ("Where", [mask, "low", scores], ["kept"], {}),
        ("Softmax", ["kept"], [shares], {}),
    ]


@wrong("export.masked_softmax", says="ONNX refuses the model", points=0)
def multiplies_by_a_bool(scores, mask, shares):
    return [("Mul", [scores, mask], ["kept"], {}), ("Softmax", ["kept"], [shares], {})]


@wrong("export.masked_softmax", says="the last axis", part="right numbers")
def takes_the_first_axis(scores, mask, shares):
    return [
        ("Constant", [], ["low"], {"value_float": -3e38}),
        ("Constant", [], ["zero"], {"value_float": 0.0}),
        ("Where", [mask, scores, "low"], ["kept"], {}),
        ("Softmax", ["kept"], ["all"], {"axis": 0}),
        ("Where", [mask, "all", "zero"], [shares], {}),
    ]


# --- formulas ---------------------------------------------------------------------------------------------------


@right("export.formulas")
def fits_lines(exports):
    found = {}
    for name in exports[0][1]:
        seen = [(batch, arrays[name]) for batch, arrays in exports]
        if len({tuple(numbers) for _, numbers in seen}) == 1:
            continue
        found[name] = None
        if len({len(numbers) for _, numbers in seen}) > 1:
            continue
        pairs = []
        for at in range(len(seen[0][1])):
            points = [(batch, numbers[at]) for batch, numbers in seen]
            for slope in range(-1000, 1001):
                if len({value - slope * batch for batch, value in points}) == 1:
                    pairs.append([slope, points[0][1] - slope * points[0][0]])
        if len(pairs) == len(seen[0][1]):
            found[name] = pairs
    return found


@wrong("export.formulas", says="a number divided by the batch is its slope only if the offset is 0", part="formulas")
def divides_by_the_batch(exports):
    (batch, first), *others = exports
    found = {}
    for name, numbers in first.items():
        if any(arrays[name] != numbers for _, arrays in others):
            found[name] = [(number // batch, 0) for number in numbers]
    return found


@wrong("export.formulas", says="no formula with whole numbers gives all of it", points=14)
def looks_at_two_exports(exports):
    (one, first), (two, second), _ = exports
    found = {}
    for name in first:
        if first[name] != second[name]:
            slopes = [(there - here) // (two - one) for here, there in zip(first[name], second[name], strict=False)]
            found[name] = [(slope, here - slope * one) for slope, here in zip(slopes, first[name], strict=False)]
    return found


@wrong("export.formulas", says="even if a number in it equals one", points=0)
def looks_for_the_batch(exports):
    (batch, first), *_ = exports
    return {name: [(1, 0) if number == batch else (0, number) for number in numbers] for name, numbers in first.items()}


@wrong("export.formulas", says="and is not in the answer", points=14)
def leaves_out_what_has_no_formula(exports):
    (one, first), (two, second), (three, third) = exports
    found = {}
    for name in first:
        if first[name] == second[name] or not len(first[name]) == len(second[name]) == len(third[name]):
            continue
        slopes = [(there - here) // (two - one) for here, there in zip(first[name], second[name], strict=True)]
        lines = [(slope, here - slope * one) for slope, here in zip(slopes, first[name], strict=True)]
        if third[name] == [slope * three + offset for slope, offset in lines]:
            found[name] = lines
    return found


@wrong("export.formulas", says="a dictionary was expected", points=0)
def lists_names(exports):
    return [name for name in exports[0][1] if exports[0][1][name] != exports[1][1][name]]


# --- name_table -------------------------------------------------------------------------------------------------


@right("export.name_table")
def tries_every_prefix(wanted, found):
    best = {}
    for name in found:
        for length in range(len(name) + 1):
            pairs = {each: name[:length] + each for each in wanted if name[:length] + each in found}
            best = max(best, pairs, key=len)
    same = sum(wanted[name] == found[other] for name, other in best.items())
    turned = sum(wanted[name] == found[other][::-1] for name, other in best.items())
    flip = turned > same
    table = {}
    for name, other in best.items():
        matrix = flip and len(wanted[name]) == 2
        if wanted[name] == (list(reversed(found[other])) if matrix else found[other]):
            table[name] = [other, matrix]
    used = [other for other, _ in table.values()]
    return table, sorted({*wanted, *found} - {*table, *used})


variants(
    tries_every_prefix,
    """
    takes_the_longest_prefix [13, left over]: the answer has None
    - best = max(best, pairs, key=len)
    + best = pairs or best
    """,
)


@wrong("export.name_table", says="a square one does not show it", part="transposed", points=6)
def looks_at_each_matrix(wanted, found):
    prefixes = {name[: -len(end)] for name in found for end in wanted if name.endswith(end)}
    prefix = max(prefixes, key=lambda each: sum(each + name in found for name in wanted))
    table = {}
    for name, shape in wanted.items():
        other = found.get(prefix + name)
        if other is not None and sorted(other) == sorted(shape):
            table[name] = (prefix + name, other != shape)
    used = {other for other, _ in table.values()}
    return table, sorted([*(wanted.keys() - table.keys()), *(found.keys() - used)])


@wrong("export.name_table", says="belongs to", points=0)
def matches_by_shape(wanted, found):
    table, free = {}, dict(found)
    for name, shape in wanted.items():
        other = next((each for each in free if free[each] == shape), None)
        if other is not None:
            table[name] = (other, False)
            del free[other]
    return table, sorted([*free, *(name for name in wanted if name not in table)])


@wrong("export.name_table", says="they do not fit", part="left over")
def trusts_the_names(wanted, found):
    prefixes = {name[: -len(end)] for name in found for end in wanted if name.endswith(end)}
    prefix = max(prefixes, key=lambda each: sum(each + name in found for name in wanted))
    turned = any(
        len(wanted[name]) == 2 and wanted[name] == found.get(prefix + name, [])[::-1] != wanted[name][::-1]
        for name in wanted
    )
    table = {name: (prefix + name, turned and len(wanted[name]) == 2) for name in wanted if prefix + name in found}
    return table, sorted({*wanted, *found} - {*table, *(other for other, _ in table.values())})


@wrong("export.name_table", says="names of either side without a partner", part="left over", points=13)
def forgets_what_the_checkpoint_has_more(wanted, found):
    prefixes = {name[: -len(end)] for name in found for end in wanted if name.endswith(end)}
    prefix = max(prefixes, key=lambda each: sum(each + name in found for name in wanted))
    pairs = {name: prefix + name for name in wanted if prefix + name in found}
    turned = any(wanted[name] != found[pair] and wanted[name] == found[pair][::-1] for name, pair in pairs.items())
    table = {}
    for name, pair in pairs.items():
        flip = turned and len(wanted[name]) == 2
        if wanted[name] == (found[pair][::-1] if flip else found[pair]):
            table[name] = (pair, flip)
    return table, sorted(name for name in wanted if name not in table)


@wrong("export.name_table", says="a dictionary and a list were expected", points=0)
def returns_the_dictionary_alone(wanted, found):
    return {name: (name, False) for name in wanted}


# --- lower ------------------------------------------------------------------------------------------------------


@right("export.lower")
def keeps_dimensions_in_another_way(operator, operands, attributes):
    x, *rest = operands
    if operator == "Gemm":
        w, b = rest
        w = emit("permute", w, dims=(1, 0)) if attributes.get("transB") else w
        return emit("add", emit("expand", b, shape=(x.shape[0], w.shape[1])), emit("dot", x, w))
    if operator == "LeakyRelu":
        low = emit("sub", x, emit("maximum", x, 0.0))
        return emit("add", emit("maximum", x, 0.0), emit("mul", low, attributes.get("alpha", 0.01)))
    if operator == "Softmax":
        axis = attributes.get("axis", -1)
        axis = axis if axis >= 0 else axis + len(x.shape)
        ones = tuple([1 if at == axis else length for at, length in enumerate(x.shape)])
        top = emit("expand", emit("reshape", emit("reduce_max", x, dims=(axis,)), shape=ones), shape=x.shape)
        up = emit("exp", emit("sub", x, top))
        return emit(
            "div", up, emit("expand", emit("reshape", emit("reduce_sum", up, dims=(axis,)), shape=ones), shape=x.shape)
        )
    rows = emit("reshape", x, shape=(*x.shape[:2], x.shape[2] * x.shape[3]))
    mean = emit("mul", emit("reduce_sum", rows, dims=(2,)), 1 / (x.shape[2] * x.shape[3]))
    return emit("reshape", mean, shape=(*x.shape[:2], 1, 1))


@wrong("export.lower", says="exp overflows", part="Softmax")
def overflows(operator, operands, attributes):
    (x,) = operands
    axis = attributes.get("axis", -1) % len(x.shape)
    raised = emit("exp", x)
    kept = tuple([1 if at == axis else length for at, length in enumerate(x.shape)])
    total = emit("reshape", emit("reduce_sum", raised, dims=(axis,)), shape=kept)
    return emit("div", raised, emit("expand", total, shape=x.shape))


@wrong("export.lower", says="the attribute axis says", part="Softmax")
def knows_the_last_axis_alone(operator, operands, attributes):
    (x,) = operands
    kept, last = (*x.shape[:-1], 1), (len(x.shape) - 1,)
    top = emit("expand", emit("reshape", emit("reduce_max", x, dims=last), shape=kept), shape=x.shape)
    raised = emit("exp", emit("sub", x, top))
    return emit(
        "div", raised, emit("expand", emit("reshape", emit("reduce_sum", raised, dims=last), shape=kept), shape=x.shape)
    )


@wrong("export.lower", says="transB asks for the transposed matrix", part="Gemm")
def transposes_where_it_fits(operator, operands, attributes):
    x, w, b = operands
    w = w if w.shape[0] == x.shape[1] else emit("permute", w, dims=(1, 0))
    product = emit("dot", x, w)
    return emit("add", product, emit("expand", b, shape=product.shape))


@wrong("export.lower", says="the bias is missing", part="Gemm")
def forgets_the_bias(operator, operands, attributes):
    x, w, _ = operands
    return emit("dot", x, emit("permute", w, dims=(1, 0)) if attributes.get("transB") else w)


@wrong("export.lower", says="only without it is that 0.01", part="LeakyRelu")
def knows_one_slope(operator, operands, attributes):
    (x,) = operands
    return emit("maximum", x, emit("mul", x, 0.01))


@wrong("export.lower", says="height and width stay, with length 1", part="GlobalAveragePool")
def drops_dimensions(operator, operands, attributes):
    (x,) = operands
    return emit("div", emit("reduce_sum", x, dims=(2, 3)), float(x.shape[2] * x.shape[3]))


@wrong("export.lower", says="it is a mean, and that is the sum", part="GlobalAveragePool")
def adds_up(operator, operands, attributes):
    (x,) = operands
    return emit("reshape", emit("reduce_sum", x, dims=(2, 3)), shape=(*x.shape[:2], 1, 1))


@wrong("export.lower", says="lower has to return a value", points=0)
def returns_nothing(operator, operands, attributes):
    emit("maximum", operands[0], 0.0)
