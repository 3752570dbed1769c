// The recurrence of an LSTM, and the plain one.
#include "ops/recurrent.hpp"

namespace pulse::PULSE_NS {

template <class A>
static void lstm_on(const lstm_args& s, const Memory& memory) {
    const A* w = reinterpret_cast<const A*>(at(memory, s.w));
    const float* peepholes = at_or_null(memory, s.peepholes);
    float* scratch = at(memory, s.scratch);
    float* cell = scratch + 2 * padded_units(s.units);
    const auto carry = [&](int64_t b, bool in) {
        float* kept = at(memory, s.c) + b * s.cb;
        if (in) memset(cell, 0, padded_units(s.units) * sizeof(float));
        memcpy(in ? cell : kept, in ? kept : cell, s.units * sizeof(float));
    };
    recur(s, memory, scratch, [&](const float* gx, const float* h, float* next) {
        for (int64_t u = 0; u < s.units; u += VL) {
            V start[4], sum[4];
            PULSE_UNROLL for (int g = 0; g < 4; g++) start[g] = load(gx + 4 * u + g * VL);
            column<4>(sum, w + 4 * u * along(w, s.units), h, s.units, start);
            const V before = load(cell + u);
            if (peepholes) {
                sum[0] += load(peepholes + 3 * u) * before;
                sum[2] += load(peepholes + 3 * u + 2 * VL) * before;
            }
            const V now = sigmoid(sum[2]) * before + sigmoid(sum[0]) * tanh(sum[3]);
            if (peepholes) sum[1] += load(peepholes + 3 * u + VL) * now;
            store(cell + u, now);
            store(next + u, sigmoid(sum[1]) * tanh(now));
        }
    }, carry);
}

static void lstm(const lstm_args& s, const Memory& memory) { s.half ? lstm_on<Pair>(s, memory) : lstm_on<float>(s, memory); }

template <class A>
static void rnn_on(const rnn_args& s, const Memory& memory) {
    const A* w = reinterpret_cast<const A*>(at(memory, s.w));
    recur(s, memory, at(memory, s.scratch), [&](const float* gx, const float* h, float* next) {
        for (int64_t u = 0; u < s.units; u += VL) {
            const V start[1] = {load(gx + u)};
            V sum[1];
            column<1>(sum, w + u * along(w, s.units), h, s.units, start);
            store(next + u, s.relu ? at_least<VL>(sum[0], V{}) : tanh(sum[0]));
        }
    }, [](int64_t, bool) {});
}

static void rnn(const rnn_args& s, const Memory& memory) { s.half ? rnn_on<Pair>(s, memory) : rnn_on<float>(s, memory); }

}  // namespace pulse::PULSE_NS
PULSE_STEP(lstm, lstm)
PULSE_STEP(rnn, rnn)
