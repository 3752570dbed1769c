// The checks that native tests need: report and go on, fail at the end.
#pragma once
#include <cmath>
#include <cstdio>
#include <random>

inline int failures = 0;

#define CHECK(condition, ...)                                             \
    do {                                                                  \
        if (!(condition)) {                                               \
            std::fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            std::fprintf(stderr, __VA_ARGS__);                            \
            std::fputc('\n', stderr);                                     \
            failures++;                                                   \
        }                                                                 \
    } while (false)

inline int verdict() {
    if (failures) std::fprintf(stderr, "%d checks failed\n", failures);
    return failures ? 1 : 0;
}

// Seeded numbers, the same everywhere.
struct Random {
    std::mt19937 engine;
    explicit Random(unsigned seed) : engine(seed) {}
    float number() { return static_cast<float>(engine()) / 2147483648.0f - 1.0f; }
    long below(long bound) { return static_cast<long>(engine() % static_cast<unsigned long>(bound)); }
};
