// How long a product takes here, and what this core could do at best. Times are in nanoseconds.
#pragma once
#include "mmm.hpp"

namespace pulse {

// Mean time of `repeats` calls after untimed rounds. With copies > 1 the weights rotate through `copies` packings laid
// `stride` bytes apart, so that each call finds its own in the cache level that holds them all.
double time_product(const KernelInfo& kernel, Product product, int64_t repeats, int64_t copies, int64_t stride);

// Floating-point operations per nanosecond with operands in registers; 0 for Isa::ref.
double peak_flops(Isa isa, int64_t rounds);

// Bytes per nanosecond, reading `count` floats over and over after untimed passes; 0 for Isa::ref.
double read_bandwidth(Isa isa, const float* from, int64_t count, int64_t repeats);

}  // namespace pulse
