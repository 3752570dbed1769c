// One filter per channel, with lanes along channels where these are contiguous, else along bands.
#include "isa/act.hpp"
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

template <int W>
PULSE_INLINE void finish(float* y, typename Vec<W>::T sum, const depthwise_args& s, const float* slope, bool by_lane) {
    const Act act = static_cast<Act>(s.act);
    if (act == Act::none) return store<W>(y, sum);
    if (act == Act::relu) return store<W>(y, at_least<W>(sum, typename Vec<W>::T{}));
    float t[W];
    const float alpha = real(s.alpha);
    store<W>(t, sum);
    activate_span(t, W, act, slope ? slope : &alpha, slope && by_lane);
    memcpy(y, t, sizeof t);
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
    for (int64_t i = 0; i < s.kt; i++)
        for (int64_t j = low; j < high; j++) {
            const float* at_x = x + i * s.xk + j * s.dilation * s.xf + c;
            const float* at_w = w + (i * s.kf + j) * s.channels + c;
            PULSE_UNROLL for (int v = 0; v < NV; v++) sum[v] += load<W>(at_x + v * W) * load<W>(at_w + v * W);
        }
    PULSE_UNROLL for (int v = 0; v < NV; v++) finish<W>(y + c + v * W, sum[v], s, slope ? slope + c + v * W : nullptr, true);
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

// ---- lanes along bands: rows are first laid out in L1 with zeros around them, and by remainder of the step, so that
// every tap of neighbouring bands is contiguous.
constexpr int64_t ROOM = 4096;

template <int W>
PULSE_INLINE typename Vec<W>::T even(typename Vec<W>::T a, typename Vec<W>::T b) {
    if constexpr (W == 16)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    else if constexpr (W == 8)
        return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    else
        return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}

// to[p][i] = x[(first + i * step + p) * xf], zero outside [0, fin); `each` values per remainder p.
static void lay_out(const depthwise_args& s, const float* x, int64_t first, int64_t each, float* to) {
    for (int64_t p = 0; p < s.step; p++, to += each) {
        int64_t i = 0;
        const int64_t start = first + p;
        for (; i < each && start + i * s.step < 0; i++) to[i] = 0.0f;
        if (s.xf == 1 && s.step == 1) {
            for (; i + VL <= each && start + i + VL <= s.fin; i += VL) store(to + i, load(x + start + i));
        } else if (s.xf == 1 && s.step == 2) {
            for (; i + VL <= each && start + 2 * (i + VL) <= s.fin; i += VL)
                store(to + i, even<VL>(load(x + start + 2 * i), load(x + start + 2 * i + VL)));
        }
        for (; i < each && start + i * s.step < s.fin; i++) to[i] = x[(start + i * s.step) * s.xf];
        for (; i < each; i++) to[i] = 0.0f;
    }
}

// count bands from `rows`, W at a time.
template <int W>
PULSE_INLINE void bands(const depthwise_args& s, const float* rows, int64_t each, float* y, const float* add, const float* w,
                        float bias, const float* slope, int64_t f, int64_t count) {
    typedef typename Vec<W>::T X;
    for (; f + W <= count; f += W) {
        X sum = broadcast<W>(bias);
        if (add && s.df == 1) sum += load<W>(add + f);
        if (add && s.df != 1)
            for (int l = 0; l < W; l++) sum[l] += add[(f + l) * s.df];
        for (int64_t i = 0; i < s.kt; i++)
            for (int64_t j = 0; j < s.kf; j++) {
                const int64_t tap = j * s.dilation;
                sum += load<W>(rows + (i * s.step + tap % s.step) * each + f + tap / s.step) * w[i * s.kf + j];
            }
        finish<W>(y + f, sum, s, slope, false);
    }
    if (f == count) return;
    if constexpr (W > 4)
        bands<W / 2>(s, rows, each, y, add, w, bias, slope, f, count);
    else
        for (; f < count; f++) {
            float sum = bias + (add ? add[f * s.df] : 0.0f);
            for (int64_t i = 0; i < s.kt; i++)
                for (int64_t j = 0; j < s.kf; j++) {
                    const int64_t tap = j * s.dilation;
                    sum += rows[(i * s.step + tap % s.step) * each + f + tap / s.step] * w[i * s.kf + j];
                }
            const float alpha = real(s.alpha);
            activate_span(&sum, 1, static_cast<Act>(s.act), slope ? slope : &alpha, false);
            y[f] = sum;
        }
}

static void along_bands(const depthwise_args& s, const Memory& memory) {
    const float *x = at(memory, s.x), *w = at(memory, s.w), *bias = at_or_null(memory, s.bias);
    const float *add = at_or_null(memory, s.add), *slope = at_or_null(memory, s.slope);
    float* y = at(memory, s.y);
    alignas(64) float room[ROOM];
    const int64_t overhang = (s.kf - 1) * s.dilation / s.step + 1, rows = s.kt * s.step;
    int64_t most = ROOM / rows - overhang;  // bands at once; the plan sees to it that some fit
    most = most < s.fout ? most : s.fout;
    const int64_t each = most + overhang;
    const int64_t together = ROOM / (rows * each);  // channels laid out before the first is read: no wait for stores
    for (int64_t from = 0; from < s.fout; from += most) {
        const int64_t count = s.fout - from < most ? s.fout - from : most;
        for (int64_t t = 0; t < s.frames; t++)
            for (int64_t c = 0; c < s.channels; c += together) {
                const int64_t last = c + together < s.channels ? c + together : s.channels;
                float* to = room;
                for (int64_t q = c; q < last; q++)
                    for (int64_t i = 0; i < s.kt; i++, to += s.step * each)
                        lay_out(s, x + q * s.xc + t * s.xt + i * s.xk, from * s.step - s.pad, each, to);
                for (int64_t q = c; q < last; q++)
                    bands<VL>(s, room + (q - c) * rows * each, each, y + q * s.yc + t * s.yt + from,
                              add ? add + q * s.dc + t * s.dt + from * s.df : nullptr, w + q * s.kt * s.kf, bias ? bias[q] : 0.0f,
                              slope ? slope + q : nullptr, 0, count);
            }
    }
}

static void depthwise(const depthwise_args& s, const Memory& memory) {
    if (s.lanes == 0)
        along_channels(s, memory);
    else
        along_bands(s, memory);
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(depthwise, depthwise)
