// Matrix products: loops over groups, frames or a batch around one kernel.
#include "mmm.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

static void product(const product_args& s, const Memory& memory) {
    Product p;
    const float* a = at(memory, s.a);
    const float* b = at(memory, s.b);
    float* c = at(memory, s.c);
    const float* bias = at_or_null(memory, s.bias);
    const float* slope = at_or_null(memory, s.slope);
    p.off = reinterpret_cast<const int32_t*>(at_or_null(memory, s.off));
    p.m = s.m, p.k = s.k, p.n = s.n, p.ldb = s.ldb, p.bn = s.bn, p.cm = s.cm, p.cn = s.cn;
    p.act = static_cast<Act>(s.act), p.alpha = real(s.alpha), p.accumulate = s.accumulate != 0;
    const ProductFn kernel = reinterpret_cast<ProductFn>(s.kernel);
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t l = 0; l < s.n2; l++) {
                const int64_t v = i * s.v0 + j * s.v1 + l * s.v2;
                p.a = a + i * s.a0 + j * s.a1 + l * s.a2;
                p.b = b + i * s.b0 + j * s.b1 + l * s.b2;
                p.c = c + i * s.c0 + j * s.c1 + l * s.c2;
                p.bias = bias ? bias + v : nullptr;
                p.slope = slope ? slope + v : nullptr;
                kernel(p);
            }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(product, product)
