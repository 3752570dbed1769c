// The stated errors of the activations, in every instruction set, over the whole range and where it is narrow.
#include <algorithm>
#include <limits>
#include <vector>

#include "check.hpp"
#include "mmm.hpp"

namespace {

using pulse::Act;

// act(x) as the kernel computes it: a product with the weight 1.
std::vector<float> through(const pulse::KernelInfo& kernel, const std::vector<float>& x, Act act) {
    std::vector<float> y(x.size()), packed(static_cast<size_t>(pulse::padded_rows(kernel.panel, 1)));
    const float one = 1.0f;
    pulse::pack(kernel.type, kernel.panel, &one, 1, 1, 1, 1, packed.data());
    pulse::Product p;
    p.a = packed.data(), p.b = x.data(), p.c = y.data();
    p.m = p.k = 1, p.n = static_cast<int64_t>(x.size());
    p.ldb = p.cm = p.n, p.act = act;
    kernel.fn(p);
    return y;
}

void try_set(const pulse::KernelInfo& kernel) {
    constexpr int COUNT = 1000000;
    std::vector<float> x;
    for (int i = 0; i < COUNT; i++) x.push_back(-20.0f + 40.0f * static_cast<float>(i) / COUNT);
    for (int i = 0; i < COUNT / 10; i++) x.push_back(-0.01f + 0.02f * static_cast<float>(i) / (COUNT / 10));
    const std::vector<float> s = through(kernel, x, Act::sigmoid), t = through(kernel, x, Act::tanh);
    double worst_s = 0, worst_t = 0, worst_e = 0;
    for (size_t i = 0; i < x.size(); i++) {
        const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
        worst_s = std::max(worst_s, std::abs(s[i] - exact));
        worst_t = std::max(worst_t, std::abs(t[i] - std::tanh(static_cast<double>(x[i]))));
    }
    // Far below 0 the sigmoid is 1 / e^-x: its relative error is that of the exponential, and a rounding.
    std::vector<float> deep;
    for (int i = 0; i < COUNT / 10; i++) deep.push_back(-87.0f + 67.0f * static_cast<float>(i) / (COUNT / 10));
    const std::vector<float> e = through(kernel, deep, Act::sigmoid);
    for (size_t i = 0; i < deep.size(); i++) {
        const double exact = 1 / (1 + std::exp(-static_cast<double>(deep[i])));
        worst_e = std::max(worst_e, std::abs(e[i] / exact - 1));
    }
    std::printf("%-20s sigmoid %.2e tanh %.2e, exp (relative) %.2e\n", kernel.name, worst_s, worst_t, worst_e);
    CHECK(worst_s < 2e-7, "%s: %g", kernel.name, worst_s);
    CHECK(worst_t < 3e-7, "%s: %g", kernel.name, worst_t);
    CHECK(worst_e < 3e-7, "%s: %g", kernel.name, worst_e);

    constexpr float INF = std::numeric_limits<float>::infinity(), NAN_ = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> edges = {INF, -INF, NAN_, 0.0f, -0.0f, 3e38f, -3e38f, 89.0f, -89.0f, 1e-40f};
    const std::vector<float> es = through(kernel, edges, Act::sigmoid), et = through(kernel, edges, Act::tanh),
                             er = through(kernel, edges, Act::relu);
    CHECK(es[0] == 1 && es[1] == 0 && et[0] == 1 && et[1] == -1 && er[0] == INF && er[1] == 0, "%s: infinity", kernel.name);
    CHECK(std::isnan(es[2]) && std::isnan(et[2]) && std::isnan(er[2]), "%s: NaN", kernel.name);
    CHECK(es[3] == 0.5f && et[3] == 0 && es[5] == 1 && es[6] == 0 && et[5] == 1 && et[6] == -1, "%s: edges", kernel.name);
    CHECK(es[7] == 1 && es[8] >= 0 && es[8] < 1e-37f && et[7] == 1 && et[8] == -1, "%s: near overflow", kernel.name);
}

}  // namespace

int main() {
    for (pulse::Isa isa : {pulse::Isa::ref, pulse::Isa::v2, pulse::Isa::v3, pulse::Isa::v4, pulse::Isa::neon})
        if (pulse::isa_supported(isa)) try_set(*pulse::kernels(isa).begin());
    return verdict();
}
