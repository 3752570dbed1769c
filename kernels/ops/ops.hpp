// The steps a program is made of: their names, their arguments, and how a step finds its operands.
//
// A step's arguments are int64 fields, listed once below; C++ structs, checks and the Python builder of plans are all made
// from that list. Kinds of fields by their use in the comments: a *ref* names memory (region and offset in floats, -1 for
// none), a *slot* a scalar (-1 for none), a *real* holds the bits of a float, all else are counts and strides in floats.
#pragma once
#include <cstdint>
#include <cstring>

namespace pulse {

struct Memory {
    float* const* regions;
    const int64_t* scalars;
};
using StepFn = void (*)(const int64_t* args, const Memory& memory);

constexpr int REGION_SHIFT = 40;
inline float* at(const Memory& memory, int64_t ref) {
    return memory.regions[ref >> REGION_SHIFT] + (ref & ((int64_t{1} << REGION_SHIFT) - 1));
}
inline float* at_or_null(const Memory& memory, int64_t ref) { return ref < 0 ? nullptr : at(memory, ref); }
inline float real(int64_t bits) {
    const int32_t low = static_cast<int32_t>(bits);
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

// Every step. One line here, its fields below, its function in a file of kernels/ops.
#define PULSE_OPS(OP) OP(product) OP(depthwise) OP(gru) OP(copy) OP(elementwise) OP(mask) OP(reduce) \
    OP(running_sum) OP(normalise) OP(pool) OP(lstm) OP(rnn) OP(matmul) OP(integers) \
    OP(frame_numbers) OP(gather)

// C = act(A B + bias) by a kernel of mmm.hpp, three loops around it: counts n*, strides of a, b, c and of bias and slope (v).
#define PULSE_FIELDS_product(F)                                                                                          \
    F(kernel) F(a) F(b) F(c) F(off) F(bias) F(slope) F(m) F(k) F(n) F(ldb) F(bn) F(cm) F(cn) F(act) F(alpha)              \
    F(accumulate) F(n0) F(a0) F(b0) F(c0) F(v0) F(n1) F(a1) F(b1) F(c1) F(v1) F(n2) F(a2) F(b2) F(c2) F(v2)

// One filter per channel: y[c,t,f] = act(bias[c] + add[c,t,f] + sum over kt, kf of w * x[c, t + kt, f * step + kf * dilation - pad]).
// Strides x*, y*, d* (of add) per channel, frame and band; xk per kt. Bands outside [0, fin) read as zero. lanes 0: channels are
// contiguous, w is [kt][kf][c]. lanes 1: along bands, w is [c][up][kt][kf]; with up = 2 there are two filters per channel, whose
// results are bands 2 f and 2 f + 1 of a contiguous y.
#define PULSE_FIELDS_depthwise(F)                                                                                        \
    F(x) F(y) F(w) F(bias) F(add) F(slope) F(act) F(alpha) F(lanes) F(channels) F(xc) F(yc) F(dc) F(frames) F(xt) F(yt)   \
    F(dt) F(fin) F(fout) F(xf) F(yf) F(df) F(kt) F(xk) F(kf) F(step) F(dilation) F(pad) F(up)

// Recurrence of a GRU after the product with W, whose rows are blocks of VL units: z, r, n per block (and all biases but
// rb, that of R's n rows). before: linear_before_reset. w: R packed in panels of the same blocks; half: as bf16. scratch: 3 * padded units.
// Sequences of `steps`, `batch` of them; strides of gx, y and h per step (t) and sequence (b). Steps before frame 0 by
// position * num / den - delay are skipped: zeros out, state kept.
#define PULSE_FIELDS_gru(F)                                                                                              \
    F(gx) F(w) F(rb) F(h) F(y) F(scratch) F(units) F(before) F(steps) F(gxt) F(yt) F(batch) F(gxb) F(yb) F(hb)            \
    F(position) F(num) F(den) F(delay) F(half)

// y = x over up to five loops, innermost last. when: slot which must not be zero for the copy to happen.
#define PULSE_FIELDS_copy(F)                                                                                             \
    F(x) F(y) F(when) F(n0) F(n1) F(n2) F(n3) F(n4) F(x0) F(x1) F(x2) F(x3) F(x4) F(y0) F(y1) F(y2) F(y3) F(y4)

// A chain of elementwise operations over four loops, innermost last. Tail: per input ref and four strides, per output
// register, ref and four strides, per instruction op, target, three sources, two reals (see elementwise.cpp).
#define PULSE_FIELDS_elementwise(F) F(inputs) F(outputs) F(instructions) F(n0) F(n1) F(n2) F(n3)

// Frames outside the signal become `value`: y over frames (stride yt) and three loops. Frame j is number position * num / den
// - delay + j; below 0 it is outside if start, from the slot `length` on if that is given and not negative.
#define PULSE_FIELDS_mask(F)                                                                                             \
    F(y) F(frames) F(yt) F(n0) F(n1) F(n2) F(y0) F(y1) F(y2) F(position) F(num) F(den) F(delay) F(start) F(length) F(value)

// y = scale * reduction of x over r* (strides s*) for each of n* (strides x*, y*). kind: see reduce.cpp.
#define PULSE_FIELDS_reduce(F)                                                                                           \
    F(x) F(y) F(kind) F(scale) F(n0) F(n1) F(n2) F(x0) F(x1) F(x2) F(y0) F(y1) F(y2) F(r0) F(r1) F(s0) F(s1)

// Sums so far along `steps`, with or without the value itself, for each of n*.
#define PULSE_FIELDS_running_sum(F)                                                                                      \
    F(x) F(y) F(exclusive) F(steps) F(xt) F(yt) F(n0) F(n1) F(n2) F(x0) F(x1) F(x2) F(y0) F(y1) F(y2)

// Rows of n values (strides xs, ys) for each of n*. kind: see normalise.cpp. scale, bias and the work memory `row` have n
// values, filled up to whole vectors.
#define PULSE_FIELDS_normalise(F)                                                                                        \
    F(x) F(y) F(kind) F(epsilon) F(scale) F(bias) F(row) F(n) F(xs) F(ys) F(n0) F(n1) F(n2) F(x0) F(x1) F(x2) F(y0) F(y1) \
    F(y2)

// Pooling of channels over frames (t) and bands (f): kernel k*, step s*, dilation d*, padding p*, sizes *in and *out, strides
// x* and y*. max or mean; the mean divides by all taps (whole) or by those inside.
#define PULSE_FIELDS_pool(F)                                                                                             \
    F(x) F(y) F(max) F(whole) F(batch) F(xb) F(yb) F(channels) F(xc) F(yc) F(tin) F(tout) F(xt) F(yt) F(kt) F(st) F(dt) F(pt) F(fin) F(fout)   \
    F(xf) F(yf) F(kf) F(sf) F(df) F(pf)

// As gru, for an LSTM: blocks of i, o, f, c; peepholes: as many blocks of i, o, f, or none; c: the cell state.
#define PULSE_FIELDS_lstm(F)                                                                                             \
    F(gx) F(w) F(peepholes) F(h) F(c) F(y) F(scratch) F(units) F(steps) F(gxt) F(yt) F(batch) F(gxb) F(yb) F(hb) F(cb)    \
    F(position) F(num) F(den) F(delay) F(half)

// As gru, for a plain recurrence: tanh or relu.
#define PULSE_FIELDS_rnn(F)                                                                                              \
    F(gx) F(w) F(h) F(y) F(scratch) F(units) F(relu) F(steps) F(gxt) F(yt) F(batch) F(gxb) F(yb) F(hb) F(position) F(num) \
    F(den) F(delay) F(half)

// C = A B of computed matrices for each of n0, n1: strides am, ak, bk, bn, cm, cn, and a*, b*, c* of the loops.
#define PULSE_FIELDS_matmul(F)                                                                                           \
    F(a) F(b) F(c) F(m) F(k) F(n) F(am) F(ak) F(bk) F(bn) F(cm) F(cn) F(n0) F(n1) F(a0) F(a1) F(b0) F(b1) F(c0) F(c1)

// y = op(x, z, w) on int64 over four loops; truths and floats are one float each. op: see integers.cpp.
#define PULSE_FIELDS_integers(F)                                                                                         \
    F(op) F(x) F(z) F(w) F(y) F(slot) F(n0) F(n1) F(n2) F(n3) F(x0) F(x1) F(x2) F(x3) F(z0) F(z1) F(z2) F(z3) F(w0) F(w1) \
    F(w2) F(w3) F(y0) F(y1) F(y2) F(y3)

// Numbers of the pulse's frames, int64.
#define PULSE_FIELDS_frame_numbers(F) F(y) F(frames) F(yt) F(position) F(num) F(den) F(delay)

// Slices of x by computed int64 indices, which count from the end if negative and are kept within `size`.
#define PULSE_FIELDS_gather(F)                                                                                           \
    F(x) F(index) F(y) F(count) F(is) F(size) F(xs) F(ys) F(n0) F(n1) F(n2) F(x0) F(x1) F(x2) F(y0) F(y1) F(y2)

#define PULSE_FIELD(name) int64_t name;
#define PULSE_ARGS(op)                                                                   \
    struct op##_args {                                                                   \
        PULSE_FIELDS_##op(PULSE_FIELD)                                                   \
        const int64_t* tail() const { return reinterpret_cast<const int64_t*>(this + 1); } \
    };
PULSE_OPS(PULSE_ARGS)
#undef PULSE_ARGS
#undef PULSE_FIELD

enum class OpCode : int64_t {
#define PULSE_CODE(op) op,
    PULSE_OPS(PULSE_CODE)
#undef PULSE_CODE
        count
};

}  // namespace pulse

// What each instruction set defines: the function of every step. PULSE_STEP opens a definition.
#if defined(PULSE_NS)
namespace pulse::PULSE_NS {
#define PULSE_DECLARE_STEP(op) void step_##op(const int64_t* args, const Memory& memory);
PULSE_OPS(PULSE_DECLARE_STEP)
#undef PULSE_DECLARE_STEP
}  // namespace pulse::PULSE_NS
#define PULSE_STEP(op, body)                                                             \
    namespace pulse::PULSE_NS {                                                          \
    void step_##op(const int64_t* args, const Memory& memory) {                          \
        body(*reinterpret_cast<const op##_args*>(args), memory);                         \
    }                                                                                    \
    }
#endif
