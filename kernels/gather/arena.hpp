// The memory that weights are read from while timing: one large area whose parts serve as packed weights of any layout,
// for the time of a product does not depend on their values.
#pragma once
#include <cstddef>
#include <cstdint>

namespace pulse::gather {

struct Caches {
    int64_t l1 = 0, l2 = 0, l3 = 0;  // bytes; l3 is 0 where there is none
};

constexpr int64_t LARGEST_WEIGHTS = int64_t{1} << 25;  // bytes of one product's, at most

class Arena {
  public:
    explicit Arena(const Caches& caches);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    bool ready() const { return data_ != nullptr; }
    const char* data() const { return data_; }
    int64_t l3_set() const { return l3_set_; }      // bytes to rotate through so that the second level never hits
    int64_t cold_set() const { return cold_set_; }  // bytes to rotate through so that no cache hits

  private:
    char* data_ = nullptr;
    int64_t bytes_ = 0, l3_set_ = 0, cold_set_ = 0;
};

// Steps through the first `set` bytes of the arena in strides, going on where the last use of it ended.
struct Cursor {
    int64_t at = 0, set = 0;

    int64_t next(int64_t stride) {
        if (at + stride > set) at = 0;
        const int64_t here = at;
        at += stride;
        return here;
    }
};

}  // namespace pulse::gather
