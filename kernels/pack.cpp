#include <cassert>
#include <cstring>

#include "mmm.hpp"

namespace pulse {

size_t packed_bytes(Type type, int64_t panel, int64_t m, int64_t k) {
    (void)type;  // f32 is the only one so far
    return static_cast<size_t>((m + panel - 1) / panel * panel * k) * sizeof(float);
}

void pack(Type type, int64_t panel, const float* a, int64_t am, int64_t ak, int64_t m, int64_t k, void* out) {
    assert(panel > 0 && m >= 0 && k >= 0);
    (void)type;
    float* to = static_cast<float*>(out);
    for (int64_t row = 0; row < m; row += panel)
        for (int64_t l = 0; l < k; l++)
            for (int64_t i = 0; i < panel; i++) *to++ = row + i < m ? a[(row + i) * am + l * ak] : 0.0f;
}

}  // namespace pulse
