#include "validator/live/live_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/names.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

// An op whose name ends in this is the second half of a batch normalisation.
constexpr std::string_view kRunningStatistics = ".running_stats";

class Lowering {
 public:
  Lowering(const Trace& trace, const PlanFile& file, const std::string& name)
      : trace_{trace},
        file_{file},
        name_{name},
        recipe_(trace.ops().size()),
        has_run_(trace.ops().size()),
        named_{named_buffers()},
        hidden_{hidden_buffers()} {}

  std::string text() {
    require_possible();
    Json actions = lower_actions();
    Json json{{"tidepool_live", 1}, {"trace_hash", trace_.hash()}, {"policy", file_.spec.policy.text}};
    const auto& meta = trace_.data().meta;
    if (const auto ops = meta.find("ops"); ops != meta.end()) json["recorded_ops"] = ops->second;
    json["predicted"] = {{"makespan_ns", file_.predicted.makespan.count()},
                         {"peak_bytes", file_.predicted.peak.count()},
                         {"swap_out_bytes", file_.predicted.swap_out.count()},
                         {"recompute_count", file_.predicted.recompute_count}};
    json["limit_bytes"] = promised_bytes(file_).count();
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i) {
      const Buffer& buffer = trace_.buffers()[i];
      json["buffers"].push_back({buffer.size.count(), trace_.first_version(BufferId{i}).value()});
    }
    for (std::uint32_t i = 0; i < trace_.versions().size(); ++i) {
      const Version& version = trace_.version(VersionId{i});
      json["versions"].push_back({version.buffer.value(), number(version.producer), number(version.parent)});
    }
    for (std::uint32_t i = 0; i < trace_.ops().size(); ++i) json["ops"].push_back(lower_op(OpId{i}));
    json["unused"] = unused();
    json["hidden"] = Json::array();
    for (std::uint32_t i = 0; i < hidden_.size(); ++i)
      if (hidden_[i]) json["hidden"].push_back(i);
    json["parked"] = parked_;
    json["actions"] = std::move(actions);
    return json.dump();
  }

  /// The most bytes of hidden buffers that the plan keeps away from the device while an op runs.
  Bytes immovable() const {
    std::vector<bool> away(trace_.buffers().size());
    Bytes now{}, most{};
    const auto set = [&](BufferId buffer, bool value) {
      if (!hidden_[buffer.index()] || away[buffer.index()] == value) return;
      away[buffer.index()] = value;
      const Bytes size = trace_.buffer(buffer).size;
      now = value ? now + size : now - size;
    };
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i)
      if (trace_.buffers()[i].born_before) set(BufferId{i}, true);  // until the plan gives it memory
    for (const Action& action : file_.plan.actions) switch (action.verb) {
        case Verb::kRun:
          for (const Use& use : trace_.uses(OpId{action.subject})) set(buffer_of(use), false);
          most = std::max(most, now);
          break;
        case Verb::kDrop:
          set(trace_.version(VersionId{action.subject}).buffer, true);
          break;
        case Verb::kAlloc:
        case Verb::kSwapIn:
        case Verb::kFree:
          set(trace_.version(VersionId{action.subject}).buffer, false);
          break;
        default:
          break;
      }
    return most;
  }

 private:
  template <class Id>
  static std::int64_t number(Id id) {
    return id.valid() ? static_cast<std::int64_t>(id.value()) : -1;
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{name_ + ": " + fmt::format(text, std::forward<Args>(args)...)};
  }

  std::string op_name(OpId op) const { return fmt::format("op {} ({})", op.value(), trace_.text(trace_.op(op).name)); }

  /// Whether a live job cannot see the use: an operator's kernel uses memory that no operator names, such as the
  /// workspace of a library.
  bool is_hidden(const Use& use) const {
    return use.evidence == Evidence::kInferred && !named_[buffer_of(use).index()];
  }

  /// The buffers that the job cannot see: those of hidden uses, and memory of unknown purpose that no op uses and that
  /// is there before and after the step.
  std::vector<bool> hidden_buffers() const {
    std::vector<bool> used(trace_.buffers().size()), hidden(trace_.buffers().size());
    for (std::uint32_t i = 0; i < trace_.ops().size(); ++i)
      for (const Use& use : trace_.uses(OpId{i})) used[buffer_of(use).index()] = true;
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i) {
      const Buffer& buffer = trace_.buffers()[i];
      const bool stays = buffer.kind == BufferKind::kUnknown && buffer.born_before && buffer.outlives;
      hidden[i] = !named_[i] && (used[i] || stays);
    }
    return hidden;
  }

  BufferId buffer_of(const Use& use) const { return trace_.version(use.out.valid() ? use.out : use.in).buffer; }

  /// By buffer: whether the schema of an operator names it.
  std::vector<bool> named_buffers() const {
    std::vector<bool> named(trace_.buffers().size());
    for (std::uint32_t i = 0; i < trace_.ops().size(); ++i)
      for (const Use& use : trace_.uses(OpId{i}))
        if (use.evidence == Evidence::kSchema) named[buffer_of(use).index()] = true;
    return named;
  }

  void require_possible() const {
    const auto iterations = 1 + std::count_if(file_.plan.actions.begin(), file_.plan.actions.end(),
                                              [](const Action& action) { return action.verb == Verb::kNext; });
    if (iterations != 1)
      refuse("runs the step {} times; expected a plan for one iteration, as simulate --first --plan-out writes it",
             iterations);
    if (file_.spec.assume.copy_on_write)
      refuse("assumes that writes in place are copies (--assume {}); expected a plan of the strict model",
             file_.spec.assume.name);
    for (std::uint32_t i = 0; i < trace_.ops().size(); ++i) {
      const OpId op{i};
      for (const Use& use : trace_.uses(op))
        if (!is_hidden(use) &&
            (use.access == Access::kView || use.access == Access::kTouch || use.evidence != Evidence::kSchema))
          refuse("the trace does not say what {} reads and writes; expected a trace recorded by tidepool_torch",
                 op_name(op));
    }
  }

  /// Numbers and names of the parameters and optimizer states that have a name and that no op uses, as those of a model
  /// that is not trained.
  Json unused() const {
    std::vector<bool> used(trace_.buffers().size());
    for (std::uint32_t i = 0; i < trace_.ops().size(); ++i)
      for (const Use& use : trace_.uses(OpId{i})) used[buffer_of(use).index()] = true;
    Json names = Json::array();
    for (std::uint32_t i = 0; i < trace_.buffers().size(); ++i)
      if (const Buffer& buffer = trace_.buffers()[i];
          !used[i] && (buffer.kind == BufferKind::kParameter || buffer.kind == BufferKind::kOptimizerState))
        if (const auto name = trace_.text(buffer.name); !name.empty()) names.push_back({i, name});
    return names;
  }

  Json lower_op(OpId id) const {
    const Op& op = trace_.op(id);
    Json uses = Json::array();
    for (const Use& use : trace_.uses(id)) {
      if (is_hidden(use)) continue;
      uses.push_back({buffer_of(use).value(), number(use.in), number(use.out), std::string{word(use.access)}});
    }
    Json json{{"name", trace_.text(op.name)}, {"uses", std::move(uses)}};
    if (recipe_[id.index()]) json["recipe"] = true;
    if (op.random) json["random"] = true;
    return json;
  }

  /// Keeps the op `last` as a recipe, and all ops from which its inputs come, directly or through other ops.
  void keep_recipe(OpId last) {
    std::vector<OpId> open{last};
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      if (!id.valid() || recipe_[id.index()]) continue;
      recipe_[id.index()] = true;
      for (const Use& use : trace_.uses(id))
        if (use.in.valid()) open.push_back(trace_.version(use.in).producer);
    }
  }

  void require_repeatable(OpId id) const {
    const Op& op = trace_.op(id);
    if (op.kind == OpKind::kSource)
      refuse("runs {} again, which brings bytes from outside; expected a plan without it", op_name(id));
    if (trace_.text(op.name).ends_with(kRunningStatistics))
      refuse("runs {} again, which is one with the op before it on a live job; expected a plan without it",
             op_name(id));
  }

  Json lower_actions() {
    Json lowered = Json::array();
    std::vector<bool> met(trace_.versions().size()), copied(trace_.versions().size());
    std::int64_t last = 0;
    const auto add = [&](std::int64_t before, std::string_view verb, std::uint32_t subject) {
      lowered.push_back({before, verb, subject});
    };
    for (const Action& action : file_.plan.actions)
      if (action.verb == Verb::kAlloc)
        met[action.subject] = true;
      else if (action.verb == Verb::kSwapIn && !met[action.subject] &&
               !trace_.version(VersionId{action.subject}).producer.valid()) {
        met[action.subject] = true;  // on the host when the step begins
        copied[action.subject] = true;
        parked_.push_back(action.subject);
        add(0, "swap_out", action.subject);
        add(0, "drop", action.subject);
      }
    for (const Action& action : file_.plan.actions) {
      const std::int64_t before =
          action.before.valid() ? number(action.before) : static_cast<std::int64_t>(trace_.ops().size());
      switch (action.verb) {
        case Verb::kRun:
          if (!has_run_[action.subject]) {
            has_run_[action.subject] = true;
            continue;
          }
          require_repeatable(OpId{action.subject});
          keep_recipe(OpId{action.subject});
          break;
        case Verb::kSwapOut:
          copied[action.subject] = true;
          break;
        case Verb::kDrop:
          if (!copied[action.subject]) keep_recipe(trace_.version(VersionId{action.subject}).producer);
          break;
        case Verb::kSwapIn:
        case Verb::kFree:
        case Verb::kCopy:
        case Verb::kAwait:
          break;
        default:
          continue;  // the framework chooses places
      }
      if (before < last) refuse("goes back from op {} to op {}; expected a plan for one stream", last, before);
      last = before;
      // Plans of some pools drop content right behind an op, as actions of this op. They precede the next one. The job
      // itself frees what the plan frees.
      const bool behind = action.verb != Verb::kFree && action.before.valid() && has_run_[action.before.index()];
      add(before + (behind ? 1 : 0), word(action.verb), action.subject);
    }
    return lowered;
  }

  const Trace& trace_;
  const PlanFile& file_;
  const std::string& name_;
  std::vector<bool> recipe_, has_run_, named_, hidden_;
  std::vector<std::uint32_t> parked_;
};

}  // namespace

Bytes promised_bytes(const PlanFile& file) {
  return file.spec.capacity == kNoLimit ? file.predicted.peak : file.spec.capacity;
}

bool is_of_graphs(const Trace& trace) {
  const auto ops = trace.data().meta.find("ops");
  return ops != trace.data().meta.end() && ops->second == "graphs";
}

GraphPlan graph_plan(const Trace& trace, const PlanFile& file) {
  std::vector<bool> resident(trace.buffers().size()), needed(trace.buffers().size()), made(trace.buffers().size());
  std::vector<bool> remade(trace.ops().size()), has_run(trace.ops().size());
  const auto buffer_of = [&](std::uint32_t version) { return trace.version(VersionId{version}).buffer.index(); };
  bool in_backward = false;
  for (const Action& action : file.plan.actions) {
    if (action.verb == Verb::kRun) {
      const OpId op{action.subject};
      in_backward = in_backward || trace.op(op).phase == Phase::kBackward;
      remade[op.index()] = in_backward && has_run[op.index()];
      has_run[op.index()] = true;
      for (const Use& use : trace.uses(op))
        if (in_backward && use.in.valid() && !made[buffer_of(use.in.value())]) needed[buffer_of(use.in.value())] = true;
    } else if (action.verb == Verb::kAlloc) {
      (in_backward ? made : resident)[buffer_of(action.subject)] = true;
    } else if (!in_backward && (action.verb == Verb::kDrop || action.verb == Verb::kFree)) {
      resident[buffer_of(action.subject)] = false;
    }
  }
  Json saved = Json::object();
  Bytes held{};
  for (std::uint32_t i = 0; i < trace.buffers().size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    const std::string_view name = trace.text(buffer.name);
    const OpId producer = trace.version(trace.first_version(BufferId{i})).producer;
    // The outputs of one op are saved or made again together.
    const bool again = producer.valid() && remade[producer.index()];
    if (!name.starts_with("graph") || buffer.born_before || !resident[i] || !needed[i] || again) continue;
    saved[std::string{name}] = buffer.size.count();
    held += buffer.size;
  }
  const Json json{{"tidepool_graphs", 1}, {"trace_hash", trace.hash()}, {"saved", saved}};
  return {json.dump(), held};
}

std::string live_program(const Trace& trace, const PlanFile& file, const std::string& plan_name) {
  if (file.plan.order)
    throw InputError{fmt::format("{}: runs the ops in another order ({}); expected a plan in the order of the job",
                                 plan_name, file.plan.order->rule)};
  return Lowering{trace, file, plan_name}.text();
}

Bytes immovable_bytes(const Trace& trace, const PlanFile& file) {
  const std::string name;
  return Lowering{trace, file, name}.immovable();
}

}  // namespace tidepool
