"""Solutions of exercise 09, reductions."""

import math

from minitorch_grading.harness.reductions import exp, log, maximum
from tests.grading.wrong_solutions import right, wrong

# --- softmax ----------------------------------------------------------------------------------------------------


@right("reductions.softmax")
def waits_in_the_result(x, out):
    largest, total = -math.inf, 0.0
    for number in x:
        risen = maximum(largest, number)
        total = total * exp(largest - risen) + exp(number - risen)
        largest = risen
    shift = largest + log(total)
    for i in range(len(x)):
        out[i] = exp(x[i] - shift)


@wrong("reductions.softmax", says="exp(1000) is infinite and infinity over infinity is NaN", points=6)
def subtracts_nothing(x, out):
    total = 0.0
    for number in x:
        total = total + exp(number)
    for i in range(len(x)):
        out[i] = exp(x[i]) / total


@wrong("reductions.softmax", says="subtract the largest number first, and no other", points=10)
def subtracts_the_first_number(x, out):
    shift, total = x[0], 0.0
    for number in x:
        total = total + exp(number - shift)
    for i in range(len(x)):
        out[i] = exp(x[i] - shift) / total


@wrong("reductions.softmax", says="subtract the largest number first, and no other")
def subtracts_the_mean(x, out):
    mean, total = 0.0, 0.0
    for number in x:
        mean = mean + number / len(x)
    for number in x:
        total = total + exp(number - mean)
    for i in range(len(x)):
        out[i] = exp(x[i] - mean) / total


@wrong("reductions.softmax", says="functions of math and NumPy do not work", points=0)
def calls_the_exponential_of_math(x, out):
    for i in range(len(x)):
        out[i] = math.exp(x[i])


@wrong("reductions.softmax", says="those are the exponentials: divide each by their sum", points=0)
def divides_by_nothing(x, out):
    largest = x[0]
    for number in x:
        largest = maximum(largest, number)
    for i in range(len(x)):
        out[i] = exp(x[i] - largest)


@wrong("reductions.softmax", says="numbers are held at once, and the machine has 8 registers", points=0)
def keeps_the_row(x, out):
    row = list(x)
    largest = row[0]
    for number in row:
        largest = maximum(largest, number)
    total = 0.0
    for number in row:
        total = total + exp(number - largest)
    for i, number in enumerate(row):
        out[i] = exp(number - largest) / total


@wrong("reductions.softmax", says="every exponential is 0: start with x[0]", points=11)
def starts_at_zero(x, out):
    largest, total = 0.0, 0.0
    for number in x:
        largest = maximum(largest, number)
    for number in x:
        total = total + exp(number - largest)
    for i in range(len(x)):
        out[i] = exp(x[i] - largest) / total


@wrong("reductions.softmax", says="so they cannot be compared: use maximum(a, b)", points=0)
def compares(x, out):
    largest = x[0]
    for number in x:
        if number > largest:
            largest = number


# --- largest_and_total ------------------------------------------------------------------------------------------


@right("reductions.largest_and_total")
def keeps_a_sum_of_logs(x, out):
    largest, total = x[0], 1.0
    for i in range(1, len(x)):
        number = x[i]
        above = maximum(number - largest, 0.0)
        total = total * exp(-above) + exp(number - largest - above)
        largest = largest + above
    out[0] = largest
    out[1] = total


@wrong("reductions.largest_and_total", says="the total so far has to be scaled down", points=0)
def never_scales(x, out):
    largest, total = -math.inf, 0.0
    for number in x:
        largest = maximum(largest, number)
        total = total + exp(number - largest)
    out[0] = largest
    out[1] = total


@wrong("reductions.largest_and_total", says="that is more than one pass", points=7)
def passes_twice(x, out):
    largest, total = x[0], 0.0
    for number in x:
        largest = maximum(largest, number)
    for number in x:
        total = total + exp(number - largest)
    out[0] = largest
    out[1] = total


@wrong("reductions.largest_and_total", says="numbers are held at once", points=0)
def collects_the_row(x, out):
    row = [x[i] for i in range(len(x))]
    largest, total = row[0], 0.0
    for number in row:
        largest = maximum(largest, number)
    for number in row:
        total = total + exp(number - largest)
    out[0] = largest
    out[1] = total


@wrong("reductions.largest_and_total", says="Load each once", points=7)
def loads_each_number_twice(x, out):
    largest, total = x[0], 1.0
    for i in range(1, len(x)):
        risen = maximum(largest, x[i])
        total = total * exp(largest - risen) + exp(x[i] - risen)
        largest = risen
    out[0] = largest
    out[1] = total


@wrong("reductions.largest_and_total", says="exp(1000) is infinite: subtract the largest number so far")
def measures_from_zero(x, out):
    largest, total = x[0], 0.0
    for number in x:
        largest = maximum(largest, number)
        total = total + exp(number)
    out[0] = largest
    out[1] = total / exp(largest)


@wrong("reductions.largest_and_total", says="one that starts at 0 stays there if all are below")
def starts_the_largest_at_zero(x, out):
    largest, total = 0.0, 0.0
    for number in x:
        risen = maximum(largest, number)
        total = total * exp(largest - risen) + exp(number - risen)
        largest = risen
    out[0] = largest
    out[1] = total


# --- merge_moments ----------------------------------------------------------------------------------------------


@right("reductions.merge_moments")
def weighs_from_the_larger(a, b):
    if b[0] > a[0]:
        a, b = b, a
    if b[0] == 0:
        return a
    count, gap = a[0] + b[0], b[1] - a[1]
    mean = a[1] + b[0] * gap / count
    return count, mean, a[2] + b[2] + a[0] * (mean - a[1]) ** 2 + b[0] * (b[1] - mean) ** 2


@wrong("reductions.merge_moments", says="each was taken around its own mean", points=5)
def adds_the_squares(a, b):
    count = a[0] + b[0]
    return count, (a[1] + (b[1] - a[1]) * b[0] / count) if count else 0.0, a[2] + b[2]


@wrong("reductions.merge_moments", says="weigh each by its count")
def takes_the_mean_of_means(a, b):
    if not (a[0] and b[0]):
        return a if a[0] else b
    gap = b[1] - a[1]
    count = a[0] + b[0]
    return count, (a[1] + b[1]) / 2, a[2] + b[2] + gap * gap * a[0] * b[0] / count


@wrong("reductions.merge_moments", says="a weighted mean is rounded", points=10)
def weighs_the_means(a, b):
    count = a[0] + b[0]
    if not count:
        return 0, 0.0, 0.0
    gap = b[1] - a[1]
    return count, (a[0] * a[1] + b[0] * b[1]) / count, a[2] + b[2] + gap * gap * a[0] * b[0] / count


@wrong("reductions.merge_moments", says="a weighted mean is rounded", points=10)
def shifts_to_the_weighted_mean(a, b):
    count = a[0] + b[0]
    if not count:
        return 0, 0.0, 0.0
    mean = (a[0] * a[1] + b[0] * b[1]) / count
    return count, mean, sum(squares + n * (middle - mean) ** 2 for n, middle, squares in (a, b))


@wrong("reductions.merge_moments", says="merging (0, 0, 0) and (0, 0, 0): it raises ZeroDivisionError", points=10)
def divides_by_no_numbers(a, b):
    count, gap = a[0] + b[0], b[1] - a[1]
    return count, a[1] + gap * b[0] / count, a[2] + b[2] + gap * gap * a[0] * b[0] / count


@wrong("reductions.merge_moments", says="the square of a mean has no digits for the difference", points=10)
def goes_through_sums_of_squares(a, b):
    count = a[0] + b[0]
    if not (a[0] and b[0]):
        return a if a[0] else b
    mean = a[1] + (b[1] - a[1]) * b[0] / count
    total = sum(squares + n * middle * middle for n, middle, squares in (a, b))
    return count, mean, total - count * mean * mean


# --- logsumexp --------------------------------------------------------------------------------------------------


@right("reductions.logsumexp")
def adds_two_at_a_time(x, out):
    so_far = x[0]
    for i in range(1, len(x)):
        number = x[i]
        top = maximum(so_far, number)
        so_far = top + log(exp(so_far - top) + exp(number - top))
    out[0] = so_far


@wrong("reductions.logsumexp", says="log(0) is -inf: start below all numbers", points=12)
def repairs_the_scaling_only(x, out):
    largest, total = 0.0, 0.0
    for i in range(len(x)):
        number = x[i]
        risen = maximum(largest, number)
        total = total * exp(largest - risen) + exp(number - risen)
        largest = risen
    out[0] = largest + log(total)


@wrong("reductions.logsumexp", says="`largest` has its new value already")
def repairs_the_start_only(x, out):
    largest, total = -math.inf, 0.0
    for i in range(len(x)):
        number = x[i]
        largest = maximum(largest, number)
        total = total * exp(largest - maximum(largest, number)) + exp(number - largest)
    out[0] = largest + log(total)


@wrong("reductions.logsumexp", says="subtract the largest number so far, and no other", points=9)
def measures_from_the_first_number(x, out):
    first, total = x[0], 1.0
    for i in range(1, len(x)):
        total = total + exp(x[i] - first)
    out[0] = first + log(total)


@wrong("reductions.logsumexp", says="that is more than one pass", points=9)
def takes_two_passes(x, out):
    largest, total = x[0], 0.0
    for number in x:
        largest = maximum(largest, number)
    for number in x:
        total = total + exp(number - largest)
    out[0] = largest + log(total)


@wrong("reductions.logsumexp", says="something overflows")
def leaves_the_largest_out(x, out):
    total = 0.0
    for number in x:
        total = total + exp(number)
    out[0] = log(total)


# --- variance ---------------------------------------------------------------------------------------------------


@right("reductions.variance")
def measures_from_the_first(x, out):
    first, total, squares = x[0], 0.0, 0.0
    for i in range(1, len(x)):
        gap = x[i] - first
        total = total + gap
        squares = squares + gap * gap
    out[0] = (squares - total * total / len(x)) / len(x)


@wrong("reductions.variance", says="agree in all digits that a float has", points=4)
def subtracts_the_square_of_the_mean(x, out):
    total, squares = 0.0, 0.0
    for number in x:
        total = total + number
        squares = squares + number * number
    mean = total / len(x)
    out[0] = squares / len(x) - mean * mean


@wrong("reductions.variance", says="should be", points=0)
def knows_where_zero_is_far_from(x, out):
    total, squares = 0.0, 0.0
    for number in x:
        gap = number - 1e8
        total = total + gap
        squares = squares + gap * gap
    out[0] = (squares - total * total / len(x)) / len(x)


@wrong("reductions.variance", says="that is more than one pass", points=10)
def takes_a_pass_for_the_mean(x, out):
    mean, squares = 0.0, 0.0
    for number in x:
        mean = mean + number / len(x)
    for number in x:
        squares = squares + (number - mean) * (number - mean)
    out[0] = squares / len(x)


@wrong("reductions.variance", says="and not by one less")
def divides_by_one_less(x, out):
    mean, squares = x[0], 0.0
    for i in range(1, len(x)):
        number = x[i]
        gap = number - mean
        mean = mean + gap / (i + 1)
        squares = squares + gap * (number - mean)
    out[0] = squares / (len(x) - 1)


@wrong("reductions.variance", says="should be", points=0)
def multiplies_the_same_gap(x, out):
    mean, squares = x[0], 0.0
    for i in range(1, len(x)):
        gap = x[i] - mean
        mean = mean + gap / (i + 1)
        squares = squares + gap * gap
    out[0] = squares / len(x)


# --- attention_row ----------------------------------------------------------------------------------------------


@right("reductions.attention_row")
def normalises_on_the_way(q, keys, values, scratch, out):
    query = list(q)
    shift, sums = None, []
    for j in range(len(keys)):
        score = query[0] * keys[j, 0] + query[1] * keys[j, 1]
        score = score + query[2] * keys[j, 2] + query[3] * keys[j, 3]
        if shift is None:
            shift, sums = score, [values[j, c] for c in range(4)]
            continue
        top = maximum(shift, score)
        new = top + log(exp(shift - top) + exp(score - top))
        keep, weight = exp(shift - new), exp(score - new)
        sums = [sums[c] * keep + weight * values[j, c] for c in range(4)]
        shift = new
    for c in range(4):
        out[c] = sums[c]


@wrong("reductions.attention_row", says="yours: 296 accesses; best known: 200", points=15)
def keeps_scores_in_scratch(q, keys, values, scratch, out):
    query, largest = list(q), -math.inf
    for j in range(len(keys)):
        score = 0.0
        for c in range(4):
            score = score + query[c] * keys[j, c]
        scratch[j] = score
        largest = maximum(largest, score)
    total = 0.0
    for j in range(len(keys)):
        weight = exp(scratch[j] - largest)
        total = total + weight
        scratch[j] = weight
    sums = [0.0] * 4
    for j in range(len(keys)):
        weight = scratch[j]
        sums = [sums[c] + weight * values[j, c] for c in range(4)]
    for c in range(4):
        out[c] = sums[c] / total


@wrong("reductions.attention_row", says="best known: 200", points=10)
def computes_every_score_again(q, keys, values, scratch, out):
    def score(j):
        found = 0.0
        for c in range(4):
            found = found + q[c] * keys[j, c]
        return found

    largest, total = -math.inf, 0.0
    for j in range(len(keys)):
        largest = maximum(largest, score(j))
    for j in range(len(keys)):
        total = total + exp(score(j) - largest)
    for c in range(4):
        found = 0.0
        for j in range(len(keys)):
            found = found + exp(score(j) - largest) * values[j, c]
        out[c] = found / total


@wrong("reductions.attention_row", says="the total was scaled down and the sums of values were not", points=0)
def scales_the_total_only(q, keys, values, scratch, out):
    query = list(q)
    largest, total, sums = -math.inf, 0.0, [0.0] * 4
    for j in range(len(keys)):
        score = 0.0
        for c in range(4):
            score = score + query[c] * keys[j, c]
        risen = maximum(largest, score)
        old, weight = exp(largest - risen), exp(score - risen)
        largest, total = risen, total * old + weight
        sums = [sums[c] + weight * values[j, c] for c in range(4)]
    for c in range(4):
        out[c] = sums[c] / total


@wrong("reductions.attention_row", says="exp of a large score is infinite", points=5)
def subtracts_no_score(q, keys, values, scratch, out):
    query = list(q)
    total, sums = 0.0, [0.0] * 4
    for j in range(len(keys)):
        score = 0.0
        for c in range(4):
            score = score + query[c] * keys[j, c]
        weight = exp(score)
        total = total + weight
        sums = [sums[c] + weight * values[j, c] for c in range(4)]
    for c in range(4):
        out[c] = sums[c] / total


@wrong("reductions.attention_row", says="and the machine has 16 registers", points=0)
def keeps_all_scores(q, keys, values, scratch, out):
    query = list(q)
    scores = []
    for j in range(len(keys)):
        score = 0.0
        for c in range(4):
            score = score + query[c] * keys[j, c]
        scores.append(score)
    largest = scores[0]
    for score in scores:
        largest = maximum(largest, score)
    weights = [exp(score - largest) for score in scores]
    total = 0.0
    for weight in weights:
        total = total + weight
    for c in range(4):
        found = 0.0
        for j in range(len(keys)):
            found = found + weights[j] * values[j, c]
        out[c] = found / total
