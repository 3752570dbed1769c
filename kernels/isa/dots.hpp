// Family dot: lanes along k on plain row-major A (panels of one row) and columns of B that are contiguous along k.
#pragma once
#include "isa/act.hpp"

namespace pulse::PULSE_NS {

// Sums over the last k % VL elements, by vectors of half the width each time.
template <int W, int R, int N>
PULSE_INLINE void dot_tail(float (&t)[N][R], const float* a, const float* b, int64_t lda, int64_t bn, int64_t l,
                           int64_t k) {
    if constexpr (W >= 4) {
        if (l + W <= k) {
            for (int r = 0; r < R; r++)
                for (int j = 0; j < N; j++) t[j][r] += sum<W>(load<W>(a + r * lda + l) * load<W>(b + j * bn + l));
            l += W;
        }
        dot_tail<W / 2, R, N>(t, a, b, lda, bn, l, k);
    } else {
        for (; l < k; l++)
            for (int r = 0; r < R; r++)
                for (int j = 0; j < N; j++) t[j][r] += a[r * lda + l] * b[j * bn + l];
    }
}

template <int R, int N, int KS>
PULSE_INLINE void dot_cell(const Product& p, const float* a, int64_t row, int64_t col) {
    const float* b = p.b + col * p.bn;
    V acc[KS][R][N];
    PULSE_UNROLL for (int s = 0; s < KS; s++) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int j = 0; j < N; j++) acc[s][r][j] = V{};
        }
    }
    auto step = [&](int64_t l, int s) __attribute__((always_inline)) {
        V x[N];
        PULSE_UNROLL for (int j = 0; j < N; j++) {
            x[j] = load(b + j * p.bn + l);
            if constexpr (R > 1 && KS * R * N + N + 1 + SLACK <= REGISTERS) PULSE_PIN(x[j]);
        }
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            V av = load(a + r * p.k + l);
            if constexpr (N > 1 && KS * R * N + N + 1 + SLACK <= REGISTERS) PULSE_PIN(av);
            PULSE_UNROLL for (int j = 0; j < N; j++) acc[s][r][j] += av * x[j];
        }
    };
    int64_t l = 0;
    for (; l + KS * VL <= p.k; l += KS * VL) {
        PULSE_UNROLL for (int s = 0; s < KS; s++) step(l + s * VL, s);
    }
    if constexpr (KS > 1)
        for (; l + VL <= p.k; l += VL) step(l, 0);
    float t[N][R];
    PULSE_UNROLL for (int j = 0; j < N; j++) {
        PULSE_UNROLL for (int r = 0; r < R; r++) {
            PULSE_UNROLL for (int s = 1; s < KS; s++) acc[0][r][j] += acc[s][r][j];
            t[j][r] = sum<VL>(acc[0][r][j]);
        }
    }
    dot_tail<VL / 2, R, N>(t, a, b, p.k, p.bn, l, p.k);
    for (int j = 0; j < N; j++)
        for (int r = 0; r < R; r++) {
            float* c = p.c + (row + r) * p.cm + (col + j) * p.cn;
            if (p.bias) t[j][r] += p.bias[row + r];
            if (p.accumulate) t[j][r] += *c;
            if (p.act == Act::relu) t[j][r] = at_least<1>(t[j][r], 0.0f);
        }
    for (int j = 0; j < N; j++) {
        if (p.act > Act::relu)
            activate_span(t[j], R, p.act, p.act == Act::prelu ? p.slope + row : &p.alpha, p.act == Act::prelu);
        for (int r = 0; r < R; r++) p.c[(row + r) * p.cm + (col + j) * p.cn] = t[j][r];
    }
}

template <int N, int KS>
static __attribute__((noinline)) void dot_row(const Product& p, const float* a, int64_t row, int64_t col) {
    dot_cell<1, N, KS>(p, a, row, col);
}

template <int R, int NR, int KS>
static void dot(const Product& p) {
    const float* a = static_cast<const float*>(p.a);
    int64_t col = 0;
    for (; col + NR <= p.n; col += NR) {
        int64_t row = 0;
        for (; row + R <= p.m; row += R) dot_cell<R, NR, KS>(p, a + row * p.k, row, col);
        for (; row < p.m; row++) dot_row<NR, KS>(p, a + row * p.k, row, col);
    }
    if constexpr (NR > 1)
        for (; col < p.n; col++)
            for (int64_t row = 0; row < p.m; row++) dot_row<1, KS>(p, a + row * p.k, row, col);
}

}  // namespace pulse::PULSE_NS
