#include "tests/oracle/tiny_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/engine/host_pool.hpp"
#include "simulator/engine/links.hpp"
#include "traces/base/error.hpp"

namespace tidepool::optimum {
namespace {

void require_at_most(std::size_t count, std::size_t most, const char* what) {
  if (count > most)
    throw InputError{fmt::format("{} {}; expected at most {}: all plans of a step are tried", count, what, most)};
}

/// Refuses machines whose times depend on state that a State does not have.
void require_known(const Machine& machine, Bytes all) {
  const auto refuse = [&](const char* what) {
    throw InputError{
        fmt::format("machine {}: {}; the search does not model it; expected a machine without it", machine.name, what)};
  };
  if (machine.chunk != Bytes{}) refuse("copies are cut into pieces");
  if (machine.h2d.slowdown_ppm != 0 || machine.d2h.slowdown_ppm != 0) refuse("copies slow kernels down");
  if (machine.host.pin_latency > Nanos{} || machine.host.pin_rate != BytesPerSecond{}) refuse("pinning takes time");
  if (machine.host.capacity < all + all) refuse("the host's memory is limited");
}

}  // namespace

TinyStep::TinyStep(const Trace& trace, const Machine& where, Bytes limit, Freedom allowed)
    : machine{where}, freedom{allowed}, capacity{limit}, streams{trace.data().streams.size()} {
  require_at_most(trace.ops().size(), kMostOps, "ops");
  require_at_most(streams, kMostStreams, "streams");
  number_versions(trace);
  read_ops(trace);
  find_ends(trace);
  find_needs();
  price(trace);
  divide();
  if (freedom.swap) require_known(machine, std::accumulate(bytes.begin(), bytes.end(), Bytes{}));
  const bool apart = machine.h2d.duplex_ppm == kFullRate && machine.d2h.duplex_ppm == kFullRate;
  disturbed = freedom.swap && !apart;
  if (disturbed) require_at_most(versions(), kMostVersionsShared, "versions");
  if (disturbed && freedom.steady)
    throw InputError{fmt::format(
        "machine {}: copies of both directions slow each other down; expected a machine where they do not: its steady "
        "states are not searched",
        machine.name)};
  if (disturbed && streams > 1)
    throw InputError{fmt::format(
        "machine {}: copies of both directions slow each other down, and the step has {} streams; expected one",
        machine.name, streams)};
}

void TinyStep::number_versions(const Trace& trace) {
  for (std::size_t i = 0; i < trace.versions().size(); ++i)
    if (trace.versions()[i].kind != VersionKind::kView) named.push_back(VersionId{i});
  require_at_most(named.size(), kMostVersions, "versions");
  for (const VersionId v : named) {
    const Version& version = trace.version(v);
    const bool initial = version.kind == VersionKind::kInitial;
    const std::size_t number = producer.size();
    bytes.push_back(trace.size(v));
    producer.push_back(initial ? std::int8_t{-1} : static_cast<std::int8_t>(version.producer.value()));
    if (!initial) continue;
    if (trace.buffer(version.buffer).born_before)
      before_step.push_back(static_cast<std::uint8_t>(number));
    else
      undefined |= bit(number);
  }
}

void TinyStep::read_ops(const Trace& trace) {
  std::vector<std::uint8_t> number(trace.versions().size());
  for (std::size_t i = 0; i < named.size(); ++i) number[named[i].index()] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const Op& from = trace.ops()[i];
    TinyOp& to = op.emplace_back();
    to.duration = from.duration;
    to.stream = static_cast<std::uint8_t>(from.stream.value());
    to.source = from.kind == OpKind::kSource;
    to.host_wait = from.kind == OpKind::kHostWait;
    for (const Use& use : trace.uses(OpId{i}))
      if (use.in.valid()) to.reads |= bit(number[trace.root(use.in).index()]);
    require_at_most(trace.made(OpId{i}).size(), kMostOutputs, "outputs of one op");
    for (const VersionId made : trace.made(OpId{i})) {
      const Version& version = trace.version(made);
      TinyOp::Output& output = to.outputs[to.output_count++];
      output.version = number[made.index()];
      output.update = version.kind == VersionKind::kUpdate;
      if (version.parent.valid()) output.parent = static_cast<std::int8_t>(number[version.parent.index()]);
      if (version.parent.valid() && !output.update) overwritten |= bit(number[version.parent.index()]);
      to.makes |= bit(output.version);
    }
    if (!to.source) regenerable |= to.makes;
  }
  for (const Order& order : trace.data().orders) op[order.after.index()].after |= bit(order.before.index());
  orders = !trace.data().orders.empty();
}

void TinyStep::find_ends(const Trace& trace) {
  const auto number_of = [&](VersionId v) {
    return static_cast<std::uint8_t>(std::find(named.begin(), named.end(), v) - named.begin());
  };
  for (const VersionId v : trace.outputs()) outputs |= bit(number_of(trace.root(v)));
  outputs_of.resize(versions());
  std::vector<VersionId> last(trace.buffers().size());
  for (const VersionId v : named) last[trace.version(v).buffer.index()] = v;
  for (const std::uint8_t first : before_step) {
    const BufferId buffer = trace.version(named[first]).buffer;
    for_each(outputs, [&](std::size_t v) {
      if (trace.version(named[v]).buffer == buffer) outputs_of[first] |= bit(v);
    });
    if (!trace.buffer(buffer).outlives) continue;
    carried_first |= bit(first);
    carried.push_back({first, number_of(last[buffer.index()])});
  }
}

void TinyStep::find_needs() {
  needed.resize(ops() + 1);
  useful.resize(ops() + 1);
  may_run.resize(ops() + 1);
  const auto find_useful = [&](Set wanted) {
    for (bool grows = freedom.remat; grows;) {
      Set more = wanted;
      for (const TinyOp& each : op)
        if (!each.source && (each.makes & wanted) != 0) more |= each.reads;
      grows = more != wanted;
      wanted = more;
    }
    return wanted;
  };
  for (int round = 0; round < 2; ++round) {
    Set wanted = outputs;
    for (std::size_t position = ops() + 1; position-- > 0;) {
      if (position < ops()) wanted = (wanted & ~op[position].makes) | op[position].reads;
      needed[position] = wanted;
      Set later = 0;
      for (std::size_t k = position; k < ops(); ++k) later |= op[k].makes;
      useful[position] = find_useful(wanted) & ~later;
    }
    // Content that a later iteration reads must live until that iteration begins, even if it is no output.
    if (!freedom.steady || round > 0) break;
    for (const auto& [first, last] : carried)
      if (has(useful[0], first)) outputs |= bit(last);
  }
  for (std::size_t position = 0; position <= ops(); ++position)
    for (std::size_t k = 0; k < ops(); ++k)
      if (k >= position || (freedom.remat && !op[k].source && (op[k].makes & useful[position]) != 0))
        may_run[position] |= bit(op[k].stream);
}

void TinyStep::price(const Trace& trace) {
  submit = machine.submit;
  launch = machine.launch;
  for (const VersionId v : named) {
    const Bytes size = trace.size(v);
    time_in.push_back(machine.h2d.time(size));
    time_out.push_back(machine.d2h.time(size));
    time_copy.push_back(transfer_time(size, machine.device_copy));
  }
}

void TinyStep::scale(std::int64_t factor, Nanos by) {
  for (TinyOp& each : op) each.duration = each.duration * factor;
  for (auto* times : {&time_in, &time_out, &time_copy})
    for (Nanos& time : *times) time = time * factor;
  submit = submit * factor;
  launch = launch * factor;
  shift = by;
}

/// Finds the unit of addresses, the greatest common divisor of all sizes: in every layout, each place can be moved down
/// to a multiple of it.
void TinyStep::divide() {
  if (!freedom.addresses) return;
  std::int64_t common = 0, sum = 0;
  for (const Bytes size : bytes) common = std::gcd(common, size.count()), sum += size.count();
  unit = Bytes{std::max<std::int64_t>(common, 1)};
  units = static_cast<std::size_t>(std::min(capacity.count(), sum) / unit.count());
  require_at_most(units, kMostUnits, "places at which a buffer may begin");
}

}  // namespace tidepool::optimum
