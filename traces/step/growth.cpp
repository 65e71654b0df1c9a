#include "traces/step/growth.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/iteration.hpp"
#include "traces/program_names.hpp"
#include "traces/step/holders.hpp"
#include "traces/step/structure.hpp"

namespace tidepool {
namespace {

constexpr std::size_t kLeastParts = 3;

/// Lowers the end of the last part to that of its last op: what the end of the program frees was kept until then.
void leave_out_exit(const Trace& trace, std::vector<std::size_t>& bounds) {
  while (bounds.back() > bounds.end()[-2] + 1 && trace.events()[bounds.back() - 1].kind != EventKind::kRun)
    --bounds.back();
}

/// The bounds of the copies of the outermost series of like allocations that covers most of them.
std::vector<std::size_t> repeated_allocations(const Trace& trace) {
  std::vector<std::size_t> position;
  std::vector<std::uint32_t> letters;
  std::map<std::tuple<Bytes, StringId, BufferKind>, std::uint32_t> known;
  for (std::size_t i = 0; i < trace.events().size(); ++i) {
    if (trace.events()[i].kind != EventKind::kAlloc) continue;
    const Buffer& buffer = trace.buffers()[trace.events()[i].id];
    position.push_back(i);
    letters.push_back(
        known.emplace(std::tuple{buffer.size, buffer.line, buffer.kind}, static_cast<std::uint32_t>(known.size()))
            .first->second);
  }
  const Structure found = find_structure(letters, std::vector<bool>(letters.size()));
  const Repeat* most = nullptr;
  for (const Repeat& each : found.repeats)
    if (each.outer == Repeat::kNone && each.copies >= kLeastParts && each.period * each.copies * 2 >= letters.size() &&
        (most == nullptr || each.period * each.copies > most->period * most->copies))
      most = &each;
  std::vector<std::size_t> bounds;
  if (most == nullptr) return bounds;
  for (std::uint32_t i = most->first; i < most->last(); i += most->period) bounds.push_back(position[i]);
  bounds.push_back(most->last() < position.size() ? position[most->last()] : trace.events().size());
  return bounds;
}

/// The least number of live bytes in each part.
class Least {
 public:
  explicit Least(std::size_t parts) : least_(parts) {}

  /// Before the first part.
  void start(Bytes bytes) { live_ += bytes; }
  void add(Bytes bytes, std::size_t part) {
    reach(part);
    live_ += bytes;
    least_[part] = std::min(least_[part], live_);
  }
  const std::vector<Bytes>& of_all_parts() {
    reach(least_.size() - 1);
    return least_;
  }

 private:
  /// Nothing has changed since the last call: all parts up to this one begin with what is live.
  void reach(std::size_t part) {
    for (; reached_ <= part; ++reached_) least_[reached_] = live_;
  }

  Bytes live_;
  std::size_t reached_ = 0;
  std::vector<Bytes> least_;
};

class Search {
 public:
  explicit Search(const Trace& trace) : trace_{trace}, names_{trace}, is_for_{ops_they_are_for(trace)} {}

  Growth run() {
    growth_.by_iteration = !trace_.ops().empty();
    growth_.bounds = growth_.by_iteration ? bounds_of_iterations(trace_) : repeated_allocations(trace_);
    if (growth_.parts() < kLeastParts) return {};
    if (growth_.by_iteration) leave_out_exit(trace_, growth_.bounds);
    find_groups();
    measure();
    make_rows();
    return std::move(growth_);
  }

 private:
  struct Group {
    explicit Group(std::size_t parts) : least{parts} {}

    GrowthRow row;
    Least least;
  };

  void find_groups() {
    std::map<std::pair<std::string, BufferKind>, std::size_t> known;
    for (std::size_t i = 0; i < trace_.buffers().size(); ++i) {
      const BufferId id{i};
      const std::string_view line = line_of(trace_, id, is_for_[i]);
      std::string cause = line.empty() ? names_.of(id).text : std::string{line};
      const BufferKind kind = trace_.buffer(id).kind;
      const auto [at, is_new] = known.emplace(std::pair{cause, kind}, groups_.size());
      if (is_new) {
        Group& group = groups_.emplace_back(growth_.parts());
        group.row.cause = std::move(cause);
        group.row.kind = kind;
      }
      group_.push_back(at->second);
    }
  }

  void measure() {
    Least all{growth_.parts()};
    std::vector<std::size_t> made(trace_.buffers().size());  // by buffer: the event behind that which made it; 0: freed
    std::size_t part = 0;
    std::size_t i = 0;
    const auto add = [&](std::size_t buffer, Bytes bytes) {
      for (Least* least : {&all, &groups_[group_[buffer]].least})
        i < growth_.bounds.front() ? least->start(bytes) : least->add(bytes, part);
    };
    for (std::size_t buffer = 0; buffer < trace_.buffers().size(); ++buffer)
      if (trace_.buffers()[buffer].born_before)
        for (Least* least : {&all, &groups_[group_[buffer]].least}) least->start(trace_.buffers()[buffer].size);
    for (; i < growth_.bounds.back(); ++i) {
      while (i >= growth_.bounds[part + 1]) ++part;
      const Event& event = trace_.events()[i];
      if (event.kind == EventKind::kAlloc) {
        if (i >= growth_.bounds[growth_.first()]) made[event.id] = i + 1;
        add(event.id, trace_.buffers()[event.id].size);
      } else if (event.kind == EventKind::kFree) {
        made[event.id] = 0;
        add(event.id, -trace_.buffers()[event.id].size);
      }
    }
    growth_.least = all.of_all_parts();
    for (std::size_t buffer = 0; buffer < made.size(); ++buffer) {
      if (made[buffer] == 0) continue;
      GrowthRow& row = groups_[group_[buffer]].row;
      ++row.kept;
      if (!row.newest.valid() || made[row.newest.index()] < made[buffer]) row.newest = BufferId{buffer};
    }
  }

  void make_rows() {
    for (Group& group : groups_) {
      const std::vector<Bytes>& least = group.least.of_all_parts();
      for (std::size_t i = growth_.first() + 1; i < growth_.parts(); ++i) group.row.grew += least[i] > least[i - 1];
      group.row.bytes = least.back() - least[growth_.first()];
      if (group.row.bytes > Bytes{} && group.row.grew * 2 >= growth_.times()) growth_.rows.push_back(group.row);
    }
    std::stable_sort(growth_.rows.begin(), growth_.rows.end(),
                     [](const GrowthRow& a, const GrowthRow& b) { return a.bytes > b.bytes; });
  }

  const Trace& trace_;
  ModuleNames names_;
  std::vector<OpId> is_for_;  // by buffer
  std::vector<Group> groups_;
  std::vector<std::size_t> group_;  // by buffer
  Growth growth_;
};

}  // namespace

Growth find_growth(const Trace& trace) { return Search{trace}.run(); }

}  // namespace tidepool
