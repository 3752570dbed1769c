// What relates values to all others of their row: softmax, layer normalisation, division by a norm.
#include "isa/act.hpp"
#include "ops/math.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

enum class Norm : int64_t { softmax, log_softmax, layer, root_mean_square, l2, l1 };

// Rows are worked on in y, filled up to whole vectors in `row` memory of `padded` values; the tail of it is `fill`.
PULSE_INLINE void fetch_row(const normalise_args& s, const float* x, float* row, int64_t padded, float fill) {
    if (s.xs == 1)
        memcpy(row, x, s.n * sizeof(float));
    else
        for (int64_t i = 0; i < s.n; i++) row[i] = x[i * s.xs];
    for (int64_t i = s.n; i < padded; i++) row[i] = fill;
}

static float largest(const float* row, int64_t n) {
    V m = load(row);
    for (int64_t i = VL; i < n; i += VL) {
        const V x = load(row + i);
        m = (x > m) | (x != x) ? x : m;
    }
    float top = m[0];
    for (int l = 1; l < VL; l++) top = m[l] > top || m[l] != m[l] ? m[l] : top;
    return top;
}

static void soft(const normalise_args& s, const float* x, float* row, int64_t padded) {
    fetch_row(s, x, row, padded, -__builtin_inff());
    const float top = largest(row, padded);
    V total = V{};
    for (int64_t i = 0; i < padded; i += VL) {
        const V centred = load(row + i) - top, e = exp(centred);
        total += e;
        store(row + i, static_cast<Norm>(s.kind) == Norm::softmax ? e : centred);
    }
    const float all = sum<VL>(total);
    if (static_cast<Norm>(s.kind) == Norm::softmax)
        for (int64_t i = 0; i < padded; i += VL) store(row + i, load(row + i) / all);
    else {
        const float shift = log(broadcast(all))[0];
        for (int64_t i = 0; i < padded; i += VL) store(row + i, load(row + i) - shift);
    }
}

static void scaled(const normalise_args& s, const Memory& memory, const float* x, float* row, int64_t padded) {
    fetch_row(s, x, row, padded, 0.0f);
    const Norm kind = static_cast<Norm>(s.kind);
    const float epsilon = real(s.epsilon);
    V total = V{};
    float mean = 0.0f;
    if (kind == Norm::layer) {
        for (int64_t i = 0; i < padded; i += VL) total += load(row + i);
        mean = sum<VL>(total) / s.n;
        total = V{};
        for (int64_t i = 0; i < padded; i += VL) store(row + i, load(row + i) - mean);
        for (int64_t i = s.n; i < padded; i++) row[i] = 0.0f;
    }
    for (int64_t i = 0; i < padded; i += VL) {
        const V v = load(row + i);
        total += kind == Norm::l1 ? (v < V{} ? -v : v) : v * v;
    }
    const float size = sum<VL>(total);
    float factor;
    if (kind == Norm::l1)
        factor = size == 0.0f ? 0.0f : 1.0f / size;
    else if (kind == Norm::l2)
        factor = size == 0.0f ? 0.0f : 1.0f / __builtin_sqrtf(size);
    else
        factor = 1.0f / __builtin_sqrtf(size / s.n + epsilon);
    const float *scale = at_or_null(memory, s.scale), *bias = at_or_null(memory, s.bias);
    for (int64_t i = 0; i < padded; i += VL) {  // scale and bias are padded too
        V v = load(row + i) * factor;
        if (scale) v *= load(scale + i);
        if (bias) v += load(bias + i);
        store(row + i, v);
    }
}

static void normalise(const normalise_args& s, const Memory& memory) {
    const int64_t padded = (s.n + VL - 1) / VL * VL;
    float* row = at(memory, s.row);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t l = 0; l < s.n2; l++) {
                const float* x = at(memory, s.x) + i * s.x0 + j * s.x1 + l * s.x2;
                float* y = at(memory, s.y) + i * s.y0 + j * s.y1 + l * s.y2;
                if (static_cast<Norm>(s.kind) <= Norm::log_softmax)
                    soft(s, x, row, padded);
                else
                    scaled(s, memory, x, row, padded);
                if (s.ys == 1)
                    memcpy(y, row, s.n * sizeof(float));
                else
                    for (int64_t q = 0; q < s.n; q++) y[q * s.ys] = row[q];
            }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(normalise, normalise)
