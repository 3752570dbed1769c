// Products of two computed matrices, as in attention over bands: no packing, lanes along n or k where contiguous.
#include "isa/vec.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

template <int NV>
PULSE_INLINE void row_block(const matmul_args& s, const float* a, const float* b, float* c) {
    V acc[NV];
    PULSE_UNROLL for (int v = 0; v < NV; v++) acc[v] = V{};
    for (int64_t l = 0; l < s.k; l++) {
        PULSE_UNROLL for (int v = 0; v < NV; v++) acc[v] += load(b + l * s.bk + v * VL) * a[l * s.ak];
    }
    PULSE_UNROLL for (int v = 0; v < NV; v++) {
        if (s.cn == 1)
            store(c + v * VL, acc[v]);
        else
            for (int l = 0; l < VL; l++) c[(v * VL + l) * s.cn] = acc[v][l];
    }
}

static float inner(const matmul_args& s, const float* a, const float* b) {
    float total = 0.0f;
    int64_t l = 0;
    if (s.ak == 1 && s.bk == 1) {
        V acc = V{};
        for (; l + VL <= s.k; l += VL) acc += load(a + l) * load(b + l);
        total = sum<VL>(acc);
    }
    for (; l < s.k; l++) total += a[l * s.ak] * b[l * s.bk];
    return total;
}

static void matmul(const matmul_args& s, const Memory& memory) {
    for (int64_t p = 0; p < s.n0; p++)
        for (int64_t q = 0; q < s.n1; q++) {
            const float* a = at(memory, s.a) + p * s.a0 + q * s.a1;
            const float* b = at(memory, s.b) + p * s.b0 + q * s.b1;
            float* c = at(memory, s.c) + p * s.c0 + q * s.c1;
            for (int64_t i = 0; i < s.m; i++) {
                int64_t j = 0;
                if (s.bn == 1) {
                    for (; j + 4 * VL <= s.n; j += 4 * VL) row_block<4>(s, a + i * s.am, b + j, c + i * s.cm + j * s.cn);
                    for (; j + VL <= s.n; j += VL) row_block<1>(s, a + i * s.am, b + j, c + i * s.cm + j * s.cn);
                }
                for (; j < s.n; j++) c[i * s.cm + j * s.cn] = inner(s, a + i * s.am, b + j * s.bn);
            }
        }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(matmul, matmul)
