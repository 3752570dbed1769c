// Every kernel this CPU runs, on buffers of exactly the size they need: the sanitizers see any step outside.
#include <cstring>
#include <memory>
#include <vector>

#include "check.hpp"
#include "mmm.hpp"

namespace {

using pulse::Act;
using pulse::KernelInfo;
using pulse::Product;

constexpr Act ACTS[] = {Act::none, Act::relu, Act::leaky, Act::prelu, Act::sigmoid, Act::tanh};

double activated(double x, Act act, double slope) {
    switch (act) {
        case Act::relu: return x > 0 ? x : 0;
        case Act::leaky:
        case Act::prelu: return x > 0 ? x : x * slope;
        case Act::sigmoid: return 1 / (1 + std::exp(-x));
        case Act::tanh: return std::tanh(x);
        default: return x;
    }
}

std::vector<float> numbers(Random& random, long count) {
    std::vector<float> v(static_cast<size_t>(count));
    for (float& x : v) x = random.number();
    return v;
}

// The nearest float that bf16 holds, by the definition: of the two around x the nearer, at equal distance the even one.
float rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t below = bits & 0xffff0000u, above = below + 0x10000u, rest = bits & 0xffffu;
    const bool up = rest > 0x8000u || (rest == 0x8000u && (below & 0x10000u) != 0);
    const uint32_t nearest = up ? above : below;
    memcpy(&x, &nearest, sizeof x);
    return x;
}

// A buffer without slack at its end, which std::vector does not promise.
struct Exact {
    std::unique_ptr<float[]> data;
    explicit Exact(const std::vector<float>& v) : data(new float[v.size()]) {
        for (size_t i = 0; i < v.size(); i++) data[i] = v[i];
    }
};

void try_product(const KernelInfo& kernel, Random& random) {
    const long m = 1 + random.below(2 * kernel.mr + 20), k = random.below(40), n = 1 + random.below(2 * kernel.nr + 20);
    const bool frame = kernel.family == pulse::Family::dot || (kernel.family == pulse::Family::mmm && random.below(2));
    const bool columns = kernel.family != pulse::Family::nl && random.below(2);
    const bool offsets = kernel.family != pulse::Family::dot && random.below(2);
    std::vector<float> a = numbers(random, m * k);
    const std::vector<float> b = numbers(random, k * n), c = numbers(random, m * n),
                             bias = numbers(random, m), slope = numbers(random, m);
    Exact eb(b), ec(c), ebias(bias), eslope(slope);
    std::unique_ptr<char[]> packed(new char[pulse::packed_bytes(kernel.type, kernel.panel, m, k)]);
    pulse::pack(kernel.type, kernel.panel, a.data(), k, 1, m, k, packed.get());
    if (kernel.type == pulse::Type::bf16)
        for (float& x : a) x = rounded(x);

    Product p;
    p.a = packed.get(), p.b = eb.data.get(), p.c = ec.data.get();
    p.m = m, p.k = k, p.n = n;
    p.ldb = frame ? 1 : n, p.bn = frame ? k : 1;
    p.cm = columns ? 1 : n, p.cn = columns ? m : 1;
    p.bias = random.below(2) ? ebias.data.get() : nullptr;
    p.act = ACTS[random.below(6)], p.alpha = 0.1f, p.slope = eslope.data.get();
    p.accumulate = random.below(2) != 0;
    std::unique_ptr<int32_t[]> off(new int32_t[static_cast<size_t>(k)]);
    for (long l = 0; l < k; l++) off[static_cast<size_t>(l)] = static_cast<int32_t>(l * p.ldb);
    if (offsets) p.off = off.get();
    CHECK(pulse::accepts(kernel, p), "%s", kernel.name);
    kernel.fn(p);

    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            const size_t at = static_cast<size_t>(i * p.cm + j * p.cn);
            double sum = (p.bias ? bias[static_cast<size_t>(i)] : 0.0) + (p.accumulate ? c[at] : 0.0);
            for (long l = 0; l < k; l++)
                sum += static_cast<double>(a[static_cast<size_t>(i * k + l)]) * b[static_cast<size_t>(l * p.ldb + j * p.bn)];
            const double wanted = activated(sum, p.act, p.act == Act::prelu ? slope[static_cast<size_t>(i)] : p.alpha);
            CHECK(std::abs(ec.data[at] - wanted) < 1e-5, "%s %ldx%ldx%ld act %d at %ld,%ld: %g in place of %g", kernel.name,
                  m, k, n, static_cast<int>(p.act), i, j, ec.data[at], wanted);
        }
}

// The panels of one height hold every weight once, and zeros.
void try_packing(int64_t panel, int64_t m, int64_t k) {
    std::vector<float> a(static_cast<size_t>(m * k)), out(pulse::packed_bytes(pulse::Type::f32, panel, m, k) / sizeof(float));
    for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i + 1);
    pulse::pack(pulse::Type::f32, panel, a.data(), k, 1, m, k, out.data());
    CHECK(out.size() == static_cast<size_t>(pulse::padded_rows(panel, m) * k), "panel %d", static_cast<int>(panel));
    size_t at = 0;
    for (int64_t row = 0, height = 0; row < m; row += height) {
        height = pulse::panel_height(panel, m - row);
        CHECK(at * sizeof(float) == pulse::packed_bytes(pulse::Type::f32, panel, row, k), "row %d", static_cast<int>(row));
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < height; i++, at++) {
                const float wanted = row + i < m ? a[static_cast<size_t>((row + i) * k + l)] : 0.0f;
                CHECK(out[at] == wanted, "row %d of panel %d", static_cast<int>(row + i), static_cast<int>(panel));
            }
    }
    CHECK(at == out.size(), "panel %d", static_cast<int>(panel));
}

// The same in Pairs of k, the second of the last zero where k is odd.
void try_packing_halves(int64_t panel, int64_t m, int64_t k, Random& random) {
    constexpr pulse::Type HALF = pulse::Type::bf16;
    const std::vector<float> a = numbers(random, m * k);
    std::vector<pulse::Pair> out(pulse::packed_bytes(HALF, panel, m, k) / sizeof(pulse::Pair));
    pulse::pack(HALF, panel, a.data(), k, 1, m, k, out.data());
    size_t at = 0;
    for (int64_t row = 0, height = 0; row < m; row += height) {
        height = pulse::panel_height(panel, m - row);
        CHECK(at * sizeof(pulse::Pair) == pulse::packed_bytes(HALF, panel, row, k), "row %d", static_cast<int>(row));
        for (int64_t l = 0; l < k; l += 2)
            for (int64_t i = 0; i < height; i++, at++)
                for (int64_t half = 0; half < 2; half++) {
                    const bool there = row + i < m && l + half < k;
                    const float wanted = there ? rounded(a[static_cast<size_t>((row + i) * k + l + half)]) : 0.0f;
                    const uint32_t bits = half ? out[at] & 0xffff0000u : out[at] << 16;
                    float found;
                    memcpy(&found, &bits, sizeof found);
                    CHECK(found == wanted, "row %d, k %d", static_cast<int>(row + i), static_cast<int>(l + half));
                }
    }
    CHECK(at == out.size(), "panel %d", static_cast<int>(panel));
}

// Ties go to even, what is not finite stays so.
void try_rounding() {
    const uint32_t cases[][2] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x7f7fffff, 0x7f80},
                                 {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x80000000, 0x8000}};
    for (const auto& [given, wanted] : cases) {
        float x;
        memcpy(&x, &given, sizeof x);
        pulse::Pair out;
        pulse::pack(pulse::Type::bf16, 1, &x, 1, 1, 1, 1, &out);
        CHECK(out == wanted, "%08x became %08x", given, out);
    }
}

}  // namespace

int main() {
    Random random(1);
    for (pulse::Isa isa : {pulse::Isa::ref, pulse::Isa::v2, pulse::Isa::v3, pulse::Isa::v4, pulse::Isa::neon}) {
        if (!pulse::isa_supported(isa)) continue;
        const size_t listed = pulse::all_kernels(isa).size;
        CHECK(pulse::kernels(isa).data == pulse::all_kernels(isa).data, "%s", "float32 first");
        CHECK(pulse::kernels(isa).size + pulse::kernels(isa, pulse::Type::bf16).size == listed, "%s", "types in one stretch each");
        for (const KernelInfo& kernel : pulse::all_kernels(isa)) {
            CHECK(pulse::find_kernel(kernel.name) == &kernel, "%s", kernel.name);
            for (int i = 0; i < 150; i++) try_product(kernel, random);
        }
    }
    CHECK(pulse::isa_supported(pulse::best_isa()), "%s", pulse::isa_name(pulse::best_isa()));
    CHECK(pulse::find_kernel("v4_mmm_f32_0x0") == nullptr, "a kernel that is in no list");
    for (int64_t panel : {1, 4, 5, 8, 16, 24, 48, 64})
        for (int64_t m = 0; m < 140; m++) try_packing(panel, m, 3);
    for (int64_t panel : {1, 16, 32, 64})
        for (int64_t m = 0; m < 140; m += 3)
            for (int64_t k : {0, 1, 2, 5}) try_packing_halves(panel, m, k, random);
    try_rounding();
    return verdict();
}
