#include "program.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "isa/sets.hpp"

#if defined(PULSE_X86)
#include <xmmintrin.h>
#endif

#define PULSE_DECLARE_TABLE(isa)           \
    namespace isa {                        \
    StepFn step_function(OpCode code);     \
    }
namespace pulse {
PULSE_SETS(PULSE_DECLARE_TABLE)
}
#undef PULSE_DECLARE_TABLE

namespace pulse {

static StepFn step_of(Isa isa, OpCode code) {
    switch (isa) {
#define PULSE_CASE(name) \
    case Isa::name: return name::step_function(code);
        PULSE_SETS(PULSE_CASE)
#undef PULSE_CASE
        default: (void)code; return nullptr;
    }
}

static int64_t fields_of(OpCode code) {
    static constexpr int64_t COUNTS[] = {
#define PULSE_COUNT(op) sizeof(op##_args) / sizeof(int64_t),
        PULSE_OPS(PULSE_COUNT)
#undef PULSE_COUNT
    };
    return COUNTS[static_cast<int64_t>(code)];
}

static void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

Program::Program(Plan plan, std::shared_ptr<const Floats> shared, std::shared_ptr<const Floats> own)
    : plan_(std::move(plan)), shared_(std::move(shared)), own_(std::move(own)) {
    require(isa_supported(plan_.isa), "this CPU or build does not run that instruction set");
    const KernelTable table = all_kernels(plan_.isa);
    std::vector<int64_t>& code = plan_.code;
    for (size_t i = 0; i < code.size();) {
        require(i + 2 <= code.size() && code[i] >= 0 && code[i] < static_cast<int64_t>(OpCode::count), "no such step");
        const OpCode op = static_cast<OpCode>(code[i]);
        const int64_t count = code[i + 1];
        require(count >= fields_of(op) && i + 2 + count <= code.size(), "a step with too few arguments");
        int64_t* args = code.data() + i + 2;
        if (op == OpCode::product) {
            require(args[0] >= 0 && args[0] < static_cast<int64_t>(table.size), "no such kernel");
            args[0] = reinterpret_cast<int64_t>(table.data[args[0]].fn);
        }
        const StepFn fn = step_of(plan_.isa, op);
        require(fn != nullptr, "an instruction set without steps");
        steps_.push_back({fn, args});
        i += 2 + count;
    }
    const int64_t slots = plan_.scalars.size();
    const auto valid = [&](int64_t slot) { return slot >= 0 && slot < slots; };
    for (const ScalarStep& s : plan_.scalar_steps)
        require(s.op >= 0 && s.op < static_cast<int64_t>(Scalar::count) && valid(s.to) && valid(s.x) && valid(s.y) && valid(s.z),
                "a scalar step out of range");
    require(std::all_of(plan_.kept.begin(), plan_.kept.end(), valid), "no such scalar");
    require(plan_.length < slots, "no such scalar");
}

static int64_t compute(Scalar op, int64_t x, int64_t y, int64_t z) {
    switch (op) {
        case Scalar::add: return x + y;
        case Scalar::sub: return x - y;
        case Scalar::mul: return x * y;
        case Scalar::div: return y == 0 || (y == -1) ? (y ? -x : 0) : x / y;
        case Scalar::mod: return y == 0 || (y == -1) ? 0 : (x % y != 0 && (x % y < 0) != (y < 0)) ? x % y + y : x % y;
        case Scalar::min: return std::min(x, y);
        case Scalar::max: return std::max(x, y);
        case Scalar::less: return x < y;
        case Scalar::equal: return x == y;
        case Scalar::where: return x ? y : z;
        case Scalar::logical_and: return x && y;
        case Scalar::logical_or: return x || y;
        default: return 0;
    }
}

Runner::Runner(std::shared_ptr<const Program> program, std::shared_ptr<State> state, bool huge)
    : program_(std::move(program)), state_(std::move(state)), arena_(program_->plan().arena, huge) {
    const Plan& plan = program_->plan();
    require(plan.advances.size() == state_->windows(), "a state of another model");
    require(plan.kept.size() == 2 * state_->scalars().size(), "a state of another model");
    regions_.resize(FIRST_PORT + plan.ports.size() + plan.advances.size());
    regions_[SHARED_WEIGHTS] = program_->shared_ ? program_->shared_->data() : nullptr;
    regions_[OWN_WEIGHTS] = program_->own_ ? program_->own_->data() : nullptr;
    regions_[TABLES] = reinterpret_cast<float*>(const_cast<int32_t*>(plan.tables.data()));
    regions_[ARENA] = arena_.data();
    regions_[STATE] = state_->block();
    for (size_t i = 0; i < plan.advances.size(); i++) state_->reserve(i, plan.advances[i]);
    scalars_ = plan.scalars;
}

void Runner::open(int64_t length) {
    const Plan& plan = program_->plan();
    float** window = regions_.data() + FIRST_PORT + plan.ports.size();
    for (size_t i = 0; i < plan.advances.size(); i++) window[i] = state_->open(i, plan.advances[i]);
    for (size_t i = 0; i < state_->scalars().size(); i++) scalars_[plan.kept[2 * i]] = state_->scalars()[i];
    if (plan.length >= 0) scalars_[plan.length] = length;
    for (const ScalarStep& s : plan.scalar_steps)
        scalars_[s.to] = compute(static_cast<Scalar>(s.op), scalars_[s.x], scalars_[s.y], scalars_[s.z]);
}

void Runner::close() {
    const Plan& plan = program_->plan();
    for (size_t i = 0; i < plan.advances.size(); i++) state_->advance(i, plan.advances[i]);
    for (size_t i = 0; i < state_->scalars().size(); i++) state_->scalars()[i] = scalars_[plan.kept[2 * i + 1]];
}

namespace {

// Denormals would slow everything down for no audible gain: they are zeros while a pulse runs.
class FlushToZero {
public:
#if defined(PULSE_X86)
    FlushToZero() : kept_(_mm_getcsr()) { _mm_setcsr(kept_ | 0x8040u); }
    ~FlushToZero() { _mm_setcsr(kept_); }

private:
    unsigned kept_;
#elif defined(PULSE_ARM)
    FlushToZero() {
        asm volatile("mrs %0, fpcr" : "=r"(kept_));
        asm volatile("msr fpcr, %0" : : "r"(kept_ | (uint64_t{1} << 24)));
    }
    ~FlushToZero() { asm volatile("msr fpcr, %0" : : "r"(kept_)); }

private:
    uint64_t kept_;
#endif
};

}  // namespace

void Runner::run(int64_t length) {
    open(length);
    {
        [[maybe_unused]] const FlushToZero guard;
        const Memory memory{regions_.data(), scalars_.data()};
        for (const Program::Step& step : program_->steps_) step.fn(step.args, memory);
    }
    close();
}

using Clock = std::chrono::steady_clock;
static double nanoseconds(Clock::duration d) { return std::chrono::duration<double, std::nano>(d).count(); }

double Runner::time(int64_t length, int64_t repeats) {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < repeats; i++) run(length);
    return nanoseconds(Clock::now() - start) / static_cast<double>(repeats);
}

// What one reading of the clock adds between two others, at least.
static double clock_overhead() {
    double least = 1e9;
    for (int i = 0; i < 64; i++) {
        const Clock::time_point start = Clock::now();
        least = std::min(least, nanoseconds(Clock::now() - start));
    }
    return least;
}

void Runner::profile(int64_t length, double* out) {
    const double overhead = clock_overhead();
    open(length);
    {
        [[maybe_unused]] const FlushToZero guard;
        const Memory memory{regions_.data(), scalars_.data()};
        Clock::time_point last = Clock::now();
        for (const Program::Step& step : program_->steps_) {
            step.fn(step.args, memory);
            const Clock::time_point now = Clock::now();
            *out++ = std::max(nanoseconds(now - last) - overhead, 0.0);
            last = now;
        }
    }
    close();
}

}  // namespace pulse
