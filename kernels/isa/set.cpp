// The kernel table of one instruction set, made from list.inc.
#include "isa/dots.hpp"
#include "isa/lanes.hpp"
#include "isa/panels.hpp"
#include "isa/sets.hpp"

#define PULSE_STRING_(x) #x
#define PULSE_STRING(x) PULSE_STRING_(x)

namespace pulse::PULSE_NS {

// The name leaves out a KS of 1.
#define PULSE_KS_1
#define PULSE_KS_2 "k2"
#define PULSE_KS_4 "k4"
#define PULSE_KS_8 "k8"
#define PULSE_NAME(family, type, R, NR, KS) PULSE_STRING(PULSE_NS) "_" family "_" type "_" #R "x" #NR PULSE_KS_##KS

#define MMM(MR, NR, KS) \
    {PULSE_NAME("mmm", "f32", MR, NR, KS), Isa::PULSE_NS, Family::mmm, Type::f32, MR, NR, KS, MR, mmm<float, MR, NR, KS>},
#define NL(R, NR) {PULSE_NAME("nl", "f32", R, NR, 1), Isa::PULSE_NS, Family::nl, Type::f32, R, NR, 1, R, nl<R, NR>},
#define DOT(R, NR, KS) {PULSE_NAME("dot", "f32", R, NR, KS), Isa::PULSE_NS, Family::dot, Type::f32, R, NR, KS, 1, dot<R, NR, KS>},
#define HALF(MR, NR, KS) \
    {PULSE_NAME("mmm", "bf16", MR, NR, KS), Isa::PULSE_NS, Family::mmm, Type::bf16, MR, NR, KS, MR, mmm<Pair, MR, NR, KS>},
static const KernelInfo LIST[] = {
#include "list.inc"
};

KernelTable kernel_table() { return {LIST, sizeof(LIST) / sizeof(LIST[0])}; }

}  // namespace pulse::PULSE_NS
