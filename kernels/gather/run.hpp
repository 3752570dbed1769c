// Timing a list of samples into a data set: a text file that grows by whole lines, so that a run which is stopped at any
// moment can go on where it was. docs/costmodel.md describes the file.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gather/sample.hpp"

namespace pulse::gather {

struct Request {
    std::vector<Sample> samples;
    std::vector<Isa> isas;
    std::string path;  // of the data set
    std::string tool;  // version that made it
    Settings settings;
    int core = -1;  // to run on; -1: the last one allowed
};

// What went wrong, in the terms of pulse.errors.PulseError.
struct Failure {
    std::string code, node, required, found;
};

struct Progress {
    size_t done, total;
    double elapsed_s, left_s;
    std::string sample;  // the one to be timed next
};

// Called before every sample; false ends the run, to be resumed later.
using Tell = std::function<bool(const Progress&)>;

std::optional<Failure> run(const Request& request, const Tell& tell);

}  // namespace pulse::gather
