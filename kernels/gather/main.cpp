// pulse-gather: times a list of samples on this machine, without Python. For boards.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "gather/run.hpp"

using namespace pulse;
using namespace pulse::gather;

static const char* const USAGE =
    "usage: pulse-gather SHAPES DATASET [--isa NAME,NAME] [--rounds N] [--slice-us T] [--core N]\n"
    "\n"
    "Times every kernel on the samples listed in SHAPES (made by `pulse costmodel shapes`; a line each: M K N LAYOUT ACT\n"
    "HOME) and writes them to DATASET, for `pulse costmodel fit`. Can be interrupted at any time: the same command goes on.\n";

static int fail(const char* what, const std::string& found) {
    std::fprintf(stderr, "error: %s: %s\n", what, found.c_str());
    return 2;
}

static bool read_samples(const std::string& path, std::vector<Sample>& samples, std::string& problem) {
    std::ifstream file(path);
    if (!file) {
        problem = path + " cannot be read";
        return false;
    }
    std::string line;
    for (int number = 1; std::getline(file, line); number++) {
        if (line.empty() || line[0] == '#') continue;
        const auto sample = parse_sample(line.c_str());
        if (!sample) {
            problem = path + ", line " + std::to_string(number) + ": `" + line.substr(0, 80) + "` is no sample";
            return false;
        }
        samples.push_back(*sample);
    }
    problem = samples.empty() ? path + " lists no sample" : "";
    return !samples.empty();
}

static bool read_isas(std::string text, std::vector<Isa>& isas, std::string& problem) {
    for (std::string name; !text.empty(); text = text.size() > name.size() ? text.substr(name.size() + 1) : "") {
        name = text.substr(0, text.find(','));
        const size_t before = isas.size();
        for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4, Isa::neon})
            if (name == isa_name(isa) && isa_supported(isa)) isas.push_back(isa);
        if (isas.size() == before) {
            problem = "this CPU or build does not run `" + name + "`";
            return false;
        }
    }
    return true;
}

static bool report(const Progress& p) {
    const int left = static_cast<int>(p.left_s);
    std::fprintf(stderr, "\r\033[K%zu of %zu, %d min %02d s left  %s%s", p.done, p.total, left / 60, left % 60,
                 p.sample.c_str(), p.done == p.total ? "\n" : "");
    return true;
}

int main(int argc, char** argv) {
    Request request;
    request.tool = PULSE_VERSION;
    std::vector<std::string> places;
    std::string problem;
    for (int i = 1; i < argc; i++) {
        const std::string arg = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (arg == "-h" || arg == "--help") return std::fputs(USAGE, stdout), 0;
        if (arg.rfind("--", 0) != 0) {
            places.push_back(arg);
            continue;
        }
        if (!value) return fail("a value is missing", arg);
        char* end = nullptr;
        const double number = std::strtod(value, &end);
        const bool positive = *end == 0 && number > 0;
        if (arg == "--isa") {
            if (!read_isas(value, request.isas, problem)) return fail("unknown instruction set", problem);
        } else if (arg == "--rounds" && positive && number >= 2 && number <= 1000) {
            request.settings.rounds = static_cast<int>(number);
        } else if (arg == "--slice-us" && positive && number <= 1e6) {
            request.settings.slice_ns = number * 1e3;
        } else if (arg == "--core" && *end == 0 && number >= 0) {
            request.core = static_cast<int>(number);
        } else {
            return fail("an option or its value is not understood", arg + " " + value);
        }
        i++;
    }
    if (places.size() != 2) return std::fputs(USAGE, stderr), 2;
    if (request.isas.empty()) request.isas.push_back(best_isa());
    if (request.isas[0] == Isa::ref)
        return fail("no kernels", "this CPU runs the reference kernel only, there is nothing to choose from");
    if (!read_samples(places[0], request.samples, problem)) return fail("the list of samples cannot be used", problem);
    request.path = places[1];
    if (const auto failure = run(request, report))
        return fail(failure->code.c_str(), failure->node + "\n  required: " + failure->required + "\n  found: " + failure->found);
    return 0;
}
