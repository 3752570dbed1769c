// Family nl: lanes along n on rows of B and C that are contiguous, R rows of A broadcast per tile.
#pragma once
#include "isa/panels.hpp"

namespace pulse::PULSE_NS {

// R rows of a panel HEIGHT rows high by NV vectors of W columns.
template <int R, int HEIGHT, int NV, int W>
PULSE_INLINE void strip(const Product& p, const float* a, int64_t row, int64_t col) {
    typedef typename Vec<W>::T X;
    float* c = p.c + row * p.cm + col;
    X acc[R][NV];
    if (p.bias) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = broadcast<W>(p.bias[row + r]);
        }
    } else {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = X{};
        }
    }
    if (p.accumulate) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += load<W>(c + r * p.cm + v * W);
        }
    }
    if (p.off)
        lanes<R, HEIGHT, NV, W, true>(acc, a, p.b + col, p.off, 0, p.k);
    else
        lanes<R, HEIGHT, NV, W, false>(acc, a, p.b + col, nullptr, p.ldb, p.k);
    if (p.act == Act::relu) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = at_least<W>(acc[r][v], X{});
        }
    }
    PULSE_UNROLL for (int r = 0; r < R; r++) {
        PULSE_UNROLL for (int v = 0; v < NV; v++) store<W>(c + r * p.cm + v * W, acc[r][v]);
    }
    if (p.act > Act::relu)
        for (int64_t r = 0; r < R; r++)
            activate_span(c + r * p.cm, NV * W, p.act, p.act == Act::prelu ? p.slope + row + r : &p.alpha, false);
}

// Columns from col on that do not fill a tile: by narrower vectors, then single ones, with lanes along m where rows allow it.
template <int R, int W>
static __attribute__((noinline)) void last_strips(const Product& p, const float* a, int64_t row, int64_t col) {
    for (; col + W <= p.n; col += W) strip<R, R, 1, W>(p, a, row, col);
    if (col == p.n) return;
    if constexpr (W > 4)
        last_strips<R, W / 2>(p, a, row, col);
    else if constexpr (R % 4 != 0)
        last_strips<R, 1>(p, a, row, col);
    else
        last_columns<(R < VL ? R : VL), (R < VL ? 1 : R / VL), 3>(p, walk_of(p), a, row, R, col);
}

// The rows left over, exactly LEFT of them in a lower panel (see pack()); wide enough to keep twice CHAINS sums in flight.
template <int LEFT>
static __attribute__((noinline)) void low_strips(const Product& p, const float* a, int64_t row, int64_t col, int64_t to) {
    constexpr int HEIGHT = LEFT == 1 ? 1 : LEFT <= 4 ? 4 : 8, WISH = (2 * CHAINS + LEFT - 1) / LEFT;
    constexpr int FIT = (REGISTERS - 1) / (LEFT + 1), NV = WISH < FIT ? WISH : FIT;
    for (; col + NV * VL <= to; col += NV * VL) strip<LEFT, HEIGHT, NV, VL>(p, a, row, col);
    for (; col + VL <= to; col += VL) strip<LEFT, HEIGHT, 1, VL>(p, a, row, col);
    if (col < to)
        last_columns<(HEIGHT < VL ? HEIGHT : VL), (HEIGHT < VL ? 1 : HEIGHT / VL), (VL > 8 ? 8 : 4)>(p, walk_of(p), a, row, LEFT, col);
}
template <int LEFT>
PULSE_INLINE void last_strips_of(const Product& p, const float* a, int64_t row, int64_t from, int64_t to) {
    if (p.m - row == LEFT)
        low_strips<LEFT>(p, a, row, from, to);
    else if constexpr (LEFT > 1)
        last_strips_of<LEFT - 1>(p, a, row, from, to);
}

template <int R, int NR>
static void nl(const Product& p) {
    static_assert(NR % VL == 0 && 64 % NR == 0 && (R < 6 || R == 8), "whole vectors wide; heights that pack() makes");
    // A block of columns whose rows of B, and of C under one panel, stay in the first cache level while all panels of A
    // pass over it. Only the last block can end amid a vector.
    const int64_t fit = 6144 / (p.k + R + 1) / 64 * 64, block = fit > 64 ? fit : 64;
    const int64_t whole = p.m / R * R;
    const float* a = static_cast<const float*>(p.a);
    for (int64_t from = 0; from < p.n; from += block) {
        const int64_t to = from + block < p.n ? from + block : p.n;
        for (int64_t row = 0; row < whole; row += R) {
            int64_t col = from;
            for (; col + NR <= to; col += NR) strip<R, R, NR / VL, VL>(p, a + row * p.k, row, col);
            if (col < to) last_strips<R, VL>(p, a + row * p.k, row, col);
        }
        if (whole < p.m) last_strips_of<R - 1>(p, a + whole * p.k, whole, from, to);
    }
}

}  // namespace pulse::PULSE_NS
