#include "reference.hpp"

#include <cmath>
#include <cstring>

namespace pulse {

static float activate(float x, Act act, float slope) {
    switch (act) {
        case Act::relu: return 0.0f > x ? 0.0f : x;
        case Act::leaky:
        case Act::prelu: return x > 0.0f ? x : x * slope;
        case Act::sigmoid: return 1.0f / (1.0f + std::exp(-x));
        case Act::tanh: return std::tanh(x);
        default: return x;
    }
}

static float weight(const float* a, int64_t k, int64_t i, int64_t l) { return a[i * k + l]; }

static float weight(const Pair* a, int64_t k, int64_t i, int64_t l) {
    const Pair both = a[i * ((k + 1) / 2) + l / 2], bits = l % 2 ? both & 0xffff0000u : both << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class A>
static void reference(const Product& p) {
    const A* a = static_cast<const A*>(p.a);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            float* c = p.c + i * p.cm + j * p.cn;
            float sum = p.bias ? p.bias[i] : 0.0f;
            if (p.accumulate) sum += *c;
            for (int64_t l = 0; l < p.k; l++) sum += weight(a, p.k, i, l) * p.b[(p.off ? p.off[l] : l * p.ldb) + j * p.bn];
            *c = activate(sum, p.act, p.act == Act::prelu ? p.slope[i] : p.alpha);
        }
}

static const KernelInfo LIST[] = {
    {"ref_mmm_f32_1x1", Isa::ref, Family::mmm, Type::f32, 1, 1, 1, 1, reference<float>},
    {"ref_mmm_bf16_1x1", Isa::ref, Family::mmm, Type::bf16, 1, 1, 1, 1, reference<Pair>},
};

KernelTable reference_table() { return {LIST, sizeof(LIST) / sizeof(LIST[0])}; }

}  // namespace pulse
