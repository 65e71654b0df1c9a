// The parts of the Python module tidepool._native; each declares what it has.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace tidepool::python {

/// Trace, load.
void declare_traces(pybind11::module_& module);
/// Action, View, Request, and policies that are Python classes.
void declare_policies(pybind11::module_& module);
/// Whether a list of chains, as in "dtr,mine+lru-swap" or "all", has policies that are Python classes.
bool has_python_policies(const std::string& chains);
/// simulate, sweep, contract.
void declare_runs(pybind11::module_& module);

}  // namespace tidepool::python
