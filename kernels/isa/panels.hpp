// Family mmm: lanes along m on packed panels, NR columns of B broadcast per tile.
#pragma once
#include "isa/dots.hpp"
#include "isa/tile.hpp"

namespace pulse::PULSE_NS {

// Where a tile's sums start when it is not simply the bias of a full panel: t[j][i] = bias + what C holds.
static __attribute__((noinline, unused)) void gather(const Product& p, float* t, int64_t mr, int64_t nr, int64_t row,
                                                     int64_t rows, int64_t col) {
    for (int64_t j = 0; j < nr; j++)
        for (int64_t i = 0; i < mr; i++) {
            float v = 0.0f;
            if (i < rows) {
                if (p.bias) v = p.bias[row + i];
                if (p.accumulate) v += p.c[(row + i) * p.cm + (col + j) * p.cn];
            }
            t[j * mr + i] = v;
        }
}

// Activates a spilled tile t[j][i] and writes its rows x nr corner to C, by 4 x 4 transposes where rows of C are contiguous.
static __attribute__((noinline, unused)) void scatter(const Product& p, float* t, int64_t mr, int64_t nr, int64_t row,
                                                      int64_t rows, int64_t col) {
    if (p.act != Act::none)
        for (int64_t j = 0; j < nr; j++)
            activate_span(t + j * mr, rows, p.act, p.act == Act::prelu ? p.slope + row : &p.alpha, p.act == Act::prelu);
    float* c = p.c + row * p.cm + col * p.cn;
    int64_t j = 0;
    if (p.cm == 1) {
        for (; j < nr; j++) memcpy(c + j * p.cn, t + j * mr, rows * sizeof(float));
    } else if (p.cn == 1) {
        for (; j + 4 <= nr; j += 4) {
            const float* s = t + j * mr;
            int64_t i = 0;
            for (; i + 4 <= rows; i += 4) {
                typedef Vec<4>::T V4;
                const V4 x0 = load<4>(s + i), x1 = load<4>(s + mr + i), x2 = load<4>(s + 2 * mr + i),
                         x3 = load<4>(s + 3 * mr + i);
                const V4 a = __builtin_shufflevector(x0, x1, 0, 4, 1, 5), b = __builtin_shufflevector(x2, x3, 0, 4, 1, 5);
                const V4 d = __builtin_shufflevector(x0, x1, 2, 6, 3, 7), e = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
                store<4>(c + i * p.cm + j, __builtin_shufflevector(a, b, 0, 1, 4, 5));
                store<4>(c + (i + 1) * p.cm + j, __builtin_shufflevector(a, b, 2, 3, 6, 7));
                store<4>(c + (i + 2) * p.cm + j, __builtin_shufflevector(d, e, 0, 1, 4, 5));
                store<4>(c + (i + 3) * p.cm + j, __builtin_shufflevector(d, e, 2, 3, 6, 7));
            }
            for (; i < rows; i++)
                for (int64_t q = 0; q < 4; q++) c[i * p.cm + j + q] = s[q * mr + i];
        }
    }
    for (; j < nr; j++)
        for (int64_t i = 0; i < rows; i++) c[i * p.cm + j * p.cn] = t[j * mr + i];
}

// How a product addresses B: one branch per tile chooses the loop, so that all four share a tile's start and end.
enum class Walk { unit, strided, offset_unit, offset_strided };
PULSE_INLINE Walk walk_of(const Product& p) {
    if (p.off) return p.bn == 1 ? Walk::offset_unit : Walk::offset_strided;
    return p.bn == 1 ? Walk::unit : Walk::strided;
}

template <class A>
constexpr bool PAIRED = false;
template <>
constexpr bool PAIRED<Pair> = true;

// MV vectors of W rows, of which `rows` exist, by NR columns. A: float or Pair, what the weights are packed in.
template <int W, int MV, int NR, int KS, class A>
PULSE_INLINE void cell(const Product& p, Walk walk, const A* a, int64_t row, int64_t rows, int64_t col) {
    typedef typename Vec<W>::T X;
    constexpr int MR = MV * W;
    const bool full = rows >= MR;
    X acc[KS][NR][MV];
    PULSE_UNROLL for (int s = 1; s < KS; s++) {
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            PULSE_UNROLL for (int i = 0; i < MV; i++) acc[s][j][i] = X{};
        }
    }
    if (full && !p.accumulate) {
        PULSE_UNROLL for (int i = 0; i < MV; i++) {
            const X start = p.bias ? load<W>(p.bias + row + i * W) : X{};
            PULSE_UNROLL for (int j = 0; j < NR; j++) acc[0][j][i] = start;
        }
    } else {
        float t[NR * MR];
        gather(p, t, MR, NR, row, full ? MR : rows, col);
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            PULSE_UNROLL for (int i = 0; i < MV; i++) acc[0][j][i] = load<W>(t + j * MR + i * W);
        }
    }
    const float* b = p.b + col * p.bn;
    // A tile of one column never looks at the column stride; on Pairs the loop for any stride is as fast.
    if (NR > 1 && !PAIRED<A> && walk == Walk::unit)
        tile<W, MV, NR, KS, false, true>(acc, a, b, nullptr, p.ldb, 1, p.k);
    else if (NR > 1 && !PAIRED<A> && walk == Walk::offset_unit)
        tile<W, MV, NR, KS, true, true>(acc, a, b, p.off, 0, 1, p.k);
    else if (walk == Walk::unit || walk == Walk::strided)
        tile<W, MV, NR, KS, false, false>(acc, a, b, nullptr, p.ldb, p.bn, p.k);
    else
        tile<W, MV, NR, KS, true, false>(acc, a, b, p.off, 0, p.bn, p.k);
    PULSE_UNROLL for (int s = 1; s < KS; s++) {
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            PULSE_UNROLL for (int i = 0; i < MV; i++) acc[0][j][i] += acc[s][j][i];
        }
    }
    if (full && p.cm == 1 && p.act <= Act::relu) {
        float* c = p.c + row + col * p.cn;
        if (p.act == Act::relu) {
            PULSE_UNROLL for (int j = 0; j < NR; j++) {
                PULSE_UNROLL for (int i = 0; i < MV; i++) acc[0][j][i] = at_least<W>(acc[0][j][i], X{});
            }
        }
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            PULSE_UNROLL for (int i = 0; i < MV; i++) store<W>(c + j * p.cn + i * W, acc[0][j][i]);
        }
    } else {
        float t[NR * MR];
        PULSE_UNROLL for (int j = 0; j < NR; j++) {
            PULSE_UNROLL for (int i = 0; i < MV; i++) store<W>(t + j * MR + i * W, acc[0][j][i]);
        }
        scatter(p, t, MR, NR, row, full ? MR : rows, col);
    }
}

// What does not fill a kernel's tile is finished by smaller exact ones, shared by all kernels and so not inlined.
template <int W, int MV, int NR, int KS = 1, class A>
static __attribute__((noinline)) void small_cell(const Product& p, Walk walk, const A* a, int64_t row, int64_t rows,
                                                 int64_t col) {
    cell<W, MV, NR, KS>(p, walk, a, row, rows, col);
}
constexpr int smaller(int nr) { return nr > 8 ? 8 : nr > 4 ? 4 : nr - 1; }

template <int W, int MV, int NR, class A>
PULSE_INLINE void last_columns(const Product& p, Walk walk, const A* a, int64_t row, int64_t rows, int64_t col) {
    if constexpr (NR > 0) {
        if (p.n - col >= NR) {
            small_cell<W, MV, NR>(p, walk, a, row, rows, col);
            col += NR;
        }
        if (col < p.n) last_columns<W, MV, smaller(NR)>(p, walk, a, row, rows, col);
    }
}

// One of the lower panels that hold the rows left over (see pack()), MV * W rows high. SPLIT: the kernel at work splits k.
template <int W, int MV, bool SPLIT, class A>
static __attribute__((noinline)) void low_panel(const Product& p, Walk walk, const A* a, int64_t row) {
    constexpr int FIT = (REGISTERS - 1 - MV) / MV, NR = FIT >= 8 ? 8 : FIT >= 4 ? 4 : FIT > 0 ? FIT : 1;
    constexpr int KS = MV < 8 ? 8 / MV : 1;
    int64_t col = 0;
    if constexpr (SPLIT && KS > 1) {
        if constexpr (!PAIRED<A> || W == VL)
            for (; col + 2 <= p.n; col += 2) small_cell<W, MV, 2, KS / 2>(p, walk, a, row, p.m - row, col);
        for (; col < p.n; col++) small_cell<W, MV, 1, KS>(p, walk, a, row, p.m - row, col);
    } else {
        for (; col + NR <= p.n; col += NR) small_cell<W, MV, NR>(p, walk, a, row, p.m - row, col);
        if (col < p.n) last_columns<W, MV, smaller(NR)>(p, walk, a, row, p.m - row, col);
    }
}

// A single row left over, as sizes of 2^n + 1 leave: k-major and row-major are one then, so lanes go along k where they may.
template <bool SPLIT, class A>
static __attribute__((noinline)) void low_row(const Product& p, Walk walk, const A* a, int64_t row) {
    if constexpr (!PAIRED<A>) {
        if (SPLIT && !p.off && p.ldb == 1) {
            for (int64_t col = 0; col < p.n; col++) dot_row<1, 4>(p, a, row, col);
            return;
        }
    }
    low_panel<1, 1, SPLIT>(p, walk, a, row);
}

// H: the height of a panel of sixteens, tried from the highest below the kernel's own.
template <int H, bool SPLIT, class A>
PULSE_INLINE void last_rows(const Product& p, Walk walk, const A* a, int64_t row) {
    const int64_t left = p.m - row;
    if constexpr (H >= 16) {
        if (left >= H) {
            low_panel<VL, H / VL, SPLIT>(p, walk, a, row);
            a += H * along(a, p.k), row += H;
        }
        if (row < p.m) {
            if (left >= H)
                last_rows<0, SPLIT>(p, walk, a, row);
            else
                last_rows<H - 16, SPLIT>(p, walk, a, row);
        }
    } else if (left == 1) {
        low_row<SPLIT>(p, walk, a, row);
    } else if (left <= 4) {
        low_panel<4, 1, SPLIT>(p, walk, a, row);
    } else if (left <= 8) {
        low_panel<(VL < 8 ? VL : 8), (VL < 8 ? 8 / VL : 1), SPLIT>(p, walk, a, row);
    } else {
        low_panel<VL, 16 / VL, SPLIT>(p, walk, a, row);
    }
}

template <class A, int MR, int NR, int KS>
static void mmm(const Product& p) {
    static_assert(MR % VL == 0 && (MR < 16 ? MR == 4 || MR == 8 : MR % 8 == 0), "the heights pack() makes");
    constexpr int MV = MR / VL;
    const Walk walk = walk_of(p);
    const A* a = static_cast<const A*>(p.a);
    int64_t row = 0;
    for (; row + MR <= p.m; row += MR, a += MR * along(a, p.k)) {
        int64_t col = 0;
        for (; col + NR <= p.n; col += NR) cell<VL, MV, NR, KS>(p, walk, a, row, MR, col);
        if (col < p.n) last_columns<VL, MV, smaller(NR)>(p, walk, a, row, MR, col);
    }
    // On Pairs lower panels always split k: half as much code for a sum that nobody asks to be in order.
    if (row < p.m) last_rows<(MR - 1) / 16 * 16, (KS > 1 || PAIRED<A>)>(p, walk, a, row);
}

}  // namespace pulse::PULSE_NS
