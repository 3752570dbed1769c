#include <algorithm>
#include <cassert>
#include <cstring>

#include "mmm.hpp"

namespace pulse {

int64_t panel_height(int64_t panel, int64_t left) {
    if (left >= panel) return panel;
    if (left >= 16) return left / 16 * 16;
    return std::min<int64_t>(panel, left == 1 ? 1 : left <= 4 ? 4 : left <= 8 ? 8 : 16);
}

int64_t padded_rows(int64_t panel, int64_t m) {
    int64_t rows = m / panel * panel, padded = rows;
    while (rows < m) {
        const int64_t height = panel_height(panel, m - rows);
        rows += height, padded += height;
    }
    return padded;
}

size_t packed_bytes(Type type, int64_t panel, int64_t m, int64_t k) {
    return static_cast<size_t>(padded_rows(panel, m) * (type == Type::bf16 ? (k + 1) / 2 : k)) * sizeof(float);
}

// The bf16 nearest to a float, ties to even; NaN stays NaN.
static uint32_t half(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if (x != x) return bits >> 16 | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

void pack(Type type, int64_t panel, const float* a, int64_t am, int64_t ak, int64_t m, int64_t k, void* out) {
    assert(panel > 0 && m >= 0 && k >= 0);
    float* to = static_cast<float*>(out);
    for (int64_t row = 0, height = 0; row < m; row += height) {
        height = panel_height(panel, m - row);
        if (type == Type::bf16) {
            for (int64_t l = 0; l < k; l += 2)
                for (int64_t i = 0; i < height; i++, to++) {
                    Pair both = 0;
                    if (row + i < m) both = half(a[(row + i) * am + l * ak]);
                    if (row + i < m && l + 1 < k) both |= half(a[(row + i) * am + (l + 1) * ak]) << 16;
                    std::memcpy(to, &both, sizeof both);
                }
            continue;
        }
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < height; i++) *to++ = row + i < m ? a[(row + i) * am + l * ak] : 0.0f;
    }
}

}  // namespace pulse
