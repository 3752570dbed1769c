// The inner loops, free of any policy about where results go, so that fused steps (a GRU's gates) can use them too.
#pragma once
#include "isa/vec.hpp"
#include "mmm.hpp"

namespace pulse::PULSE_NS {

// acc[s][j][i] += panel of A (k-major, MV vectors of W rows) times NR columns of B, lanes along m; row l of A goes to
// accumulator l % KS. B(l, j) = b[(OFF ? off[l] : l * ldb) + j * (UNIT ? 1 : bn)].
template <int W, int MV, int NR, int KS, bool OFF, bool UNIT>
PULSE_INLINE void tile(typename Vec<W>::T (&acc)[KS][NR][MV], const float* a, const float* b, const int32_t* off,
                       int64_t ldb, int64_t bn, int64_t k) {
    typedef typename Vec<W>::T X;
    const float* column[NR];
    PULSE_UNROLL for (int j = 0; j < NR; j++) column[j] = UNIT ? b + j : b + j * bn;
    int64_t row = 0;
    auto step = [&](int64_t l, int s) __attribute__((always_inline)) {
        if constexpr (OFF) row = off[l];
        X av[MV];
        PULSE_UNROLL for (int i = 0; i < MV; i++) {
            av[i] = load<W>(a + i * W);
            if constexpr (NR > 1 && KS * NR * MV + MV + 1 + SLACK <= REGISTERS) PULSE_PIN(av[i]);
        }
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            const X x = broadcast<W>(column[j][row]);
            PULSE_UNROLL for (int i = 0; i < MV; i++) acc[s][j][i] += av[i] * x;
        }
        a += MV * W;
        if constexpr (!OFF) row += ldb;
    };
    int64_t l = 0;
    for (; l + KS <= k; l += KS) {
        PULSE_UNROLL for (int s = 0; s < KS; s++) step(l + s, s);
    }
    if constexpr (KS > 1)
        for (; l < k; l++) step(l, 0);
}

// Floats or Pairs that one row of A takes.
PULSE_INLINE int64_t along(const float*, int64_t k) { return k; }
PULSE_INLINE int64_t along(const Pair*, int64_t k) { return (k + 1) / 2; }

template <int W>
PULSE_INLINE typename Vec<W>::T floats(typename Vec<W>::Bits bits) {
    typename Vec<W>::T v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// The same on bf16 weights: a vector of Pairs holds k and k + 1 of W rows, which a shift and a mask make floats of.
template <int W, int MV, int NR, int KS, bool OFF, bool UNIT>
PULSE_INLINE void tile(typename Vec<W>::T (&acc)[KS][NR][MV], const Pair* a, const float* b, const int32_t* off,
                       int64_t ldb, int64_t bn, int64_t k) {
    typedef typename Vec<W>::T X;
    const float* column[NR];
    PULSE_UNROLL for (int j = 0; j < NR; j++) column[j] = UNIT ? b + j : b + j * bn;
    int64_t row = 0;
    auto step = [&](int64_t l, int s, bool upper) __attribute__((always_inline)) {
        if constexpr (OFF) row = off[l];
        X av[MV];
        PULSE_UNROLL for (int i = 0; i < MV; i++) {
            typename Vec<W>::Bits pair;
            memcpy(&pair, a + i * W, sizeof pair);
            av[i] = floats<W>(upper ? pair & 0xffff0000u : pair << 16);
            if constexpr (NR > 1) PULSE_PIN(av[i]);
        }
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            const X x = broadcast<W>(column[j][row]);
            PULSE_UNROLL for (int i = 0; i < MV; i++) acc[s % KS][j][i] += av[i] * x;
        }
        if (upper) a += MV * W;
        if constexpr (!OFF) row += ldb;
    };
    constexpr int TURN = KS > 2 ? KS : 2;
    int64_t l = 0;
    for (; l + TURN <= k; l += TURN) {
        PULSE_UNROLL for (int s = 0; s < TURN; s++) step(l + s, s, s % 2);
    }
    if constexpr (TURN > 2)
        for (; l + 2 <= k; l += 2) step(l, 0, false), step(l + 1, 1, true);
    if (l < k) step(l, 0, false);
}

// acc[r][v] += R rows of A (k-major panel `HEIGHT` rows high, broadcast) times NV vectors of W columns of B, lanes along n.
template <int R, int HEIGHT, int NV, int W, bool OFF>
PULSE_INLINE void lanes(typename Vec<W>::T (&acc)[R][NV], const float* a, const float* b, const int32_t* off, int64_t ldb,
                        int64_t k) {
    const float* row = b;
    for (int64_t l = 0; l < k; l++) {
        if constexpr (OFF) row = b + off[l];
        typename Vec<W>::T x[NV];
        PULSE_UNROLL for (int v = 0; v < NV; v++) x[v] = load<W>(row + v * W);
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) acc[r][v] += a[r] * x[v];
        }
        a += HEIGHT;
        if constexpr (!OFF) row += ldb;
    }
}

}  // namespace pulse::PULSE_NS
