"""Solutions of exercise 15, beside other compilers."""

from minitorch_grading.harness.compilers import SAME
from tests.grading.wrong_solutions import right, variants, wrong

# --- language ---------------------------------------------------------------------------------------------------


@right("compilers.language")
def by_patterns(listing):
    import re

    patterns = [
        ("HLO", r"\]\{1,0\} [a-z]"),
        ("StableHLO", r"= stablehlo\."),
        ("graph", r"\) : f32\["),
        ("jaxpr", r"[a-z]:f32\[4"),
        ("FX", r" = None"),
    ]
    return next((name, found[0]) for name, pattern in patterns if (found := re.search(pattern, listing)))


@wrong("compilers.language", says="is a name that somebody gave to a function", part="whole listings")
def looks_for_words(listing):
    words = {"HloModule": "HLO", "stablehlo": "StableHLO", "lambda": "jaxpr", "graph": "graph", "forward": "FX"}
    return next(((name, word) for word, name in words.items() if word in listing), ("FX", "def"))


@wrong("compilers.language", says="this is", part="excerpts")
def reads_the_first_word(listing):
    starts = {"graph": "graph", "{ lambda": "jaxpr", "module": "StableHLO", "HloModule": "HLO"}
    return next(((name, start) for start, name in starts.items() if listing.startswith(start)), ("FX", "def forward"))


@wrong("compilers.language", says="stands in listings of", part="evidence", points=15)
def finds_a_feature_of_two(listing):
    features = {" = stablehlo.": "StableHLO", "]{1,0} ": "HLO", ") : f32[": "graph", ":f32[": "jaxpr", " = None": "FX"}
    name = next(name for feature, name in features.items() if feature in listing)
    return name, " = "


@wrong("compilers.language", says="a feature of this program, not of the language", part="evidence", points=15)
def takes_a_line(listing):
    features = {" = stablehlo.": "StableHLO", "]{1,0} ": "HLO", ") : f32[": "graph", ":f32[": "jaxpr", " = None": "FX"}
    name = next(name for feature, name in features.items() if feature in listing)
    return name, listing[:30]


@wrong("compilers.language", says="a tuple of two names was expected", points=0)
def returns_the_name(listing):
    return "graph"


@wrong("compilers.language", says="is none of them", points=0)
def calls_it_otherwise(listing):
    return "MLIR", " = "


# --- partners ---------------------------------------------------------------------------------------------------


@right("compilers.partners")
def by_text(ours, theirs):
    numbers = {name: repr(operands[0]) for name, operation, operands in theirs if operation == "constant"}
    known = {"%arg0": "x", "%arg1": "y", **numbers}
    for name, operation, operands in theirs:
        if operation == "broadcast_in_dim":
            known[name] = known[operands[0]]
        elif operation != "constant":
            known[name] = f"{operation}({','.join(known[each] for each in operands)})"
    back = {value: name for name, value in known.items() if "(" in value}
    mine = {"x": "x", "y": "y"}
    for name, operation, operands in ours:
        mine[name] = f"{SAME[operation]}({','.join(mine.get(each, repr(each)) for each in operands)})"
    return {name: back[mine[name]] for name, _, _ in ours}


@wrong("compilers.partners", says="the operation is the same, and it reads other values", points=6)
def goes_by_name(ours, theirs):
    return {name: next(other for other, each, _ in theirs if each == SAME[operation]) for name, operation, _ in ours}


@wrong("compilers.partners", says="should be", part="another order", points=16)
def goes_by_order(ours, theirs):
    computing = [name for name, operation, _ in theirs if operation not in ("constant", "broadcast_in_dim")]
    return dict(zip([name for name, _, _ in ours], computing, strict=True))


@wrong("compilers.partners", says="a number on its way to an operation", points=0)
def counts_all_rows(ours, theirs):
    names = [name for name, operation, _ in theirs if operation != "constant"]
    return dict(zip([name for name, _, _ in ours], names, strict=False))


@wrong("compilers.partners", says="a dict was expected", points=0)
def returns_pairs(ours, theirs):
    return [(name, name) for name, _, _ in ours]


@wrong("compilers.partners", says="no name of ours", points=0)
def keeps_the_inputs(ours, theirs):
    known = {"%arg0": "x", "%arg1": "y"}
    for name, operation, operands in theirs:
        given = tuple(known.get(each, each) for each in operands)
        known[name] = given[0] if operation in ("constant", "broadcast_in_dim") else (operation, given)
    back = {value: name for name, value in known.items()}
    found, mine = {"x": "%arg0"}, {}
    for name, operation, operands in ours:
        mine[name] = (SAME[operation], tuple(mine.get(each, each) for each in operands))
        found[name] = back[mine[name]]
    return found


# --- kernels ----------------------------------------------------------------------------------------------------


@right("compilers.kernels")
def with_a_search(rows, epilogues):
    kind = {name: each for name, each, _ in rows}
    wave, home = {}, {}
    for name, each, operands in rows:
        read = [operand for operand in operands if operand in kind]
        inside = {home.get(operand, "") for operand in read}
        if each == "product":
            home[name] = name
        elif epilogues and each == "pointwise" and len(inside) == 1 and "" not in inside:
            (home[name],) = inside
            wave[name] = wave[home[name]]
            continue
        wave[name] = 0
        for one in read:
            waits = one in home or "product" in (each, kind[one]) or kind[one] == "all"
            wave[name] = max(wave[name], wave[one] + waits)
    left, found = [name for name, _, _ in rows], []
    edges = [(name, one) for name, _, operands in rows for one in operands if one in kind]
    while left:
        kernel, pending = set(), [left[0]]
        while pending:
            at = pending.pop()
            if at not in kernel:
                kernel.add(at)
                for pair in edges:
                    for one, other in (pair, pair[::-1]):
                        if one == at and wave[one] == wave[other] and home.get(one) == home.get(other):
                            pending.append(other)
        found.append(tuple(kernel))
        left = [name for name in left if name not in kernel]
    return found


variants(
    with_a_search,
    """
    lets_a_product_begin_at_once [22, products]: waits for another kernel
    - waits = one in home or "product" in (each, kind[one]) or kind[one] == "all"
    + waits = one in home or kind[one] in ("all", "product")
    """,
)


@wrong("compilers.kernels", says="are one kernel", points=0)
def fuses_nothing(rows, epilogues):
    return [[name] for name, _, _ in rows]


@wrong("compilers.kernels", says="cannot share a kernel", points=0)
def fuses_everything(rows, epilogues):
    return [[name for name, _, _ in rows]]


@wrong("compilers.kernels", says="waits for another kernel", part="products")
def forgets_what_runs_between(rows, epilogues):
    kind = {name: each for name, each, _ in rows}
    groups = []
    for name, each, operands in rows:
        linked = {one for one in operands if one in kind and kind[one] in ("pointwise", "row") and each != "product"}
        near = [group for group in groups if linked.intersection(group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(member for group in near for member in group), name])
    return groups


@wrong("compilers.kernels", says="waits for another kernel", part="a sum over everything")
def lets_a_total_go_on(rows, epilogues):
    kind = {name: "row" if each == "all" else each for name, each, _ in rows}
    wave, groups = {}, []
    for name, each, operands in rows:
        read = [one for one in operands if one in kind]
        wave[name] = max((wave[one] + ("product" in (each, kind[one])) for one in read), default=0)
        linked = {one for one in read if wave[one] == wave[name]}
        near = [group for group in groups if linked.intersection(group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(member for group in near for member in group), name])
    return groups


@wrong("compilers.kernels", says="they are the epilogue", part="epilogues", points=22)
def knows_no_epilogues(rows, epilogues):
    kind = {name: each for name, each, _ in rows}
    wave, groups = {}, []
    for name, each, operands in rows:
        read = [one for one in operands if one in kind]
        waits = [kind[one] in ("all", "product") or each == "product" for one in read]
        wave[name] = max((wave[one] + at for one, at in zip(read, waits, strict=True)), default=0)
        linked = {one for one in read if wave[one] == wave[name]}
        near = [group for group in groups if linked.intersection(group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(member for group in near for member in group), name])
    return groups


@wrong("compilers.kernels", says="each operation has to be in one kernel", points=0)
def leaves_products_out(rows, epilogues):
    return [[name] for name, each, _ in rows[1:]]


@wrong("compilers.kernels", says="a list of kernels was expected", points=0)
def returns_a_number(rows, epilogues):
    return len(rows)


# --- retraces ---------------------------------------------------------------------------------------------------


@right("compilers.retraces")
def by_flat_keys(policy, calls):
    def flat(call):
        found = {}
        for name, given in call.items():
            if isinstance(given, tuple):
                found[name, "dtype"] = f"{given[0]}"
                found[name, "shape"] = tuple(given[1])
            else:
                found[name, "dtype"] = type(given).__name__
                found[name, "value"] = given
        return found

    def fits(kept, new):
        if isinstance(kept, tuple):
            return len(kept) == len(new) and all(
                one is None or one == other for one, other in zip(kept, new, strict=True)
            )
        return kept is None or kept == new

    made, answers = [], []
    for call in calls:
        new = flat(call)
        if policy == "numbers are inputs":
            new = {at: None if at[1] == "value" else each for at, each in new.items()}
        if any(all(fits(old[at], new[at]) for at in new) for old in made):
            answers.append(None)
            continue
        changed = [at for at in new if made and not fits(made[-1][at], new[at])]
        typed = {name for name, what in changed if what == "dtype"}
        answers.append(sorted(at for at in changed if at[1] != "value" or at[0] not in typed))
        if policy == "changes become symbols" and made:
            for at, each in new.items():
                old = made[-1][at]
                if at[0] in typed or at[1] == "dtype":
                    continue
                if isinstance(each, tuple):
                    if len(old) == len(each):
                        new[at] = tuple(None if a is None or a != b else b for a, b in zip(old, each, strict=True))
                elif old is None or old != each:
                    new[at] = None
        made.append(new)
    return answers


@wrong("compilers.retraces", says="only the value of a number changed, and that is an input", part="numbers are inputs")
def knows_one_policy(policy, calls):
    def fixed(given):
        return given if isinstance(given, tuple) else (type(given).__name__, given)

    programs, answers = [], []
    for call in calls:
        new = {name: fixed(given) for name, given in call.items()}
        if new in programs:
            answers.append(None)
            continue
        reasons = []
        for name in sorted(new) if programs else ():
            kept = programs[-1][name]
            reasons += [(name, "dtype")] if kept[0] != new[name][0] else []
            if kept[1] != new[name][1]:
                if isinstance(new[name][1], tuple):
                    reasons.append((name, "shape"))
                elif kept[0] == new[name][0]:
                    reasons.append((name, "value"))
        answers.append(reasons)
        programs.append(new)
    return answers


@wrong("compilers.retraces", says="again", points=0)
def compares_with_the_call_before(policy, calls):
    answers, last = [], None
    for call in calls:
        if call == last:
            answers.append(None)
        elif last is None:
            answers.append([])
        else:
            changed = []
            for name, given in call.items():
                if isinstance(given, tuple):
                    changed += [(name, "dtype")] if given[0] != last[name][0] else []
                    changed += [(name, "shape")] if given[1] != last[name][1] else []
                elif type(given) is not type(last[name]):
                    changed.append((name, "dtype"))
                elif given != last[name] and policy != "numbers are inputs":
                    changed.append((name, "value"))
            answers.append(sorted(changed) or None)
        last = call
    return answers


@wrong("compilers.retraces", says="no program fits", part="numbers are constants")
def takes_two_for_two_point_zero(policy, calls):
    seen, answers = [], []
    for call in calls:
        key = dict(call)
        if key in seen:
            answers.append(None)
            continue
        answers.append(
            sorted(
                (
                    name,
                    "value" if not isinstance(given, tuple) else "dtype" if given[0] != seen[-1][name][0] else "shape",
                )
                for name, given in call.items()
                if given != seen[-1][name]
            )
            if seen
            else []
        )
        seen.append(key)
    return answers


@wrong("compilers.retraces", says="a list of", points=0)
def counts_them(policy, calls):
    return len(calls)
