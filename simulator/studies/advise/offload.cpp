#include "simulator/studies/advise/offload.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/studies/advise/step_uses.hpp"
#include "traces/builder.hpp"
#include "traces/copied.hpp"
#include "traces/step/module_calls.hpp"

namespace tidepool {
namespace {

const Op& op_at(const Trace& trace, std::size_t position) { return trace.op(OpId{trace.events()[position].id}); }

std::string_view module_at(const Trace& trace, std::size_t position) {
  return trace.text(op_at(trace, position).module);
}

Trace with_copies(const Trace& trace, const std::vector<SavedTensor>& saved, const std::vector<std::size_t>& end,
                  const Machine& machine) {
  TraceBuilder builder{trace.data().streams};
  const auto spec = [&](std::size_t i) { return copied(builder, trace, BufferId{i}); };
  std::multimap<std::size_t, const SavedTensor*> out, back, done;
  std::multimap<std::size_t, std::size_t> ends;
  for (const SavedTensor& each : saved) {
    out.emplace(each.out, &each);
    back.emplace(allocations_for(trace, each.first), &each);
    done.emplace(each.last, &each);
  }
  for (std::size_t i = 0; i < end.size(); ++i)
    if (end[i] != StepUses::kNowhere) ends.emplace(end[i], i);
  std::vector<BufferId> held(trace.buffers().size()), returned(held.size());
  for (std::size_t i = 0; i < held.size(); ++i)
    if (trace.buffers()[i].born_before) held[i] = builder.existing(spec(i));
  const auto copy = [&](const SavedTensor& each, std::size_t beside, bool to_host) {
    Op op{.name = builder.text(to_host ? "copy to host" : "copy from host"),
          .module = builder.text(each.module),
          .stream = op_at(trace, beside).stream,
          .kind = OpKind::kCopy,
          .phase = to_host ? Phase::kForward : Phase::kBackward};
    const Bytes size = trace.buffer(each.buffer).size;
    op.duration = (to_host ? machine.d2h : machine.h2d).time(size);
    const std::size_t i = each.buffer.index();
    builder.run(op, {{to_host ? held[i] : returned[i], to_host ? Access::kRead : Access::kWrite, Evidence::kSchema}});
  };
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    for (auto [at, stop] = back.equal_range(i); at != stop; ++at) {
      returned[at->second->buffer.index()] = builder.alloc(spec(at->second->buffer.index()));
      copy(*at->second, at->second->first, false);
    }
    const Event& event = trace.events()[i];
    if (event.kind == EventKind::kAlloc) held[event.id] = builder.alloc(spec(event.id));
    if (event.kind == EventKind::kFree && end[event.id] == StepUses::kNowhere) builder.free(held[event.id]);
    if (event.kind == EventKind::kRun) {
      std::vector<TraceBuilder::Touch> touches;
      for (const Use& use : trace.uses(OpId{event.id})) {
        const std::size_t buffer = buffer_of(trace, use).index();
        const BufferId used = returned[buffer].valid() ? returned[buffer] : held[buffer];
        if (builder.live(used) || use.evidence != Evidence::kParameter)
          touches.push_back({used, use.access, use.evidence});
      }
      builder.run(copied(builder, trace, OpId{event.id}), touches);
    }
    for (auto [at, stop] = out.equal_range(i); at != stop; ++at) copy(*at->second, i, true);
    for (auto [at, stop] = ends.equal_range(i); at != stop; ++at) builder.free(held[at->second]);
    for (auto [at, stop] = done.equal_range(i); at != stop; ++at)
      builder.free(std::exchange(returned[at->second->buffer.index()], BufferId{}));
  }
  builder.meta() = trace.data().meta;
  builder.losses() = trace.data().losses;
  return builder.finish();
}

}  // namespace

std::vector<SavedTensor> saved_tensors(const Trace& trace, const StepUses& uses, Bytes least) {
  // The position of the last forward op that uses the buffer and is in the module of the backward op at `by`.
  const auto saver = [&](BufferId buffer, std::size_t by) {
    const std::vector<StepUses::At>& all = uses.of(buffer).uses;
    const auto found = std::find_if(all.rbegin(), all.rend(), [&](const StepUses::At& at) {
      return at.position < by && op_at(trace, at.position).phase == Phase::kForward &&
             module_at(trace, at.position) == module_at(trace, by);
    });
    return found == all.rend() ? StepUses::kNowhere : found->position;
  };
  std::vector<SavedTensor> saved;
  std::map<std::uint32_t, std::size_t> before, now;  // buffers that the previous op and this op read: index in `saved`
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kRun) continue;
    now.clear();
    const OpId op{trace.events()[i].id};
    const std::string_view module = module_at(trace, i);
    if (trace.op(op).phase == Phase::kBackward && !module.empty())
      for (const Use& use : trace.uses(op)) {
        const BufferId buffer = buffer_of(trace, use);
        const bool reads = use.in.valid() && use.access != Access::kView;
        if (!reads || !counts(trace.uses(op), use) || now.contains(buffer.value())) continue;
        if (stays(trace.buffer(buffer).kind) || trace.buffer(buffer).size < least) continue;
        const auto open = before.find(buffer.value());
        if (open != before.end() && saved[open->second].module == module) {
          saved[open->second].last = i;
          now.emplace(buffer.value(), open->second);
        } else if (const std::size_t by = saver(buffer, i); by != StepUses::kNowhere) {
          now.emplace(buffer.value(), saved.size());
          saved.push_back({buffer, module, by, i, i});
        }
      }
    std::swap(before, now);
  }
  return saved;
}

OffloadedStep::OffloadedStep(const Trace& trace, const StepUses& uses, std::vector<SavedTensor> saved)
    : trace_{trace}, uses_{uses}, saved_{std::move(saved)}, end_(trace.buffers().size(), StepUses::kNowhere) {
  std::map<std::uint32_t, std::vector<const SavedTensor*>> by_buffer;
  for (const SavedTensor& each : saved_) by_buffer[each.buffer.value()].push_back(&each);
  for (const auto& [buffer, of_buffer] : by_buffer) find_end(BufferId{buffer}, of_buffer);
}

/// Finds the position after which the original of a buffer is freed on the device: the last use by an op that does not
/// read a copy of it or, if that is a forward op, the end of the program's last reference (StepUses::released()). Finds
/// none if something else holds the original as long as recorded.
void OffloadedStep::find_end(BufferId buffer, const std::vector<const SavedTensor*>& saved) {
  const StepUses::Life& life = uses_.of(buffer);
  if (life.alloc == StepUses::kNowhere || life.free == StepUses::kNowhere) return;  // the script holds it
  const auto copied = [&](std::size_t position) {
    return std::any_of(saved.begin(), saved.end(), [&](const SavedTensor* each) {
      return each->first <= position && position <= each->last && module_at(trace_, position) == each->module;
    });
  };
  std::size_t last = next_op(trace_, life.alloc), last_copied = 0;
  for (const StepUses::At& at : life.uses) (copied(at.position) ? last_copied : last) = at.position;
  if (last > last_copied) return;
  // Another reference holds a buffer that is freed only when backward is in another module.
  for (std::size_t i = last_copied + 1; i < life.free; ++i)
    if (trace_.events()[i].kind == EventKind::kRun && module_at(trace_, i) != module_at(trace_, last_copied)) return;
  end_[buffer.index()] = op_at(trace_, last).phase == Phase::kForward ? uses_.released(trace_, buffer, last) : last;
}

Bytes OffloadedStep::peak() const {
  const std::size_t steps = trace_.events().size();
  std::vector<Bytes> change(steps + 1);
  for (const SavedTensor& each : saved_) {
    change[allocations_for(trace_, each.first)] += trace_.buffer(each.buffer).size;
    change[each.last + 1] -= trace_.buffer(each.buffer).size;
  }
  for (std::size_t i = 0; i < end_.size(); ++i) {
    if (end_[i] == StepUses::kNowhere) continue;
    const BufferId buffer{i};
    change[end_[i] + 1] -= trace_.buffer(buffer).size;
    change[uses_.of(buffer).free] += trace_.buffer(buffer).size;
  }
  Bytes live;
  for (const Buffer& buffer : trace_.buffers())
    if (buffer.born_before) live += buffer.size;
  Bytes peak = live;
  for (std::size_t i = 0; i < steps; ++i) {
    live += change[i];
    const Event& event = trace_.events()[i];
    if (event.kind == EventKind::kFree) live -= trace_.buffer(BufferId{event.id}).size;
    if (event.kind == EventKind::kAlloc) live += trace_.buffer(BufferId{event.id}).size;
    peak = std::max(peak, live);
  }
  return peak;
}

Bytes OffloadedStep::copied() const {
  Bytes sum;
  for (const SavedTensor& each : saved_) sum += trace_.buffer(each.buffer).size;
  return sum;
}

Nanos OffloadedStep::copy_time(const Machine& machine) const {
  Nanos sum;
  for (const SavedTensor& each : saved_)
    sum += machine.d2h.time(trace_.buffer(each.buffer).size) + machine.h2d.time(trace_.buffer(each.buffer).size);
  return sum;
}

Trace OffloadedStep::trace(const Machine& machine) const { return with_copies(trace_, saved_, end_, machine); }

}  // namespace tidepool
