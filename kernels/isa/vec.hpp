// Vectors of float, written with GCC/Clang vector extensions. Included once per instruction set: everything lives in
// namespace pulse::PULSE_NS and is inlined, so that no code of one set can be linked into another. For the same reason
// files compiled per set use no std:: templates.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__SSE__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PULSE_INLINE static inline __attribute__((always_inline))
#define PULSE_UNROLL _Pragma("GCC unroll 64")

// PIN keeps a loaded vector in its register: without it the compiler reads A again from memory for every column of a tile.
// KEEP makes a value count as used.
#if defined(__aarch64__)
#define PULSE_REGISTER "w"
#elif defined(__AVX512F__)
#define PULSE_REGISTER "v"
#else
#define PULSE_REGISTER "x"
#endif
#define PULSE_PIN(x) asm("" : "+" PULSE_REGISTER(x))
#define PULSE_KEEP(x) asm volatile("" : : PULSE_REGISTER(x))

namespace pulse::PULSE_NS {

constexpr int VL = PULSE_VL;  // lanes of the widest vector
#if defined(__aarch64__) || defined(__AVX512F__)
constexpr int REGISTERS = 32;
#else
constexpr int REGISTERS = 16;
#endif
// Sums in flight that hide the latency of a multiply-add: 4 cycles at one (AVX-512 on Zen 4) or two per cycle.
constexpr int CHAINS = VL == 16 ? 4 : 8;
// AVX2 code needs one register more than the tile itself: without the slack one product ran at half speed for spills.
constexpr int SLACK = VL == 8 ? 1 : 0;

template <int W>
struct Vec {
    typedef float T __attribute__((vector_size(W * 4)));
    typedef float Unaligned __attribute__((vector_size(W * 4), aligned(4)));
    typedef int32_t Int __attribute__((vector_size(W * 4)));
    typedef uint32_t Bits __attribute__((vector_size(W * 4)));
};
template <>
struct Vec<1> {
    typedef float T;
    typedef float Unaligned;
    typedef uint32_t Bits;
};
typedef Vec<VL>::T V;

template <int W = VL>
PULSE_INLINE typename Vec<W>::T load(const float* p) {
    return *reinterpret_cast<const typename Vec<W>::Unaligned*>(p);
}
template <int W = VL>
PULSE_INLINE void store(float* p, typename Vec<W>::T v) {
    *reinterpret_cast<typename Vec<W>::Unaligned*>(p) = v;
}
template <int W = VL>
PULSE_INLINE typename Vec<W>::T broadcast(float x) {
    return x - typename Vec<W>::T{};
}

// The larger of v and floor; NaN in v survives, as the maximum instructions return their second operand then. By name,
// because the compiler makes a compare and a blend of `floor > v ? floor : v`, which cost short products a tenth.
template <int W = VL>
PULSE_INLINE typename Vec<W>::T at_least(typename Vec<W>::T v, typename Vec<W>::T floor) {
#if defined(__AVX512F__)
    if constexpr (W == 16) return _mm512_maskz_max_ps(0xffff, floor, v);  // unmasked, GCC 12 warns about its own header
#endif
#if defined(__AVX__)
    if constexpr (W == 8) return _mm256_max_ps(floor, v);
#endif
#if defined(__SSE__)
    if constexpr (W == 4) return _mm_max_ps(floor, v);
#elif defined(__aarch64__)
    if constexpr (W == 4) return vmaxq_f32(floor, v);
#endif
    if constexpr (W == 1) return floor > v ? floor : v;
}

template <int W>
PULSE_INLINE float sum(typename Vec<W>::T v) {
    if constexpr (W == 16) {
        return sum<8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    } else if constexpr (W == 8) {
        return sum<4>(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
    } else {
        static_assert(W == 4, "sums of 4, 8 or 16 lanes");
        const typename Vec<4>::T pairs = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
        return pairs[0] + pairs[1];
    }
}

}  // namespace pulse::PULSE_NS
