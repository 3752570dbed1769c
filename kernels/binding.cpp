// The one file that knows Python: pulse._native. Arguments are checked here, so that nothing wrong reaches a kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding_gather.hpp"
#include "binding_program.hpp"
#include "mmm.hpp"
#include "timing.hpp"

namespace nb = nanobind;

pulse::Type type_of(const std::string& name) {
    if (name != "f32" && name != "bf16") throw nb::value_error("weights are f32 or bf16");
    return name == "bf16" ? pulse::Type::bf16 : pulse::Type::f32;
}

namespace {

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Writable = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Offsets = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr pulse::Isa ISAS[] = {pulse::Isa::ref, pulse::Isa::v2, pulse::Isa::v3, pulse::Isa::v4, pulse::Isa::neon};
constexpr const char* ACTS[] = {"none", "relu", "leaky", "prelu", "sigmoid", "tanh"};
constexpr const char* FAMILIES[] = {"mmm", "nl", "dot"};

void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

pulse::Isa isa_of(const std::string& name) {
    for (pulse::Isa isa : ISAS)
        if (name == pulse::isa_name(isa)) return isa;
    throw nb::value_error(("no such instruction set: " + name).c_str());
}

pulse::Isa supported(const std::string& name) {
    const pulse::Isa isa = isa_of(name);
    require(pulse::isa_supported(isa), "this CPU or build does not run that instruction set");
    return isa;
}

// The smallest and largest sum of one multiple of each stride: where a matrix of these strides reaches.
std::pair<int64_t, int64_t> reach(int64_t rows, int64_t row_stride, int64_t cols, int64_t col_stride) {
    const int64_t a = (rows - 1) * row_stride, b = (cols - 1) * col_stride;
    return {std::min<int64_t>(a, 0) + std::min<int64_t>(b, 0), std::max<int64_t>(a, 0) + std::max<int64_t>(b, 0)};
}

// Weights in a kernel's layout, `copies` of them one after the other at a stride that is a multiple of 64 bytes.
struct Packed {
    int64_t panel, m, k, copies, stride;
    pulse::Type type;
    std::unique_ptr<char, decltype(&std::free)> data{nullptr, std::free};

    Packed(Matrix a, int64_t panel, int64_t copies, const std::string& dtype)
        : panel(panel), m(a.shape(0)), k(a.shape(1)), copies(copies), type(type_of(dtype)) {
        require(panel >= 1 && panel <= 1024, "the panel height must be between 1 and 1024");
        require(copies >= 1 && copies <= 1 << 20, "the number of copies must be between 1 and 2^20");
        stride = (static_cast<int64_t>(pulse::packed_bytes(type, panel, m, k)) + 63) / 64 * 64;
        data.reset(static_cast<char*>(std::aligned_alloc(64, std::max<int64_t>(stride * copies, 64))));
        if (!data) throw std::bad_alloc();
        for (int64_t i = 0; i < copies; i++)
            pulse::pack(type, panel, a.data(), a.stride(0), a.stride(1), m, k, data.get() + i * stride);
    }
};

// One product on numpy memory; keeps its arrays alive.
struct Call {
    pulse::Product p;
    nb::object held;
    int64_t panel, copies, stride;
    pulse::Type type;

    Call(nb::handle_t<Packed> weights, Floats b, Writable c, int64_t n, int64_t ldb, int64_t bn, int64_t cm, int64_t cn,
         std::optional<Offsets> offsets, std::optional<Floats> bias, std::optional<Floats> slope, const std::string& act,
         float alpha, bool accumulate) {
        const Packed& w = nb::cast<const Packed&>(weights);
        const auto* name = std::find(std::begin(ACTS), std::end(ACTS), act);
        require(name != std::end(ACTS), "act must be none, relu, leaky, prelu, sigmoid or tanh");
        p.a = w.data.get(), p.b = b.data(), p.c = c.data();
        p.m = w.m, p.k = w.k, p.n = n, p.ldb = ldb, p.bn = bn, p.cm = cm, p.cn = cn;
        p.act = static_cast<pulse::Act>(name - ACTS), p.alpha = alpha, p.accumulate = accumulate;
        panel = w.panel, copies = w.copies, stride = w.stride, type = w.type;
        constexpr int64_t FAR = int64_t{1} << 31;
        require(n >= 0 && n < FAR && std::max({std::abs(ldb), std::abs(bn), std::abs(cm), std::abs(cn)}) < FAR,
                "n and strides must be below 2^31");
        if (p.m > 0 && n > 0) {
            if (p.k > 0) {
                auto [low, high] = reach(offsets ? 1 : p.k, ldb, n, bn);
                if (offsets) {
                    require(static_cast<int64_t>(offsets->shape(0)) == p.k, "offsets must hold one value per row of B");
                    p.off = offsets->data();
                    low += *std::min_element(p.off, p.off + p.k), high += *std::max_element(p.off, p.off + p.k);
                }
                require(low >= 0 && high < static_cast<int64_t>(b.shape(0)), "B reaches outside its array");
            }
            const auto [low, high] = reach(p.m, cm, n, cn);
            require(low >= 0 && high < static_cast<int64_t>(c.shape(0)), "C reaches outside its array");
        }
        require(!bias || static_cast<int64_t>(bias->shape(0)) == p.m, "bias must hold one value per row");
        require(!slope || static_cast<int64_t>(slope->shape(0)) == p.m, "slope must hold one value per row");
        require(p.act != pulse::Act::prelu || slope, "prelu needs slopes");
        if (bias) p.bias = bias->data();
        if (slope) p.slope = slope->data();
        held = nb::make_tuple(weights, b, c, offsets, bias, slope);
    }

    const pulse::KernelInfo& kernel(const std::string& name) const {
        const pulse::KernelInfo* found = pulse::find_kernel(name.c_str());
        require(found != nullptr, "no such kernel");
        require(pulse::isa_supported(found->isa), "this CPU does not run that kernel");
        require(found->type == type, "the weights are packed as another type");
        require(found->panel == panel, "the weights are packed for another panel height");
        require(pulse::accepts(*found, p), "that kernel cannot take B or C of these strides");
        return *found;
    }
};

void bind_kernels(nb::module_& m) {
    m.def("isas", [] {
        std::vector<std::string> names;
        for (pulse::Isa isa : ISAS)
            if (pulse::isa_supported(isa)) names.emplace_back(pulse::isa_name(isa));
        return names;
    }, "Instruction sets this build has and this CPU runs, \"ref\" first.");
    m.def("best_isa", [] { return pulse::isa_name(pulse::best_isa()); });
    m.def("kernels", [](const std::string& isa, const std::string& dtype) {
        nb::list all;
        for (const pulse::KernelInfo& k : pulse::kernels(isa_of(isa), type_of(dtype)))
            all.append(nb::make_tuple(k.name, FAMILIES[static_cast<int>(k.family)], k.mr, k.nr, k.ks, k.panel));
        return all;
    }, nb::arg("isa"), nb::arg("dtype") = "f32", "Kernels of one set and type: (name, family, mr, nr, ks, panel) each.");
    m.def("panel_heights", [](int64_t panel, int64_t rows) {
        require(panel >= 1 && rows >= 0, "the panel height must be positive, the rows not negative");
        std::vector<int64_t> heights;
        for (int64_t row = 0; row < rows; row += heights.back()) heights.push_back(pulse::panel_height(panel, rows - row));
        return heights;
    }, nb::arg("panel"), nb::arg("m"), "Heights of the panels that m rows are packed into.");
    nb::class_<Packed>(m, "Packed", "Weights (m, k) in panels of `panel` rows.")
        .def(nb::init<Matrix, int64_t, int64_t, const std::string&>(), nb::arg("a"), nb::arg("panel"),
             nb::arg("copies") = 1, nb::arg("dtype") = "f32")
        .def_ro("panel", &Packed::panel)
        .def_prop_ro("nbytes", [](const Packed& w) { return pulse::packed_bytes(w.type, w.panel, w.m, w.k); })
        .def("read_bandwidth", [](const Packed& w, const std::string& isa, int64_t repeats) {
            const auto* from = reinterpret_cast<const float*>(w.data.get());
            const pulse::Isa set = supported(isa);
            nb::gil_scoped_release free;
            return pulse::read_bandwidth(set, from, w.stride / sizeof(float) * w.copies, repeats);
        }, nb::arg("isa"), nb::arg("repeats"), "Bytes per nanosecond, reading all copies over and over.");
    nb::class_<Call>(m, "Product", "One product C = act(A * B + bias) on flat float32 arrays; strides in elements.")
        .def(nb::init<nb::handle_t<Packed>, Floats, Writable, int64_t, int64_t, int64_t, int64_t, int64_t,
                      std::optional<Offsets>, std::optional<Floats>, std::optional<Floats>, const std::string&, float, bool>(),
             nb::arg("a"), nb::arg("b"), nb::arg("c"), nb::arg("n"), nb::kw_only(), nb::arg("ldb"), nb::arg("bn"),
             nb::arg("cm"), nb::arg("cn"), nb::arg("offsets") = nb::none(), nb::arg("bias") = nb::none(),
             nb::arg("slope") = nb::none(), nb::arg("act") = "none", nb::arg("alpha") = 0.0f,
             nb::arg("accumulate") = false)
        .def("run", [](const Call& c, const std::string& kernel) {
            const pulse::KernelInfo& k = c.kernel(kernel);
            nb::gil_scoped_release free;
            k.fn(c.p);
        }, nb::arg("kernel"))
        .def("time", [](const Call& c, const std::string& kernel, int64_t repeats) {
            require(repeats >= 1, "repeats must be positive");
            const pulse::KernelInfo& k = c.kernel(kernel);
            nb::gil_scoped_release free;
            return pulse::time_product(k, c.p, repeats, c.copies, c.stride);
        }, nb::arg("kernel"), nb::arg("repeats"), "Mean nanoseconds of `repeats` calls.");
    m.def("peak_flops", [](const std::string& isa, int64_t rounds) {
        return pulse::peak_flops(supported(isa), rounds);
    }, nb::arg("isa"), nb::arg("rounds") = 20000, "Operations per nanosecond, operands in registers.");
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Native kernels and programs of pulse.";
    bind_kernels(m);
    bind_programs(m);
    bind_gather(m);
}
