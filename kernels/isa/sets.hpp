// What every compiled instruction set offers beside its steps. PULSE_SETS(X) calls X(name) for each set of this build.
#pragma once
#include "mmm.hpp"

#if defined(PULSE_X86)
#define PULSE_SETS(X) X(v2) X(v3) X(v4)
#elif defined(PULSE_ARM)
#define PULSE_SETS(X) X(neon)
#else
#define PULSE_SETS(X)
#endif

#define PULSE_DECLARE(isa)                                                                       \
    namespace isa {                                                                              \
    KernelTable kernel_table();                                                                  \
    /* 2 * lanes * multiply-adds, all independent, `rounds` times over; returns their number */ \
    double spend_flops(int64_t rounds);                                                          \
    /* reads `count` floats once, as fast as loads go */                                         \
    void read_all(const float* from, int64_t count);                                             \
    }
namespace pulse {
PULSE_SETS(PULSE_DECLARE)
}
#undef PULSE_DECLARE
