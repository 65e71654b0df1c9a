#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "simulator/ordered_step.hpp"
#include "simulator/registry.hpp"
#include "simulator/run.hpp"
#include "traces/step/dependencies.hpp"
#include "traces/step/lifetimes.hpp"
#include "traces/step/op_order.hpp"

namespace tidepool {
namespace {

using Ops = std::vector<std::uint32_t>;

/// A step as XLA's schedulers see it: ops with the bytes that they define, and the buffers that they use.
class Module {
 public:
  Module(const Lifetimes& lifetimes, const Dependencies& dependencies)
      : lifetimes_{lifetimes}, dependencies_{dependencies} {
    const Trace& trace = lifetimes.trace();
    std::vector<VersionId> last(trace.buffers().size());
    for (std::uint32_t op = 0; op < size(); ++op)
      for (const VersionId made : trace.made(OpId{op})) last[trace.version(made).buffer.index()] = made;
    operands_.resize(size());
    for (std::uint32_t op = 0; op < size(); ++op) {
      Ops users;
      bool in_root = after(op).empty();
      for (const VersionId made : trace.made(OpId{op})) {
        for (const OpId reader : trace.readers(made)) users.push_back(reader.value());
        const BufferId buffer = trace.version(made).buffer;
        in_root |= trace.buffer(buffer).outlives && last[buffer.index()] == made;
      }
      std::sort(users.begin(), users.end());
      users.erase(std::unique(users.begin(), users.end()), users.end());
      for (const std::uint32_t user : users) operands_[user].push_back(op);
      users_.push_back(static_cast<std::int64_t>(users.size()) + (in_root ? 1 : 0));
    }
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(dependencies_.before.size()); }
  const Ops& before(std::uint32_t op) const { return dependencies_.before[op]; }
  const Ops& after(std::uint32_t op) const { return dependencies_.after[op]; }
  /// Ops whose outputs an op reads.
  const Ops& operands(std::uint32_t op) const { return operands_[op]; }
  /// Number of ops that read the outputs of an op. The root counts as one; see XlaOrder for what it reads.
  std::int64_t users(std::uint32_t op) const { return users_[op]; }
  /// Number of ops that use a buffer.
  std::uint32_t uses(std::uint32_t buffer) const { return lifetimes_.count(buffer); }
  const Buffer& buffer(std::uint32_t id) const { return lifetimes_.trace().buffers()[id]; }
  /// Calls visit(buffer) for the buffers that an op uses and the step makes; parameters do not count.
  template <class Visit>
  void for_each_buffer(std::uint32_t op, Visit visit) const {
    for (const std::uint32_t id : lifetimes_.needed_by(op))
      if (!buffer(id).born_before) visit(id);
  }
  OpOrder order(Ops ops) const { return order_of(lifetimes_, std::move(ops), "xla"); }

 private:
  const Lifetimes& lifetimes_;
  const Dependencies& dependencies_;
  std::vector<Ops> operands_;        // by op
  std::vector<std::int64_t> users_;  // by op
};

/// XLA's ListScheduler: always the ready op that frees the most bytes, less those that it defines. Among equal ops, the
/// one with the most users, then the one that became ready last. An output that nobody reads is defined, but not freed.
class ListScheduler {
 public:
  explicit ListScheduler(const Module& module) : module_{module}, entries_(module.size(), ready_.end()) {}

  Ops schedule() {
    Ops waits(module_.size()), order;
    for (std::uint32_t op = 0; op < module_.size(); ++op) {
      waits[op] = static_cast<std::uint32_t>(module_.before(op).size());
      module_.for_each_buffer(op, [&](std::uint32_t id) { left_[id] = module_.uses(id); });
    }
    for (std::uint32_t op = 0; op < module_.size(); ++op)
      if (waits[op] == 0) add(op);
    while (!ready_.empty()) {
      const std::uint32_t op = std::prev(ready_.end())->second;
      ready_.erase(std::prev(ready_.end()));
      entries_[op] = ready_.end();
      order.push_back(op);
      bool adjust = false;
      module_.for_each_buffer(op, [&](std::uint32_t id) { adjust |= --left_[id] == 1; });
      for (const std::uint32_t next : module_.after(op))
        if (--waits[next] == 0) add(next);
      if (adjust) update();
    }
    return order;
  }

 private:
  using Priority = std::pair<Bytes, std::int64_t>;

  Priority priority(std::uint32_t op) const {
    Bytes freed;
    module_.for_each_buffer(op, [&](std::uint32_t id) {
      const Buffer& buffer = module_.buffer(id);
      if (left_.at(id) == module_.uses(id))
        freed -= buffer.size;
      else if (left_.at(id) == 1 && !buffer.outlives)
        freed += buffer.size;
    });
    return {freed, module_.users(op)};
  }
  void add(std::uint32_t op) { entries_[op] = ready_.emplace(priority(op), op); }
  /// Moves ready ops whose priority has changed.
  void update() {
    Ops changed;
    for (const auto& [old, op] : ready_)
      if (priority(op) != old) changed.push_back(op);
    std::sort(changed.begin(), changed.end());
    for (const std::uint32_t op : changed) ready_.erase(entries_[op]), add(op);
  }

  const Module& module_;
  std::map<std::uint32_t, std::uint32_t> left_;  // by buffer: number of ops that still use it
  std::multimap<Priority, std::uint32_t> ready_;
  std::vector<std::multimap<Priority, std::uint32_t>::iterator> entries_;  // by op
};

/// XLA's DFSMemoryScheduler: a post-order. The operands of an op come by decreasing numbers of users beyond the first,
/// then by decreasing bytes; both are sums over an operand, its own operands, and so on.
class DepthFirst {
 public:
  explicit DepthFirst(const Module& module) : module_{module} {
    Bytes all;
    const auto most = static_cast<std::int64_t>(module.size());
    for (std::uint32_t op = 0; op < module.size(); ++op) {
      Rank rank{.users = std::max<std::int64_t>(module.users(op) - 1, 0), .bytes = {}, .op = op};
      module.for_each_buffer(op, [&](std::uint32_t id) {
        if (defined_.size() <= id) defined_.resize(id + 1);
        if (!defined_[id]) rank.bytes += module.buffer(id).size;
        defined_[id] = true;
      });
      all += rank.bytes;
      for (const std::uint32_t operand : module.operands(op))
        rank.users += ranks_[operand].users, rank.bytes += ranks_[operand].bytes;
      rank.users = std::min(rank.users, most);
      rank.bytes = std::min(rank.bytes, all);
      ranks_.push_back(rank);
    }
  }

  /// @param ranked  false: operands in the recorded order, as in XLA's PostOrderScheduler
  Ops schedule(bool ranked) const {
    Ops roots, order;
    for (std::uint32_t op = 0; op < module_.size(); ++op)
      if (module_.after(op).empty()) roots.push_back(op);
    enum : std::uint8_t { kNew, kOpen, kDone };
    std::vector<std::uint8_t> state(module_.size(), kNew);
    Ops stack;
    const auto push = [&](Ops ops) {
      if (ranked)
        std::sort(ops.begin(), ops.end(), [&](std::uint32_t a, std::uint32_t b) { return ranks_[a] < ranks_[b]; });
      stack.insert(stack.end(), ops.rbegin(), ops.rend());
    };
    push(std::move(roots));  // the operands of a root tuple
    while (!stack.empty()) {
      const std::uint32_t op = stack.back();
      if (state[op] == kNew) {
        state[op] = kOpen;
        push(module_.before(op));
        continue;
      }
      stack.pop_back();
      if (state[op] == kOpen) order.push_back(op);
      state[op] = kDone;
    }
    return order;
  }

 private:
  struct Rank {
    std::int64_t users;
    Bytes bytes;
    std::uint32_t op;
    bool operator<(const Rank& other) const {
      if (users != other.users) return users > other.users;
      return bytes != other.bytes ? bytes > other.bytes : op < other.op;
    }
  };

  const Module& module_;
  std::vector<bool> defined_;  // by buffer
  std::vector<Rank> ranks_;    // by op
};

/// XLA's DefaultMemoryScheduler: the order with the lowest peak among three: the list schedule, the ranked post-order
/// and the plain one. Among equal peaks, the first of these wins. The recorded order stays if the step fits in it, if
/// the run makes a paper's assumptions (RunSpec::assume), or if the step cannot be reordered (can_be_reordered).
///
/// An op of the step stands for an instruction. An op whose output it reads stands for an operand, any other op that it
/// depends on for a control predecessor. The root reads the content that outlives the step, and the outputs of the ops
/// on which no op depends. A workspace is an output that nobody reads, as in XLA's calls of libraries. Ops keep all
/// their dependencies (see Reason); XLA knows only those by data. Other differences from XLA:
///   - XLA's list schedule runs scalars and outfeeds first, and infeeds last. Here they are ops like others.
///   - Its list schedule runs parameters too, as if they had no bytes. Here they exist from the beginning. So among
///     ready ops with equal bytes and users, another op may have become ready last. XLA adds the users of an op in
///     their order, then its control successors, and updates priorities in the order of operands; here both happen in
///     the order of op numbers.
///   - Its plain post-order visits control predecessors and then an instruction's operands in their order; here all
///     come in the recorded order. That order also decides between equal ranks, where XLA compares names.
/// O(ops * (ready ops + dependencies) * uses).
///
/// Source: OpenXLA (2025), xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc.
class XlaOrder final : public Policy {
 public:
  explicit XlaOrder(const Options& options) : scheduler_{options.word("scheduler")} {}

  std::shared_ptr<const OrderedStep> reorder(const Trace& trace, const RunSpec& spec) override {
    if (!spec.assume.name.empty() || !can_be_reordered(trace) ||
        simulate_under(trace, spec, {}, false).outcome == Outcome::kOk)
      return {};
    const Lifetimes lifetimes{trace};
    const Dependencies dependencies = dependencies_of(trace);
    const Module module{lifetimes, dependencies};
    std::vector<OpOrder> orders;
    const auto is_asked = [&](const char* name) { return scheduler_ == "default" || scheduler_ == name; };
    if (is_asked("list")) orders.push_back(module.order(ListScheduler{module}.schedule()));
    if (is_asked("dfs")) orders.push_back(module.order(DepthFirst{module}.schedule(true)));
    if (is_asked("postorder")) orders.push_back(module.order(DepthFirst{module}.schedule(false)));
    auto best = std::min_element(orders.begin(), orders.end(),
                                 [](const OpOrder& a, const OpOrder& b) { return a.peak < b.peak; });
    return std::make_shared<OrderedStep>(trace, step_order(std::move(*best), false));
  }

 private:
  std::string scheduler_;
};

const RegisterPolicy kXlaOrder{
    {.name = "xla-order",
     .kind = PolicyKind::kOrder,
     .summary = "runs the ops in the order of XLA's memory scheduler, and keeps everything",
     .paper = "OpenXLA, hlo_memory_scheduler.cc (2025)",
     .options = {{"scheduler", "default", "default|list|dfs|postorder", "default: the one with the lowest peak"}},
     .make = [](const Options& options) { return std::make_unique<XlaOrder>(options); }}};

}  // namespace
}  // namespace tidepool
