// Whole numbers: positions and indices. Few values, so plain loops; int64 in memory, as two floats' worth.
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

enum class Op : int64_t {
    add, sub, mul, div, mod, min, max, neg, abs, less, less_equal, equal, where, to_float, from_float, from_slot, truth_of_slot
};

static int64_t whole(const float* p) {
    int64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static int64_t from_float(float x) {
    constexpr float FAR = 9.0e18f;
    return x != x ? 0 : static_cast<int64_t>(x > FAR ? FAR : x < -FAR ? -FAR : x);
}

// Wrap-around arithmetic: what is computed from huge numbers is of no use, but must not be undefined.
static int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

static void one(const integers_args& s, const Memory& memory, const float* x, const float* z, const float* w, float* y) {
    const Op op = static_cast<Op>(s.op);
    int64_t result = 0;
    switch (op) {
        case Op::from_slot: result = memory.scalars[s.slot]; break;
        case Op::truth_of_slot: *y = memory.scalars[s.slot] ? 1.0f : 0.0f; return;
        case Op::from_float: result = from_float(*x); break;
        case Op::to_float: *y = static_cast<float>(whole(x)); return;
        case Op::less: *y = whole(x) < whole(z) ? 1.0f : 0.0f; return;
        case Op::less_equal: *y = whole(x) <= whole(z) ? 1.0f : 0.0f; return;
        case Op::equal: *y = whole(x) == whole(z) ? 1.0f : 0.0f; return;
        case Op::where: result = *x != 0.0f ? whole(z) : whole(w); break;
        case Op::neg: result = wrap(0 - static_cast<uint64_t>(whole(x))); break;
        case Op::abs: result = whole(x) < 0 ? wrap(0 - static_cast<uint64_t>(whole(x))) : whole(x); break;
        default: {
            const int64_t a = whole(x), b = whole(z);
            const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
            const int64_t rest = b == 0 || b == -1 ? 0 : a % b;
            if (op == Op::add) result = wrap(ua + ub);
            if (op == Op::sub) result = wrap(ua - ub);
            if (op == Op::mul) result = wrap(ua * ub);
            if (op == Op::min) result = a < b ? a : b;
            if (op == Op::max) result = a > b ? a : b;
            if (op == Op::div) result = b == 0 ? 0 : b == -1 ? wrap(0 - ua) : a / b;
            if (op == Op::mod) result = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        }
    }
    memcpy(y, &result, sizeof result);
}

static void integers(const integers_args& s, const Memory& memory) {
    const float *x = at_or_null(memory, s.x), *z = at_or_null(memory, s.z), *w = at_or_null(memory, s.w);
    float* y = at(memory, s.y);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t k = 0; k < s.n2; k++)
                for (int64_t l = 0; l < s.n3; l++)
                    one(s, memory, x + i * s.x0 + j * s.x1 + k * s.x2 + l * s.x3, z + i * s.z0 + j * s.z1 + k * s.z2 + l * s.z3,
                        w + i * s.w0 + j * s.w1 + k * s.w2 + l * s.w3, y + i * s.y0 + j * s.y1 + k * s.y2 + l * s.y3);
}

static void frame_numbers(const frame_numbers_args& s, const Memory& memory) {
    float* y = at(memory, s.y);
    int64_t i = memory.scalars[s.position] * s.num / s.den - s.delay;
    for (int64_t j = 0; j < s.frames; j++, i++, y += s.yt) memcpy(y, &i, sizeof i);
}

static void gather(const gather_args& s, const Memory& memory) {
    const float *x = at(memory, s.x), *index = at(memory, s.index);
    float* y = at(memory, s.y);
    for (int64_t j = 0; j < s.count; j++) {
        int64_t k = whole(index + j * s.is);
        k = k < 0 ? k + s.size : k;
        k = k < 0 ? 0 : k >= s.size ? s.size - 1 : k;
        for (int64_t p = 0; p < s.n0; p++)
            for (int64_t q = 0; q < s.n1; q++)
                for (int64_t r = 0; r < s.n2; r++)
                    y[p * s.y0 + q * s.y1 + r * s.y2 + j * s.ys] = x[p * s.x0 + q * s.x1 + r * s.x2 + k * s.xs];
    }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(integers, integers)
PULSE_STEP(frame_numbers, frame_numbers)
PULSE_STEP(gather, gather)
