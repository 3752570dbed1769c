// The table of steps of one instruction set.
#include "ops/ops.hpp"

namespace pulse::PULSE_NS {

StepFn step_function(OpCode code) {
    static const StepFn TABLE[] = {
#define PULSE_ENTRY(op) step_##op,
        PULSE_OPS(PULSE_ENTRY)
#undef PULSE_ENTRY
    };
    return TABLE[static_cast<int64_t>(code)];
}

}  // namespace pulse::PULSE_NS
