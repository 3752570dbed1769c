"""Views are numpy's strides, and buffers that live at the same time do not overlap."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.engine.native.lower.context import merged
from pulse.engine.native.memory import Buffer, View, dense, dense_size, place

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def as_array(view: View, memory: np.ndarray) -> np.ndarray:
    strides = [4 * s for s in view.strides]
    return np.lib.stride_tricks.as_strided(memory[view.offset :], view.shape, strides)


@st.composite
def views(draw: st.DrawFn) -> View:
    shape = draw(SHAPES)
    order = draw(st.permutations(range(len(shape))))
    margins = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape]
    return dense(Buffer("arena", dense_size(shape, margins)), shape, order, margins)


def numbered(view: View) -> np.ndarray:
    return np.arange(view.buffer.size, dtype=np.float32)


@given(views(), st.data())
@settings(max_examples=200, deadline=None)
def test_views_look_at_what_numpy_would(view: View, data: st.DataObject) -> None:
    memory = numbered(view)
    array = as_array(view, memory)
    assert np.unique(array).size == array.size, "every element has a place of its own"
    perm = data.draw(st.permutations(range(array.ndim)))
    assert np.array_equal(as_array(view.transpose(perm), memory), array.transpose(perm))
    axis = data.draw(st.integers(0, array.ndim - 1))
    start = data.draw(st.integers(0, view.shape[axis] - 1))
    count = data.draw(st.integers(0, view.shape[axis] - start))
    cut = (slice(None),) * axis + (slice(start, start + count),)
    assert np.array_equal(as_array(view.slice(axis, start, count), memory), array[cut])
    assert np.array_equal(as_array(view.insert(axis), memory), np.expand_dims(array, axis))
    wide = (3, *(5 if d == 1 else d for d in view.shape))
    assert np.array_equal(as_array(view.expand(wide), memory), np.broadcast_to(array, wide))


@given(views(), st.data())
@settings(max_examples=300, deadline=None)
def test_reshape_is_numpys_or_impossible(view: View, data: st.DataObject) -> None:
    memory = numbered(view)
    array = as_array(view, memory)
    factors = [f for f in range(1, array.size + 1) if array.size % f == 0]
    first = data.draw(st.sampled_from(factors))
    rest = array.size // first
    second = data.draw(st.sampled_from([f for f in factors if rest % f == 0]))
    shape = data.draw(st.permutations([first, second, rest // second, 1]))
    found = view.reshape(shape)
    if found is not None:
        assert np.array_equal(as_array(found, memory), array.reshape(shape))
    else:
        assert not array.flags.c_contiguous, "what is contiguous takes any shape"


def test_margins_survive_what_leaves_their_axis_alone() -> None:
    view = dense(Buffer("arena", 4 * 8), (4, 6), (0, 1), ((0, 0), (1, 1)))
    assert view.transpose((1, 0)).margins == ((1, 1), (0, 0))
    assert view.reshape((2, 2, 6)).margins == ((0, 0), (0, 0), (1, 1))  # type: ignore[union-attr]
    assert view.slice(0, 1, 2).margins == ((0, 0), (1, 1))
    assert view.slice(1, 1, 2).margins == ((0, 0), (0, 0))


LIVES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 70), st.booleans()), max_size=12)


@given(LIVES)
@settings(max_examples=300, deadline=None)
def test_buffers_in_use_together_lie_apart(lives: list[tuple[int, int, int, bool]]) -> None:
    buffers = []
    for a, b, size, lasting in lives:
        buffer = Buffer("arena", size, lasting=lasting)
        buffer.touch(a)
        buffer.touch(b)
        buffers.append(buffer)
    unused = Buffer("arena", 1000)
    end = place([*buffers, unused])
    assert end <= sum(-(-b.size // 16) * 16 for b in buffers)
    for i, x in enumerate(buffers):
        assert x.offset % 16 == 0
        assert x.offset + x.size <= end
        for y in buffers[:i]:
            together = x.first <= y.last and y.first <= x.last  # type: ignore[operator]
            if together or x.lasting or y.lasting:
                assert x.offset + x.size <= y.offset or y.offset + y.size <= x.offset


@given(views())
@settings(max_examples=200, deadline=None)
def test_merged_loops_touch_the_same_elements(view: View) -> None:
    other = dense(Buffer("arena", view.size), view.shape, range(len(view.shape)))
    loops = merged(view.shape, view.strides, other.strides)
    pairs = [(0, 0)]
    for count, a, b in loops:
        pairs = [(x + i * a, y + i * b) for x, y in pairs for i in range(count)]
    want = set()
    for index in np.ndindex(view.shape):
        want.add(tuple(sum(i * s for i, s in zip(index, v.strides, strict=True)) for v in (view, other)))
    assert set(pairs) == want
