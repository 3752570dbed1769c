// Pooling over two axes: tap by tap over the outputs for which the tap lies within the input.
#include "isa/vec.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

// y[i] joined with x[i] over n values.
static void join_row(bool max, const float* x, int64_t xs, float* y, int64_t ys, int64_t n) {
    int64_t i = 0;
    if (xs == 1 && ys == 1)
        for (; i + VL <= n; i += VL) {
            const V a = load(y + i), b = load(x + i);
            store(y + i, max ? ((b > a) | (b != b) ? b : a) : a + b);
        }
    for (; i < n; i++) {
        const float a = y[i * ys], b = x[i * xs];
        y[i * ys] = max ? (b > a || b != b ? b : a) : a + b;
    }
}

// The outputs [low, high) for which tap number k of an axis lies within [0, size).
static void range(int64_t k, int64_t step, int64_t dilation, int64_t pad, int64_t size, int64_t outputs, int64_t* low,
                  int64_t* high) {
    const int64_t first = k * dilation - pad;
    *low = first >= 0 ? 0 : (-first + step - 1) / step;
    *high = first >= size ? 0 : (size - 1 - first) / step + 1;
    if (*high > outputs) *high = outputs;
}

static int64_t taps_inside(int64_t out, int64_t kernel, int64_t step, int64_t dilation, int64_t pad, int64_t size) {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel; k++) {
        const int64_t at = out * step + k * dilation - pad;
        count += at >= 0 && at < size;
    }
    return count;
}

static void pool_one(const pool_args& s, const float* x, float* y) {
    const bool max = s.max != 0;
    // channels or bands innermost, whichever are contiguous
    const bool by_channel = s.yc == 1;
    for (int64_t t = 0; t < s.tout; t++) {
        for (int64_t c = 0; c < s.channels; c++)
            for (int64_t f = 0; f < s.fout; f++) y[c * s.yc + t * s.yt + f * s.yf] = max ? -__builtin_inff() : 0.0f;
        for (int64_t i = 0; i < s.kt; i++) {
            const int64_t frame = t * s.st + i * s.dt - s.pt;
            if (frame < 0 || frame >= s.tin) continue;
            for (int64_t j = 0; j < s.kf; j++) {
                int64_t low, high;
                range(j, s.sf, s.df, s.pf, s.fin, s.fout, &low, &high);
                const float* from = x + frame * s.xt + (j * s.df - s.pf) * s.xf;
                if (by_channel)
                    for (int64_t f = low; f < high; f++)
                        join_row(max, from + f * s.sf * s.xf, s.xc, y + t * s.yt + f * s.yf, s.yc, s.channels);
                else if (low < high)
                    for (int64_t c = 0; c < s.channels; c++)
                        join_row(max, from + c * s.xc + low * s.sf * s.xf, s.sf * s.xf, y + c * s.yc + t * s.yt + low * s.yf, s.yf,
                                 high - low);
            }
        }
        if (max) continue;
        const int64_t frames = s.whole ? s.kt : taps_inside(t, s.kt, s.st, s.dt, s.pt, s.tin);
        for (int64_t f = 0; f < s.fout; f++) {
            const int64_t bands = s.whole ? s.kf : taps_inside(f, s.kf, s.sf, s.df, s.pf, s.fin);
            for (int64_t c = 0; c < s.channels; c++) y[c * s.yc + t * s.yt + f * s.yf] /= static_cast<float>(frames * bands);
        }
    }
}

static void pool(const pool_args& s, const Memory& memory) {
    for (int64_t b = 0; b < s.batch; b++) pool_one(s, at(memory, s.x) + b * s.xb, at(memory, s.y) + b * s.yb);
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(pool, pool)
