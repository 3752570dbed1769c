#include "gather/arena.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace pulse::gather {

constexpr int64_t MIB = int64_t{1} << 20, HUGE_PAGE = 2 * MIB;

Arena::Arena(const Caches& caches) {
    const int64_t l2 = std::max<int64_t>(caches.l2, MIB / 4);
    // Well beyond the second level, and well within the third: neighbours on other cores have their share of it.
    l3_set_ = caches.l3 > 0 ? std::clamp(8 * l2, caches.l3 / 8, std::max(caches.l3 / 4, 2 * l2)) : 4 * l2;
    cold_set_ = std::max(2 * std::max(caches.l3, l2), 32 * MIB);
    // A product larger than half a set still needs two places to rotate through; the pads let panels end past the set.
    bytes_ = (std::max(cold_set_, 2 * LARGEST_WEIGHTS) / HUGE_PAGE + 2) * HUGE_PAGE;
    void* got = mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return;
    const auto from = reinterpret_cast<uintptr_t>(got);
    data_ = static_cast<char*>(got);
    const uintptr_t skip = (HUGE_PAGE - from % HUGE_PAGE) % HUGE_PAGE;
    madvise(data_ + skip, static_cast<size_t>(bytes_ - static_cast<int64_t>(skip)), MADV_HUGEPAGE);  // only a wish
    uint32_t x = 2463534242u;
    auto* floats = reinterpret_cast<float*>(data_);
    for (int64_t i = 0; i < bytes_ / 4; i++) {  // ordinary numbers below 1: denormals would cost time of their own
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        floats[i] = static_cast<float>(static_cast<int32_t>(x | 1)) * 0x1p-31f;
    }
}

Arena::~Arena() {
    if (data_) munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace pulse::gather
