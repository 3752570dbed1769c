// The kernel that is always there and easy to believe: three loops, a sum in order of k. The others are tested against it.
#pragma once
#include "mmm.hpp"

namespace pulse {

KernelTable reference_table();

}  // namespace pulse
