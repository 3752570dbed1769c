// Family nl: lanes along n on rows of B and C that are contiguous, R rows of A broadcast per tile.
#pragma once
#include "isa/act.hpp"
#include "isa/tile.hpp"

namespace pulse::PULSE_NS {

template <int R, int NV, int W>
PULSE_INLINE void strip(const Product& p, const float* a, int64_t row, int64_t rows, int64_t col) {
    typedef typename Vec<W>::T X;
    float* c = p.c + row * p.cm + col;
    X acc[R][NV];
    PULSE_UNROLL for (int r = 0; r < R; r++) {
        const X start = p.bias && r < rows ? broadcast<W>(p.bias[row + r]) : X{};
        PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = start;
    }
    if (p.accumulate) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            if (r < rows) {
                PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += load<W>(c + r * p.cm + v * W);
            }
        }
    }
    if (p.off)
        lanes<R, NV, W, true>(acc, a, p.b + col, p.off, 0, p.k);
    else
        lanes<R, NV, W, false>(acc, a, p.b + col, nullptr, p.ldb, p.k);
    if (p.act == Act::relu) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] = at_least(acc[r][v], X{});
        }
    }
    PULSE_UNROLL for (int r = 0; r < R; r++) {
        if (r < rows) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) store<W>(c + r * p.cm + v * W, acc[r][v]);
        }
    }
    if (p.act > Act::relu)
        for (int64_t r = 0; r < (rows < R ? rows : R); r++)
            activate_span(c + r * p.cm, NV * W, p.act, p.act == Act::prelu ? p.slope + row + r : &p.alpha, false);
}

// The columns left over, by narrower vectors, down to single columns.
template <int R, int W>
static __attribute__((noinline)) void narrow_strips(const Product& p, const float* a, int64_t row, int64_t rows,
                                                    int64_t col, int64_t to) {
    for (; col + W <= to; col += W) strip<R, 1, W>(p, a, row, rows, col);
    if constexpr (W > 1)
        if (col < to) narrow_strips<R, (W > 4 ? W / 2 : 1)>(p, a, row, rows, col, to);
}

template <int R, int NR>
static void nl(const Product& p) {
    static_assert(NR % VL == 0, "tiles are whole vectors wide");
    // A block of columns whose rows of B stay in the first cache level while all panels of A pass over it.
    const int64_t fit = 6144 / (p.k + 1) / NR * NR, block = fit > NR ? fit : NR;
    for (int64_t from = 0; from < p.n; from += block) {
        const int64_t to = from + block < p.n ? from + block : p.n;
        const float* a = static_cast<const float*>(p.a);
        for (int64_t row = 0; row < p.m; row += R, a += R * p.k) {
            int64_t col = from;
            for (; col + NR <= to; col += NR) strip<R, NR / VL, VL>(p, a, row, p.m - row, col);
            if (col < to) narrow_strips<R, VL>(p, a, row, p.m - row, col, to);
        }
    }
}

}  // namespace pulse::PULSE_NS
