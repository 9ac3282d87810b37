"""Laws of datasets and loaders: every sample once, in an order that a seed decides."""

from __future__ import annotations

import builtins
import gc
import itertools
import math
import multiprocessing
import os
from collections import Counter, namedtuple

import numpy as np
import pytest

import minitorch as mt
from minitorch.data import (
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    default_collate,
    is_sentence,
    load_digits,
    load_sentences,
    random_split,
    sentence_entropy,
    sentences,
)


def rows(count):
    return TensorDataset(mt.arange(count), mt.arange(count) * 10)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("drop_last", [False, True])
def test_every_sample_comes_once_and_in_order(batch_size, drop_last):
    loader = DataLoader(rows(7), batch_size, drop_last=drop_last)
    batches = [(x.tolist(), y.tolist()) for x, y in loader]
    assert len(batches) == len(loader)
    count = 7 // batch_size * batch_size if drop_last else 7
    assert [number for x, _ in batches for number in x] == list(range(count))
    assert all([10 * number for number in x] == y for x, y in batches)


def test_every_epoch_is_shuffled_anew_and_a_seed_repeats_it():
    loader = DataLoader(rows(20), batch_size=6, shuffle=True, generator=mt.Generator().manual_seed(3))
    first, second = (mt.cat([x for x, _ in loader]).tolist() for _ in range(2))
    assert first != second and sorted(first) == sorted(second) == list(range(20))
    again = DataLoader(rows(20), batch_size=6, shuffle=True, generator=mt.Generator().manual_seed(3))
    assert mt.cat([x for x, _ in again]).tolist() == first
    mt.manual_seed(1)
    a = mt.cat([x for x, _ in DataLoader(rows(20), 6, True)]).tolist()
    mt.manual_seed(1)
    assert mt.cat([x for x, _ in DataLoader(rows(20), 6, True)]).tolist() == a


def test_a_batch_of_rows_is_the_collated_rows():
    data = Subset(rows(9), [8, 0, 3, 3])
    fast = list(DataLoader(data, 3))
    slow = list(DataLoader(data, 3, collate_fn=default_collate))
    assert [[t.tolist() for t in batch] for batch in fast] == [[t.tolist() for t in batch] for batch in slow]
    assert fast[0][0].tolist() == [8, 0, 3]


def test_collate_keeps_the_structure():
    Point = namedtuple("Point", "x name")
    samples = [{"a": [1, 2.5], "p": Point(np.ones(2), "u")}, {"a": [3, 4.5], "p": Point(np.zeros(2), "v")}]
    batch = default_collate(samples)
    assert batch["a"][0].tolist() == [1, 3] and batch["a"][1].dtype is mt.float32
    assert batch["p"].x.dtype is mt.float64 and batch["p"].x.shape == (2, 2) and batch["p"].name == ["u", "v"]
    assert default_collate([mt.ones(2), mt.zeros(2)]).shape == (2, 2)
    assert default_collate([True, False]).dtype is mt.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype is mt.float32
    with pytest.raises(ValueError, match="different lengths"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="object"):
        default_collate([object()])


def test_a_list_is_a_dataset_and_a_dataset_of_ones_own_works():
    class Squares(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return float(index**2), index

    assert [x.tolist() for x, _ in DataLoader(Squares(), 2)] == [[0, 1], [4, 9]]
    assert [batch.tolist() for batch in DataLoader([5, 6, 7], 2)] == [[5, 6], [7]]
    assert list(DataLoader([5, 6, 7], 2, collate_fn=list)) == [[5, 6], [7]]
    with pytest.raises(NotImplementedError, match="Dataset"):
        len(Dataset())


def test_random_split_divides():
    parts = random_split(rows(10), [3, 7], generator=mt.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [3, 7]
    assert sorted(int(x) for part in parts for x, _ in part_samples(part)) == list(range(10))
    assert [len(part) for part in random_split(rows(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]
    for wrong in ([3, 3], [0.5, 0.2]):
        with pytest.raises(ValueError, match="add up"):
            random_split(rows(10), wrong)


def part_samples(part):
    return (part[index] for index in range(len(part)))


def test_errors():
    with pytest.raises(ValueError, match="one length"):
        TensorDataset(mt.ones(2), mt.ones(3))
    with pytest.raises(ValueError, match="batch_size"):
        DataLoader(rows(3), 0)


def test_digits_are_the_same_every_time_and_no_image_is_in_both_parts():
    pytest.importorskip("sklearn")
    (x, y), (x_test, y_test) = load_digits()
    again = load_digits()[0][0]
    assert mt.equal(x, again)
    assert x.shape == (1437, 64) and x_test.shape == (360, 64) and y.dtype is mt.int64 and x.dtype is mt.float32
    assert 0 <= x.min().item() <= x.max().item() == 1
    assert np.bincount(y_test.numpy(), minlength=10).min() > 20
    sums = np.concatenate([x.numpy(), x_test.numpy()])
    assert len(sums) == 1797 and len(np.unique(sums, axis=0)) == 1797


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith(("tqdm", "sklearn")):
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install scikit-learn"):
        load_digits()
    with pytest.raises(ModuleNotFoundError, match=r"pip install tqdm"):
        list(DataLoader(rows(2), progress=True))


def test_progress_counts_batches(capsys):
    pytest.importorskip("tqdm")
    assert len(list(DataLoader(rows(5), 2, progress=True))) == 3
    assert "3/3" in capsys.readouterr().err


# Sentences ----------------------------------------------------------------------------------------------------------


def derivations(rule):
    """Each derivation of a rule: its text and its probability."""
    alternatives = sentences.GRAMMAR[rule]
    for text in alternatives:
        names = sentences.NAME.findall(text)
        for parts in itertools.product(*[list(derivations(name)) for name in names]):
            made = sentences.NAME.sub("{}", text).format(*[each for each, _ in parts])
            yield made, math.prod([chance for _, chance in parts]) / len(alternatives)


@pytest.mark.parametrize("rule", ["other", "does", "one"])
def test_entropy_and_length_are_those_of_all_texts_of_a_rule(rule):
    chances: Counter[str] = Counter()
    for text, chance in derivations(rule):
        chances[text] += chance
    entropy, length = sentences._of_rule(rule)
    assert math.isclose(sum(chances.values()), 1)
    assert math.isclose(entropy, -sum(each * math.log(each) for each in chances.values()))
    assert math.isclose(length, sum(each * len(text) for text, each in chances.items()))


def test_sentences_are_the_same_each_time_and_all_of_the_grammar():
    training, test = load_sentences()
    assert (training, test) == load_sentences() and set(test) <= set(training)
    assert all(is_sentence(each + ".") for each in (training + test).split(". ")[:-1])
    assert math.isclose(sentence_entropy(), 0.328428, rel_tol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "the dog sing.",
        "the dogs that the cat see sing.",
        "the dog that the cats see sing.",
        "the dog sings",
        "the dog sings. ",
        "the small old dog sings.",
        "",
    ],
)
def test_what_the_grammar_does_not_make_is_no_sentence(text):
    assert not is_sentence(text)


class Worked(mt.data.Dataset):
    """Samples that say which process read them, and fail where they are told to."""

    def __init__(self, count, bad=None):
        self.count, self.bad = count, bad

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError(f"sample {index}")
        return index, os.getpid(), mt.data.get_worker_info().id, int(mt.ones(64, 64).sum())


class Stream(mt.data.IterableDataset):
    """Numbers, of which each worker yields its share."""

    def __iter__(self):
        info = mt.data.get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


def test_workers_read_batches_in_order_in_processes_of_their_own():
    batches = list(DataLoader(Worked(10), batch_size=2, num_workers=2, worker_init_fn=mt.manual_seed))
    assert [batch[0].tolist() for batch in batches] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert [batch[2].tolist() for batch in batches] == [[0, 0], [1, 1], [0, 0], [1, 1], [0, 0]]
    assert len({pid for batch in batches for pid in batch[1].tolist()} - {os.getpid()}) == 2
    assert mt.data.get_worker_info() is None


def test_a_stream_is_divided_among_workers():
    assert [x.tolist() for x in DataLoader(Stream(), 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [x.tolist() for x in DataLoader(Stream(), 4, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    found = [x.tolist() for x in DataLoader(Stream(), 2, num_workers=2)]
    assert found == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]


def test_an_error_in_a_worker_is_the_programs():
    with pytest.raises(KeyError, match="sample 3") as caught:
        list(DataLoader(Worked(10, bad=3), num_workers=2))
    assert "in worker 1 of a DataLoader" in "".join(caught.value.__notes__)


def test_a_worker_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match="worker 0 of the DataLoader died, with exit code 7"):
        list(DataLoader(range(4), num_workers=1, collate_fn=lambda samples: os._exit(7)))


def test_workers_are_forked_beside_a_library_that_warns_of_it():
    pytest.importorskip("jax").numpy.ones(1)
    assert len(list(DataLoader(range(4), num_workers=1))) == 4


def test_workers_end_with_the_loop():
    for _ in DataLoader(Worked(1000), num_workers=2):
        break
    gc.collect()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("replacement", [False, True])
def test_samplers_draw_what_they_say(replacement):
    mt.manual_seed(0)
    drawn = list(mt.data.RandomSampler(range(5), replacement, num_samples=1000))
    assert len(drawn) == 1000 and set(drawn) == set(range(5))
    weights = [0.0, 1.0, 3.0]
    count = 4000 if replacement else 2
    drawn = list(mt.data.WeightedRandomSampler(weights, count, replacement))
    assert len(drawn) == count and 0 not in drawn
    assert not replacement or abs(drawn.count(2) / count - 0.75) < 0.05
    assert sorted(mt.data.SubsetRandomSampler([7, 8, 9])) == [7, 8, 9]


@pytest.mark.parametrize("name", ["RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler"])
def test_a_sampler_follows_its_generator(name):
    def order():
        generator = mt.Generator().manual_seed(3)
        more = {"WeightedRandomSampler": (20,)}.get(name, ())
        return list(getattr(mt.data, name)([1.0] * 20 if more else range(20), *more, generator=generator))

    assert order() == order()


def test_options_that_exclude_each_other_are_refused():
    sampler = mt.data.SequentialSampler(range(4))
    for options in (
        {"shuffle": True, "sampler": sampler},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"num_workers": -1},
    ):
        with pytest.raises(ValueError):
            DataLoader(range(4), **options)
    with pytest.raises(ValueError, match="has its own order"):
        DataLoader(Stream(), shuffle=True)
    assert [x.tolist() for x in DataLoader(range(4), batch_sampler=[[0, 3], [1]])] == [[0, 3], [1]]
    assert list(DataLoader([5, 6], batch_size=None)) == [5, 6]
