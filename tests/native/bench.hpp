// Runs single steps on ports of exactly their size, so that the sanitizer sees what is read or written outside.
#pragma once
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"
#include "program.hpp"

namespace pulse::test {

constexpr Isa SETS[] = {Isa::v2, Isa::v3, Isa::v4, Isa::neon};

inline std::vector<float> random_floats(int64_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = normal(engine);
    return values;
}

inline int64_t bits(float value) {
    int32_t low;
    std::memcpy(&low, &value, sizeof low);
    return low;
}

// Arrays that steps name by number; `ref` gives what steps take.
class Bench {
public:
    int64_t port(std::vector<float> values) {
        arrays_.push_back(std::move(values));
        plan.ports.push_back(static_cast<int64_t>(arrays_.back().size()));
        return static_cast<int64_t>(arrays_.size()) - 1;
    }
    static int64_t ref(int64_t port, int64_t offset = 0) { return (FIRST_PORT + port) << REGION_SHIFT | offset; }
    std::vector<float>& operator[](int64_t port) { return arrays_[static_cast<size_t>(port)]; }

    template <class Args>
    void step(OpCode op, const Args& args, const std::vector<int64_t>& tail = {}) {
        const auto* fields = reinterpret_cast<const int64_t*>(&args);
        plan.code.push_back(static_cast<int64_t>(op));
        plan.code.push_back(static_cast<int64_t>(sizeof(Args) / sizeof(int64_t) + tail.size()));
        plan.code.insert(plan.code.end(), fields, fields + sizeof(Args) / sizeof(int64_t));
        plan.code.insert(plan.code.end(), tail.begin(), tail.end());
    }

    void run(Isa isa) {
        plan.isa = isa;
        auto program = std::make_shared<const Program>(plan, nullptr, nullptr);
        Runner runner(program, std::make_shared<State>(0, std::vector<Window>{}, 0), false);
        for (size_t i = 0; i < arrays_.size(); i++) runner.bind(static_cast<int64_t>(i), arrays_[i].data());
        runner.run(0);
    }

    Plan plan;

private:
    std::vector<std::vector<float>> arrays_;
};

inline void near(const std::vector<float>& got, const std::vector<float>& want, float tolerance, const char* what) {
    float worst = 0, most = 1e-30f;
    for (float w : want) most = std::max(most, std::abs(w));
    for (size_t i = 0; i < want.size(); i++) worst = std::max(worst, std::abs(got[i] - want[i]));
    CHECK(worst <= tolerance * most, "%s: off by %g of %g", what, worst, most);
}

template <class Run>
void in_every_set(Run run) {
    for (Isa isa : SETS)
        if (isa_supported(isa)) run(isa);
}

}  // namespace pulse::test
