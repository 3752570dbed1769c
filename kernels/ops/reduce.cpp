// Reductions over up to two axes, and running sums.
#include "isa/vec.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

enum class Kind : int64_t { sum, sum_of_squares, sum_of_sizes, product, max, min };

template <int W>
PULSE_INLINE typename Vec<W>::T join(Kind kind, typename Vec<W>::T a, typename Vec<W>::T x) {
    switch (kind) {
        case Kind::sum_of_squares: return a + x * x;
        case Kind::sum_of_sizes: return a + (x < 0.0f ? -x : x);
        case Kind::product: return a * x;
        case Kind::max: return (x > a) | (x != x) ? x : a;
        case Kind::min: return (x < a) | (x != x) ? x : a;
        default: return a + x;
    }
}

static float start_of(Kind kind) {
    if (kind == Kind::max) return -__builtin_inff();
    if (kind == Kind::min) return __builtin_inff();
    return kind == Kind::product ? 1.0f : 0.0f;
}

// One result from a contiguous run: lanes along it, joined at the end.
static float along_run(Kind kind, const float* x, int64_t n, float so_far) {
    const Kind joining = kind == Kind::sum_of_squares || kind == Kind::sum_of_sizes ? Kind::sum : kind;
    int64_t i = 0;
    if (n >= VL) {
        V a = broadcast(start_of(kind));
        for (; i + VL <= n; i += VL) a = join<VL>(kind, a, load(x + i));
        for (int l = 0; l < VL; l++) so_far = join<1>(joining, so_far, a[l]);
    }
    for (; i < n; i++) so_far = join<1>(kind, so_far, x[i]);
    return so_far;
}

static void reduce(const reduce_args& s, const Memory& memory) {
    const Kind kind = static_cast<Kind>(s.kind);
    const float* x = at(memory, s.x);
    float* y = at(memory, s.y);
    const float scale = real(s.scale);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++) {
            const float* row = x + i * s.x0 + j * s.x1;
            float* out = y + i * s.y0 + j * s.y1;
            int64_t l = 0;
            if (s.x2 == 1 && s.y2 == 1)  // lanes along results
                for (; l + VL <= s.n2; l += VL) {
                    V a = broadcast(start_of(kind));
                    for (int64_t p = 0; p < s.r0; p++)
                        for (int64_t q = 0; q < s.r1; q++) a = join<VL>(kind, a, load(row + l + p * s.s0 + q * s.s1));
                    store(out + l, a * scale);
                }
            for (; l < s.n2; l++) {
                float a = start_of(kind);
                for (int64_t p = 0; p < s.r0; p++) {
                    const float* from = row + l * s.x2 + p * s.s0;
                    if (s.s1 == 1)
                        a = along_run(kind, from, s.r1, a);
                    else
                        for (int64_t q = 0; q < s.r1; q++) a = join<1>(kind, a, from[q * s.s1]);
                }
                out[l * s.y2] = a * scale;
            }
        }
}

static void running_sum(const running_sum_args& s, const Memory& memory) {
    const float* x = at(memory, s.x);
    float* y = at(memory, s.y);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t l = 0; l < s.n2; l++) {
                const float* from = x + i * s.x0 + j * s.x1 + l * s.x2;
                float* to = y + i * s.y0 + j * s.y1 + l * s.y2;
                float sum = 0.0f;
                for (int64_t t = 0; t < s.steps; t++, from += s.xt, to += s.yt) {
                    const float own = *from;
                    *to = s.exclusive ? sum : sum + own;
                    sum += own;
                }
            }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(reduce, reduce)
PULSE_STEP(running_sum, running_sum)
