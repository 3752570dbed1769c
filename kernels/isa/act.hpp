// Activations on vectors. Errors were measured against double over 4 million points (tests/native/test_act.cpp).
#pragma once
#include "isa/vec.hpp"
#include "mmm.hpp"

namespace pulse::PULSE_NS {

// e^x by the Cephes single-precision polynomial; relative error below 2e-7. Overflow gives infinity, results below the
// smallest normal number give 0, NaN stays NaN.
PULSE_INLINE V exp(V x) {
    typedef Vec<VL>::Bits Bits;
    const V shifted = x * 1.44269504088896341f + 12582912.0f;  // 1.5 * 2^23: the nearest integer is in the low bits
    const V n = shifted - 12582912.0f;
    V r = x - n * 0.693359375f;  // ln 2 in two parts, the first exact
    r = r + n * 2.12194440e-4f;
    V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    V y = (V)((Bits)p + ((Bits)shifted << 23));
    y = x < broadcast(-87.336544f) ? V{} : y;
    y = x > broadcast(88.722839f) ? broadcast(__builtin_inff()) : y;
    return x == x ? y : x;
}

PULSE_INLINE V sigmoid(V x) { return 1.0f / (1.0f + exp(-x)); }

// Exp-based on purpose: a rational form of error 3e-7 drifts to 2e-5 in a GRU's state over thousands of frames.
PULSE_INLINE V tanh(V x) { return 1.0f - 2.0f / (1.0f + exp(x + x)); }

// Every activation but prelu on one vector; prelu is leaky with a slope per row.
PULSE_INLINE V activate(V x, Act act, V slope) {
    switch (act) {
        case Act::relu: return at_least(x, V{});
        case Act::leaky:
        case Act::prelu: return x > V{} ? x : x * slope;
        case Act::sigmoid: return sigmoid(x);
        case Act::tanh: return tanh(x);
        default: return x;
    }
}

// In place on n contiguous values; slope has one value per element where by_element, else one for all.
static __attribute__((noinline, unused)) void activate_span(float* x, int64_t n, Act act, const float* slope,
                                                            bool by_element) {
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        store(x + i, activate(load(x + i), act, by_element ? load(slope + i) : broadcast(*slope)));
    if (i == n) return;
    float rest[VL] = {}, slopes[VL] = {};
    memcpy(rest, x + i, (n - i) * sizeof(float));
    if (by_element) memcpy(slopes, slope + i, (n - i) * sizeof(float));
    store(rest, activate(load(rest), act, by_element ? load(slopes) : broadcast(*slope)));
    memcpy(x + i, rest, (n - i) * sizeof(float));
}

}  // namespace pulse::PULSE_NS
