// Timing for the cost model: every layout, activation and home of the weights, so that sanitizers see what it touches; and
// data sets that are begun, gone on with, and refused.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "check.hpp"
#include "gather/machine.hpp"
#include "gather/run.hpp"

#define HOLDS(...) CHECK((__VA_ARGS__), "does not hold")

namespace {

using namespace pulse;
using namespace pulse::gather;

Settings quick() {
    Settings settings;
    settings.rounds = 2, settings.slice_ns = 1, settings.unsteady = 1e9;
    return settings;
}

void time_all(Isa isa, Arena& arena) {
    for (const char* layout : {"frame", "taps", "channel", "conv", "turn"})
        for (const char* rest : {"none l2", "relu l3", "prelu cold", "sigmoid l2"})
            for (const char* sizes : {"1 1 1", "33 7 5", "8 40 1", "17 3 70"}) {
                const auto sample = parse_sample((std::string(sizes) + " " + layout + " " + rest).c_str());
                HOLDS(sample.has_value());
                const Timed timed = time_sample(isa, *sample, quick(), arena);
                HOLDS(timed.kernels.size() == kernels(isa).size);
                size_t taken = 0;
                for (const Timing& t : timed.kernels) taken += t.odd > 0 && t.even > 0;
                HOLDS(taken > 0);
                HOLDS(timed.reference_ns > 0);
            }
}

void read_samples() {
    HOLDS(to_text(*parse_sample("64 384 1 frame none l3")) == "64 384 1 frame none l3");
    for (const char* bad : {"", "1 2 3", "0 1 1 frame none l3", "1 1 1 frames none l3", "1 1 1 frame gelu l3", "1 1 1 frame none l4",
                            "1 1 1 frame none l3 more", "99999999 1 1 frame none l3", "1000000 1000000 1 frame none l3", "-1 1 1 frame none l3"})
        HOLDS(!parse_sample(bad).has_value());
}

void keep_samples(Isa isa) {
    const auto number = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string path = std::filesystem::temp_directory_path() / ("pulse_test_gather." + std::to_string(number) + ".txt");
    Request request;
    request.path = path, request.tool = "test", request.isas = {isa}, request.settings = quick();
    request.samples = {*parse_sample("8 8 1 frame none l2"), *parse_sample("8 8 2 frame none l2"), *parse_sample("8 8 3 frame none l2")};
    size_t told = 0;
    HOLDS(!run(request, [&](const Progress& p) { return told++, p.done < 1; }));
    HOLDS(told == 2);
    {
        std::ofstream file(path, std::ios::app);
        file << "half a line";
    }
    told = 0;
    HOLDS(!run(request, [&](const Progress& p) { return told++, p.total == 3; }));
    HOLDS(told == 3);  // two that were missing, and the end
    request.settings.rounds = 3;
    HOLDS(run(request, [](const Progress&) { return true; })->code == "dataset-foreign");
    request.settings.rounds = 2;
    {
        std::ofstream file(path, std::ios::app);
        file << "a whole line\n";
    }
    HOLDS(run(request, [](const Progress&) { return true; })->code == "dataset-corrupt");
    std::remove(path.c_str());
    request.core = 100000;
    HOLDS(run(request, [](const Progress&) { return true; })->code == "core-unavailable");
}

}  // namespace

int main() {
    read_samples();
    HOLDS(!cpu_name().empty());
    Arena arena(caches());
    HOLDS(arena.ready());
    for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4, Isa::neon})
        if (isa_supported(isa)) time_all(isa, arena);
    if (best_isa() != Isa::ref) keep_samples(best_isa());
    return verdict();
}
