// Programs for Python. Arrays are checked by Python code that words the errors; here once more, by size and type alone.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "binding_program.hpp"
#include "program.hpp"

namespace nb = nanobind;

namespace {

using View = nb::ndarray<nb::numpy, float>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Ints = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints32 = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

std::vector<int64_t> values(const Ints& array) { return {array.data(), array.data() + array.shape(0)}; }

View view(float* data, std::initializer_list<size_t> shape, nb::handle owner) {
    return View(data, shape.size(), shape.begin(), owner);
}

// A Runner with the Python arrays it is bound to. Ports in order: inputs, then outputs; each has a name and a shape.
class Bound {
public:
    Bound(std::shared_ptr<const pulse::Program> program, std::shared_ptr<pulse::State> state, bool huge, nb::list names,
          std::vector<std::vector<int64_t>> shapes, size_t inputs)
        : runner_(std::move(program), std::move(state), huge),
          names_(names),
          shapes_(std::move(shapes)),
          inputs_(inputs) {
        const auto& ports = runner_.program().plan().ports;
        require(ports.size() == nb::len(names) && ports.size() == shapes_.size() && inputs <= ports.size(),
                "one name and shape per port");
        for (size_t i = 0; i < ports.size(); i++) {
            int64_t size = 1;
            for (int64_t d : shapes_[i]) size *= d;
            require(size == ports[i], "a shape that does not fit its port");
        }
        held_.resize(ports.size());
    }

    // One pulse on these arrays if they are the ones bound, false if they must be checked first.
    bool step(nb::handle inputs, nb::handle outputs, int64_t length) {
        if (!same(inputs, 0, inputs_) || !same(outputs, inputs_, held_.size())) return false;
        run(length);
        return true;
    }

    // One pulse on arrays that may be new; false, and nothing done, if one is missing or does not fit.
    bool run_on(nb::handle inputs, nb::handle outputs, int64_t length) {
        {
            const Lock lock(busy_);
            if (!bind(inputs, 0, inputs_) || !bind(outputs, inputs_, held_.size())) return false;
        }
        run(length);
        return true;
    }

    void run(int64_t length) {
        for (const nb::object& array : held_) require(array.is_valid(), "a port without an array");
        const Lock lock(busy_);
        nb::gil_scoped_release free;
        runner_.run(length);
    }

    double time(int64_t length, int64_t repeats) {
        for (const nb::object& array : held_) require(array.is_valid(), "a port without an array");
        require(repeats >= 1, "repeats must be positive");
        const Lock lock(busy_);
        nb::gil_scoped_release free;
        return runner_.time(length, repeats);
    }

    std::vector<double> profile(int64_t length) {
        for (const nb::object& array : held_) require(array.is_valid(), "a port without an array");
        std::vector<double> times(runner_.steps());
        const Lock lock(busy_);
        nb::gil_scoped_release free;
        runner_.profile(length, times.data());
        return times;
    }

private:
    // Held while a pulse runs without the interpreter lock: a second thread is told, not served.
    class Lock {
    public:
        explicit Lock(std::atomic_flag& flag) : flag_(flag) {
            if (flag_.test_and_set(std::memory_order_acquire)) throw nb::value_error("another thread runs this stream");
        }
        ~Lock() { flag_.clear(std::memory_order_release); }

    private:
        std::atomic_flag& flag_;
    };

    PyObject* find(nb::handle arrays, size_t port) const {
        return PyDict_GetItem(arrays.ptr(), PyList_GET_ITEM(names_.ptr(), static_cast<Py_ssize_t>(port)));
    }

    static bool holds(nb::handle arrays, size_t count) {
        return PyDict_Check(arrays.ptr()) && static_cast<size_t>(PyDict_Size(arrays.ptr())) == count;
    }

    bool same(nb::handle arrays, size_t first, size_t last) const {
        if (!holds(arrays, last - first)) return false;
        for (size_t port = first; port < last; port++) {
            PyObject* found = find(arrays, port);
            if (!found || found != held_[port].ptr()) return false;
        }
        return true;
    }

    bool bind(nb::handle arrays, size_t first, size_t last) {
        if (!holds(arrays, last - first)) return false;
        for (size_t port = first; port < last; port++) {
            const nb::handle found = find(arrays, port);
            if (!found || !hold(port, found)) return false;
        }
        return true;
    }

    // The array of a port, if it is contiguous float32 of the port's shape. Its buffer is let go at once: what keeps the
    // memory is the reference held.
    bool hold(size_t port, nb::handle array) {
        if (array.ptr() == held_[port].ptr()) return true;
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (port < inputs_ ? 0 : PyBUF_WRITABLE);
        Py_buffer view;
        if (PyObject_GetBuffer(array.ptr(), &view, flags) != 0) {
            PyErr_Clear();
            return false;
        }
        const std::vector<int64_t>& shape = shapes_[port];
        bool fits = view.itemsize == sizeof(float) && view.format && std::strcmp(view.format, "f") == 0 &&
                    view.ndim == static_cast<int>(shape.size());
        for (size_t i = 0; fits && i < shape.size(); i++) fits = view.shape[i] == shape[i];
        if (fits) {
            held_[port] = nb::borrow(array);
            runner_.bind(static_cast<int64_t>(port), static_cast<float*>(view.buf));
        }
        PyBuffer_Release(&view);
        return fits;
    }

    pulse::Runner runner_;
    nb::list names_;
    std::vector<std::vector<int64_t>> shapes_;
    size_t inputs_;
    std::vector<nb::object> held_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

pulse::Isa isa_of(const std::string& name) {
    for (pulse::Isa isa : {pulse::Isa::v2, pulse::Isa::v3, pulse::Isa::v4, pulse::Isa::neon})
        if (name == pulse::isa_name(isa)) return isa;
    throw nb::value_error(("no programs for instruction set " + name).c_str());
}

void bind_lists(nb::module_& m) {
    m.def("step_fields", [] {
        nb::dict all;
        const auto split = [](const char* text) {
            nb::list names;
            std::string word;
            for (; *text; text++) {
                if (*text != ' ') word += *text;
                if (*text == ' ' && !word.empty()) names.append(word), word.clear();
            }
            return names;
        };
#define PULSE_NAME(name) #name " "
#define PULSE_ENTRY(op) all[#op] = split(PULSE_FIELDS_##op(PULSE_NAME));
        PULSE_OPS(PULSE_ENTRY)
#undef PULSE_ENTRY
#undef PULSE_NAME
        return all;
    }, "Names of the arguments of every kind of step, in order; kinds in order of their codes.");
    m.def("chain_ops", [] {
        nb::dict all;
#define UNARY(name, of) all[#name] = 1;
#define BINARY(name, of) all[#name] = 2;
#define TERNARY(name, of) all[#name] = 3;
#include "ops/chain.inc"
#undef UNARY
#undef BINARY
#undef TERNARY
        return all;
    }, "Instructions of an elementwise chain and how many values each takes, in order of their codes.");
    m.def("scalar_ops", [] {
        return std::vector<std::string>{"add", "sub",  "mul",   "div",   "mod", "min",
                                        "max", "less", "equal", "where", "and", "or"};
    }, "Integer instructions on scalars, in order of their codes.");
    m.def("packed_floats", [](int64_t panel, int64_t rows, int64_t k, const std::string& dtype) {
        require(panel >= 1 && rows >= 0 && k >= 0, "sizes must not be negative");
        return pulse::packed_bytes(type_of(dtype), panel, rows, k) / sizeof(float);
    }, nb::arg("panel"), nb::arg("m"), nb::arg("k"), nb::arg("dtype") = "f32", "Floats that weights (m, k) take when packed in panels.");
}

void bind_memory(nb::module_& m) {
    nb::class_<pulse::Floats>(m, "Arena", "Zeroed floats at a multiple of 64 bytes.")
        .def(nb::init<int64_t, bool>(), nb::arg("count"), nb::arg("huge"))
        .def_prop_ro("array", [](nb::handle self) {
            const auto& floats = nb::cast<const pulse::Floats&>(self);
            return view(floats.data(), {static_cast<size_t>(floats.size())}, self);
        })
        .def("pack", [](pulse::Floats& self, int64_t offset, int64_t panel, Matrix a, const std::string& dtype) {
            const int64_t m = a.shape(0), k = a.shape(1);
            require(panel >= 1 && offset >= 0, "sizes must not be negative");
            const pulse::Type type = type_of(dtype);
            const int64_t count = static_cast<int64_t>(pulse::packed_bytes(type, panel, m, k) / sizeof(float));
            require(offset + count <= self.size(), "outside the memory");
            pulse::pack(type, panel, a.data(), a.stride(0), a.stride(1), m, k, self.data() + offset);
        }, nb::arg("offset"), nb::arg("panel"), nb::arg("a"), nb::arg("dtype") = "f32", "Packs weights (m, k) in panels.");
    nb::class_<pulse::State>(m, "State", "What one stream keeps: a block of floats, windows, scalars.")
        .def("__init__", [](pulse::State* self, int64_t floats, const std::vector<std::pair<int64_t, int64_t>>& windows,
                            int64_t scalars) {
            std::vector<pulse::Window> shapes;
            for (const auto& [frame, history] : windows) shapes.push_back({frame, history});
            new (self) pulse::State(floats, std::move(shapes), scalars);
        }, nb::arg("floats"), nb::arg("windows"), nb::arg("scalars"))
        .def("clear", &pulse::State::clear)
        .def_prop_ro("block", [](nb::handle self) {
            const auto& state = nb::cast<const pulse::State&>(self);
            return view(state.block(), {static_cast<size_t>(state.block_size())}, self);
        })
        .def("history", [](nb::handle self, size_t window) {
            auto& state = nb::cast<pulse::State&>(self);
            require(window < state.windows(), "no such window");
            const pulse::Window& shape = state.window(window);
            return view(state.history(window), {static_cast<size_t>(shape.history), static_cast<size_t>(shape.frame)}, self);
        }, nb::arg("window"), "The frames kept, (history, frame); valid until the next pulse.")
        .def_prop_rw("scalars", [](pulse::State& self) { return self.scalars(); },
                     [](pulse::State& self, const std::vector<int64_t>& given) {
                         require(given.size() == self.scalars().size(), "as many scalars as there are");
                         self.scalars() = given;
                     });
}

}  // namespace

void bind_programs(nb::module_& m) {
    bind_lists(m);
    bind_memory(m);
    nb::class_<pulse::Program>(m, "Program", "A pulse of one width as a flat list of steps.")
        .def("__init__", [](pulse::Program* self, const std::string& isa, Ints code, Ints32 tables, int64_t arena, Ints ports,
                            Ints advances, Ints scalars, Ints scalar_steps, Ints kept, int64_t length,
                            std::shared_ptr<const pulse::Floats> shared, std::shared_ptr<const pulse::Floats> own) {
            pulse::Plan plan;
            plan.isa = isa_of(isa);
            plan.code = values(code), plan.ports = values(ports), plan.advances = values(advances);
            plan.tables = {tables.data(), tables.data() + tables.shape(0)};
            plan.arena = arena, plan.scalars = values(scalars), plan.kept = values(kept), plan.length = length;
            const std::vector<int64_t> flat = values(scalar_steps);
            require(flat.size() % 5 == 0, "five numbers per scalar step");
            for (size_t i = 0; i < flat.size(); i += 5)
                plan.scalar_steps.push_back({flat[i], flat[i + 1], flat[i + 2], flat[i + 3], flat[i + 4]});
            new (self) pulse::Program(std::move(plan), std::move(shared), std::move(own));
        }, nb::arg("isa"), nb::arg("code"), nb::arg("tables"), nb::arg("arena"), nb::arg("ports"), nb::arg("advances"),
           nb::arg("scalars"), nb::arg("scalar_steps"), nb::arg("kept"), nb::arg("length"), nb::arg("shared"), nb::arg("own"));
    nb::class_<Bound>(m, "Runner", "A program with a state and arrays for its inputs and outputs.")
        .def(nb::init<std::shared_ptr<const pulse::Program>, std::shared_ptr<pulse::State>, bool, nb::list,
                      std::vector<std::vector<int64_t>>, size_t>(),
             nb::arg("program"), nb::arg("state"), nb::arg("huge"), nb::arg("names"), nb::arg("shapes"), nb::arg("inputs"))
        .def("step", &Bound::step, nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("length"),
             "One pulse if these are the arrays bound; else False, and nothing done.")
        .def("run_on", &Bound::run_on, nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("length"),
             "Binds the arrays and runs one pulse; False, and nothing done, if one is missing or does not fit.")
        .def("run", &Bound::run, nb::arg("length"), "One pulse on the arrays bound.")
        .def("time", &Bound::time, nb::arg("length"), nb::arg("repeats"), "Mean nanoseconds of so many pulses.")
        .def("profile", &Bound::profile, nb::arg("length"), "Runs one pulse; nanoseconds of each step.");
}
