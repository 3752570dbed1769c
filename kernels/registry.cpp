// Which kernel sets this build has and this CPU runs.
#include <cstring>
#include <initializer_list>

#include "isa/sets.hpp"
#include "reference.hpp"

namespace pulse {

KernelTable all_kernels(Isa isa) {
    switch (isa) {
        case Isa::ref: return reference_table();
#define PULSE_CASE(name) \
    case Isa::name: return name::kernel_table();
        PULSE_SETS(PULSE_CASE)
#undef PULSE_CASE
        default: return {nullptr, 0};
    }
}

KernelTable kernels(Isa isa, Type type) {
    const KernelTable all = all_kernels(isa);
    size_t first = 0, count = 0;
    while (first < all.size && all.data[first].type != type) first++;
    while (first + count < all.size && all.data[first + count].type == type) count++;
    return {all.data + first, count};
}

const KernelInfo* find_kernel(const char* name) {
    for (Isa isa : {Isa::ref, Isa::v2, Isa::v3, Isa::v4, Isa::neon})
        for (const KernelInfo& kernel : all_kernels(isa))
            if (std::strcmp(kernel.name, name) == 0) return &kernel;
    return nullptr;
}

bool isa_supported(Isa isa) {
    if (all_kernels(isa).size == 0) return false;
#if defined(PULSE_X86)
    switch (isa) {
        case Isa::v2: return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
        case Isa::v3: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
        case Isa::v4:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
        default: break;
    }
#endif
    return true;
}

Isa best_isa() {
    for (Isa isa : {Isa::neon, Isa::v4, Isa::v3, Isa::v2})
        if (isa_supported(isa)) return isa;
    return Isa::ref;
}

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::v2: return "v2";
        case Isa::v3: return "v3";
        case Isa::v4: return "v4";
        case Isa::neon: return "neon";
        default: return "ref";
    }
}

bool accepts(const KernelInfo& kernel, const Product& p) {
    switch (kernel.family) {
        case Family::nl: return (p.bn == 1 && p.cn == 1) || p.n <= 1;
        case Family::dot: return (!p.off && p.ldb == 1) || p.k <= 1;
        default: return true;
    }
}

}  // namespace pulse
