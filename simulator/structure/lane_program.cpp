#include "simulator/structure/lane_program.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "simulator/registry.hpp"

namespace tidepool {

class LaneProgram::Compiler {
 public:
  Compiler(const Trace& trace, const Machine& machine)
      : trace_{trace}, machine_{machine}, states_(trace.versions().size()) {
    program_.streams_ = static_cast<Register>(trace.data().streams.size());
    ends_ = program_.lanes() + static_cast<Register>(3 * trace.versions().size());
    program_.registers_ = ends_ + (trace.data().orders.empty() ? 0 : trace.ops().size());
  }

  std::optional<LaneProgram> run(const Plan& plan) {
    for (const Action& action : plan.actions) {
      program_.first_.push_back(static_cast<std::uint32_t>(program_.instructions_.size()));
      if (!compile(action)) return std::nullopt;
    }
    program_.first_.push_back(static_cast<std::uint32_t>(program_.instructions_.size()));
    return std::move(program_);
  }

 private:
  struct State {
    bool placed = false, filled = false;
  };

  void set(Register target, Nanos more, std::initializer_list<Register> sources) {
    sources_.insert(sources_.end(), sources);
    const auto first = static_cast<std::uint32_t>(program_.sources_.size());
    program_.sources_.insert(program_.sources_.end(), sources_.begin(), sources_.end());
    program_.instructions_.push_back({target, more, first, static_cast<std::uint32_t>(program_.sources_.size())});
    sources_.clear();
  }
  Register of(VersionId v, Register which) const { return program_.of(v, which); }

  /// What a copy waits for because of where it stands in the plan.
  void wait_for_position(OpId before) {
    if (before.valid())
      sources_.push_back(trace_.op(before).stream.value());
    else
      for (Register stream = 0; stream < program_.streams_; ++stream) sources_.push_back(stream);
  }

  bool compile(const Action& action) {
    const VersionId v{action.subject};
    switch (action.verb) {
      case Verb::kRun:
        run_op(OpId{action.subject});
        return true;
      case Verb::kAlloc:
        if (action.offset != kNoAddress) return false;
        give_place(v);
        states_[v.index()].filled = trace_.version(v).kind == VersionKind::kInitial;
        return true;
      case Verb::kScratch:
        has_scratch_ = true;
        scratched_.push_back(v);
        return action.offset == kNoAddress;
      case Verb::kFree:
      case Verb::kDrop:
        end_place(v);
        return true;
      case Verb::kCopy: {
        const VersionId from = trace_.version(v).parent;
        const Register stream = trace_.op(action.before).stream.value();
        set(stream, transfer_time(trace_.size(v), machine_.device_copy), {stream, of(from, kReady), of(v, kReady)});
        set(of(from, kLastUse), {}, {of(from, kLastUse), stream});
        set(of(v, kReady), {}, {stream});
        set(of(v, kLastUse), {}, {stream});
        return true;
      }
      case Verb::kSwapOut:
        submit();
        wait_for_position(action.before);
        set(program_.copies_out(), machine_.d2h.time(trace_.size(v)),
            {program_.copies_out(), of(v, kReady), program_.host()});
        set(of(v, kLastUse), {}, {of(v, kLastUse), program_.copies_out()});
        set(of(v, kOnHost), {}, {program_.copies_out()});
        return true;
      case Verb::kSwapIn:
        if (action.offset != kNoAddress) return false;
        submit();
        wait_for_position(action.before);
        set(program_.copies_in(), machine_.h2d.time(trace_.size(v)),
            {program_.copies_in(), of(v, kOnHost), program_.places(), program_.host()});
        set(of(v, kReady), {}, {program_.copies_in()});
        set(of(v, kLastUse), {}, {program_.copies_in()});
        states_[v.index()] = {true, true};
        return true;
      default:
        return false;
    }
  }

  void submit() {
    if (machine_.submit > Nanos{}) set(program_.host(), machine_.submit, {program_.host()});
  }

  void give_place(VersionId v) {
    set(of(v, kReady), {}, {program_.places()});
    set(of(v, kLastUse), {}, {program_.places()});
    states_[v.index()].placed = true;
  }

  void end_place(VersionId v) {
    if (!states_[v.index()].placed) return;
    set(program_.places(), {}, {program_.places(), of(v, kLastUse), of(v, kReady)});
    states_[v.index()] = {};
  }

  void run_op(OpId id) {
    const Op& op = trace_.op(id);
    const Register stream = op.stream.value();
    if (machine_.launch > Nanos{}) {
      set(program_.host(), machine_.launch, {program_.host()});
      sources_.push_back(program_.host());
    }
    for (const Use& use : trace_.uses(id))
      if (use.in.valid()) sources_.push_back(of(trace_.root(use.in), kReady));
    for (const VersionId made : trace_.made(id)) {
      const State& out = states_[made.index()];
      const VersionId parent = trace_.version(made).parent;
      if (out.placed && !out.filled)
        sources_.push_back(of(made, kReady));
      else if (parent.valid())
        sources_.push_back(of(parent, kLastUse));
    }
    if (has_scratch_) sources_.push_back(program_.places());
    const std::vector<Order>& orders = trace_.data().orders;
    while (next_order_ < orders.size() && orders[next_order_].after < id) ++next_order_;
    for (std::size_t i = next_order_; i < orders.size() && orders[i].after == id; ++i)
      sources_.push_back(ends_ + orders[i].before.value());
    set(stream, op.duration, {stream});
    if (!orders.empty()) set(ends_ + id.value(), {}, {stream});
    if (op.kind == OpKind::kHostWait) set(program_.host(), {}, {program_.host(), stream});
    for (const Use& use : trace_.uses(id))
      if (use.in.valid()) {
        const Register last_use = of(trace_.root(use.in), kLastUse);
        set(last_use, {}, {last_use, stream});
      }
    for (const VersionId made : trace_.made(id)) write(made, stream);
    if (has_scratch_ && program_.streams_ > 1) set(program_.places(), {}, {program_.places(), stream});
    has_scratch_ = false;
    scratched_.clear();
  }

  void write(VersionId made, Register stream) {
    State& out = states_[made.index()];
    const VersionId parent = trace_.version(made).parent;
    if (!out.placed || out.filled) {
      const bool scratch = std::find(scratched_.begin(), scratched_.end(), made) != scratched_.end();
      if ((out.filled && scratch) || !parent.valid() || !states_[parent.index()].placed) return;
      if (out.filled) return end_place(parent);
      out.placed = true;
      states_[parent.index()] = {};
    }
    out.filled = true;
    set(of(made, kReady), {}, {stream});
    set(of(made, kLastUse), {}, {stream});
  }

  const Trace& trace_;
  const Machine& machine_;
  LaneProgram program_;
  std::vector<State> states_;  // by version
  std::vector<Register> sources_;
  std::vector<VersionId> scratched_;
  Register ends_ = 0;  // of ops, where the trace has order edges
  std::size_t next_order_ = 0;
  bool has_scratch_ = false;
};

std::optional<LaneProgram> LaneProgram::compile(const Trace& trace, const RunSpec& spec, const Plan& plan) {
  constexpr std::int64_t kFull = 1'000'000;
  const Machine& machine = spec.machine;
  const bool disturbed = machine.h2d.duplex_ppm != kFull || machine.d2h.duplex_ppm != kFull ||
                         machine.h2d.slowdown_ppm != 0 || machine.d2h.slowdown_ppm != 0 || machine.chunk != Bytes{};
  const bool pins = machine.host.pin_latency != Nanos{} || machine.host.pin_rate != BytesPerSecond{};
  const bool stores = machine.storage.capacity > Bytes{};
  if (disturbed || pins || stores || !spec.assume.name.empty()) return std::nullopt;
  return Compiler{trace, machine}.run(plan);
}

void LaneProgram::run(std::vector<Nanos>& registers, std::size_t first, std::size_t last) const {
  for (std::uint32_t i = first_[first]; i < first_[last]; ++i) {
    const Instruction& one = instructions_[i];
    Nanos latest = registers[sources_[one.first_source]];
    for (std::uint32_t s = one.first_source + 1; s < one.last_source; ++s)
      latest = std::max(latest, registers[sources_[s]]);
    registers[one.target] = latest + one.more;
  }
}

Nanos LaneProgram::end(const std::vector<Nanos>& registers) const {
  return *std::max_element(registers.begin(), registers.begin() + host());
}

}  // namespace tidepool
