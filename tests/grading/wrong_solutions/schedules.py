"""Solutions of exercise 08, schedules."""

from minitorch.compiler.scheduling.rewrites import (
    distribute,
    in_registers,
    lift,
    place,
    reorder,
    split,
    unroll,
    vectorise,
)
from tests.grading.wrong_solutions import right, wrong

# --- address ----------------------------------------------------------------------------------------------------


@right("schedules.address")
def counts_what_comes_before(i, j, columns, height, width):
    down, row = divmod(i, height)
    across, column = divmod(j, width)
    before = down * height * columns + across * width * height
    return before + row * width + column


@wrong("schedules.address", says="that is its place in a matrix without tiles", points=0)
def goes_row_by_row(i, j, columns, height, width):
    return i * columns + j


@wrong("schedules.address", says="the tiles before it come first", points=3)
def stays_in_the_tile(i, j, columns, height, width):
    return i % height * width + j % width


@wrong("schedules.address", says="a row of tiles has")
def counts_columns_for_tiles(i, j, columns, height, width):
    tile = i // height * columns + j // width
    return tile * height * width + i % height * width + j % width


@wrong("schedules.address", says="a row of tiles has")
def has_the_tiles_of_the_example(i, j, columns, height, width):
    tile = i // height * 2 + j // width
    return tile * height * width + i % height * width + j % width


@wrong("schedules.address", says="the rows follow each other, and not the columns")
def turns_the_tile(i, j, columns, height, width):
    tile = i // height * (columns // width) + j // width
    return tile * height * width + j % width * height + i % height


@wrong("schedules.address", says="a whole number was expected", points=0)
def divides_with_a_fraction(i, j, columns, height, width):
    tile = i // height * (columns / width) + j // width
    return tile * height * width + i % height * width + j % width


# --- chain_schedule ---------------------------------------------------------------------------------------------


@right("schedules.chain_schedule")
def splits_twice(length):
    return (
        [split("i0", 2 * 8, "a", "b"), split("b", 8, "c", "d"), unroll("c"), vectorise("d")]
        if length % 16 == 0
        else [
            split("i0", 8, "a", "d"),
            vectorise("d"),
        ]
    )


@wrong("schedules.chain_schedule", says="no loop runs on vectors", points=0)
def splits_only(length):
    return [split("i0", 8, "part", "lane")]


@wrong("schedules.chain_schedule", says="elements apart", points=5)
def takes_lanes_far_apart(length):
    return [split("i0", length // 8, "lane", "i"), reorder("i", "lane"), vectorise("lane")]


@wrong("schedules.chain_schedule", says="it has loops in it", points=0)
def vectorises_the_outer_loop(length):
    return [split("i0", 8, "part", "lane"), vectorise("part")]


@wrong("schedules.chain_schedule", says="no loop runs on vectors", points=0)
def does_nothing(length):
    return []


@wrong("schedules.chain_schedule", says="rewrite 1: a schedule is a list of rewrites", points=0)
def writes_texts(length):
    return ["split('i0', 8, 'part', 'lane')", "vectorise('lane')"]


@wrong("schedules.chain_schedule", says="a vector has 2 lanes, and eight fit", points=5)
def takes_vectors_of_two(length):
    return [split("i0", 2, "part", "lane"), vectorise("lane")]


@wrong("schedules.chain_schedule", says="a vector has 16 lanes, and eight fit", points=5)
def takes_vectors_of_sixteen(length):
    return [split("i0", 16, "part", "lane"), vectorise("lane")]


# --- pack_rows --------------------------------------------------------------------------------------------------


@right("schedules.pack_rows")
def fills_a_list_of_zeros(matrix, height):
    columns = len(matrix[0])
    found = [0.0] * (-(-len(matrix) // height) * height * columns)
    for i, row in enumerate(matrix):
        panel, inside = divmod(i, height)
        for j, number in enumerate(row):
            found[panel * height * columns + j * height + inside] = number
    return found


@wrong("schedules.pack_rows", says="zeros take the place of rows that are not there", points=11)
def leaves_out_missing_rows(matrix, height):
    found = []
    for top in range(0, len(matrix), height):
        for column in range(len(matrix[0])):
            found += [row[column] for row in matrix[top : top + height]]
    return found


@wrong("schedules.pack_rows", says="that is row by row", points=0)
def keeps_the_rows(matrix, height):
    found = [number for row in matrix for number in row]
    return found + [0.0] * (-len(matrix) % height * len(matrix[0]))


@wrong("schedules.pack_rows", says="a panel ends after its rows")
def goes_down_whole_columns(matrix, height):
    missing = -len(matrix) % height
    return [number for column in zip(*matrix, strict=True) for number in [*column, *[0.0] * missing]]


@wrong("schedules.pack_rows", says="it raises IndexError", points=11)
def reads_beyond_the_end(matrix, height):
    found = []
    for top in range(0, len(matrix), height):
        for column in range(len(matrix[0])):
            for row in range(top, top + height):
                found.append(matrix[row][column])
    return found


# --- vector_schedule --------------------------------------------------------------------------------------------


@right("schedules.vector_schedule")
def writes_rows_and_keeps_totals(rows, columns, inner):
    return [
        split("i1", 8, "jt", "l"),
        lift("total0", "l"),
        distribute("l"),
        reorder("j0", "l"),
        vectorise("l"),
        place("registers", "total0"),
    ]


@wrong("schedules.vector_schedule", says="are not perfectly nested", points=0)
def leaves_it_broken(rows, columns, inner):
    return [split("i1", 8, "part", "lane"), reorder("j0", "lane"), vectorise("lane")]


@wrong("schedules.vector_schedule", says="elements apart", points=5)
def vectorises_the_sum(rows, columns, inner):
    return [vectorise("j0")] if inner in (2, 4, 8) else [split("j0", 2, "k", "l"), vectorise("l")]


@wrong("schedules.vector_schedule", says="no loop runs on vectors", points=0)
def forgets_the_vectors(rows, columns, inner):
    return [split("i1", 8, "part", "lane"), lift("total0", "lane"), distribute("lane"), reorder("j0", "lane")]


@wrong("schedules.vector_schedule", says="refused", points=0)
def distributes_before_lifting(rows, columns, inner):
    return [split("i1", 8, "part", "lane"), distribute("lane"), reorder("j0", "lane"), vectorise("lane")]


@wrong("schedules.vector_schedule", says="it has loops in it", points=0)
def vectorises_around_the_sum(rows, columns, inner):
    return [split("i1", 8, "part", "lane"), vectorise("lane")]


# --- product_schedule -------------------------------------------------------------------------------------------


@right("schedules.product_schedule")
def splits_columns_first(rows, columns, inner):
    return [
        split("i1", 8, "vs", "l"),
        split("vs", 3, "jt", "v"),
        split("i0", 4, "it", "r"),
        reorder("jt", "it", "r", "v", "l"),
        lift("total0", "r", "v", "l"),
        distribute("r", "v", "l"),
        reorder("j0", "r", "v", "l"),
        vectorise("l"),
        unroll("r"),
        unroll("v"),
        place("registers", "total0"),
    ]


@wrong("schedules.product_schedule", says="yours: 984 accesses; best known: 744", points=17.5)
def tiles_as_in_the_notebook(rows, columns, inner):
    return [
        split("i0", 6, "it", "r"),
        split("i1", 16, "jt", "c"),
        split("c", 8, "v", "l"),
        reorder("it", "jt", "r", "v", "l"),
        lift("total0", "r", "v", "l"),
        distribute("r", "v", "l"),
        reorder("j0", "r", "v", "l"),
        unroll("r"),
        unroll("v"),
        vectorise("l"),
        in_registers("total0", "j0", "tile"),
    ]


@wrong("schedules.product_schedule", says="yours: 1944 accesses", points=5)
def hands_in_the_example(rows, columns, inner):
    return [
        split("i0", 2, "rows", "r"),
        split("i1", 8, "part", "l"),
        reorder("rows", "part", "r", "l"),
        lift("total0", "r", "l"),
        distribute("r", "l"),
        reorder("j0", "r", "l"),
        unroll("r"),
        vectorise("l"),
        in_registers("total0", "j0", "tile"),
    ]


@wrong("schedules.product_schedule", says="each number of left takes one, as it is taken alone", points=5)
def takes_numbers_out_of_registers(rows, columns, inner):
    from minitorch.compiler.scheduling.rewrites import pack

    return [
        split("i0", 4, "rows", "r"),
        split("i1", 8, "part", "l"),
        reorder("rows", "part", "r", "l"),
        lift("total0", "r", "l"),
        distribute("r", "l"),
        reorder("j0", "r", "l"),
        pack(0, "left", "rows", "r", "j0"),
        unroll("r"),
        unroll("j0"),
        vectorise("l"),
        unroll("left_r"),
        *([split("left_j0", 8, "v", "n"), unroll("v"), vectorise("n")] if inner % 8 == 0 else [unroll("left_j0")]),
        place("registers", "total0", "left"),
    ]


@wrong("schedules.product_schedule", says="yours: 4824 accesses", points=5)
def only_vectorises(rows, columns, inner):
    return [
        split("i1", 8, "part", "lane"),
        lift("total0", "lane"),
        distribute("lane"),
        reorder("j0", "lane"),
        vectorise("lane"),
    ]


@wrong("schedules.product_schedule", says="the rest would be on the stack", points=5)
def takes_too_large_a_tile(rows, columns, inner):
    return [
        split("i0", 6, "it", "r"),
        split("i1", 24, "jt", "c"),
        split("c", 8, "v", "l"),
        reorder("it", "jt", "r", "v", "l"),
        lift("total0", "r", "v", "l"),
        distribute("r", "v", "l"),
        reorder("j0", "r", "v", "l"),
        unroll("r"),
        unroll("v"),
        vectorise("l"),
        place("registers", "total0"),
    ]


@wrong("schedules.product_schedule", says="is refused", points=0)
def keeps_totals_in_registers_too_early(rows, columns, inner):
    return [
        split("i0", 4, "it", "r"),
        split("i1", 8, "jt", "l"),
        reorder("it", "jt", "r", "l"),
        lift("total0", "r", "l"),
        place("registers", "total0"),
    ]


@wrong("schedules.product_schedule", says="a list of rewrites was expected", points=0)
def returns_a_single_rewrite(rows, columns, inner):
    return split("i0", 4, "it", "r")
