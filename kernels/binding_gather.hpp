// What binding.cpp asks of binding_gather.cpp.
#pragma once
#include <nanobind/nanobind.h>

void bind_gather(nanobind::module_& m);  // machine(), gather()
