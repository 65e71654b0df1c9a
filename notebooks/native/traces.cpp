// Traces as columns: one array for each field of the records.
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "notebooks/native/parts.hpp"
#include "traces/import/importer.hpp"
#include "traces/names.hpp"
#include "traces/trace.hpp"

namespace tidepool::python {
namespace {

namespace py = pybind11;

/// One value for each record, as bytes that numpy.frombuffer reads: numpy's own interface differs between its versions.
template <class Value, class Record, class Get>
py::bytes packed(std::span<const Record> records, const Get& get) {
  std::vector<Value> values;
  values.reserve(records.size());
  for (const Record& record : records) values.push_back(get(record));
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

/// One int64 for each record; -1 for an id that names nothing.
template <class Record, class Get>
py::bytes numbers(std::span<const Record> records, const Get& get) {
  return packed<std::int64_t>(records, get);
}

/// One byte for each record, 0 or 1.
template <class Record, class Get>
py::bytes flags(std::span<const Record> records, const Get& get) {
  return packed<std::uint8_t>(records, get);
}

template <class Record, class Get>
py::list texts(std::span<const Record> records, const Get& get) {
  py::list column;
  for (const Record& record : records) column.append(std::string{get(record)});
  return column;
}

template <class Id>
std::int64_t number(Id id) {
  return id.valid() ? static_cast<std::int64_t>(id.value()) : -1;
}

py::dict buffers(const Trace& trace) {
  const auto all = trace.buffers();
  py::dict columns;
  columns["size"] = numbers(all, [](const Buffer& buffer) { return buffer.size.count(); });
  columns["kind"] = texts(all, [](const Buffer& buffer) { return word(buffer.kind); });
  columns["name"] = texts(all, [&](const Buffer& buffer) { return trace.text(buffer.name); });
  columns["line"] = texts(all, [&](const Buffer& buffer) { return trace.text(buffer.line); });
  columns["stream"] = numbers(all, [](const Buffer& buffer) { return number(buffer.stream); });
  columns["device"] = numbers(all, [](const Buffer& buffer) { return std::int64_t{buffer.device}; });
  columns["address"] = numbers(all, [](const Buffer& buffer) { return buffer.address; });
  columns["born_before"] = flags(all, [](const Buffer& buffer) { return buffer.born_before; });
  columns["outlives"] = flags(all, [](const Buffer& buffer) { return buffer.outlives; });
  return columns;
}

py::dict ops(const Trace& trace) {
  const auto all = trace.ops();
  py::dict columns;
  columns["name"] = texts(all, [&](const Op& op) { return trace.text(op.name); });
  columns["module"] = texts(all, [&](const Op& op) { return trace.text(op.module); });
  columns["line"] = texts(all, [&](const Op& op) { return trace.text(op.line); });
  columns["kind"] = texts(all, [](const Op& op) { return word(op.kind); });
  columns["phase"] = texts(all, [](const Op& op) { return word(op.phase); });
  columns["stream"] = numbers(all, [](const Op& op) { return number(op.stream); });
  columns["start_ns"] = numbers(all, [](const Op& op) { return op.start.count(); });
  columns["duration_ns"] = numbers(all, [](const Op& op) { return op.duration.count(); });
  columns["random"] = flags(all, [](const Op& op) { return op.random; });
  return columns;
}

py::dict uses(const Trace& trace) {
  const auto all = std::span<const Use>{trace.data().uses};
  std::vector<std::int64_t> op_of(all.size());
  for (std::size_t i = 0; i < trace.ops().size(); ++i)
    for (std::uint32_t use = trace.ops()[i].first_use; use < trace.ops()[i].last_use; ++use)
      op_of[use] = static_cast<std::int64_t>(i);
  const auto buffer_of = [&](const Use& use) {
    return number(trace.version(use.in.valid() ? use.in : use.out).buffer);
  };
  py::dict columns;
  columns["op"] = numbers(std::span<const std::int64_t>{op_of}, std::identity{});
  columns["buffer"] = numbers(all, buffer_of);
  columns["reads"] = numbers(all, [](const Use& use) { return number(use.in); });
  columns["writes"] = numbers(all, [](const Use& use) { return number(use.out); });
  columns["access"] = texts(all, [](const Use& use) { return word(use.access); });
  columns["evidence"] = texts(all, [](const Use& use) { return word(use.evidence); });
  return columns;
}

py::dict versions(const Trace& trace) {
  const auto all = trace.versions();
  py::dict columns;
  columns["buffer"] = numbers(all, [](const Version& version) { return number(version.buffer); });
  columns["kind"] = texts(all, [](const Version& version) { return word(version.kind); });
  columns["producer"] = numbers(all, [](const Version& version) { return number(version.producer); });
  columns["parent"] = numbers(all, [](const Version& version) { return number(version.parent); });
  columns["root"] = numbers(all, [](const Version& version) { return number(version.root); });
  return columns;
}

/// Bytes alive after each allocation, op and free of the training step.
py::bytes live_bytes(const Trace& trace) {
  std::int64_t live = 0;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size.count();
  return numbers(trace.events(), [&](const Event& step) {
    if (step.kind == EventKind::kAlloc) live += trace.buffers()[step.id].size.count();
    if (step.kind == EventKind::kFree) live -= trace.buffers()[step.id].size.count();
    return live;
  });
}

}  // namespace

void declare_traces(py::module_& module) {
  py::class_<Trace, std::shared_ptr<Trace>>(module, "Trace")
      .def_property_readonly("hash", &Trace::hash)
      .def_property_readonly("ideal_peak_bytes", [](const Trace& trace) { return trace.ideal_peak().count(); })
      .def_property_readonly("meta", [](const Trace& trace) { return trace.data().meta; })
      .def("buffers", &buffers)
      .def("ops", &ops)
      .def("uses", &uses)
      .def("versions", &versions)
      .def("live_bytes", &live_bytes);
  module.def(
      "load", [](const std::string& path) { return std::make_shared<Trace>(load_trace(path)); }, py::arg("path"),
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace tidepool::python
