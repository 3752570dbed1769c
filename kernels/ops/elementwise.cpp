// Chains of elementwise operations in one pass: a block of values at a time goes through all instructions in L1.
#include "ops/math.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

constexpr int BLOCK = 256, MOST_REGISTERS = 24;  // 24 KB of stack

// Laid out as in a step's tail.
struct Port {  // an input
    int64_t ref, s[4];
};
struct Outlet {
    int64_t reg, ref, s[4];
};
struct Instruction {
    int64_t op, to, x, y, z, p, q;
};

enum class Chain : int64_t {
#define UNARY(name, of) name,
#define BINARY(name, of) name,
#define TERNARY(name, of) name,
#include "ops/chain.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
};

static __attribute__((noinline)) void execute(const Instruction& i, const float* const* in, float* to, int64_t n) {
    const float *a = in[i.x], *b = in[i.y], *c = in[i.z];
    const float p = real(i.p), q = real(i.q);
    (void)p, (void)q;
    switch (static_cast<Chain>(i.op)) {
#define UNARY(name, of)                              \
    case Chain::name:                                \
        for (int64_t k = 0; k < n; k += VL) {        \
            const V x = load(a + k);                 \
            store(to + k, of);                       \
        }                                            \
        break;
#define BINARY(name, of)                             \
    case Chain::name:                                \
        for (int64_t k = 0; k < n; k += VL) {        \
            const V x = load(a + k), y = load(b + k); \
            store(to + k, of);                       \
        }                                            \
        break;
#define TERNARY(name, of)                                              \
    case Chain::name:                                                  \
        for (int64_t k = 0; k < n; k += VL) {                          \
            const V x = load(a + k), y = load(b + k), z = load(c + k); \
            store(to + k, of);                                         \
        }                                                              \
        break;
#include "ops/chain.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
    }
}

PULSE_INLINE void copy_run(const float* x, float* to, int64_t n) {
    int64_t c = 0;
    for (; c + VL <= n; c += VL) store(to + c, load(x + c));
    if constexpr (VL > 8)
        for (; c + 8 <= n; c += 8) store<8>(to + c, load<8>(x + c));
    if constexpr (VL > 4)
        for (; c + 4 <= n; c += 4) store<4>(to + c, load<4>(x + c));
    for (; c < n; c++) to[c] = x[c];
}

// rows x cols values of x, as one run in `to`, which has room for a vector more.
static __attribute__((noinline)) void fetch(const float* x, int64_t rs, int64_t cs, int64_t rows, int64_t cols, float* to) {
    for (int64_t r = 0; r < rows; r++, x += rs, to += cols) {
        if (cs == 1)
            copy_run(x, to, cols);
        else if (cs == 0)
            for (int64_t c = 0; c < cols; c += VL) store(to + c, broadcast(*x));
        else
            for (int64_t c = 0; c < cols; c++) to[c] = x[c * cs];
    }
}

static __attribute__((noinline)) void put(const float* from, float* y, int64_t rs, int64_t cs, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++, y += rs, from += cols) {
        if (cs == 1)
            copy_run(from, y, cols);
        else
            for (int64_t c = 0; c < cols; c++) y[c * cs] = from[c];
    }
}

PULSE_INLINE bool one_run(const int64_t* s, int64_t rows, int64_t cols) {
    return s[3] == 1 && (rows == 1 || s[2] == cols);
}

static void elementwise(const elementwise_args& s, const Memory& memory) {
    const Port* in = reinterpret_cast<const Port*>(s.tail());
    const Outlet* out = reinterpret_cast<const Outlet*>(in + s.inputs);
    const Instruction* code = reinterpret_cast<const Instruction*>(out + s.outputs);
    alignas(64) float room[MOST_REGISTERS][BLOCK + VL];
    const float* value[MOST_REGISTERS];
    float* target[MOST_REGISTERS];
    const float* filled[MOST_REGISTERS];  // what a register of one repeated value was filled from,
    int64_t holds[MOST_REGISTERS];        // and how far
    const int64_t used = s.inputs + s.instructions < MOST_REGISTERS ? s.inputs + s.instructions : MOST_REGISTERS;
    for (int64_t r = 0; r < used; r++) value[r] = target[r] = room[r], filled[r] = nullptr, holds[r] = 0;
    const int64_t wide = s.n3 < BLOCK ? s.n3 : BLOCK, high = s.n3 < BLOCK && s.n3 > 0 ? BLOCK / s.n3 : 1;
    for (int64_t i = 0; i < s.n0; i++)
        for (int64_t j = 0; j < s.n1; j++)
            for (int64_t row = 0; row < s.n2; row += high)
                for (int64_t col = 0; col < s.n3; col += wide) {
                    const int64_t rows = s.n2 - row < high ? s.n2 - row : high, cols = s.n3 - col < wide ? s.n3 - col : wide;
                    const int64_t n = (rows * cols + VL - 1) / VL * VL;
                    const bool whole = n == rows * cols;
                    for (int64_t r = 0; r < s.inputs; r++) {
                        const Port& port = in[r];
                        const float* x = at(memory, port.ref) + i * port.s[0] + j * port.s[1] + row * port.s[2] + col * port.s[3];
                        if (port.s[2] == 0 && port.s[3] == 0) {
                            if (filled[r] == x && holds[r] >= n) continue;
                            filled[r] = x, holds[r] = n;
                            for (int64_t k = 0; k < n; k += VL) store(room[r] + k, broadcast(*x));
                        } else if (whole && one_run(port.s, rows, cols)) {
                            value[r] = x;
                        } else {
                            value[r] = room[r];
                            fetch(x, port.s[2], port.s[3], rows, cols, room[r]);
                        }
                    }
                    for (int64_t o = 0; o < s.outputs; o++) {
                        const Outlet& outlet = out[o];
                        if (whole && one_run(outlet.s, rows, cols))
                            value[outlet.reg] = target[outlet.reg] =
                                at(memory, outlet.ref) + i * outlet.s[0] + j * outlet.s[1] + row * outlet.s[2] + col * outlet.s[3];
                        else
                            value[outlet.reg] = target[outlet.reg] = room[outlet.reg];
                    }
                    for (int64_t c = 0; c < s.instructions; c++) execute(code[c], value, target[code[c].to], n);
                    for (int64_t o = 0; o < s.outputs; o++) {
                        const Outlet& outlet = out[o];
                        if (target[outlet.reg] != room[outlet.reg]) continue;
                        float* y = at(memory, outlet.ref) + i * outlet.s[0] + j * outlet.s[1] + row * outlet.s[2] + col * outlet.s[3];
                        put(room[outlet.reg], y, outlet.s[2], outlet.s[3], rows, cols);
                    }
                }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(elementwise, elementwise)
