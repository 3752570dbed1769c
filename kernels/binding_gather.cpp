// Timing kernels for the cost model, as pulse.costmodel.gather calls it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "binding_gather.hpp"
#include "gather/machine.hpp"
#include "gather/run.hpp"

namespace nb = nanobind;

namespace {

pulse::Isa timed_isa(const std::string& name) {
    for (const pulse::Isa isa : {pulse::Isa::v2, pulse::Isa::v3, pulse::Isa::v4, pulse::Isa::neon})
        if (name == pulse::isa_name(isa) && pulse::isa_supported(isa)) return isa;
    throw nb::value_error(("this CPU or build does not run that instruction set: " + name).c_str());
}

// None, or what went wrong as (code, node, required, found).
nb::object gather(const std::vector<std::string>& samples, const std::string& path, const std::vector<std::string>& isas,
                  const std::string& tool, int rounds, double slice_us, int core, const nb::callable& tell) {
    pulse::gather::Request request;
    for (const std::string& line : samples) {
        const auto sample = pulse::gather::parse_sample(line.c_str());
        if (!sample) return nb::make_tuple("shapes-invalid", line, "sizes within bounds and known names", line);
        request.samples.push_back(*sample);
    }
    for (const std::string& name : isas) request.isas.push_back(timed_isa(name));
    if (rounds < 2 || rounds > 1000 || !(slice_us > 0 && slice_us <= 1e6))
        throw nb::value_error("rounds or slice out of bounds");
    request.path = path, request.tool = tool, request.core = core;
    request.settings.rounds = rounds, request.settings.slice_ns = slice_us * 1e3;
    std::optional<nb::python_error> stopped;
    const auto progress = [&](const pulse::gather::Progress& p) {
        nb::gil_scoped_acquire held;
        try {
            return nb::cast<bool>(tell(p.done, p.total, p.elapsed_s, p.left_s, p.sample));
        } catch (nb::python_error& error) {
            stopped.emplace(std::move(error));
            return false;
        }
    };
    std::optional<pulse::gather::Failure> failure;
    {
        nb::gil_scoped_release free;
        failure = pulse::gather::run(request, progress);
    }
    if (stopped) throw std::move(*stopped);
    if (!failure) return nb::none();
    return nb::make_tuple(failure->code, failure->node, failure->required, failure->found);
}

}  // namespace

void bind_gather(nb::module_& m) {
    m.def("machine", [] {
        const pulse::gather::Caches caches = pulse::gather::caches();
        nb::dict facts;
        facts["cpu"] = pulse::gather::cpu_name();
        facts["caches"] = nb::make_tuple(caches.l1, caches.l2, caches.l3);
        return facts;
    }, "The processor's name as tables and hints carry it, and its cache sizes in bytes.");
    m.def("gather", gather, nb::arg("samples"), nb::arg("path"), nb::arg("isas"), nb::arg("tool"), nb::arg("rounds"),
          nb::arg("slice_us"), nb::arg("core"), nb::arg("tell"),
          "Time every kernel on the samples and append them to the data set at `path`; "
          "None, or (code, node, required, found).");
}
