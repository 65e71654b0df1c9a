#include "traces/import/torch_et_program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/base/refuse.hpp"
#include "traces/import/kineto_contexts.hpp"
#include "traces/import/torch_schema.hpp"

namespace tidepool {

namespace {

/// A tensor that an operator writes, and what says so.
struct Written {
  EtTensor tensor;
  Access access = Access::kWrite;
  Evidence evidence = Evidence::kSchema;
};

class ProgramFinder {
 public:
  ProgramFinder(const ExecutionTrace& file, std::optional<std::int64_t> only) : file_{file}, only_{only} {}

  EtProgram run() {
    find_parents();
    find_runs();
    order_calls();
    for (std::size_t i = 0; i < out_.calls.size(); ++i) {
      hold(i);
      if (out_.calls[i].runs || allocates(out_.calls[i].node)) work(i);
    }
    for (const auto& [storage, life] : live_)
      if (out_.lives[life].born_before) out_.lives[life].last = EtProgram::kNone;  // no other buffer took its address
    return std::move(out_);
  }

 private:
  bool on_device(const EtTensor& tensor) const { return tensor.device >= 0 && (!only_ || tensor.device == *only_); }
  std::string_view name(std::size_t node) const { return file_.texts[file_.nodes[node].name]; }
  bool has_schema(std::size_t node) const { return !file_.texts[file_.nodes[node].schema].empty(); }
  bool allocates(std::size_t node) const { return has_schema(node) && only_allocates(operator_name(name(node))); }

  void find_parents() {
    const std::vector<EtNode>& nodes = file_.nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto found =
          std::lower_bound(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i), nodes[i].parent,
                           [](const EtNode& node, std::int64_t id) { return node.id < id; });
      const bool before = found != nodes.begin() + static_cast<std::ptrdiff_t>(i) && found->id == nodes[i].parent;
      out_.parents.push_back(before ? static_cast<std::size_t>(found - nodes.begin()) : EtProgram::kNone);
    }
  }

  static bool among(const std::vector<EtTensor>& tensors, const EtTensor& wanted) {
    return std::any_of(tensors.begin(), tensors.end(), [&](const EtTensor& tensor) {
      return tensor.storage == wanted.storage && tensor.device == wanted.device;
    });
  }

  const std::vector<SchemaArgument>& arguments(std::uint32_t schema) {
    const auto [entry, added] = schemas_.try_emplace(schema);
    if (added) entry->second = schema_arguments(file_.texts[schema]);
    return entry->second;
  }

  /// The tensors, also of the host, that a node writes by itself or through its calls.
  std::vector<Written> written(std::size_t index) {
    const EtNode& node = file_.nodes[index];
    std::vector<Written> out;
    if (node.generated) {
      for (const EtTensor& tensor : node.inputs) out.push_back({tensor, Access::kTouch, Evidence::kParameter});
      return out;
    }
    if (!has_schema(index)) return out;
    const std::string_view called = operator_name(name(index));
    const std::vector<SchemaArgument>& known = arguments(node.schema);
    const bool marked = std::any_of(known.begin(), known.end(), [](const auto& argument) { return argument.written; });
    for (const EtTensor& tensor : node.inputs) {
      if (marked && tensor.argument < known.size() && known[tensor.argument].written)
        out.push_back(
            {tensor, overwrites(called) || known[tensor.argument].name == "out" ? Access::kWrite : Access::kReadWrite});
      else if (!marked && is_in_place(called) && tensor.argument == 0)
        out.push_back({tensor, Access::kReadWrite, Evidence::kInferred});
    }
    for (const EtTensor& tensor : node.outputs)
      if (!among(node.inputs, tensor)) out.push_back({tensor});
    return out;
  }

  /// Finds the operators that run as ops, from the innermost calls outwards.
  void find_runs() {
    const std::size_t n = file_.nodes.size();
    out_.runs.assign(n, false);
    last_.resize(n);
    std::vector<std::set<std::pair<std::int64_t, std::int64_t>>> done(n);  // by node: storages that ops inside it write
    for (std::size_t i = n; i-- > 0;) {
      last_[i] = std::max(last_[i], i);
      if (!allocates(i)) {
        bool new_work = operator_name(name(i)) == "_local_scalar_dense";  // copies to the host
        bool device = std::any_of(file_.nodes[i].inputs.begin(), file_.nodes[i].inputs.end(),
                                  [&](const EtTensor& tensor) { return on_device(tensor); });
        for (const Written& write : written(i)) {
          device |= on_device(write.tensor);
          new_work |= done[i].emplace(write.tensor.device, write.tensor.storage).second;
        }
        out_.runs[i] = new_work && device;
      }
      const std::size_t parent = out_.parents[i];
      if (parent == EtProgram::kNone) continue;
      last_[parent] = std::max(last_[parent], last_[i]);
      if (done[parent].size() < done[i].size()) std::swap(done[parent], done[i]);
      done[parent].merge(done[i]);
      done[i].clear();
    }
  }

  /// Orders the calls. An operator that runs as an op or allocates comes after its inner calls; any other one comes
  /// where it begins, if it has tensors as arguments.
  void order_calls() {
    std::vector<std::tuple<std::size_t, std::size_t, std::size_t>> order;
    for (std::size_t i = 0; i < file_.nodes.size(); ++i) {
      const bool works = out_.runs[i] || allocates(i);
      if (works || !file_.nodes[i].inputs.empty()) order.emplace_back(works ? last_[i] : i, file_.nodes.size() - i, i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [key, inner_first, node] : order) out_.calls.push_back({node, out_.runs[node], {}});
  }

  /// Notes that the arguments of a call were alive at its begin.
  void hold(std::size_t call) {
    for (const EtTensor& tensor : file_.nodes[out_.calls[call].node].inputs) {
      const auto found = live_.find({tensor.device, tensor.storage});
      if (!on_device(tensor) || found == live_.end()) continue;
      out_.lives[found->second].last = call;
      out_.lives[found->second].bytes = std::max(out_.lives[found->second].bytes, tensor.end);
    }
  }

  void begin(std::size_t call, const EtTensor& tensor, bool born_before) {
    live_[{tensor.device, tensor.storage}] = out_.lives.size();
    begun_by_.push_back(out_.calls[call].node);
    out_.lives.push_back({tensor.device, tensor.end, born_before, call, call});
  }

  void work(std::size_t call) {
    const std::size_t node = out_.calls[call].node;
    for (const EtTensor& tensor : file_.nodes[node].inputs)
      if (on_device(tensor) && !live_.contains({tensor.device, tensor.storage})) begin(call, tensor, true);
    for (const EtTensor& tensor : file_.nodes[node].outputs) {
      if (!on_device(tensor)) continue;
      const auto found = live_.find({tensor.device, tensor.storage});
      // The storage is new, even at an address that was in use before, unless an inner call allocated it.
      const bool new_here = found == live_.end() || begun_by_[found->second] < node;
      if (new_here && !among(file_.nodes[node].inputs, tensor)) begin(call, tensor, false);
      EtProgram::Life& life = out_.lives[live_.at({tensor.device, tensor.storage})];
      life.last = call;
      life.bytes = std::max(life.bytes, tensor.end);
    }
    if (out_.calls[call].runs) add_uses(call);
  }

  void add_uses(std::size_t call) {
    const std::size_t node = out_.calls[call].node;
    const std::vector<Written> writes = written(node);
    const auto is_written = [&](const EtTensor& tensor) {
      return std::any_of(writes.begin(), writes.end(), [&](const Written& write) {
        return write.tensor.storage == tensor.storage && write.tensor.argument == tensor.argument;
      });
    };
    for (const EtTensor& tensor : file_.nodes[node].inputs)
      if (on_device(tensor) && !is_written(tensor)) add_use(call, tensor, Access::kRead, Evidence::kSchema);
    for (const Written& write : writes)
      if (on_device(write.tensor)) add_use(call, write.tensor, write.access, write.evidence);
  }

  /// Adds one use for each buffer; a buffer that is read and written is updated in place.
  void add_use(std::size_t call, const EtTensor& tensor, Access access, Evidence evidence) {
    const std::size_t life = live_.at({tensor.device, tensor.storage});
    std::vector<EtProgram::Use>& uses = out_.calls[call].uses;
    const auto same = std::find_if(uses.begin(), uses.end(), [&](const auto& use) { return use.life == life; });
    if (same == uses.end()) {
      uses.push_back({life, access, evidence, tensor.bytes});
      return;
    }
    if (same->access != access) same->access = Access::kReadWrite;
    same->evidence = std::max(same->evidence, evidence);
    same->bytes = std::max(same->bytes, tensor.bytes);
  }

  const ExecutionTrace& file_;
  std::optional<std::int64_t> only_;
  EtProgram out_;
  std::unordered_map<std::uint32_t, std::vector<SchemaArgument>> schemas_;
  std::vector<std::size_t> last_;                                      // by node: the last node inside it
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> live_;  // lives by device and storage
  std::vector<std::size_t> begun_by_;                                  // by life: a node
};

using NodesByNumber = std::unordered_map<std::int64_t, std::size_t>;  // by the profile's number of the call

class Numbers {
 public:
  Numbers(const ExecutionTrace& file, const Kineto& profile) : file_{file}, profile_{profile} {
    for (const KinetoRange& range : profile_.ranges)
      if (range.kind == KinetoRangeKind::kOperator) operators_.push_back(&range);
  }

  NodesByNumber find() const {
    NodesByNumber nodes;
    for (std::size_t i = 0; i < file_.nodes.size(); ++i)
      if (file_.nodes[i].record_function > 0) nodes.try_emplace(file_.nodes[i].record_function, i);
    std::size_t same = 0;
    for (const KinetoRange* range : operators_) {
      const auto found = nodes.find(range->record_function);
      same += found != nodes.end() && profile_.texts[range->name] == name(found->second);
    }
    if (same > 0 && 2 * same >= operators_.size()) return nodes;
    if (const NodesByNumber by_order = find_by_order(); !by_order.empty()) return by_order;
    refuse(
        "{} of {} operators of the profile have a number and a name of the execution trace; expected a profile of "
        "the same run",
        same, operators_.size());
  }

 private:
  std::string_view name(std::size_t node) const { return file_.texts[file_.nodes[node].name]; }

  /// The nodes by the order of calls on each thread. Empty if the calls of some thread of the profile are not those of
  /// exactly one thread of the execution trace, or if the profile gives a call no number or the number of another call.
  NodesByNumber find_by_order() const {
    std::map<std::int64_t, std::vector<const KinetoRange*>> recorded;
    std::set<std::string_view> names;
    for (const KinetoRange* range : operators_) {
      recorded[range->thread].push_back(range);
      names.insert(profile_.texts[range->name]);
    }
    std::map<std::int64_t, std::vector<std::size_t>> traced;
    for (std::size_t i = 0; i < file_.nodes.size(); ++i)
      if (names.contains(name(i))) traced[file_.nodes[i].thread].push_back(i);
    for (auto& [thread, nodes] : traced)
      std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
        return file_.nodes[a].record_function < file_.nodes[b].record_function;
      });
    std::map<std::vector<std::string_view>, std::vector<std::int64_t>> threads;  // by the names of their calls
    for (const auto& [thread, nodes] : traced) {
      std::vector<std::string_view> calls;
      for (const std::size_t node : nodes) calls.push_back(name(node));
      threads[calls].push_back(thread);
    }
    NodesByNumber out;
    for (auto& [thread, ranges] : recorded) {
      std::stable_sort(ranges.begin(), ranges.end(), [](const KinetoRange* a, const KinetoRange* b) {
        return std::tie(a->record_function, a->begin) < std::tie(b->record_function, b->begin);
      });
      std::vector<std::string_view> calls;
      for (const KinetoRange* range : ranges) calls.push_back(profile_.texts[range->name]);
      const auto found = threads.find(calls);
      if (found == threads.end() || found->second.size() > 1) return {};
      const std::vector<std::size_t>& nodes = traced.at(found->second.front());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::int64_t number = ranges[i]->record_function;
        if (number <= 0 || !out.try_emplace(number, nodes[i]).second) return {};
      }
    }
    return out;
  }

  const ExecutionTrace& file_;
  const Kineto& profile_;
  std::vector<const KinetoRange*> operators_;
};

}  // namespace

EtProgram find_program(const ExecutionTrace& file, std::optional<std::int64_t> only) {
  return ProgramFinder{file, only}.run();
}

std::vector<std::size_t> nodes_of_activities(const ExecutionTrace& file, const EtProgram& program,
                                             const Kineto& profile) {
  const NodesByNumber nodes = Numbers{file, profile}.find();
  std::unordered_map<std::int64_t, const KinetoLaunch*> launches;
  for (const KinetoLaunch& launch : profile.launches) launches.try_emplace(launch.correlation, &launch);
  std::vector<KinetoMoment> moments;
  for (const KinetoActivity& activity : profile.activities) {
    const auto found = launches.find(activity.correlation);
    moments.push_back(found == launches.end() ? KinetoMoment{}
                                              : KinetoMoment{found->second->thread, found->second->time});
  }
  std::vector<std::size_t> out;
  for (const KinetoContext& context : find_contexts(profile, moments)) {
    const auto found = nodes.find(context.record_function);
    std::size_t node = found == nodes.end() ? EtProgram::kNone : found->second;
    while (node != EtProgram::kNone && !program.runs[node]) node = program.parents[node];
    out.push_back(node);
  }
  return out;
}

KinetoOperands find_operands(const ExecutionTrace& file, const Kineto& profile) {
  const EtProgram program = find_program(file, {});
  KinetoOperands out;
  for (const EtProgram::Life& life : program.lives)
    out.lives.push_back({life.device, life.bytes, life.born_before, life.born_before && life.last == EtProgram::kNone});
  std::unordered_map<std::size_t, std::size_t> calls;  // by node
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    calls.emplace(program.calls[i].node, i);
    std::vector<KinetoOperands::Use>& uses = out.uses.emplace_back();
    for (const EtProgram::Use& use : program.calls[i].uses) {
      // A buffer that is written in part keeps the rest of its content.
      const bool part = use.access == Access::kWrite && use.bytes < program.lives[use.life].bytes;
      uses.push_back({use.life, part ? Access::kReadWrite : use.access, use.evidence});
    }
  }
  for (const std::size_t node : nodes_of_activities(file, program, profile))
    out.calls.push_back(node == EtProgram::kNone ? KinetoOperands::kNone : calls.at(node));
  return out;
}

}  // namespace tidepool
