// The two limits of a product on this machine: multiply-adds per second and bytes read per second.
#include "isa/sets.hpp"
#include "isa/vec.hpp"

namespace pulse::PULSE_NS {

double spend_flops(int64_t rounds) {
    constexpr int CHAINS = 12, TIMES = 4;  // 12 hide a latency of 4 at 2 per cycle and leave registers for the factors
    V acc[CHAINS];
    V x = broadcast(0.999f), y = broadcast(1e-3f);
    PULSE_PIN(x);
    PULSE_PIN(y);
    PULSE_UNROLL for (int i = 0; i < CHAINS; i++) acc[i] = broadcast(static_cast<float>(i));
    for (int64_t r = 0; r < rounds; r++) {
        PULSE_UNROLL for (int t = 0; t < TIMES; t++) {
            PULSE_UNROLL for (int i = 0; i < CHAINS; i++) {
                acc[i] += x * y;
                PULSE_PIN(acc[i]);
            }
        }
    }
    // The pins inside keep every step; this one keeps the chains themselves.
    PULSE_UNROLL for (int i = 0; i < CHAINS; i++) PULSE_KEEP(acc[i]);
    return 2.0 * VL * CHAINS * TIMES * static_cast<double>(rounds);
}

void read_all(const float* from, int64_t count) {
    constexpr int AT_ONCE = 8;
    int64_t i = 0;
    for (; i + AT_ONCE * VL <= count; i += AT_ONCE * VL) {
        PULSE_UNROLL for (int j = 0; j < AT_ONCE; j++) {
            const V v = load(from + i + j * VL);
            PULSE_KEEP(v);
        }
    }
    for (; i + VL <= count; i += VL) {
        const V v = load(from + i);
        PULSE_KEEP(v);
    }
}

}  // namespace pulse::PULSE_NS
