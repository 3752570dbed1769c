// The recurrence of a GRU: z, r and n of one vector of units are one panel, their gates stay in registers.
#include "ops/recurrent.hpp"

namespace pulse::PULSE_NS {

// r multiplies R h: all three gates of a vector of units at once.
template <class A>
PULSE_INLINE void gru_before(const gru_args& s, const float* gx, const A* w, const float* rb, const float* h, float* next) {
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[3] = {load(gx + 3 * u), load(gx + 3 * u + VL), load(rb + u)};
        V sum[3];
        column<3>(sum, w + 3 * u * along(w, s.units), h, s.units, start);
        const V z = sigmoid(sum[0]), r = sigmoid(sum[1]), n = tanh(load(gx + 3 * u + 2 * VL) + r * sum[2]);
        store(next + u, n + z * (load(h + u) - n));
    }
}

// r multiplies h: n needs r of all units first. w: blocks of z, r, then blocks of n.
template <class A>
static __attribute__((noinline)) void gru_after(const gru_args& s, const float* gx, const A* w, const float* h, float* next,
                                                float* rh) {
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[2] = {load(gx + 3 * u), load(gx + 3 * u + VL)};
        V sum[2];
        column<2>(sum, w + 2 * u * along(w, s.units), h, s.units, start);
        store(next + u, sigmoid(sum[0]));
        store(rh + u, sigmoid(sum[1]) * load(h + u));
    }
    w += 2 * padded_units(s.units) * along(w, s.units);
    for (int64_t u = 0; u < s.units; u += VL) {
        const V start[1] = {load(gx + 3 * u + 2 * VL)};
        V sum[1];
        column<1>(sum, w + u * along(w, s.units), rh, s.units, start);
        const V n = tanh(sum[0]);
        store(next + u, n + load(next + u) * (load(h + u) - n));
    }
}

template <class A>
static void gru_on(const gru_args& s, const Memory& memory) {
    const A* w = reinterpret_cast<const A*>(at(memory, s.w));
    const float* rb = at_or_null(memory, s.rb);
    float* scratch = at(memory, s.scratch);
    const auto nothing = [](int64_t, bool) {};
    if (s.before)
        recur(s, memory, scratch, [&](const float* gx, const float* h, float* next) { gru_before(s, gx, w, rb, h, next); }, nothing);
    else
        recur(s, memory, scratch, [&](const float* gx, const float* h, float* next) {
            gru_after(s, gx, w, h, next, scratch + 2 * padded_units(s.units));
        }, nothing);
}

static void gru(const gru_args& s, const Memory& memory) { s.half ? gru_on<Pair>(s, memory) : gru_on<float>(s, memory); }

}  // namespace pulse::PULSE_NS
PULSE_STEP(gru, gru)
