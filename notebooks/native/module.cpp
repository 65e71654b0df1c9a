// The module tidepool._native: classes and functions for the Python package tidepool. Users import the package, not
// this module.
#include "notebooks/native/parts.hpp"
#include "traces/base/error.hpp"

PYBIND11_MODULE(_native, module) {
  module.attr("version") = TIDEPOOL_VERSION;
  pybind11::register_exception<tidepool::InputError>(module, "InputError", PyExc_ValueError);
  tidepool::python::declare_traces(module);
  tidepool::python::declare_policies(module);
  tidepool::python::declare_runs(module);
}
