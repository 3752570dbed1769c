// Memory of programs and streams.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "program.hpp"

namespace pulse {

constexpr size_t HUGE_PAGE = size_t{2} << 20;

Floats::Floats(int64_t count, bool huge) : size_(count) {
    size_t bytes = (static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(float) + 63) / 64 * 64, align = 64;
    // Below that the rest of a huge page would be wasted.
    huge = huge && bytes > HUGE_PAGE / 8;
    if (huge) bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE, align = HUGE_PAGE;
    data_.reset(static_cast<float*>(std::aligned_alloc(align, bytes)));
    if (!data_) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
    if (huge) (void)madvise(data_.get(), bytes, MADV_HUGEPAGE);  // advice: without it all is slower, nothing else
#endif
    std::memset(data_.get(), 0, bytes);
}

void Floats::Free::operator()(float* p) const { std::free(p); }

State::State(int64_t floats, std::vector<Window> windows, int64_t scalars) : block_(floats, false), scalars_(scalars) {
    for (const Window& window : windows) slides_.push_back({window, Floats(), 0, 0});
}

// Slack of many pulses makes moving back rare; it is bounded so that what slides stays in the second cache level, unless
// moving would then be more work than the pulse's own frames.
void State::reserve(int64_t window, int64_t advance) {
    constexpr int64_t FITS = 32 * 1024, PULSES = 32;
    Slide& s = slides_[window];
    const int64_t fits = FITS / std::max<int64_t>(s.shape.frame, 1), least = 2 * std::max(advance, s.shape.history);
    const int64_t slack = std::max(std::min(fits - s.shape.history, PULSES * advance), least);
    if (s.capacity >= s.shape.history + slack) return;
    Floats larger((s.shape.history + slack) * s.shape.frame, true);
    if (s.data.size()) std::memcpy(larger.data(), history(window), s.shape.history * s.shape.frame * sizeof(float));
    s.data = std::move(larger);
    s.capacity = s.shape.history + slack;
    s.at = 0;
}

void State::clear() {
    std::memset(block_.data(), 0, block_.size() * sizeof(float));
    std::fill(scalars_.begin(), scalars_.end(), 0);
    int64_t index = 0;
    for (Slide& s : slides_) {
        std::memset(s.data.data(), 0, s.data.size() * sizeof(float));
        // Staggered, so that not all windows move back in the same pulse.
        s.at = (s.capacity - s.shape.history) * index++ / static_cast<int64_t>(slides_.size());
    }
}

float* State::open(int64_t window, int64_t advance) {
    Slide& s = slides_[window];
    if (s.at + s.shape.history + advance > s.capacity) {
        std::memmove(s.data.data(), history(window), s.shape.history * s.shape.frame * sizeof(float));
        s.at = 0;
    }
    return history(window);
}

}  // namespace pulse
