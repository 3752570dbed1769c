// A pulse as one call: a flat list of steps over regions of memory.
//
// A Program is made once per pulse width and never changes; streams share it. What a stream keeps is its State, shared by the
// programs of all widths. A Runner joins one of each with memory for what lives within a pulse. Between making and running
// nothing is allocated, locked or thrown; policy (layouts, sizes, the choice of kernels) is the plan's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mmm.hpp"
#include "ops/ops.hpp"

namespace pulse {

// Zeroed floats, 64-byte aligned; large ones advised into huge pages.
class Floats {
public:
    Floats() = default;
    Floats(int64_t count, bool huge);
    float* data() const { return data_.get(); }
    int64_t size() const { return size_; }

private:
    struct Free {
        void operator()(float* p) const;
    };
    std::unique_ptr<float, Free> data_;
    int64_t size_ = 0;
};

// Regions of memory as steps name them. The streams' inputs, outputs and windows follow, in this order.
enum Region : int64_t { SHARED_WEIGHTS, OWN_WEIGHTS, TABLES, ARENA, STATE, FIRST_PORT };

// Frames kept between pulses: the last `history` frames lie before the pulse's own. It slides through a larger buffer and goes
// back to its start when that is full.
struct Window {
    int64_t frame, history;  // floats per frame, frames kept
};

class State {
public:
    State(int64_t floats, std::vector<Window> windows, int64_t scalars);
    void reserve(int64_t window, int64_t advance);  // room for pulses of `advance` frames; keeps what is there
    void clear();

    float* block() const { return block_.data(); }
    int64_t block_size() const { return block_.size(); }
    size_t windows() const { return slides_.size(); }
    const Window& window(int64_t i) const { return slides_[i].shape; }
    float* history(int64_t i) const { return slides_[i].data.data() + slides_[i].at * slides_[i].shape.frame; }
    std::vector<int64_t>& scalars() { return scalars_; }

    // Steady-state calls: where the window of a pulse of `advance` frames starts, and that the pulse is over.
    float* open(int64_t window, int64_t advance);
    void advance(int64_t window, int64_t frames) { slides_[window].at += frames; }

private:
    struct Slide {
        Window shape;
        Floats data;
        int64_t capacity = 0, at = 0;  // in frames
    };
    Floats block_;
    std::vector<Slide> slides_;
    std::vector<int64_t> scalars_;
};

// One instruction on int64 scalars: slots[to] = op(slots[x], slots[y], slots[z]).
enum class Scalar : int64_t { add, sub, mul, div, mod, min, max, less, equal, where, logical_and, logical_or, count };
struct ScalarStep {
    int64_t op, to, x, y, z;
};

struct Plan {
    Isa isa;
    std::vector<int64_t> code;          // per step: op, number of arguments, arguments
    std::vector<int32_t> tables;        // region TABLES
    int64_t arena = 0;                  // floats
    std::vector<int64_t> ports;         // floats of every input and output, in the order of their regions
    std::vector<int64_t> advances;      // frames by which a pulse moves each window
    std::vector<int64_t> scalars;       // initial values of the scalar slots
    std::vector<ScalarStep> scalar_steps;
    std::vector<int64_t> kept;          // pairs: slot before, slot after the pulse, one per scalar of State
    int64_t length = -1;                // slot of the signal's length
};

class Program {
public:
    // Throws std::invalid_argument for a plan that names what does not exist.
    Program(Plan plan, std::shared_ptr<const Floats> shared, std::shared_ptr<const Floats> own);
    const Plan& plan() const { return plan_; }

private:
    friend class Runner;
    struct Step {
        StepFn fn;
        const int64_t* args;
    };
    Plan plan_;
    std::shared_ptr<const Floats> shared_, own_;
    std::vector<Step> steps_;
};

class Runner {
public:
    Runner(std::shared_ptr<const Program> program, std::shared_ptr<State> state, bool huge);
    void bind(int64_t port, float* data) { regions_[FIRST_PORT + port] = data; }
    void run(int64_t length);
    // Mean nanoseconds of so many pulses.
    double time(int64_t length, int64_t repeats);
    // Nanoseconds per step of one pulse, what reading the clock takes left out; out has one value per step.
    void profile(int64_t length, double* out);
    size_t steps() const { return program_->steps_.size(); }
    const Program& program() const { return *program_; }

private:
    void open(int64_t length);
    void close();

    std::shared_ptr<const Program> program_;
    std::shared_ptr<State> state_;
    Floats arena_;
    std::vector<float*> regions_;
    std::vector<int64_t> scalars_;
};

}  // namespace pulse
