// One timing sample: a product, how it lies in memory and where its weights come from; and what every kernel took for it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "gather/arena.hpp"
#include "mmm.hpp"

namespace pulse::gather {

// How B and C lie. frame: columns contiguous in both (linear layers, recurrences); taps: the same, B addressed by row
// offsets (1-D convolutions). channel: rows contiguous in both (2-D convolutions); conv: the same by row offsets. turn: as
// conv, but columns of C contiguous (the last convolution before a linear layer).
enum class Layout { frame, taps, channel, conv, turn };

// Where weights are found: l2, the nearest cache that holds this product's; l3, the cache that holds a whole model's;
// cold, memory, as after a pause.
enum class Home { l2, l3, cold };

struct Sample {
    int64_t m = 0, k = 0, n = 0;
    Layout layout = Layout::frame;
    Act act = Act::none;
    Home home = Home::l3;
};

std::string to_text(const Sample& sample);              // "64 384 1 frame none l3"
std::optional<Sample> parse_sample(const char* line);   // the inverse; nothing where it is malformed or out of bounds

struct Settings {
    int rounds = 9;              // accepted rounds per sample; the odd and the even ones are kept apart
    double slice_ns = 60e3;      // least time spent on one kernel per round
    double drift = 0.05;         // a round in which the reference kernel drifts by more is repeated
    double unsteady = 0.025;     // and all rounds, twice at most, if odd and even ones differ by more: the memory was not ours
};

struct Timing {
    double odd = 0, even = 0;    // median nanoseconds over odd and over even rounds; 0 where the kernel cannot take the layout
};

struct Timed {
    std::vector<Timing> kernels;  // in the order of the set's list
    double reference_ns = 0;      // least time of the reference kernel
    double drift = 0;             // its largest excess over that in an accepted round
    int repeated = 0;             // rounds thrown away

    double unsteady() const;  // by how much odd and even rounds differ, the median over the kernels
};

// Every kernel of the set on the sample, interleaved, with the reference kernel in between; the steadiest of the tries.
Timed time_sample(Isa isa, const Sample& sample, const Settings& settings, Arena& arena);

}  // namespace pulse::gather
