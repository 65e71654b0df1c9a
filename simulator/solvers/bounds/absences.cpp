#include "simulator/solvers/bounds/absences.hpp"

#include <algorithm>
#include <optional>

namespace tidepool {
namespace {

/// The use of a buffer by one op, which may read and write it.
struct Touch {
  std::int64_t op = 0;
  bool reads = false, writes = false;
  VersionId after = {};  // content of the buffer after the op
};

/// Touches by buffer, one for each op that uses it, in program order.
std::vector<std::vector<Touch>> touches_of(const Trace& trace) {
  std::vector<std::vector<Touch>> touches(trace.buffers().size());
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const auto touch = [&](VersionId named, bool writes) {
      const VersionId root = trace.root(named);
      std::vector<Touch>& of_buffer = touches[trace.version(root).buffer.index()];
      if (of_buffer.empty() || of_buffer.back().op != static_cast<std::int64_t>(i))
        of_buffer.push_back({static_cast<std::int64_t>(i)});
      Touch& last = of_buffer.back();
      (writes ? last.writes : last.reads) = true;
      if (writes || !last.after.valid()) last.after = root;
    };
    for (const Use& use : trace.uses(OpId{i}))
      if (use.in.valid()) touch(use.in, false);
    for (const VersionId made : trace.made(OpId{i})) touch(made, true);
  }
  return touches;
}

class Finder {
 public:
  Finder(const Trace& trace, bool repeats)
      : trace_{trace},
        repeats_{repeats},
        n_{static_cast<std::int64_t>(trace.ops().size())},
        more_(trace.ops().size() + 1) {}

  Absences run() {
    result_.starts.reserve(trace_.ops().size() + 1);
    result_.starts.push_back({});
    for (const Op& op : trace_.ops()) result_.starts.push_back(result_.starts.back() + op.duration);
    std::vector<bool> handed_on(trace_.buffers().size());
    for (const VersionId named : trace_.outputs()) handed_on[trace_.version(trace_.root(named)).buffer.index()] = true;
    const std::vector<std::vector<Touch>> touches = touches_of(trace_);
    for (std::size_t b = 0; b < touches.size(); ++b)
      if (!touches[b].empty()) look_at(trace_.buffers()[b], BufferId{b}, touches[b], handed_on[b]);
    Bytes load;
    for (std::size_t i = 0; i < trace_.ops().size(); ++i) result_.load.push_back(load += more_[i]);
    return std::move(result_);
  }

 private:
  /// Counts a buffer's bytes during the ops [first, last), which may extend into the next iteration.
  void count(Bytes size, std::int64_t first, std::int64_t last) {
    const auto add = [&](std::int64_t a, std::int64_t b) {
      more_[static_cast<std::size_t>(a)] += size;
      more_[static_cast<std::size_t>(b)] -= size;
    };
    add(first, std::min(last, n_));
    if (last > n_) add(0, last - n_);
  }

  void look_at(const Buffer& buffer, BufferId id, const std::vector<Touch>& touches, bool handed_on) {
    const bool carried = repeats_ && buffer.born_before && buffer.outlives;
    std::int64_t written = Absence::kAlways;  // position of the writing op; kAlways: the host has content from before
    OpId producer;                            // only if it is in this iteration
    if (carried)
      for (const Touch& touch : touches)
        if (touch.writes) written = touch.op - n_;
    std::optional<std::size_t> beginning;
    if (buffer.born_before && !repeats_ && touches.front().reads) {
      beginning = result_.beginnings.size();
      result_.beginnings.push_back({buffer.size, touches.front().op});
    }
    VersionId content = trace_.first_version(id);
    const auto as_it_came = [&] {
      return !buffer.born_before && trace_.version(content).kind == VersionKind::kInitial;
    };
    std::int64_t free_from = 0;  // position after the last use
    for (std::size_t i = 0; i < touches.size(); ++i) {
      const Touch& touch = touches[i];
      count(buffer.size, touch.op, touch.op + 1);
      const bool from_before = i == 0;
      if (touch.reads && !as_it_came() && (!from_before || (buffer.born_before && !carried)))
        add(buffer, {content,
                     buffer.size,
                     free_from,
                     touch.op,
                     written,
                     touch.op,
                     producer,
                     {},
                     clean_from(beginning, written)});
      if (touch.writes) written = touch.op, producer = OpId{static_cast<std::size_t>(touch.op)};
      content = touch.after;
      free_from = touch.op + 1;
    }
    const Touch& first = touches.front();
    if (carried) {
      // From the last use to the first use in the next iteration. A buffer that is never written keeps its copy on the
      // host.
      if (first.reads)
        add(buffer, {content, buffer.size, free_from, n_ + first.op, written, n_ + first.op, producer, {}, {}});
    } else if (handed_on && !as_it_came()) {
      const bool may_end_on_host = repeats_ || buffer.born_before;
      add(buffer, {content,
                   buffer.size,
                   free_from,
                   n_,
                   written,
                   may_end_on_host ? Absence::kNever : n_,
                   producer,
                   {},
                   beginning});
    }
  }

  /// For content from before the step: the beginning that decides whether the host has a copy.
  static std::optional<std::size_t> clean_from(std::optional<std::size_t> beginning, std::int64_t written) {
    return written == Absence::kAlways ? beginning : std::nullopt;
  }

  void add(const Buffer& buffer, Absence absence) {
    if (absence.first >= absence.last) return;
    count(buffer.size, absence.first, absence.last);
    absence.buffer = trace_.version(absence.version).buffer;
    if (absence.copied_from != Absence::kAlways) ++absence.copied_from;  // when the writing op has ended
    result_.absences.push_back(absence);
  }

  const Trace& trace_;
  const bool repeats_;
  const std::int64_t n_;
  std::vector<Bytes> more_;  // by op: the change in needed bytes
  Absences result_;
};

}  // namespace

Absences find_absences(const Trace& trace, bool repeats) { return Finder{trace, repeats}.run(); }

}  // namespace tidepool
