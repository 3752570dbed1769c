// The recurrence of a GRU: z, r and n of one vector of units are one panel, their gates stay in registers.
#include "isa/act.hpp"
#include "isa/tile.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

// Sums in flight: split k where three vectors are too few.
constexpr int GRU_SPLIT = 3 >= CHAINS ? 1 : REGISTERS >= 32 ? 2 : 4;

template <int MV, int KS>
PULSE_INLINE void column(V (&out)[MV], const float* a, const float* h, int64_t k, const V (&start)[MV]) {
    V acc[KS][1][MV];
    PULSE_UNROLL for (int i = 0; i < MV; i++) {
        acc[0][0][i] = start[i];
        PULSE_UNROLL for (int q = 1; q < KS; q++) acc[q][0][i] = V{};
    }
    tile<VL, MV, 1, KS, false, true>(acc, a, h, nullptr, 1, 1, k);
    PULSE_UNROLL for (int i = 0; i < MV; i++) {
        out[i] = acc[0][0][i];
        PULSE_UNROLL for (int q = 1; q < KS; q++) out[i] += acc[q][0][i];
    }
}

// h and next are padded to whole vectors; the packed R has as many blocks.
static void gru_before(const gru_args& s, const float* gx, const float* w, const float* rb, const float* h, float* next) {
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[3] = {load(gx + 3 * u), load(gx + 3 * u + VL), load(rb + u)};
        V sum[3];
        column<3, GRU_SPLIT>(sum, w + 3 * u * s.units, h, s.units, start);
        const V z = sigmoid(sum[0]), r = sigmoid(sum[1]), n = tanh(load(gx + 3 * u + 2 * VL) + r * sum[2]);
        store(next + u, n + z * (load(h + u) - n));
    }
}

// The form where r multiplies h, not R h: n needs r of all units first. w: blocks of z, r, then blocks of n.
static void gru_after(const gru_args& s, const float* gx, const float* w, const float* h, float* next, float* rh) {
    const int64_t padded = (s.units + VL - 1) / VL * VL;
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[2] = {load(gx + 3 * u), load(gx + 3 * u + VL)};
        V sum[2];
        column<2, 4>(sum, w + 2 * u * s.units, h, s.units, start);
        store(next + u, sigmoid(sum[0]));
        store(rh + u, sigmoid(sum[1]) * load(h + u));
    }
    w += 2 * padded * s.units;
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[1] = {load(gx + 3 * u + 2 * VL)};
        V sum[1];
        column<1, 4>(sum, w + u * s.units, rh, s.units, start);
        const V n = tanh(sum[0]);
        store(next + u, n + load(next + u) * (load(h + u) - n));
    }
}

static void gru(const gru_args& s, const Memory& memory) {
    const float* w = at(memory, s.w);
    const float* rb = at_or_null(memory, s.rb);
    const int64_t padded = (s.units + VL - 1) / VL * VL, bytes = s.units * static_cast<int64_t>(sizeof(float));
    float* const scratch = at(memory, s.scratch);
    int64_t skip = s.position < 0 ? 0 : s.delay - memory.scalars[s.position] * s.num / s.den;
    skip = skip < 0 ? 0 : skip > s.steps ? s.steps : skip;
    for (int64_t b = 0; b < s.batch; b++) {
        const float* gx = at(memory, s.gx) + b * s.gxb;
        float* y = at(memory, s.y) + b * s.yb;
        float* state = at(memory, s.h) + b * s.hb;
        float *h = scratch, *next = scratch + padded;
        memset(scratch, 0, 3 * padded * sizeof(float));
        memcpy(h, state, bytes);
        for (int64_t t = 0; t < s.steps; t++, gx += s.gxt, y += s.yt) {
            if (t < skip) {
                memset(y, 0, bytes);
                continue;
            }
            if (s.before)
                gru_before(s, gx, w, rb, h, next);
            else
                gru_after(s, gx, w, h, next, scratch + 2 * padded);
            memcpy(y, next, bytes);
            float* swapped = h;
            h = next, next = swapped;
        }
        memcpy(state, h, bytes);
    }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(gru, gru)
