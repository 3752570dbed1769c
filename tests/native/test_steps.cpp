// Steps against plain loops, at sizes around every edge, in every instruction set.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench.hpp"

namespace {

using namespace pulse;
using pulse::test::Bench;
using pulse::test::bits;
using pulse::test::in_every_set;
using pulse::test::near;
using pulse::test::random_floats;

void copies(Isa isa) {
    for (int64_t rows : {1, 3, 8, 17})
        for (int64_t cols : {1, 4, 7, 16, 33}) {
            Bench b;
            const int64_t x = b.port(random_floats(2 * rows * cols, 1)), y = b.port(std::vector<float>(2 * rows * cols));
            copy_args s{};
            s.x = Bench::ref(x), s.y = Bench::ref(y), s.when = -1, s.n0 = s.n1 = 1;
            s.n2 = 2, s.n3 = rows, s.n4 = cols;  // y[p][i][j] = x[p][j][i]
            s.x2 = s.y2 = rows * cols, s.x3 = 1, s.x4 = rows, s.y3 = cols, s.y4 = 1;
            b.step(OpCode::copy, s);
            b.run(isa);
            std::vector<float> want(b[x].size());
            for (int64_t p = 0; p < 2; p++)
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < cols; j++) want[(p * rows + i) * cols + j] = b[x][(p * cols + j) * rows + i];
            near(b[y], want, 0, "transposed copy");
        }
}

struct Filter {
    int64_t channels, frames, fin, kt, kf, step, dilation, pad, up;
};

void depthwise_of(Isa isa, const Filter& f, bool by_channel, Act act) {
    const int64_t reach = (f.kf - 1) * f.dilation + 1, fout = (f.fin + 2 * f.pad - reach) / f.step + 1;
    if (f.fin + 2 * f.pad < reach || (by_channel && f.up > 1)) return;
    const int64_t tall = f.frames + f.kt - 1, taps = f.kt * f.kf, wide = fout * f.up;
    Bench b;
    const int64_t x = b.port(random_floats(f.channels * tall * f.fin, 1)), w = b.port(random_floats(f.channels * f.up * taps, 2)),
                  bias = b.port(random_floats(f.channels, 3)), add = b.port(random_floats(f.channels * f.frames * wide, 4)),
                  y = b.port(std::vector<float>(static_cast<size_t>(f.channels * f.frames * wide)));
    depthwise_args s{};
    s.x = Bench::ref(x), s.y = Bench::ref(y), s.w = Bench::ref(w), s.bias = Bench::ref(bias), s.slope = -1;
    s.add = f.up > 1 ? -1 : Bench::ref(add);
    s.act = static_cast<int64_t>(act), s.alpha = bits(0.1f), s.lanes = !by_channel, s.channels = f.channels, s.frames = f.frames;
    s.fin = f.fin, s.fout = fout, s.kt = f.kt, s.kf = f.kf, s.step = f.step, s.dilation = f.dilation, s.pad = f.pad, s.up = f.up;
    if (by_channel)
        s.xc = s.yc = s.dc = 1, s.xf = s.yf = s.df = f.channels, s.xt = s.xk = f.fin * f.channels, s.yt = s.dt = wide * f.channels;
    else
        s.xc = tall * f.fin, s.xt = s.xk = f.fin, s.xf = s.yf = s.df = 1, s.yc = s.dc = f.frames * wide, s.yt = s.dt = wide;
    b.step(OpCode::depthwise, s);
    b.run(isa);
    std::vector<float> want(b[y].size());
    for (int64_t c = 0; c < f.channels; c++)
        for (int64_t t = 0; t < f.frames; t++)
            for (int64_t o = 0; o < wide; o++) {
                const int64_t at = o / f.up, part = o % f.up, to = c * s.yc + t * s.yt + o * s.yf;
                double sum = b[bias][c] + (f.up > 1 ? 0.0f : b[add][to]);
                for (int64_t i = 0; i < f.kt; i++)
                    for (int64_t j = 0; j < f.kf; j++) {
                        const int64_t band = at * f.step + j * f.dilation - f.pad, tap = i * f.kf + j;
                        const float weight = by_channel ? b[w][tap * f.channels + c] : b[w][(c * f.up + part) * taps + tap];
                        if (band >= 0 && band < f.fin) sum += weight * b[x][c * s.xc + (t + i) * s.xt + band * s.xf];
                    }
                if (act == Act::relu) sum = std::max(sum, 0.0);
                if (act == Act::leaky) sum = sum > 0 ? sum : 0.1f * sum;
                want[to] = static_cast<float>(sum);
            }
    near(b[y], want, 3e-6f, "depthwise");
}

void depthwises(Isa isa) {
    for (int64_t channels : {1, 5, 16, 35})
        for (int64_t fin : {1, 2, 7, 8, 16, 31, 48})
            for (const Filter& f : {Filter{channels, 2, fin, 1, 3, 1, 1, 1, 1}, {channels, 1, fin, 1, 3, 2, 1, 1, 1},
                                    {channels, 2, fin, 3, 3, 2, 1, 1, 1}, {channels, 1, fin, 1, 2, 1, 1, 0, 2},
                                    {channels, 1, fin, 2, 5, 3, 2, 4, 1}, {channels, 2, fin, 1, 3, 1, 1, 2, 2}})
                for (bool by_channel : {false, true}) {
                    depthwise_of(isa, f, by_channel, Act::none);
                    depthwise_of(isa, f, by_channel, Act::relu);
                    depthwise_of(isa, f, by_channel, Act::leaky);
                }
}

void chains(Isa isa) {
    for (int64_t rows : {1, 3, 70})
        for (int64_t cols : {1, 5, 16, 33, 300}) {
            Bench b;  // y[i][j] = max(x[i][j] * row[i] + col[j], 0) + one
            const int64_t x = b.port(random_floats(rows * cols, 1)), row = b.port(random_floats(rows, 2)),
                          col = b.port(random_floats(cols, 3)), one = b.port({0.5f}), y = b.port(std::vector<float>(rows * cols));
            int64_t fma = 0, relu = 0, sum = 0, number = 0;
#define UNARY(name, of) (std::strcmp(#name, "relu") == 0 ? relu = number : 0), number++;
#define BINARY(name, of) (std::strcmp(#name, "add") == 0 ? sum = number : 0), number++;
#define TERNARY(name, of) (std::strcmp(#name, "fma") == 0 ? fma = number : 0), number++;
#include "ops/chain.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
            std::vector<int64_t> tail;
            const auto operand = [&](int64_t port, int64_t s2, int64_t s3) { tail.insert(tail.end(), {Bench::ref(port), 0, 0, s2, s3}); };
            operand(x, cols, 1), operand(row, 1, 0), operand(col, 0, 1), operand(one, 0, 0);
            tail.push_back(4);
            operand(y, cols, 1);
            tail.insert(tail.end(), {fma, 4, 0, 1, 2, 0, 0, relu, 4, 4, 0, 0, 0, 0, sum, 4, 4, 3, 0, 0, 0});
            elementwise_args s{4, 1, 3, 1, 1, rows, cols};
            b.step(OpCode::elementwise, s, tail);
            b.run(isa);
            std::vector<float> want(b[y].size());
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < cols; j++)
                    want[i * cols + j] = std::max(std::fma(b[x][i * cols + j], b[row][i], b[col][j]), 0.0f) + 0.5f;
            near(b[y], want, 1e-6f, "chain");
        }
}

// Weights that bf16 holds as they are.
std::vector<float> short_floats(int64_t count, unsigned seed) {
    std::vector<float> v = random_floats(count, seed);
    for (float& x : v) {
        const int32_t cut = bits(x) & static_cast<int32_t>(0xffff0000u);
        std::memcpy(&x, &cut, sizeof x);
    }
    return v;
}

// Panels of `height` rows of floats, k-major, as panels of Pairs.
std::vector<float> halves(const std::vector<float>& panels, int64_t height, int64_t k) {
    std::vector<float> made;
    for (size_t panel = 0; panel < panels.size(); panel += static_cast<size_t>(height * k)) {
        std::vector<float> part(pulse::packed_bytes(Type::bf16, height, height, k) / sizeof(float));
        pulse::pack(Type::bf16, height, panels.data() + panel, 1, height, height, k, part.data());
        made.insert(made.end(), part.begin(), part.end());
    }
    return made;
}

// One step of a GRU in double precision, r before or after R h.
void gru_of(Isa isa, int64_t units, bool before, bool half) {
    const int64_t lanes = isa == Isa::v4 ? 16 : isa == Isa::v3 ? 8 : 4, padded = (units + lanes - 1) / lanes * lanes, steps = 3;
    const std::vector<float> r = (half ? short_floats : random_floats)(3 * units * units, 1), g = random_floats(steps * 3 * units, 2), rb = random_floats(units, 3);
    std::vector<float> gx(static_cast<size_t>(steps * 3 * padded)), packed(static_cast<size_t>(3 * padded * units)), bias(static_cast<size_t>(padded));
    for (int64_t u = 0; u < units; u++) bias[u] = rb[u];
    for (int64_t gate = 0; gate < 3; gate++)
        for (int64_t u = 0; u < units; u++) {
            const int64_t block = u / lanes, lane = u % lanes;
            for (int64_t t = 0; t < steps; t++)
                gx[(t * padded / lanes + block) * 3 * lanes + gate * lanes + lane] = g[(t * 3 + gate) * units + u];
            for (int64_t k = 0; k < units; k++) {
                int64_t to = (block * units + k) * 3 * lanes + gate * lanes + lane;
                if (!before) to = gate < 2 ? (block * units + k) * 2 * lanes + gate * lanes + lane
                                           : 2 * padded * units + (block * units + k) * lanes + lane;
                packed[to] = r[(gate * units + u) * units + k];
            }
        }
    if (half) {
        const int64_t height = before ? 3 * lanes : 2 * lanes, end = before ? 3 : 2;
        std::vector<float> first = halves({packed.begin(), packed.begin() + end * padded * units}, height, units);
        const std::vector<float> rest = halves({packed.begin() + end * padded * units, packed.end()}, lanes, units);
        first.insert(first.end(), rest.begin(), rest.end());
        packed = first;
    }
    Bench b;
    const int64_t pgx = b.port(gx), pw = b.port(packed), prb = b.port(bias), ph = b.port(random_floats(units, 4)),
                  py = b.port(std::vector<float>(static_cast<size_t>(steps * units))), pscratch = b.port(std::vector<float>(static_cast<size_t>(3 * padded)));
    std::vector<double> h(b[ph].begin(), b[ph].end());
    gru_args s{};
    s.gx = Bench::ref(pgx), s.w = Bench::ref(pw), s.rb = before ? Bench::ref(prb) : -1, s.h = Bench::ref(ph), s.y = Bench::ref(py);
    s.scratch = Bench::ref(pscratch), s.units = units, s.before = before, s.steps = steps, s.gxt = 3 * padded, s.yt = units;
    s.batch = 1, s.position = -1, s.half = half;
    b.step(OpCode::gru, s);
    b.run(isa);
    std::vector<float> want;
    for (int64_t t = 0; t < steps; t++) {
        const auto gate = [&](int64_t i, int64_t u) { return static_cast<double>(g[(t * 3 + i) * units + u]); };
        const auto times = [&](int64_t i, int64_t u, const std::vector<double>& v) {
            double sum = 0;
            for (int64_t k = 0; k < units; k++) sum += r[(i * units + u) * units + k] * v[k];
            return sum;
        };
        const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
        std::vector<double> next(h), reset(h);
        for (int64_t u = 0; u < units; u++) reset[u] = sigmoid(gate(1, u) + times(1, u, h)) * h[u];
        for (int64_t u = 0; u < units; u++) {
            const double z = sigmoid(gate(0, u) + times(0, u, h)), rr = sigmoid(gate(1, u) + times(1, u, h));
            const double n = std::tanh(gate(2, u) + (before ? rr * (times(2, u, h) + rb[u]) : times(2, u, reset)));
            next[u] = n + z * (h[u] - n);
        }
        h = next;
        want.insert(want.end(), h.begin(), h.end());
    }
    near(b[py], want, 2e-6f, "gru");
    near(b[ph], {h.begin(), h.end()}, 2e-6f, "gru state");
}

void pools(Isa isa) {
    for (int64_t bands : {1, 5, 33})
        for (bool by_channel : {false, true}) {
            constexpr int64_t CHANNELS = 19, FRAMES = 4;
            const int64_t out = (bands + 2 - 3) / 2 + 1;
            Bench b;
            const int64_t x = b.port(random_floats(CHANNELS * FRAMES * bands, 1)), y = b.port(std::vector<float>(static_cast<size_t>(CHANNELS * (FRAMES - 1) * out)));
            pool_args s{};
            s.x = Bench::ref(x), s.y = Bench::ref(y), s.batch = 1, s.channels = CHANNELS, s.tin = FRAMES, s.tout = FRAMES - 1;
            s.kt = 2, s.st = s.dt = 1, s.fin = bands, s.fout = out, s.kf = 3, s.sf = 2, s.df = 1, s.pf = 1, s.max = 1;
            if (by_channel)
                s.xc = s.yc = 1, s.xf = s.yf = CHANNELS, s.xt = bands * CHANNELS, s.yt = out * CHANNELS;
            else
                s.xc = FRAMES * bands, s.yc = (FRAMES - 1) * out, s.xt = bands, s.yt = out, s.xf = s.yf = 1;
            b.step(OpCode::pool, s);
            b.run(isa);
            std::vector<float> want(b[y].size(), -1e30f);
            for (int64_t c = 0; c < CHANNELS; c++)
                for (int64_t t = 0; t < s.tout; t++)
                    for (int64_t f = 0; f < out; f++)
                        for (int64_t i = 0; i < 2; i++)
                            for (int64_t j = 0; j < 3; j++) {
                                const int64_t band = 2 * f + j - 1;
                                float& w = want[c * s.yc + t * s.yt + f * s.yf];
                                if (band >= 0 && band < bands) w = std::max(w, b[x][c * s.xc + (t + i) * s.xt + band * s.xf]);
                            }
            near(b[y], want, 0, "pool");
        }
}

}  // namespace

int main() {
    in_every_set(copies);
    in_every_set(depthwises);
    in_every_set(chains);
    in_every_set(pools);
    in_every_set([](Isa isa) {
        for (int64_t units : {1, 5, 16, 33})
            for (bool before : {true, false})
                for (bool half : {false, true}) gru_of(isa, units, before, half);
    });
    return verdict();
}
