// The parts of the Python module tidepool._native. Each function declare_ adds the names of one part.
#pragma once

#include <pybind11/pybind11.h>

namespace tidepool::python {

/// Trace, load.
void declare_traces(pybind11::module_& module);
/// Action, View, Request, and policies that are Python classes.
void declare_policies(pybind11::module_& module);
/// Whether any registered policy is a Python class.
bool has_python_policies();
/// simulate, sweep, contract.
void declare_runs(pybind11::module_& module);

}  // namespace tidepool::python
