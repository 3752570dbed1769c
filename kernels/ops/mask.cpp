// Frames that are not signal: before its start, or past its end.
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

static void mask(const mask_args& s, const Memory& memory) {
    const int64_t first = memory.scalars[s.position] * s.num / s.den - s.delay;
    const int64_t length = s.length < 0 ? -1 : memory.scalars[s.length];
    if ((!s.start || first >= 0) && (length < 0 || first + s.frames <= length)) return;
    const float value = real(s.value);
    for (int64_t j = 0; j < s.frames; j++) {
        const int64_t i = first + j;
        if (!(s.start && i < 0) && !(length >= 0 && i >= length)) continue;
        float* y = at(memory, s.y) + j * s.yt;
        for (int64_t p = 0; p < s.n0; p++)
            for (int64_t q = 0; q < s.n1; q++)
                for (int64_t r = 0; r < s.n2; r++) y[p * s.y0 + q * s.y1 + r * s.y2] = value;
    }
}

}  // namespace pulse::PULSE_NS
PULSE_STEP(mask, mask)
