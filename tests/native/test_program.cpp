// Programs: windows that slide, scalars, what is refused, and the floating-point mode of the caller.
#include <cmath>
#include <stdexcept>

#include "bench.hpp"

namespace {

using namespace pulse;
using pulse::test::Bench;
using pulse::test::in_every_set;

// y = the frame that came `history` frames ago: a copy into the window, one out of its start.
Plan delaying(Isa isa, int64_t frame, int64_t history, int64_t frames) {
    Bench b;
    b.plan.isa = isa;
    b.plan.ports = {frame * frames, frame * frames};
    b.plan.advances = {frames};
    const int64_t window = (FIRST_PORT + 2) << REGION_SHIFT;
    copy_args in{}, out{};
    in.x = Bench::ref(0), in.y = window | history * frame, out.x = window, out.y = Bench::ref(1);
    for (copy_args* s : {&in, &out}) {
        s->when = -1, s->n0 = s->n1 = s->n2 = 1, s->n3 = frames, s->n4 = frame;
        s->x3 = s->y3 = frame, s->x4 = s->y4 = 1;
    }
    b.step(OpCode::copy, in);
    b.step(OpCode::copy, out);
    return b.plan;
}

// Pulses of changing width share one state, and reset starts anew.
void windows(Isa isa) {
    constexpr int64_t FRAME = 5, HISTORY = 7;
    auto state = std::make_shared<State>(0, std::vector<Window>{{FRAME, HISTORY}}, 0);
    std::vector<std::unique_ptr<Runner>> runners;
    for (int64_t width : {1, 2, 3, 9})
        runners.push_back(std::make_unique<Runner>(std::make_shared<const Program>(delaying(isa, FRAME, HISTORY, width), nullptr, nullptr), state, false));
    const int64_t widths[] = {1, 2, 3, 9};
    for (int64_t round = 0; round < 2; round++) {
        state->clear();
        int64_t at = 0;
        bool right = true;
        for (int64_t turn = 0; turn < 400; turn++) {
            const int64_t which = turn * 7 % 4, width = widths[which];
            std::vector<float> x(static_cast<size_t>(FRAME * width)), y(x.size(), -1.0f);
            for (int64_t i = 0; i < FRAME * width; i++) x[i] = static_cast<float>(at * FRAME + i + 1);
            runners[which]->bind(0, x.data());
            runners[which]->bind(1, y.data());
            runners[which]->run(0);
            for (int64_t i = 0; i < FRAME * width; i++) {
                const int64_t source = (at - HISTORY) * FRAME + i;
                right = right && y[i] == (source < 0 ? 0.0f : static_cast<float>(source + 1));
            }
            at += width;
        }
        CHECK(right, "a window of changing widths, round %d", static_cast<int>(round));
    }
}

void masks(Isa isa) {
    Bench b;
    const int64_t y = b.port(std::vector<float>(12, 1.0f));
    b.plan.scalars = {0, 0};  // position, length
    b.plan.kept = {0, 0};
    b.plan.length = 1;
    mask_args s{};
    s.y = Bench::ref(y), s.frames = 4, s.yt = 3, s.n0 = s.n1 = 1, s.n2 = 3, s.y2 = 1, s.position = 0, s.num = s.den = 1;
    s.delay = 2, s.start = 1, s.length = 1, s.value = pulse::test::bits(7.0f);
    b.step(OpCode::mask, s);
    b.plan.isa = isa;
    auto state = std::make_shared<State>(0, std::vector<Window>{}, 1);
    Runner runner(std::make_shared<const Program>(b.plan, nullptr, nullptr), state, false);
    runner.bind(0, b[y].data());
    runner.run(1);  // frames -2 .. 1, of which 0 is signal
    for (int64_t i = 0; i < 12; i++) CHECK(b[y][i] == (i / 3 == 2 ? 1.0f : 7.0f), "mask at %d", static_cast<int>(i));
}

void scalars(Isa isa) {
    Plan plan;
    plan.isa = isa;
    plan.scalars = {0, 4, 0, 0};
    plan.scalar_steps = {{static_cast<int64_t>(Scalar::add), 2, 0, 1, 0}, {static_cast<int64_t>(Scalar::div), 3, 2, 1, 0}};
    plan.kept = {0, 2};
    auto state = std::make_shared<State>(0, std::vector<Window>{}, 1);
    Runner runner(std::make_shared<const Program>(plan, nullptr, nullptr), state, false);
    for (int i = 0; i < 3; i++) runner.run(0);
    CHECK(state->scalars()[0] == 12, "position is %d", static_cast<int>(state->scalars()[0]));
}

template <class Make>
bool refused(Make make) {
    try {
        make();
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

void refusals(Isa isa) {
    Plan good = delaying(isa, 4, 2, 1);
    const auto program = [](const Plan& plan) { Program made(plan, nullptr, nullptr); };
    Plan bad = good;
    bad.code[0] = 1000;
    CHECK(refused([&] { program(bad); }), "an unknown step");
    bad = good;
    bad.code[1] = 3;
    CHECK(refused([&] { program(bad); }), "a step of too few arguments");
    bad = good;
    bad.code.pop_back();
    CHECK(refused([&] { program(bad); }), "a plan cut short");
    bad = good;
    bad.scalar_steps = {{0, 5, 0, 0, 0}};
    CHECK(refused([&] { program(bad); }), "a scalar out of range");
    bad = good;
    bad.code[0] = static_cast<int64_t>(OpCode::product);
    CHECK(refused([&] { program(bad); }), "a product of too few arguments");
    auto made = std::make_shared<const Program>(good, nullptr, nullptr);
    CHECK(refused([&] { Runner runner(made, std::make_shared<State>(0, std::vector<Window>{}, 0), false); }), "a foreign state");
}

// Denormals are zero within a pulse and only there.
void denormals(Isa isa) {
    Bench b;
    const int64_t x = b.port(std::vector<float>(16, 1e-39f)), y = b.port(std::vector<float>(16, 1.0f));
    elementwise_args s{1, 1, 1, 1, 1, 1, 16};
    b.step(OpCode::elementwise, s, {Bench::ref(x), 0, 0, 0, 1, 1, Bench::ref(y), 0, 0, 0, 1, 0, 1, 0, 0, 0, pulse::test::bits(1.0f), 0});
    b.run(isa);
    CHECK(b[y][0] == 0.0f, "a denormal went through: %g", b[y][0]);
    volatile float tiny = 1e-39f;
    CHECK(tiny * 1.0f != 0.0f, "flush-to-zero was left on");
}

}  // namespace

int main() {
    in_every_set(windows);
    in_every_set(masks);
    in_every_set(scalars);
    in_every_set(refusals);
    in_every_set(denormals);
    return verdict();
}
