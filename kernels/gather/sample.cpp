#include "gather/sample.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

namespace pulse::gather {

constexpr const char* LAYOUTS[] = {"frame", "taps", "channel", "conv", "turn"};
constexpr const char* ACTS[] = {"none", "relu", "leaky", "prelu", "sigmoid", "tanh"};
constexpr const char* HOMES[] = {"l2", "l3", "cold"};

template <class Enum, size_t N>
static bool parse_name(const char* text, const char* const (&names)[N], Enum& out) {
    for (size_t i = 0; i < N; i++)
        if (std::strcmp(text, names[i]) == 0) {
            out = static_cast<Enum>(i);
            return true;
        }
    return false;
}

std::string to_text(const Sample& s) {
    char text[160];
    std::snprintf(text, sizeof text, "%lld %lld %lld %s %s %s", static_cast<long long>(s.m), static_cast<long long>(s.k),
                  static_cast<long long>(s.n), LAYOUTS[static_cast<int>(s.layout)], ACTS[static_cast<int>(s.act)],
                  HOMES[static_cast<int>(s.home)]);
    return text;
}

std::optional<Sample> parse_sample(const char* line) {
    long long m = 0, k = 0, n = 0;
    char layout[16], act[16], home[16], more[2];
    Sample s;
    if (std::sscanf(line, "%lld %lld %lld %15s %15s %15s %1s", &m, &k, &n, layout, act, home, more) != 6) return {};
    constexpr long long FAR = 1 << 20;
    if (m < 1 || k < 1 || n < 1 || m > FAR || k > FAR || n > FAR) return {};
    if (m * n > FAR * 16 || k * n > FAR * 16) return {};
    if (!parse_name(layout, LAYOUTS, s.layout) || !parse_name(act, ACTS, s.act) || !parse_name(home, HOMES, s.home)) return {};
    s.m = m, s.k = k, s.n = n;
    // 64 rows are the highest panel, and so the most that padding adds.
    if (static_cast<int64_t>(packed_bytes(Type::f32, 64, m, k)) > LARGEST_WEIGHTS) return {};
    return s;
}

static double now() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Where activations lie is worth several percent to short products: B and C take PLACES in turn, 13 cache lines apart.
constexpr int64_t PLACES = 4, APART = 13 * 16;

static float* aligned(std::vector<float>& from) {
    return from.data() + (64 - reinterpret_cast<uintptr_t>(from.data()) % 64) % 64 / sizeof(float);
}

// How often the system took this thread off its core.
static long preemptions() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

// B, C, offsets, bias and slopes of one sample, and the product that reads them.
struct Bench {
    std::vector<float> b, c, bias;
    std::vector<int32_t> offsets;
    Product product;

    explicit Bench(const Sample& s) : b(s.k * s.n + PLACES * APART + 16), c(s.m * s.n + PLACES * APART + 16), bias(s.m) {
        for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(i % 17) / 16.0f - 0.5f;
        for (size_t i = 0; i < bias.size(); i++) bias[i] = static_cast<float>(i % 13) / 16.0f - 0.375f;
        Product& p = product;
        p.b = aligned(b), p.c = aligned(c), p.bias = bias.data(), p.slope = bias.data();
        p.m = s.m, p.k = s.k, p.n = s.n, p.act = s.act, p.alpha = 0.1f;
        const bool frames = s.layout == Layout::frame || s.layout == Layout::taps;
        p.ldb = frames ? 1 : s.n, p.bn = frames ? s.k : 1;
        const bool columns = frames || s.layout == Layout::turn;
        p.cm = columns ? 1 : s.n, p.cn = columns ? s.m : 1;
        if (s.layout != Layout::frame && s.layout != Layout::channel) {
            offsets.resize(s.k);
            for (int64_t l = 0; l < s.k; l++) offsets[l] = static_cast<int32_t>(l * p.ldb);
            p.off = offsets.data();
        }
    }
};

// A kernel on a product whose weights walk through the arena.
struct Runner {
    const KernelInfo* kernel;
    Product product;
    int64_t stride, set;  // bytes from one place of the weights to the next, and of all places
    int64_t repeats = 1;
    std::vector<double> rounds;

    Runner(const KernelInfo& kernel, const Product& product, Home home, const Arena& arena) : kernel(&kernel), product(product) {
        const auto bytes = static_cast<int64_t>(packed_bytes(Type::f32, kernel.panel, product.m, product.k));
        stride = (bytes + 63) / 64 * 64;
        set = home == Home::l2 ? stride : std::max(home == Home::l3 ? arena.l3_set() : arena.cold_set(), 2 * stride);
    }

    // Mean nanoseconds of `count` calls.
    double calls(const char* weights, Cursor& walk, int64_t count) {
        walk.set = set;
        const double start = now();
        for (int64_t i = 0; i < count; i++) {
            product.a = weights + walk.next(stride);
            kernel->fn(product);
            asm volatile("" : : : "memory");
        }
        return (now() - start) / static_cast<double>(count);
    }

    // The same of `repeats` calls: the lesser of two halves, again while another thread had the core meanwhile.
    double run(const char* weights, Cursor& walk) {
        double best = 0;
        for (int attempt = 0; attempt < 4; attempt++) {
            const long before = preemptions();
            const double first = calls(weights, walk, (repeats + 1) / 2), second = calls(weights, walk, (repeats + 1) / 2);
            const double less = std::min(first, second);
            best = attempt ? std::min(best, less) : less;
            if (preemptions() == before) break;
        }
        return best;
    }

    void move(int64_t floats) { product.b += floats, product.c += floats; }

    void calibrate(const char* weights, Cursor& walk, double slice_ns) {
        for (double total = 0; total < slice_ns / 4;) {
            const double each = calls(weights, walk, repeats);
            total = each * static_cast<double>(repeats);
            const double wish = total >= slice_ns / 4 ? slice_ns / each : 4.0 * static_cast<double>(repeats);
            repeats = std::max<int64_t>(1, static_cast<int64_t>(wish));
        }
    }
};

static double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

static std::vector<double> every_second(const std::vector<double>& values, size_t from) {
    std::vector<double> kept;
    for (size_t i = from; i < values.size(); i += 2) kept.push_back(values[i]);
    return kept;
}

double Timed::unsteady() const {
    std::vector<double> gaps;
    for (const Timing& t : kernels)
        if (t.odd > 0) gaps.push_back(std::abs(t.odd / t.even - 1));
    return median(std::move(gaps));
}

static Timed time_once(Isa isa, const Sample& sample, const Settings& settings, Arena& arena) {
    const KernelTable table = kernels(isa);
    Bench bench(sample), fixed(Sample{64, 256, 1, Layout::frame, Act::none, Home::l2});
    std::vector<Runner> runners;
    std::vector<size_t> places;
    for (const KernelInfo& kernel : table)
        if (accepts(kernel, bench.product)) {
            runners.emplace_back(kernel, bench.product, sample.home, arena);
            places.push_back(static_cast<size_t>(&kernel - table.begin()));
        }
    // The reference stays in the second level: it is to show the clock and who else is at work, not the memory's own noise.
    Runner reference(table.data[0], fixed.product, Home::l2, arena);

    // One walk for all: what a kernel finds was last touched a whole set ago, whoever touched it.
    Cursor walk, still;
    for (Runner& runner : runners) runner.calibrate(arena.data(), walk, settings.slice_ns);
    reference.calibrate(arena.data(), still, settings.slice_ns / 2);

    Timed timed;
    timed.kernels.resize(table.size);
    const auto tick = [&] { return reference.run(arena.data(), still); };
    double best = tick();
    int accepted = 0;
    const size_t count = runners.size(), between = 8;
    std::vector<double> took(count);
    int64_t place = 0;
    for (int attempt = 0; accepted < settings.rounds && attempt < 4 * settings.rounds; attempt++) {
        // Odd and even rounds see the same places.
        const int64_t next = attempt / 2 % PLACES;
        for (Runner& runner : runners) runner.move((next - place) * APART);
        place = next;
        double slowest = tick();
        best = std::min(best, slowest);
        for (size_t i = 0; i < count; i++) {
            // Another order every round: no kernel always follows the same one.
            const size_t turn = (i + static_cast<size_t>(attempt) * 7) % count, at = attempt % 2 ? count - 1 - turn : turn;
            took[at] = runners[at].run(arena.data(), walk);
            if (i % between == between - 1 || i + 1 == count) {
                const double t = tick();
                slowest = std::max(slowest, t), best = std::min(best, t);
            }
        }
        const bool last_chance = 4 * settings.rounds - attempt <= settings.rounds - accepted;
        if (slowest > best * (1 + settings.drift) && !last_chance) {
            timed.repeated++;
            continue;
        }
        timed.drift = std::max(timed.drift, slowest / best - 1);
        for (size_t i = 0; i < count; i++) runners[i].rounds.push_back(took[i]);
        accepted++;
    }
    timed.reference_ns = best;
    for (size_t i = 0; i < count; i++)
        timed.kernels[places[i]] = {median(every_second(runners[i].rounds, 0)), median(every_second(runners[i].rounds, 1))};
    return timed;
}

Timed time_sample(Isa isa, const Sample& sample, const Settings& settings, Arena& arena) {
    Timed best = time_once(isa, sample, settings, arena);
    int repeated = best.repeated;
    for (int tries = 0; tries < 2 && best.unsteady() > settings.unsteady; tries++) {
        Timed again = time_once(isa, sample, settings, arena);
        repeated += again.repeated + settings.rounds;
        if (again.unsteady() < best.unsteady()) best = std::move(again);
    }
    best.repeated = repeated;
    return best;
}

}  // namespace pulse::gather
