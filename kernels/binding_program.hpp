#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "mmm.hpp"

void bind_programs(nanobind::module_& m);
pulse::Type type_of(const std::string& name);  // of weights; raises ValueError for any other name than f32 and bf16
