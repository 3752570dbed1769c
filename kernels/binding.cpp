// The one file that knows Python: pulse._native.
#include <nanobind/nanobind.h>

NB_MODULE(_native, m) {
    m.doc() = "Native kernels and programs of pulse.";
}
