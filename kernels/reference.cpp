#include "reference.hpp"

#include <cmath>

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

static void reference(const Product& p) {
    const float* a = static_cast<const float*>(p.a);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            float* c = p.c + i * p.cm + j * p.cn;
            float sum = p.bias ? p.bias[i] : 0.0f;
            if (p.accumulate) sum += *c;
            for (int64_t l = 0; l < p.k; l++) sum += a[i * p.k + l] * p.b[(p.off ? p.off[l] : l * p.ldb) + j * p.bn];
            *c = activate(sum, p.act, p.act == Act::prelu ? p.slope[i] : p.alpha);
        }
}

static const KernelInfo LIST[] = {{"ref_mmm_f32_1x1", Isa::ref, Family::mmm, Type::f32, 1, 1, 1, 1, reference}};

KernelTable reference_table() { return {LIST, 1}; }

}  // namespace pulse
