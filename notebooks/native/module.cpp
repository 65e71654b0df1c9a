// tidepool._native: the functions that the Python package tidepool calls. All return plain values and arrays; names
// that people use are in the package.
#include "notebooks/native/parts.hpp"
#include "traces/error.hpp"

PYBIND11_MODULE(_native, module) {
  module.attr("version") = TIDEPOOL_VERSION;
  pybind11::register_exception<tidepool::InputError>(module, "InputError", PyExc_ValueError);
  tidepool::python::declare_traces(module);
  tidepool::python::declare_policies(module);
  tidepool::python::declare_runs(module);
}
