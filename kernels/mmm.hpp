// Matrix products on packed weights: what a kernel is, how it is called, how weights are laid out for it.
// C = act(A * B + bias) with A m x k (weights, packed), B k x n and C m x n (activations), all float32.
//
// Nothing here allocates, throws or reads the environment. A caller meets the preconditions named below; they are
// asserted in builds without NDEBUG and checked at the Python boundary.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pulse {

enum class Isa : int32_t { ref, v2, v3, v4, neon };  // ref: portable C++; v2..v4: x86-64-v2..v4

// mmm: vector lanes along m, columns broadcast. nl: lanes along n, rows broadcast. dot: lanes along k.
enum class Family : int32_t { mmm, nl, dot };

// How weights are stored; activations and sums are always float32. bf16: rounded to nearest even, two consecutive k of a
// row in one Pair.
enum class Type : int32_t { f32, bf16 };
using Pair = uint32_t;  // k in the lower half, k + 1 in the upper; zero beyond an odd k

enum class Act : int32_t {
    none,
    relu,     // NaN stays NaN
    leaky,    // x > 0 ? x : alpha * x
    prelu,    // x > 0 ? x : slope[row] * x
    sigmoid,  // absolute error below 2e-7
    tanh,     // absolute error below 3e-7
};

// One product. Strides are in floats. Element (i, j):
//   B(i, j) = b[(off ? off[i] : i * ldb) + j * bn]        C(i, j) = c[i * cm + j * cn]
// Frame-major activations (k contiguous, one frame per column): ldb = 1, bn = frame stride; cm = 1, cn = frame stride.
// Channel-major ones (columns contiguous): ldb = channel stride, bn = 1; cm = channel stride, cn = 1.
// C overlaps neither B nor A. Exactly the m x n elements of C are written; nothing outside them is read or written.
struct Product {
    const void* a = nullptr;         // packed for the kernel's panel height, see pack()
    const float* b = nullptr;
    float* c = nullptr;
    const int32_t* off = nullptr;    // k row offsets into b, or null for rows ldb apart
    const float* bias = nullptr;     // m values, or null for none; the sum starts from it
    const float* slope = nullptr;    // m values for Act::prelu
    int64_t m = 0, k = 0, n = 0;     // k = 0 gives act(bias)
    int64_t ldb = 1, bn = 1;
    int64_t cm = 1, cn = 1;
    Act act = Act::none;
    float alpha = 0.0f;              // for Act::leaky
    bool accumulate = false;         // the sum starts from what C holds (plus bias, if any)
};

using ProductFn = void (*)(const Product&);

// Named by the grammar ISA_FAMILY_TYPE_MRxNR[kKS], e.g. "v4_mmm_f32_16x4", "v4_mmm_bf16_48x1k2".
struct KernelInfo {
    const char* name;
    Isa isa;
    Family family;
    Type type;
    int32_t mr, nr;  // tile: rows and columns of C computed at once; other m and n are finished exactly
    int32_t ks;      // accumulators that k is split over; 1 keeps the order of a plain sum over k
    int32_t panel;   // panel height of the packed weights: mr (mmm, nl) or 1 (dot, ref)
    ProductFn fn;
};

struct KernelTable {
    const KernelInfo* data;
    size_t size;
    const KernelInfo* begin() const { return data; }
    const KernelInfo* end() const { return data + size; }
};

KernelTable all_kernels(Isa isa);              // as listed in list.inc, f32 first; empty for a set this build lacks
KernelTable kernels(Isa isa, Type type = Type::f32);  // those of one type
const KernelInfo* find_kernel(const char* name);  // null when there is none
bool isa_supported(Isa isa);                   // built in, and this CPU runs it
Isa best_isa();
const char* isa_name(Isa isa);

// What a family asks of a product beyond Product's own rules: nl wants bn == 1 and cn == 1, dot wants off == null and
// ldb == 1 (or k <= 1). mmm and ref take all.
bool accepts(const KernelInfo& kernel, const Product& product);

// Packed weights: panels of `panel` consecutive rows; rows that do not fill one go into lower panels, a multiple of 16 high
// and then 1, 4, 8 or 16, the last filled up with zero rows. Within a panel k-major: element (i, l) of a panel of height h that
// starts at row r is at panel_base + l * h + (i - r). panel = 1 is plain row-major. bf16: the same with Pairs for floats
// and (k + 1) / 2 for k. Every kernel of one panel height and type reads the same packing, whatever its nr and ks. Row r that starts a panel is at packed_bytes(type, panel, r, k).
int64_t panel_height(int64_t panel, int64_t left);  // of the next panel with `left` rows to go
int64_t padded_rows(int64_t panel, int64_t m);      // all heights together
size_t packed_bytes(Type type, int64_t panel, int64_t m, int64_t k);

// a(i, l) = a[i * am + l * ak]; out has packed_bytes(...) and is best aligned to 64 bytes.
void pack(Type type, int64_t panel, const float* a, int64_t am, int64_t ak, int64_t m, int64_t k, void* out);

}  // namespace pulse
