// Strided copies: rows at a time where both sides are contiguous, square blocks where they are transposed.
#include "isa/vec.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

static void copy_row(const float* x, float* y, int64_t n) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL) store(y + i, load(x + i));
    for (; i < n; i++) y[i] = x[i];
}

constexpr int SIDE = VL < 8 ? VL : 8;

// Transposes a square of W rows in registers by stages of interleaving the first half of the rows with the second.
template <int W>
PULSE_INLINE void transpose(typename Vec<W>::T (&x)[W]) {
    PULSE_UNROLL for (int stage = 1; stage < W; stage *= 2) {
        typename Vec<W>::T y[W];
        PULSE_UNROLL for (int j = 0; j < W / 2; j++) {
            if constexpr (W == 8) {
                y[2 * j] = __builtin_shufflevector(x[j], x[j + 4], 0, 8, 1, 9, 2, 10, 3, 11);
                y[2 * j + 1] = __builtin_shufflevector(x[j], x[j + 4], 4, 12, 5, 13, 6, 14, 7, 15);
            } else {
                y[2 * j] = __builtin_shufflevector(x[j], x[j + 2], 0, 4, 1, 5);
                y[2 * j + 1] = __builtin_shufflevector(x[j], x[j + 2], 2, 6, 3, 7);
            }
        }
        PULSE_UNROLL for (int j = 0; j < W; j++) x[j] = y[j];
    }
}

// y[i * ys + j] = x[i + j * xs]: rows of x become columns of y.
static void copy_transposed(const float* x, float* y, int64_t rows, int64_t cols, int64_t xs, int64_t ys) {
    int64_t j = 0;
    for (; j + SIDE <= cols; j += SIDE) {
        int64_t i = 0;
        for (; i + SIDE <= rows; i += SIDE) {
            Vec<SIDE>::T block[SIDE];
            PULSE_UNROLL for (int q = 0; q < SIDE; q++) block[q] = load<SIDE>(x + i + (j + q) * xs);
            transpose<SIDE>(block);
            PULSE_UNROLL for (int q = 0; q < SIDE; q++) store<SIDE>(y + (i + q) * ys + j, block[q]);
        }
        for (; i < rows; i++)
            for (int64_t q = j; q < j + SIDE; q++) y[i * ys + q] = x[i + q * xs];
    }
    for (; j < cols; j++)
        for (int64_t i = 0; i < rows; i++) y[i * ys + j] = x[i + j * xs];
}

static void copy_plane(const copy_args& s, const float* x, float* y) {
    if (s.y4 == 1 && s.x4 == 1) {
        for (int64_t i = 0; i < s.n3; i++) copy_row(x + i * s.x3, y + i * s.y3, s.n4);
    } else if (s.y4 == 1 && s.x3 == 1 && s.x4 != 0) {
        copy_transposed(x, y, s.n3, s.n4, s.x4, s.y3);
    } else {
        for (int64_t i = 0; i < s.n3; i++)
            for (int64_t j = 0; j < s.n4; j++) y[i * s.y3 + j * s.y4] = x[i * s.x3 + j * s.x4];
    }
}

static void copy(const copy_args& s, const Memory& memory) {
    if (s.when >= 0 && memory.scalars[s.when] == 0) return;
    const float* x = at(memory, s.x);
    float* y = at(memory, s.y);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t l = 0; l < s.n2; l++)
                copy_plane(s, x + i * s.x0 + j * s.x1 + l * s.x2, y + i * s.y0 + j * s.y1 + l * s.y2);
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(copy, copy)
