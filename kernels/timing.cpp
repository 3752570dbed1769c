#include "timing.hpp"

#include <chrono>

#include "isa/sets.hpp"

namespace pulse {

static double now() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Rounds that bring the weights to where they stay: one does not, the third level takes lines in reluctantly.
constexpr int64_t UNTIMED = 3;

double time_product(const KernelInfo& kernel, Product product, int64_t repeats, int64_t copies, int64_t stride) {
    const char* first = static_cast<const char*>(product.a);
    double start = 0.0;
    int64_t copy = 0;
    for (int64_t i = -UNTIMED * copies; i < repeats; i++) {
        if (i == 0) start = now();
        product.a = first + copy * stride;
        kernel.fn(product);
        asm volatile("" : : : "memory");
        if (++copy == copies) copy = 0;
    }
    return (now() - start) / static_cast<double>(repeats);
}

double peak_flops(Isa isa, int64_t rounds) {
    const double start = now();
    switch (isa) {
#define PULSE_CASE(name) \
    case Isa::name: return name::spend_flops(rounds) / (now() - start);
        PULSE_SETS(PULSE_CASE)
#undef PULSE_CASE
        default: return 0.0;
    }
}

double read_bandwidth(Isa isa, const float* from, int64_t count, int64_t repeats) {
    double start = 0.0;
    for (int64_t i = -UNTIMED; i < repeats; i++) {
        if (i == 0) start = now();
        switch (isa) {
#define PULSE_CASE(name) \
    case Isa::name: name::read_all(from, count); break;
            PULSE_SETS(PULSE_CASE)
#undef PULSE_CASE
            default: return 0.0;
        }
    }
    return static_cast<double>(repeats * count) * sizeof(float) / (now() - start);
}

}  // namespace pulse
