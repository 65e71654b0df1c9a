// Policies that are Python classes. The engine may ask from any thread, so every call takes the interpreter's lock; an
// exception becomes a failed run with its text, since it must not travel through the engine.
#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "notebooks/native/parts.hpp"
#include "simulator/engine/chain_cost.hpp"
#include "simulator/options.hpp"
#include "simulator/registry.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool::python {
namespace {

namespace py = pybind11;

/// A View that Python may keep beyond a call of the policy, but may use only during the call.
struct LentView {
  std::optional<View> view;
  const View& get() const {
    if (!view) throw std::runtime_error{"a view can be used only while the policy is asked"};
    return *view;
  }
};

VersionId version_of(const View& view, std::int64_t number) {
  if (number < 0 || number >= static_cast<std::int64_t>(view.trace().versions().size()))
    throw py::index_error{fmt::format("no version {}; the trace has {}", number, view.trace().versions().size())};
  return VersionId{static_cast<std::uint32_t>(number)};
}

/// The versions for which `wanted` is true. Versions that are views of others are left out, since they occupy nothing.
template <class Wanted>
std::vector<std::uint32_t> versions_where(const View& view, const Wanted& wanted) {
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < view.trace().versions().size(); ++i) {
    const VersionId version{i};
    if (view.trace().root(version) == version && wanted(version)) found.push_back(version.value());
  }
  return found;
}

std::string type_name(const py::handle& object) { return py::str(py::type::handle_of(object).attr("__name__")); }

/// "int", "list with str": the type of an answer that is no list of actions, with its first element that is no action.
std::string kind_of_answer(const py::object& given) {
  std::string kind = type_name(given);
  if (py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given))
    for (const py::handle& each : given)
      if (!py::isinstance<Action>(each)) return kind + " with " + type_name(each);
  return kind;
}

/// A Python object with some of the methods plan, start, make_room and before_run.
class PythonPolicy final : public Policy {
 public:
  PythonPolicy(std::string name, py::object object)
      : name_{std::move(name)},
        object_{std::move(object)},
        plans_{py::hasattr(object_, "plan")},
        starts_{py::hasattr(object_, "start")},
        makes_room_{py::hasattr(object_, "make_room")},
        prepares_{py::hasattr(object_, "before_run")} {}
  PythonPolicy(const PythonPolicy&) = delete;
  PythonPolicy& operator=(const PythonPolicy&) = delete;
  ~PythonPolicy() override {
    const py::gil_scoped_acquire lock;
    object_ = {};
  }

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    std::vector<Action> draft;
    if (plans_)
      call([&] {
        const auto kept = std::make_shared<Trace>(trace);  // Python may keep it beyond the run
        draft = answer("plan", object_.attr("plan")(py::cast(kept), spec.capacity.count()), {});
        for (const Action& action : draft)
          if (action.before.index() >= trace.ops().size())
            throw PlanError{fmt::format("{}: expected an op of the step, as in before=0; the step has {}",
                                        to_text(action), counted(static_cast<std::int64_t>(trace.ops().size()), "op"))};
        std::ranges::stable_sort(draft, {}, &Action::before);
      });
    return draft;
  }
  void start(const View& view) override {
    if (starts_) lend(view, [&](const py::object& lent) { object_.attr("start")(lent); });
  }
  void make_room(const View& view, const Request& request, std::vector<Action>& out) override {
    if (!makes_room_) return;
    lend(view, [&](const py::object& lent) {
      append(out, answer("make_room", object_.attr("make_room")(lent, request), view.op()));
    });
  }
  void before_run(const View& view, OpId op, std::vector<Action>& out) override {
    if (!prepares_) return;
    lend(view, [&](const py::object& lent) {
      append(out, answer("before_run", object_.attr("before_run")(lent, op.value()), view.op()));
    });
  }

 private:
  static void append(std::vector<Action>& out, const std::vector<Action>& more) {
    out.insert(out.end(), more.begin(), more.end());
  }

  /// Converts None or a list of actions. An action without an op is done before `now`.
  static std::vector<Action> answer(const char* method, const py::object& given, OpId now) {
    if (given.is_none()) return {};
    std::vector<Action> actions;
    try {
      actions = given.cast<std::vector<Action>>();
    } catch (const py::builtin_exception&) {  // cast_error, or reference_cast_error for None in a list
      throw PlanError{fmt::format("{} returned {}; expected a list of actions, as in [tidepool.drop(version)], or None",
                                  method, kind_of_answer(given))};
    }
    for (Action& action : actions)
      if (!action.before.valid()) action.before = now;
    return actions;
  }

  template <class Body>
  void lend(const View& view, const Body& body) {
    call([&] {
      const auto lent = std::make_shared<LentView>(LentView{view});
      try {
        body(py::cast(lent));
      } catch (...) {
        lent->view.reset();
        throw;
      }
      lent->view.reset();
    });
  }

  template <class Body>
  void call(const Body& body) {
    const py::gil_scoped_acquire lock;
    try {
      body();
    } catch (const std::exception& error) {  // errors of Python, and answers that are not lists of actions
      const std::string said = fmt::format("policy {}: {}", name_, error.what());
      const auto* const raised = dynamic_cast<const py::error_already_set*>(&error);
      if (raised != nullptr && raised->matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // for obey_signals()
      throw PlanError{said};
    }
  }

  std::string name_;
  py::object object_;
  bool plans_, starts_, makes_room_, prepares_;
};

PolicyKind kind_of(const std::string& text) {
  if (text == "swap") return PolicyKind::kSwap;
  if (text == "remat") return PolicyKind::kRemat;
  if (text == "hybrid") return PolicyKind::kHybrid;
  throw InputError{fmt::format("kind '{}'; expected swap, remat or hybrid", text)};
}

std::set<std::string>& python_policies() {
  static std::set<std::string> names;
  return names;
}

/// Whether a chain of policies can name a policy so. "all" stands for every policy.
bool can_be_named(const std::string& name) {
  if (name == "all") return false;
  try {
    const Spec one{name}, other{name + "2"};
    return one.name == name && PolicyChain{name + "+" + name + "2"}.policies == std::vector{one, other};
  } catch (const InputError&) {
    return false;
  }
}

/// Registers `factory`, which returns a policy object, until the interpreter ends.
void add_policy(const std::string& name, const std::string& kind, const std::string& summary, const std::string& paper,
                py::function factory) {
  if (!can_be_named(name))
    throw InputError{
        fmt::format("policy '{}' could not be named in a chain; expected a name other than all, without + , = ( ) [ "
                    "and without spaces at its ends",
                    name)};
  for (const PolicyInfo* known : all_policies())
    if (known->name == name)
      throw InputError{fmt::format("policy '{}' is known already; expected a name of its own", name)};
  // Leaked on purpose: the registry lives longer than the interpreter.
  auto* const make = new py::function{std::move(factory)};
  const RegisterPolicy registered{{.name = name,
                                   .kind = kind_of(kind),
                                   .summary = summary,
                                   .paper = paper,
                                   .options = {},
                                   .make = [name, make](const Options&) -> std::unique_ptr<Policy> {
                                     const py::gil_scoped_acquire lock;
                                     try {
                                       return std::make_unique<PythonPolicy>(name, (*make)());
                                     } catch (const py::error_already_set& error) {
                                       throw PlanError{fmt::format("policy {}: {}", name, error.what())};
                                     }
                                   }}};
  python_policies().insert(name);
}

template <Verb kVerb>
Action action(std::uint32_t subject, std::optional<std::uint32_t> before) {
  return {.verb = kVerb, .before = before ? OpId{*before} : OpId{}, .subject = subject};
}

}  // namespace

bool has_python_policies() { return !python_policies().empty(); }

void declare_policies(py::module_& module) {
  py::class_<Action>(module, "Action").def("__repr__", [](const Action& value) { return to_text(value); });
  const auto verb = [&](const char* name, auto make) {
    module.def(name, make, py::arg("subject"), py::arg("before") = py::none());
  };
  verb("drop", &action<Verb::kDrop>);
  verb("swap_out", &action<Verb::kSwapOut>);
  verb("swap_in", &action<Verb::kSwapIn>);
  verb("wait", &action<Verb::kAwait>);
  verb("run", &action<Verb::kRun>);

  py::class_<Request>(module, "Request")
      .def_property_readonly("size", [](const Request& request) { return request.size.count(); })
      .def_property_readonly("version", [](const Request& request) { return request.version.value(); });

  const auto of_version = [](auto get) {
    return [get](const LentView& lent, std::int64_t number) { return get(lent.get(), version_of(lent.get(), number)); };
  };
  py::class_<LentView, std::shared_ptr<LentView>>(module, "View")
      .def_property_readonly("op", [](const LentView& lent) { return lent.get().op().value(); })
      .def_property_readonly("now_ns", [](const LentView& lent) { return lent.get().now().count(); })
      .def("size", of_version([](const View& view, VersionId v) { return view.size(v).count(); }))
      .def("resident", of_version([](const View& view, VersionId v) { return view.resident(v); }))
      .def("evictable", of_version([](const View& view, VersionId v) { return view.evictable(v); }))
      .def("droppable", of_version([](const View& view, VersionId v) { return view.droppable(v); }))
      .def("on_host", of_version([](const View& view, VersionId v) { return view.state(v).on_host; }))
      .def("last_access_ns",
           of_version([](const View& view, VersionId v) { return view.state(v).last_access.count(); }))
      .def("order", of_version([](const View& view, VersionId v) { return view.state(v).order; }))
      .def("cost_ns", of_version([](const View& view, VersionId v) { return view.state(v).cost.count(); }))
      .def("chain_cost_ns", of_version([](const View& view, VersionId v) { return chain_cost(view, v).count(); }))
      .def("copy_out_ns",
           of_version([](const View& view, VersionId v) { return view.machine().d2h.time(view.size(v)).count(); }))
      .def("copy_in_ns",
           of_version([](const View& view, VersionId v) { return view.machine().h2d.time(view.size(v)).count(); }))
      .def("address", of_version([](const View& view, VersionId v) { return view.state(v).offset.count(); }))
      .def("evictable_versions",
           [](const LentView& lent) {
             const View& view = lent.get();
             return versions_where(view, [&](VersionId v) { return view.evictable(v); });
           })
      .def("droppable_versions", [](const LentView& lent) {
        const View& view = lent.get();
        return versions_where(view, [&](VersionId v) { return view.droppable(v); });
      });

  module.def("add_policy", &add_policy, py::arg("name"), py::arg("kind"), py::arg("summary"), py::arg("paper"),
             py::arg("factory"));
  module.def("policies", [] {
    py::list all;
    for (const PolicyInfo* info : all_policies()) {
      py::dict entry;
      entry["name"] = info->name;
      entry["summary"] = info->summary;
      entry["paper"] = info->paper;
      all.append(entry);
    }
    return all;
  });
}

}  // namespace tidepool::python
