// One filter per channel, with lanes along channels where these are contiguous, else along bands.
#include "isa/act.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

// Activates and stores W values, `stride` apart.
template <int W>
PULSE_INLINE void finish(float* y, int64_t stride, typename Vec<W>::T sum, const depthwise_args& s, const float* slope,
                         bool by_lane) {
    const Act act = static_cast<Act>(s.act);
    if (act == Act::relu) sum = at_least<W>(sum, typename Vec<W>::T{});
    if (act <= Act::relu && stride == 1) return store<W>(y, sum);
    float t[W];
    const float alpha = real(s.alpha);
    store<W>(t, sum);
    if (act > Act::relu) activate_span(t, W, act, slope ? slope : &alpha, slope && by_lane);
    for (int l = 0; l < W; l++) y[l * stride] = t[l];
}

// ---- lanes along channels: x, y, add point at channel 0 of a frame; kf runs over [low, high) only.
template <int W, int NV>
PULSE_INLINE void channels(const depthwise_args& s, const float* x, float* y, const float* add, const float* w, const float* bias,
                           const float* slope, int64_t low, int64_t high, int64_t c) {
    typedef typename Vec<W>::T X;
    X sum[NV];
    PULSE_UNROLL for (int v = 0; v < NV; v++) {
        sum[v] = bias ? load<W>(bias + c + v * W) : X{};
        if (add) sum[v] += load<W>(add + c + v * W);
    }
    const int64_t next = s.dilation * s.xf, xk = s.xk - (high - low) * next, wk = (s.kf - high + low) * s.channels;
    const float *at_x = x + low * next + c, *at_w = w + low * s.channels + c;
    for (int64_t i = s.kt; i > 0; i--, at_x += xk, at_w += wk)
        for (int64_t j = low; j < high; j++, at_x += next, at_w += s.channels) {
            PULSE_UNROLL for (int v = 0; v < NV; v++) sum[v] += load<W>(at_x + v * W) * load<W>(at_w + v * W);
        }
    PULSE_UNROLL for (int v = 0; v < NV; v++) finish<W>(y + c + v * W, 1, sum[v], s, slope ? slope + c + v * W : nullptr, true);
}

template <int W>
PULSE_INLINE void channels_from(const depthwise_args& s, const float* x, float* y, const float* add, const float* w,
                                const float* bias, const float* slope, int64_t low, int64_t high, int64_t c) {
    if constexpr (W >= 4) {
        constexpr int NV = W == VL ? CHAINS : 1;
        for (; c + NV * W <= s.channels; c += NV * W) channels<W, NV>(s, x, y, add, w, bias, slope, low, high, c);
        if constexpr (NV > 1)
            for (; c + W <= s.channels; c += W) channels<W, 1>(s, x, y, add, w, bias, slope, low, high, c);
        if (c < s.channels) channels_from<W / 2>(s, x, y, add, w, bias, slope, low, high, c);
    } else {
        for (; c < s.channels; c++) {
            float sum = (bias ? bias[c] : 0.0f) + (add ? add[c] : 0.0f);
            for (int64_t i = 0; i < s.kt; i++)
                for (int64_t j = low; j < high; j++)
                    sum += x[i * s.xk + j * s.dilation * s.xf + c] * w[(i * s.kf + j) * s.channels + c];
            const float alpha = real(s.alpha);
            activate_span(&sum, 1, static_cast<Act>(s.act), slope ? slope + c : &alpha, false);
            y[c] = sum;
        }
    }
}

static void along_channels(const depthwise_args& s, const Memory& memory) {
    const float *x = at(memory, s.x), *w = at(memory, s.w), *bias = at_or_null(memory, s.bias);
    const float *add = at_or_null(memory, s.add), *slope = at_or_null(memory, s.slope);
    float* y = at(memory, s.y);
    for (int64_t t = 0; t < s.frames; t++)
        for (int64_t f = 0; f < s.fout; f++) {
            const int64_t first = f * s.step - s.pad;  // band of tap 0
            const int64_t low = first >= 0 ? 0 : (-first + s.dilation - 1) / s.dilation;
            const int64_t fits = s.fin > first ? (s.fin - first + s.dilation - 1) / s.dilation : 0;
            channels_from<VL>(s, x + t * s.xt + first * s.xf, y + t * s.yt + f * s.yf, add ? add + t * s.dt + f * s.df : nullptr,
                              w, bias, slope, low, fits < s.kf ? fits : s.kf, 0);
        }
}

// ---- lanes along bands. A block of W bands loads around its row's ends and masks what is outside; rows for which that would
// read outside the tensor are copied first.
constexpr int64_t ROOM = 4096;  // floats for such copies, LEAD of them in front

template <int W>
PULSE_INLINE typename Vec<W>::T every_other(typename Vec<W>::T a, typename Vec<W>::T b) {
    if constexpr (W == 16)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    else if constexpr (W == 8)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    else
        return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}

// W values of a row from p on, `step` apart; STEP is that, or 0 for any other than 1 and 2.
template <int W, int STEP>
PULSE_INLINE typename Vec<W>::T pick_bands(const float* p, int64_t step) {
    if constexpr (STEP == 1) return load<W>(p);
    if constexpr (STEP == 2) return every_other<W>(load<W>(p), load<W>(p + W));
    typename Vec<W>::T v;
    PULSE_UNROLL for (int l = 0; l < W; l++) v[l] = p[l * step];
    return v;
}

template <int W>
PULSE_INLINE void store_alternating(float* y, typename Vec<W>::T a, typename Vec<W>::T b) {
    if constexpr (W == 16) {
        store<W>(y, __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
        store<W>(y + W, __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
    } else if constexpr (W == 8) {
        store<W>(y, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11));
        store<W>(y + W, __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15));
    } else {
        store<W>(y, __builtin_shufflevector(a, b, 0, 4, 1, 5));
        store<W>(y + W, __builtin_shufflevector(a, b, 2, 6, 3, 7));
    }
}

struct Row {
    const float *x, *add, *w, *slope;
    float bias;
    int64_t xk;
    float* y;
};

// KF: the number of bands a filter spans, or 0 for any. UP: filters per channel.
template <int W, bool EDGE, int STEP, int KF, int UP>
PULSE_INLINE void block(const depthwise_args& s, const Row& r, int64_t f) {
    typedef typename Vec<W>::T X;
    typedef typename Vec<W>::Bits Bits;
    const int64_t step = STEP ? STEP : s.step, kf = KF ? KF : s.kf, dilation = s.dilation, kt = s.kt;
    X sum[UP];
    PULSE_UNROLL for (int u = 0; u < UP; u++) sum[u] = broadcast<W>(r.bias);
    if (UP == 1 && r.add && s.df == 1) sum[0] += load<W>(r.add + f);
    if (UP == 1 && r.add && s.df != 1)
        for (int l = 0; l < W; l++) sum[0][l] += r.add[(f + l) * s.df];
    const float *w = r.w, *row = r.x + f * step - s.pad;
    Bits lane, first;
    if constexpr (EDGE) {
        PULSE_UNROLL for (int l = 0; l < W; l++) lane[l] = l;
        first = lane * static_cast<uint32_t>(step) + static_cast<uint32_t>(f * step - s.pad);
    }
    const uint32_t fin = static_cast<uint32_t>(s.fin);
    for (int64_t i = 0; i < kt; i++, row += r.xk, w += kf) {
        PULSE_UNROLL for (int64_t j = 0; j < kf; j++) {
            X v = pick_bands<W, STEP>(row + j * dilation, step);
            if constexpr (EDGE) v = first + static_cast<uint32_t>(j * dilation) < fin ? v : X{};
            PULSE_UNROLL for (int u = 0; u < UP; u++) sum[u] += v * w[u * kt * kf + j];
        }
    }
    if constexpr (UP == 1) {
        finish<W>(r.y + f * s.yf, s.yf, sum[0], s, r.slope, false);
    } else if (s.act <= static_cast<int64_t>(Act::relu)) {
        const X least = broadcast<W>(s.act ? 0.0f : -__builtin_inff());
        store_alternating<W>(r.y + 2 * f, at_least<W>(sum[0], least), at_least<W>(sum[1], least));
    } else {
        PULSE_UNROLL for (int u = 0; u < UP; u++) finish<W>(r.y + 2 * f + u, 2, sum[u], s, r.slope, false);
    }
}

// All bands of a row; the last block may lie over the one before.
template <int W, int STEP, int KF, int UP>
PULSE_INLINE void bands(const depthwise_args& s, const Row& r) {
    if (s.fout < W) {
        if constexpr (W > 4) return bands<W / 2, STEP, KF, UP>(s, r);
        float out[4 * UP], add[4] = {};
        for (int64_t f = 0; r.add && f < s.fout; f++) add[f] = r.add[f * s.df];
        depthwise_args one = s;
        one.df = one.yf = 1;
        block<4, true, STEP, KF, UP>(one, {r.x, r.add ? add : nullptr, r.w, r.slope, r.bias, r.xk, out}, 0);
        for (int64_t f = 0; f < UP * s.fout; f++) r.y[f * s.yf] = out[f];
        return;
    }
    const int64_t step = STEP ? STEP : s.step, reach = (s.kf - 1) * s.dilation + (W - 1) * step;
    for (int64_t f = 0;;) {
        const int64_t band = f * step - s.pad;
        if (band >= 0 && band + reach < s.fin)
            block<W, false, STEP, KF, UP>(s, r, f);
        else
            block<W, true, STEP, KF, UP>(s, r, f);
        if (f + W >= s.fout) break;
        f = f + 2 * W <= s.fout ? f + W : s.fout - W;
    }
}

template <int STEP, int KF, int UP>
static void along_bands(const depthwise_args& s, const Memory& memory) {
    const float *x = at(memory, s.x), *w = at(memory, s.w), *bias = at_or_null(memory, s.bias);
    const float *add = at_or_null(memory, s.add), *slope = at_or_null(memory, s.slope);
    float* y = at(memory, s.y);
    alignas(64) float room[ROOM];
    // What blocks read of a row at most, and what the tensor has, both relative to the row's start.
    const int64_t wide = s.fout < VL ? VL : s.fout;
    const int64_t before = s.pad > 0 ? s.pad : 0, after = (wide - 1) * s.step + (s.kf - 1) * s.dilation - s.pad + VL;
    const int64_t rows = (s.frames - 1) * s.xt + (s.kt - 1) * s.xk, whole = (s.channels - 1) * s.xc + rows + s.fin;
    for (int64_t c = 0; c < s.channels; c++)
        for (int64_t t = 0; t < s.frames; t++) {
            const int64_t start = c * s.xc + t * s.xt, end = start + (s.kt - 1) * s.xk;
            Row r{x + start, add ? add + c * s.dc + t * s.dt : nullptr, w + c * UP * s.kt * s.kf, slope ? slope + c : nullptr,
                  bias ? bias[c] : 0.0f, s.xk, y + c * s.yc + t * s.yt};
            if (s.xf != 1 || start < before || end + after > whole) {
                float* to = room + before;
                for (int64_t i = 0; i < s.kt; i++, to += before + after)
                    for (int64_t f = 0; f < s.fin && f < after; f++) to[f] = x[start + i * s.xk + f * s.xf];
                r.x = room + before, r.xk = before + after;
            }
            bands<VL, STEP, KF, UP>(s, r);
        }
}

static void depthwise(const depthwise_args& s, const Memory& memory) {
    if (s.lanes == 0)
        along_channels(s, memory);
    else if (s.up == 2)
        s.kf == 2 && s.step == 1 ? along_bands<1, 2, 2>(s, memory) : along_bands<0, 0, 2>(s, memory);
    else if (s.step == 1)
        s.kf == 3 ? along_bands<1, 3, 1>(s, memory) : along_bands<1, 0, 1>(s, memory);
    else
        s.kf == 3 && s.step == 2 ? along_bands<2, 3, 1>(s, memory) : along_bands<0, 0, 1>(s, memory);
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(depthwise, depthwise)
