#include "simulator/studies/commands/fit_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "simulator/studies/commands/fit_stated.hpp"
#include "simulator/studies/fit/fit.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

double in_gib(Bytes size) { return static_cast<double>(size.count()) / (1 << 30); }

struct RankFit {
  Fit fit;
  /// Time since the job's start at which live bytes first exceed the device's free memory; if they never do, the time
  /// of the peak.
  Nanos at;
};

// Bytes of a communicator's buffers on each of its devices, by github.com/NVIDIA/nccl/issues/964.
constexpr Bytes kBuffersOfTwo{544 << 20}, kBuffersOfMore{688 << 20};
constexpr const char* kBuffersNote =
    "buffers of NCCL are assumed: 544 MiB for each group of two ranks that communicates, 688 MiB for each larger one, "
    "as "
    "measured on A100 with NVLink (github.com/NVIDIA/nccl/issues/964); low is without";

/// The bytes of NCCL's buffers on each rank. A group has some from its first collective on.
std::vector<Bytes> communicators_of(const Job& job) {
  std::set<std::size_t> used;
  for (const JobCollective& collective : job.collectives) used.insert(collective.group);
  std::vector<Bytes> bytes(job.ranks.size());
  for (const std::size_t index : used)
    if (const std::vector<std::size_t>& ranks = job.groups[index].ranks; ranks.size() > 1)
      for (const std::size_t rank : ranks) bytes[rank] += ranks.size() == 2 ? kBuffersOfTwo : kBuffersOfMore;
  return bytes;
}

/// The recorded start of each op or, without one, its launch. No op starts before the op that precedes it.
std::vector<Nanos> starts(const Trace& trace) {
  std::vector<Nanos> times;
  for (const Op& op : trace.ops())
    times.push_back(std::max(std::max(op.start, op.launch), times.empty() ? Nanos{} : times.back()));
  return times;
}

/// The op before which live bytes first exceed `room`; none if they never do.
OpId first_beyond(const Trace& trace, Bytes room) {
  Bytes live;
  bool beyond = false;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.born_before) live += buffer.size;
  for (const Event& event : trace.events()) {
    if (event.kind == EventKind::kAlloc) live += trace.buffer(BufferId{event.id}).size;
    if (event.kind == EventKind::kFree) live -= trace.buffer(BufferId{event.id}).size;
    beyond = beyond || live > room;
    if (beyond && event.kind == EventKind::kRun) return OpId{event.id};
  }
  return {};
}

std::vector<RankFit> fits_of(const LoadedJob& job, const std::string& path, const DeviceBudget& device,
                             const std::string& pool) {
  std::vector<RankFit> fits;
  const std::vector<Bytes> communicators = communicators_of(job.job);
  for (std::size_t rank = 0; rank < job.traces.size(); ++rank) {
    const Trace& trace = job.traces[rank];
    try {
      RankFit found{predict_fit(trace, device, pool, {}, communicators[rank]), job.job.ranks[rank].start};
      OpId at = first_beyond(trace, found.fit.available);
      if (!at.valid()) at = found.fit.peak.op;
      if (at.valid()) found.at += starts(trace)[at.index()];
      fits.push_back(std::move(found));
    } catch (const InputError& error) {
      throw error.at(fmt::format("{}: rank {}", path, rank));
    }
  }
  return fits;
}

/// The rank that runs out of memory first; if all ranks fit, the rank that takes the most memory.
std::size_t first_rank(const std::vector<RankFit>& fits) {
  const auto first = std::min_element(fits.begin(), fits.end(), [](const RankFit& a, const RankFit& b) {
    if (a.fit.fits != b.fit.fits) return !a.fit.fits;
    return a.fit.fits ? a.fit.predicted > b.fit.predicted : a.at < b.at;
  });
  return static_cast<std::size_t>(first - fits.begin());
}

bool ran_out(const std::vector<RankFit>& fits) {
  return std::ranges::any_of(fits, [](const RankFit& each) { return each.fit.unknown_beyond; });
}

/// Whether a verdict is impossible: the recorded part of every rank fits, but a rank ran out of memory where it was
/// recorded, or some recordings have no training step.
bool cannot_tell(const LoadedJob& job, const std::vector<RankFit>& fits) {
  return fits[first_rank(fits)].fit.fits && (ran_out(fits) || std::ranges::any_of(job.traces, lacks_training));
}

void print(const LoadedJob& job, const std::string& path, const std::vector<RankFit>& fits) {
  const std::size_t first = first_rank(fits);
  const Fit& fit = fits[first].fit;
  const bool certain =
      std::ranges::all_of(fits, [&](const RankFit& each) { return each.fit.certain || each.fit.fits != fit.fits; });
  const Bytes total = fit.device->total;
  const std::string sizes = fmt::format("{:.2f} of {:.2f} GiB", in_gib(fit.predicted), in_gib(total));
  if (cannot_tell(job, fits))
    fmt::print(
        "cannot tell: {}; until then rank {} takes most: {}\n",
        ran_out(fits) ? "the job ran out of memory where it was recorded" : "the traces end before a training step",
        first, sizes);
  else if (fit.fits)
    fmt::print("all ranks fit; rank {} takes most: {}, margin {}{}\n", first, sizes, to_text(fit.margin),
               certain ? "" : "; not for certain");
  else
    fmt::print("does not fit: rank {} runs out first, {} after the job's start: {}, {} too much{}\n", first,
               to_text(fits[first].at), sizes, to_text(-fit.margin), certain ? "" : "; not for certain");
  fmt::print("\n{} on {}\n{:>6}  {:<5} {:>12} {:>12} {:>12} {:>12} {:>12}  {}\n", printable(path), text_of(*fit.device),
             "rank", "fits", "predicted", "low", "high", "reserved", "alive", "peak before");
  for (std::size_t rank = 0; rank < fits.size(); ++rank) {
    const Fit& each = fits[rank].fit;
    const Trace& trace = job.traces[rank];
    const OpId at = each.peak.op;
    fmt::print("{:>6}  {:<5} {:>12} {:>12} {:>12} {:>12} {:>12}  {}\n", rank, each.fits ? "yes" : "no",
               to_text(each.predicted), to_text(each.low), to_text(each.high), to_text(each.reserved),
               to_text(each.peak.live),
               at.valid() ? fmt::format("op {}, {}", at.index(), trace.text(trace.op(at).name)) : "the end");
  }
}

Json to_json(const LoadedJob& job, const std::string& path, const std::vector<RankFit>& fits) {
  Json ranks = Json::array();
  for (const RankFit& each : fits)
    ranks.push_back({{"fits", each.fit.fits},
                     {"certain", each.fit.certain},
                     {"predicted_bytes", each.fit.predicted.count()},
                     {"low_bytes", each.fit.low.count()},
                     {"high_bytes", each.fit.high.count()},
                     {"reserved_bytes", each.fit.reserved.count()},
                     {"live_bytes", each.fit.peak.live.count()},
                     {"at_ns", each.at.count()}});
  const std::size_t first = first_rank(fits);
  return {{"job", path},
          {"device", fits.front().fit.device->name},
          {"fits", cannot_tell(job, fits) ? Json(nullptr) : Json(fits[first].fit.fits)},
          {"capacity_bytes", fits.front().fit.device->total.count()},
          {"first_rank", first},
          {"ranks", std::move(ranks)}};
}

}  // namespace

int judge_ranks(const LoadedJob& job, const std::string& path, const DeviceBudget& device, const std::string& pool,
                bool json) {
  const std::vector<RankFit> fits = fits_of(job, path, device, pool);
  if (json)
    fmt::print("{}\n", json_text(to_json(job, path, fits)));
  else
    print(job, path, fits);
  std::set<std::string> notes;
  if (std::ranges::any_of(communicators_of(job.job), [](Bytes bytes) { return bytes > Bytes{}; }))
    notes.insert(kBuffersNote);
  for (const RankFit& each : fits) {
    notes.insert(each.fit.notes.begin(), each.fit.notes.end());
    for (std::string& note : stated_notes(each.fit)) notes.insert(std::move(note));
  }
  for (const Trace& trace : job.traces)
    if (const std::string failure = failure_of(trace); !failure.empty())
      notes.insert(fmt::format("the job failed: {}; what it did until then is judged", failure));
  for (const std::string& note : notes) say("{}: {}\n", path, note);
  return cannot_tell(job, fits) ? 1 : 0;
}

}  // namespace tidepool
