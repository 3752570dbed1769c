#include "gather/run.hpp"

#include <chrono>
#include <cstring>

#include "gather/dataset.hpp"
#include "gather/machine.hpp"

namespace pulse::gather {

struct Job {
    Isa isa;
    Sample sample;
    double cost;  // seconds, roughly
};

// Kernels times rounds times the larger of a slice and a call at a tenth of what today's cores do.
static double cost_of(Isa isa, const Sample& s, const Settings& settings) {
    const double call_ns = 2.0 * static_cast<double>(s.m * s.k * s.n) / 10.0;
    return static_cast<double>(kernels(isa).size) * (settings.rounds + 2) * (settings.slice_ns + call_ns) * 1e-9;
}

std::optional<Failure> run(const Request& request, const Tell& tell) {
    const int core = request.core < 0 ? last_core() : request.core;
    const Pin pin(core);
    if (!pin.held())
        return Failure{"core-unavailable", "core " + std::to_string(core), "a core this process may run on",
                       "the system refused"};
    const Caches sizes = caches();
    const std::string wanted = identity(request, sizes);
    Found found = read_dataset(request.path, wanted);
    if (found.failure) return found.failure;
    Arena arena(sizes);
    if (!arena.ready()) return Failure{"out-of-memory", request.path, "room for weights beyond every cache", std::strerror(ENOMEM)};
    if (found.good_bytes == 0) {
        const std::string text = header(request, sizes, arena, core);
        if (auto failure = write_file(request.path, text)) return failure;
        found.good_bytes = static_cast<int64_t>(text.size());
    }
    std::vector<Job> jobs;
    size_t total = 0;
    double left = 0;
    for (const Sample& sample : request.samples)
        for (const Isa isa : request.isas) {
            total++;
            if (!found.keys.insert(sample_key(isa, sample)).second) continue;
            jobs.push_back({isa, sample, cost_of(isa, sample, request.settings)});
            left += jobs.back().cost;
        }
    Appender out(request.path, found.good_bytes);
    const auto start = std::chrono::steady_clock::now();
    double spent = 0;
    for (size_t i = 0; i < jobs.size(); i++) {
        const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const double pace = spent > 0 ? elapsed / spent : 1.0;
        const std::string key = sample_key(jobs[i].isa, jobs[i].sample);
        if (!tell({total - jobs.size() + i, total, elapsed, left * pace, key})) return {};
        const Timed timed = time_sample(jobs[i].isa, jobs[i].sample, request.settings, arena);
        if (!out.append(sample_line(jobs[i].isa, jobs[i].sample, timed, core_mhz(core), celsius())))
            return Failure{"output-unwritable", request.path, "a path that can be written", std::strerror(out.error())};
        spent += jobs[i].cost, left -= jobs[i].cost;
    }
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tell({total, total, elapsed, 0, ""});
    return {};
}

}  // namespace pulse::gather
