#include "validator/execution/execute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "simulator/engine/memory_map.hpp"
#include "validator/execution/fingerprint.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr Bytes kFarthest{std::int64_t{1} << 62};  ///< beyond every address and every sum of sizes

template <class... Args>
[[noreturn]] void refuse(const Action& action, fmt::format_string<Args...> text, Args&&... args) {
  throw PlanError{to_text(action) + ": " + fmt::format(text, std::forward<Args>(args)...)};
}

class Walk {
 public:
  Walk(const Trace& trace, const Plan& plan, const ExecuteOptions& options, Backend& backend)
      : trace_{trace},
        plan_{plan},
        options_{options},
        backend_{backend},
        lanes_{static_cast<std::uint32_t>(trace.data().streams.size())},
        places_{lanes_.count()},
        versions_(trace.versions().size()),
        issued_(lanes_.count()),
        waited_(lanes_.count(), LaneNumbers(lanes_.count())),
        need_(lanes_.count()),
        awaited_(lanes_.streams, LaneNumbers(lanes_.count())),
        last_run_(trace.data().orders.empty() ? 0 : trace.ops().size()),
        is_output_(trace.versions().size()) {
    for (const VersionId output : trace.outputs()) is_output_[trace.root(output).index()] = true;
    for (const Action& action : plan.actions) has_segments_ |= action.verb == Verb::kReserve;
  }

  Bytes run() {
    for (index_ = 0; index_ < plan_.actions.size(); ++index_) apply(plan_.actions[index_]);
    check_outputs(true);
    return peak_;
  }

 private:
  struct State {
    std::uint32_t place = kNone;  ///< on the device
    std::uint32_t host = kNone;   ///< copy on the host
    bool filled = false;          ///< a fill, an op or a swap-in has written its content; a kCopy does not count
    bool met = false;             ///< had a place in this iteration, or its buffer was used in an earlier one
    bool checked = false;         ///< its content at the end was checked
  };
  struct Scratch {
    VersionId version;
    std::uint32_t place;
  };

  void apply(const Action& action) {
    const VersionId v{action.subject};
    switch (action.verb) {
      case Verb::kReserve:
        if (map_.overlaps(action.offset, action.size)) refuse(action, "part of it is mapped to other memory");
        if (!segments_.reserve(action.offset, action.size)) refuse(action, "part of it is reserved already");
        return;
      case Verb::kRelease:
        release(action);
        return;
      case Verb::kMap:
        if (!segments_.contain(kMapPage * action.subject, action.size))
          refuse(action, "the memory that it would show is not reserved");
        if (segments_.overlap(action.offset, action.size)) refuse(action, "part of it is reserved");
        if (!map_.map(action.offset, action.size, kMapPage * action.subject))
          refuse(action, "part of it shows memory already");
        return;
      case Verb::kUnmap:
        unmap(action);
        return;
      case Verb::kAlloc:
        alloc(action, v);
        return;
      case Verb::kScratch:
        scratch_.push_back({v, open(action, v)});
        return;
      case Verb::kFree:
        if (is_output_[v.index()]) check(v);
        end_place(v);
        end_host(v);
        return;
      case Verb::kRun:
        run(action, OpId{action.subject});
        return;
      case Verb::kCopy:
        copy(action, v);
        return;
      case Verb::kSwapOut:
        swap_out(action, v);
        return;
      case Verb::kSwapIn:
        swap_in(action, v);
        return;
      case Verb::kDrop:
        if (state(v).place == kNone) refuse(action, "it has no place");
        end_place(v);
        return;
      case Verb::kAwait:
        await(action, v);
        return;
      case Verb::kNext:
        next_iteration();
        return;
    }
  }

  State& state(VersionId v) { return versions_[v.index()]; }
  bool initial(VersionId v) const { return trace_.version(v).kind == VersionKind::kInitial; }
  bool from_before(VersionId v) const { return initial(v) && trace_.buffer(trace_.version(v).buffer).born_before; }

  /// Whether the version was on the host at the begin of the run and no action has used it since.
  bool untouched(VersionId v) const { return from_before(v) && !versions_[v.index()].met; }

  std::uint32_t open(const Action& action, VersionId v) {
    if (action.size < trace_.size(v))
      refuse(action, "{} bytes for a version of {}", action.size.count(), trace_.size(v).count());
    const bool has_addresses = action.offset != kNoAddress && action.size > Bytes{};
    const bool may_be_shown = has_addresses && !map_.empty();
    memory_.clear();
    if (may_be_shown) find_memory(action);
    if (has_segments_ && has_addresses && !may_be_shown && !segments_.contain(action.offset, action.size))
      refuse(action, "[{}, +{}) is not within what is reserved", action.offset.count(), action.size.count());
    if (trace_.size(v) >= kFarthest - held_) refuse(action, "all places together hold more than 2^62 bytes");
    const std::uint32_t place =
        may_be_shown ? places_.open(action.offset, action.size, memory_) : places_.open(action.offset, action.size);
    backend_.open(place, action.offset, action.size, false);
    held_ += trace_.size(v);
    peak_ = std::max(peak_, held_);
    return place;
  }

  /// Finds the memory behind a place, and checks that no other place has that memory. Backends give every mapping its
  /// own addresses, so they could not detect two places that share memory.
  void find_memory(const Action& action) {
    map_.for_each_piece(action.offset, action.size, [&](Bytes first, Bytes size) {
      if (!segments_.contain(first, size))
        refuse(action, "[{}, +{}) is not within what is reserved", first.count(), size.count());
      if (places_.open_within(first, size)) refuse(action, "[{}, +{}) is in use", first.count(), size.count());
      memory_.emplace_back(first, size);
    });
  }

  void unmap(const Action& action) {
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      if (versions_[i].place == kNone) continue;
      const Bytes first = places_.offset(versions_[i].place), size = places_.size(versions_[i].place);
      if (first < action.offset + action.size && action.offset < first + size)
        refuse(action, "version {} has its place there", i);
    }
    if (!map_.unmap(action.offset, action.size)) refuse(action, "part of it shows nothing");
  }

  std::uint32_t open_host(VersionId v) {
    const std::uint32_t place = places_.open(kNoAddress, trace_.size(v));
    backend_.open(place, kNoAddress, trace_.size(v), true);
    return place;
  }

  void close(std::uint32_t place) {
    places_.close(place);
    backend_.close(place);
  }

  void close_device(VersionId v, std::uint32_t place) {
    if (options_.clear) submit(TaskKind::kClear, lanes_.upkeep(), {}, {{v, place}});
    close(place);
    held_ -= trace_.size(v);
  }

  void end_place(VersionId v) {
    State& s = state(v);
    if (s.place == kNone) return;
    close_device(v, std::exchange(s.place, kNone));
    s.filled = false;
  }

  void end_host(VersionId v) {
    if (state(v).host != kNone) close(std::exchange(state(v).host, kNone));
  }

  void release(const Action& action) {
    if (const auto place = places_.open_within(action.offset, action.size)) {
      for (std::size_t i = 0; i < versions_.size(); ++i)
        if (versions_[i].place == *place) refuse(action, "version {} has its place there", i);
      refuse(action, "a scratch place is there");
    }
    if (!segments_.release(action.offset, action.size)) refuse(action, "part of it is not reserved");
  }

  void alloc(const Action& action, VersionId v) {
    State& s = state(v);
    if (s.place != kNone) refuse(action, "it has a place already");
    s.place = open(action, v);
    // Content from before the trace is filled in once. Memory that the program has not written gets, whenever it is
    // allocated, the content that stands for undefined memory.
    if (initial(v) && !(from_before(v) && s.met)) {
      submit(TaskKind::kFill, lanes_.upkeep(), {}, {{v, s.place}});
      s.filled = true;
    }
    s.met = true;
  }

  void copy(const Action& action, VersionId v) {
    const VersionId parent = trace_.version(v).parent;
    if (!parent.valid()) refuse(action, "it replaces no version");
    if (state(v).place == kNone) refuse(action, "it has no place to be copied to");
    if (state(parent).place == kNone) refuse(action, "version {} has no place to be copied from", parent.value());
    submit(TaskKind::kCopy, trace_.op(trace_.version(v).producer).stream.value(), {{parent, state(parent).place}},
           {{v, state(v).place}});
  }

  void swap_out(const Action& action, VersionId v) {
    State& s = state(v);
    if (s.place == kNone) refuse(action, "it has no place to be copied from");
    end_host(v);
    s.host = open_host(v);
    issued_after(action.before);
    submit(TaskKind::kSwapOut, lanes_.d2h(), {{v, s.place}}, {{v, s.host}});
  }

  void swap_in(const Action& action, VersionId v) {
    State& s = state(v);
    if (s.place != kNone) refuse(action, "it has a place already");
    if (s.host == kNone && from_before(v) && !s.met) {  // it was on the host when the run began
      s.host = open_host(v);
      submit(TaskKind::kFill, lanes_.upkeep(), {}, {{v, s.host}});
    }
    if (s.host == kNone) refuse(action, "it is not on the host");
    s.place = open(action, v);
    s.met = s.filled = true;
    issued_after(action.before);
    submit(TaskKind::kSwapIn, lanes_.h2d(), {{v, s.host}}, {{v, s.place}});
  }

  /// Adds the waits of a copy that is planned before an op: for all earlier tasks on the op's stream, and for the tasks
  /// that the stream awaits. If no op follows, this holds for all streams.
  void issued_after(OpId before) {
    for (std::uint32_t lane = 0; lane < lanes_.streams; ++lane) {
      if (before.valid() && lane != trace_.op(before).stream.value()) continue;
      need_[lane] = std::max(need_[lane], issued_[lane]);
      need_awaited(lane);
    }
  }

  /// Makes the next task of the op's stream, and all after it, wait for the latest writers of the version's places on
  /// the device and on the host.
  void await(const Action& action, VersionId v) {
    if (!action.before.valid()) refuse(action, "no op follows");
    LaneNumbers& awaited = awaited_[trace_.op(action.before).stream.index()];
    for (const std::uint32_t place : {state(v).place, state(v).host})
      if (place != kNone) places_.before_reading(place, awaited);
  }

  void need_awaited(std::uint32_t stream) {
    for (std::uint32_t other = 0; other < lanes_.count(); ++other)
      need_[other] = std::max(need_[other], awaited_[stream][other]);
  }

  void run(const Action& action, OpId op) {
    reads_.clear(), writes_.clear(), replaced_.clear();
    for (const Use& use : trace_.uses(op))
      if (use.out.valid() && use.access != Access::kView) choose_output(action, use.out);
    for (const Use& use : trace_.uses(op))
      if (use.in.valid() && use.access != Access::kView) choose_input(action, op, trace_.root(use.in));
    for (const Scratch& scratch : scratch_)
      if (std::none_of(writes_.begin(), writes_.end(), [&](const Operand& o) { return o.place == scratch.place; }))
        refuse(action, "it does not write version {}, for which there is a scratch place", scratch.version.value());

    for (const Order& order : orders_of(op)) {
      const std::uint32_t lane = trace_.op(order.before).stream.value();
      need_[lane] = std::max(need_[lane], last_run_[order.before.index()]);
    }
    const std::uint32_t lane = trace_.op(op).stream.value();
    submit(TaskKind::kRun, lane, reads_, writes_, op);
    if (!last_run_.empty()) last_run_[op.index()] = issued_[lane];

    for (const Operand& output : writes_)
      if (state(output.version).place == output.place) state(output.version).filled = true;
    for (const VersionId old : replaced_) {
      if (state(old).place != kNone)
        end_place(old);  // the op has updated it, with the new version in another place
      else
        end_host(old);
    }
    for (const Scratch& scratch : scratch_) close_device(scratch.version, scratch.place);
    scratch_.clear();
  }

  void choose_output(const Action& action, VersionId out) {
    if (std::any_of(writes_.begin(), writes_.end(), [&](const Operand& o) { return o.version == out; })) return;
    State& s = state(out);
    const VersionId parent = trace_.version(out).parent;
    const bool replaces = parent.valid() && !options_.copy_on_write && state(parent).place != kNone;
    if (s.place != kNone && !s.filled) {
      writes_.push_back({out, s.place});
    } else if (s.place != kNone) {
      const auto given =
          std::find_if(scratch_.begin(), scratch_.end(), [&](auto& each) { return each.version == out; });
      if (given == scratch_.end() && !replaces && trace_.size(out) > Bytes{})
        refuse(action, "version {} has its content already, and there is no other place to write it", out.value());
      if (given == scratch_.end() && replaces) replaced_.push_back(parent);
      const std::uint32_t own = replaces ? state(parent).place : s.place;
      writes_.push_back({out, given == scratch_.end() ? own : given->place});
    } else if (replaces) {
      writes_.push_back({out, state(parent).place});
      s.place = std::exchange(state(parent).place, kNone);
      s.met = true;
      state(parent).filled = false;
      replaced_.push_back(parent);
    } else if (trace_.size(out) > Bytes{}) {
      refuse(action, "version {} has no place to be written to", out.value());
    }
  }

  void choose_input(const Action& action, OpId op, VersionId in) {
    // A version that is updated in place is read where its successor is written, if the successor took over its place
    // or has a copy of its content.
    for (const Operand& output : writes_) {
      const Version& version = trace_.version(output.version);
      if (version.parent != in || version.producer != op) continue;
      const bool took_over = state(in).place == kNone;
      const bool copied = version.kind == VersionKind::kUpdate && !options_.copy_on_write &&
                          output.place == state(output.version).place;
      if (!took_over && !copied) continue;
      reads_.push_back({in, output.place});
      return;
    }
    if (state(in).place != kNone)
      reads_.push_back({in, state(in).place});
    else if (trace_.size(in) > Bytes{})
      refuse(action, "version {} has no place to be read from", in.value());
    else
      reads_.push_back({in, kNone});
  }

  std::span<const Order> orders_of(OpId op) const {
    const auto& orders = trace_.data().orders;
    const auto first =
        std::lower_bound(orders.begin(), orders.end(), op, [](auto& order, OpId id) { return order.after < id; });
    auto last = first;
    while (last != orders.end() && last->after == op) ++last;
    return {first, last};
  }

  void submit(TaskKind kind, std::uint32_t lane, std::initializer_list<Operand> reads,
              std::initializer_list<Operand> writes) {
    submit(kind, lane, std::span{reads.begin(), reads.size()}, std::span{writes.begin(), writes.size()}, OpId{});
  }

  void submit(TaskKind kind, std::uint32_t lane, std::span<const Operand> reads, std::span<const Operand> writes,
              OpId op) {
    for (const Operand& operand : reads)
      if (operand.place != kNone) places_.before_reading(operand.place, need_);
    for (const Operand& operand : writes) places_.before_writing(operand.place, need_);
    if (lane < lanes_.streams) need_awaited(lane);
    const Wait self{lane, ++issued_[lane]};
    waits_.clear();
    for (std::uint32_t other = 0; other < lanes_.count(); ++other) {
      if (other != lane && need_[other] > waited_[lane][other]) {
        waits_.push_back({other, need_[other]});
        waited_[lane][other] = need_[other];
      }
      need_[other] = 0;
    }
    for (const Operand& operand : reads)
      if (operand.place != kNone) places_.was_read(operand.place, self);
    for (const Operand& operand : writes) places_.was_written(operand.place, self);
    backend_.submit({kind, lane, self.number, index_, op, waits_, reads, writes});
  }

  void check(VersionId v) {
    State& s = state(v);
    if (s.place == kNone && s.host == kNone) return;
    submit(TaskKind::kCheck, lanes_.upkeep(), {{v, s.place != kNone ? s.place : s.host}}, {});
    s.checked = true;
  }

  /// Checks the outputs of the step at its end. Between two iterations (`all_are_there` is false), an output may be
  /// gone if it was checked when it was freed. An output that no action has used is not checked.
  /// @throws PlanError  for any other output that is gone and not empty
  void check_outputs(bool all_are_there) {
    for (const VersionId output : trace_.outputs()) {
      const VersionId root = trace_.root(output);
      const State& s = state(root);
      const bool there = s.place != kNone || s.host != kNone;
      if (there)
        check(root);
      else if (trace_.size(root) > Bytes{} && !untouched(root) && (all_are_there || !s.checked))
        throw PlanError{
            fmt::format("version {}, which the step leaves behind, is neither on the device nor on the host "
                        "when the step ends",
                        root.value())};
    }
  }

  void next_iteration() {
    check_outputs(false);
    std::vector<std::pair<VersionId, State>> carried;
    const std::vector<VersionId> last = last_versions(trace_);
    for (std::size_t i = 0; i < last.size(); ++i)
      if (trace_.buffers()[i].born_before && trace_.buffers()[i].outlives) {
        const bool met = !untouched(last[i]);
        carried.emplace_back(trace_.first_version(BufferId{i}), std::exchange(state(last[i]), State{}));
        carried.back().second.met = met;
      }
    for (std::size_t i = 0; i < versions_.size(); ++i) {
      end_place(VersionId{i});
      end_host(VersionId{i});
      versions_[i] = State{};
    }
    for (const auto& [first, carried_state] : carried) state(first) = carried_state;
    backend_.next_iteration();
  }

  const Trace& trace_;
  const Plan& plan_;
  const ExecuteOptions options_;
  Backend& backend_;
  const LaneTable lanes_;
  Places places_;
  Segments segments_;
  MemoryMap map_;
  std::vector<std::pair<Bytes, Bytes>> memory_;  ///< pieces behind the place that is being opened: begin, size
  bool has_segments_ = false;
  std::vector<State> versions_;
  std::vector<Scratch> scratch_;      ///< for versions that the next run writes again
  std::size_t index_ = 0;             ///< of the action being applied
  LaneNumbers issued_;                ///< number of tasks of each lane so far
  std::vector<LaneNumbers> waited_;   ///< [lane][other]: the last task of `other` that `lane` has waited for
  LaneNumbers need_;                  ///< by lane: the task that must end before the current one begins
  std::vector<LaneNumbers> awaited_;  ///< by stream: waits of its next task besides those for its operands
  LaneNumbers last_run_;              ///< by op: its latest run; only if the trace has orders
  std::vector<bool> is_output_;       ///< by version
  std::vector<Operand> reads_, writes_;
  std::vector<VersionId> replaced_;
  std::vector<Wait> waits_;
  Bytes held_, peak_;
};

}  // namespace

std::string LaneTable::name(const Trace& trace, std::uint32_t lane) const {
  if (lane < streams) return "stream " + trace.data().streams[lane];
  return lane == d2h() ? "d2h" : lane == h2d() ? "h2d" : "upkeep";
}

void require_known(const Trace& trace, const Plan& plan) {
  for (const Action& action : plan.actions) {
    if (action.before.valid() && action.before.index() >= trace.ops().size())
      refuse(action, "op {} is unknown; the trace has {}", action.before.value(), trace.ops().size());
    if (action.offset < kNoAddress || action.size < Bytes{} || action.offset >= kFarthest || action.size >= kFarthest)
      refuse(action, "[{}, +{}) is no range of addresses", action.offset.count(), action.size.count());
    if (action.verb == Verb::kReserve || action.verb == Verb::kRelease || action.verb == Verb::kMap ||
        action.verb == Verb::kUnmap) {
      if (action.offset == kNoAddress) refuse(action, "no address");
    } else if (action.verb == Verb::kRun) {
      if (action.subject >= trace.ops().size())
        refuse(action, "op {} is unknown; the trace has {}", action.subject, trace.ops().size());
    } else if (action.verb != Verb::kNext) {
      if (action.subject >= trace.versions().size())
        refuse(action, "version {} is unknown; the trace has {}", action.subject, trace.versions().size());
      if (trace.version(VersionId{action.subject}).kind == VersionKind::kView)
        refuse(action, "version {} is a view; places belong to the version it is a view of", action.subject);
    }
  }
}

Bytes execute(const Trace& trace, const Plan& plan, const ExecuteOptions& options, Backend& backend) {
  require_known(trace, plan);
  return Walk{trace, plan, options, backend}.run();
}

}  // namespace tidepool
