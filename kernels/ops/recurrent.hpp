// What recurrent steps share: one column of a product in registers, and the walk over sequences.
#pragma once
#include "isa/act.hpp"
#include "isa/tile.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

// Sums in flight for MV vectors: k is split where they are too few, as far as registers go.
template <int MV>
constexpr int SPLIT = MV >= CHAINS ? 1 : MV * 2 >= CHAINS ? 2 : 4;

// out = start + panel of MV vectors times h. A: float or Pair.
template <int MV, class A, int KS = SPLIT<MV>>
PULSE_INLINE void column(V (&out)[MV], const A* a, const float* h, int64_t k, const V (&start)[MV]) {
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

// Units in whole vectors.
PULSE_INLINE int64_t padded_units(int64_t units) { return (units + VL - 1) / VL * VL; }

// Calls step(gx, h, next) for every step of every sequence that is not skipped; h and next are padded to whole vectors and
// change places after each. `carry` copies further state in (true) or out (false) per sequence.
template <class Args, class Step, class Carry>
PULSE_INLINE void recur(const Args& s, const Memory& memory, float* scratch, Step step, Carry carry) {
    const int64_t padded = padded_units(s.units), bytes = s.units * static_cast<int64_t>(sizeof(float));
    int64_t skip = s.position < 0 ? 0 : s.delay - memory.scalars[s.position] * s.num / s.den;
    skip = skip < 0 ? 0 : skip > s.steps ? s.steps : skip;
    for (int64_t b = 0; b < s.batch; b++) {
        const float* gx = at(memory, s.gx) + b * s.gxb;
        float* y = at(memory, s.y) + b * s.yb;
        float* state = at(memory, s.h) + b * s.hb;
        float *h = scratch, *next = scratch + padded;
        memset(scratch, 0, 2 * padded * sizeof(float));
        memcpy(h, state, bytes);
        carry(b, true);
        for (int64_t t = 0; t < s.steps; t++, gx += s.gxt, y += s.yt) {
            if (t < skip) {
                memset(y, 0, bytes);
                continue;
            }
            step(gx, h, next);
            memcpy(y, next, bytes);
            float* swapped = h;
            h = next, next = swapped;
        }
        memcpy(state, h, bytes);
        carry(b, false);
    }
}

}  // namespace pulse::PULSE_NS
