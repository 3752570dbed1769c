// Functions on vectors beyond the activations of isa/act.hpp. Errors: tests/native/test_chain.cpp.
#pragma once
#include "isa/act.hpp"

namespace pulse::PULSE_NS {

// Value by value, out of line: what calls it then needs no room for values in memory.
template <class F>
static __attribute__((noinline)) V each(V x, F f) {
    PULSE_UNROLL for (int i = 0; i < VL; i++) x[i] = f(x[i]);
    return x;
}
template <class F>
static __attribute__((noinline)) V each(V x, V y, F f) {
    PULSE_UNROLL for (int i = 0; i < VL; i++) x[i] = f(x[i], y[i]);
    return x;
}

PULSE_INLINE V truth(Vec<VL>::Int mask) { return (V)(mask & (Vec<VL>::Int)broadcast(1.0f)); }

// Natural logarithm, Cephes single precision: relative error below 1e-7 away from 1, absolute below 1e-7 near it.
// 0 gives -infinity, negative numbers NaN; denormals count as 0.
PULSE_INLINE V log(V x) {
    typedef Vec<VL>::Int Int;
    const Int bits = (Int)x;
    Int exponent = ((bits >> 23) & 0xff) - 126;
    V m = (V)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
    const Int low = m < broadcast(0.707106781186547524f);
    exponent += low;  // true is -1
    m = m + (V)((Int)m & low) - 1.0f;
    const V e = __builtin_convertvector(exponent, V), z = m * m;
    V p = m * 7.0376836292e-2f - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    V y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
    y = m + y + e * 0.693359375f;
    y = x < broadcast(1.17549435e-38f) ? broadcast(-__builtin_inff()) : y;
    y = x < V{} ? broadcast(__builtin_nanf("")) : y;
    return x == broadcast(__builtin_inff()) || x != x ? x : y;
}

// Error function by a rational form in x on [-4, 4], absolute error below 3e-7.
PULSE_INLINE V erf(V v) {
    const V x = v < broadcast(-4.0f) ? broadcast(-4.0f) : v > broadcast(4.0f) ? broadcast(4.0f) : v;
    const V z = x * x;
    V p = z * -2.72614225801306e-10f + 2.77068142495902e-08f;
    p = p * z - 2.10102402082508e-06f;
    p = p * z - 5.69250639462346e-05f;
    p = p * z - 7.34990630326855e-04f;
    p = p * z - 2.95459980854025e-03f;
    p = p * z - 1.60960333262415e-02f;
    V q = z * -1.45660718464996e-05f - 2.13374055278905e-04f;
    q = q * z - 1.68282697438203e-03f;
    q = q * z - 7.37332916720468e-03f;
    q = q * z - 1.42647390514189e-02f;
    return x * p / q;
}

// Numbers of 2^23 and more have no fraction.
PULSE_INLINE V floor(V x) {
    const V t = __builtin_convertvector(__builtin_convertvector(x, Vec<VL>::Int), V);
    const V down = t > x ? t - 1.0f : t;
    return x < broadcast(8388608.0f) && x > broadcast(-8388608.0f) ? down : x;
}
// To the nearest, halves to even.
PULSE_INLINE V round(V x) {
    V t = x + 12582912.0f;
    PULSE_KEEP(t);
    t = t - 12582912.0f;
    return x < broadcast(4194304.0f) && x > broadcast(-4194304.0f) ? t : x;
}

}  // namespace pulse::PULSE_NS
