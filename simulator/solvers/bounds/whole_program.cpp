#include "simulator/solvers/bounds/whole_program.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "simulator/solvers/bounds/absent_sets.hpp"
#include "simulator/solvers/bounds/linear_program.hpp"

namespace tidepool {
namespace {

using Variable = std::uint32_t;

double nanos(Nanos time) { return static_cast<double>(time.count()); }

/// A sum of variables and a constant.
struct Sum {
  std::vector<std::pair<Variable, double>> terms = {};
  double constant = 0;

  Sum& add(std::optional<Variable> variable, double factor = 1) {
    if (variable) terms.emplace_back(*variable, factor);
    return *this;
  }
  Sum& add(const Sum& other, double factor = 1) {
    for (const auto& [variable, one] : other.terms) terms.emplace_back(variable, one * factor);
    constant += other.constant * factor;
    return *this;
  }
};

/// Variables of successive segments or instants, from `first` on.
struct Line {
  std::int64_t first = 0;
  std::vector<Variable> variables = {};

  std::optional<Variable> at(std::int64_t t) const {
    if (t < first || t >= first + std::ssize(variables)) return std::nullopt;
    return variables[static_cast<std::size_t>(t - first)];
  }
};

/// A copy that must take place in the segments [from, until] if its variable is 1.
struct Job {
  std::int64_t from = 0, until = 0;
  double time = 0;
  Variable variable = 0;
};

/// A row that demands that copies fit into segments [from, until].
struct Window {
  std::uint32_t row = 0;
  std::int64_t from = 0, until = 0;
};

enum class Need : std::uint8_t {
  kNone,
  kRead,  ///< until the op begins; the op replaces it
  kHeld   ///< all through the op
};

class Program {
 public:
  Program(const StepContents& step, const Machine& machine, const WholeQuery& query)
      : step_{step}, machine_{machine}, query_{query}, n_{step.positions - 1}, instants_{2 * n_ + 1} {
    choose_unit();
    for (std::int64_t k = 0; k <= n_; ++k) lost_.push_back(program_.variable(0, longest_, 1));
    if (query.remat) add_reruns();
    for (std::uint32_t c = 0; c < step.contents.size(); ++c) add_variables(c);
    for (std::uint32_t c = 0; c < step.contents.size(); ++c) add_flow(c);
    for (std::uint32_t c = 0; c < step.contents.size(); ++c) add_host(c);
    for (std::int64_t t = 0; t < instants_; ++t) add_memory(t);
    if (query.remat) limit_reruns();
    out_windows_ = add_windows(outs_);
    in_windows_ = add_windows(ins_);
  }

  WholeBound solve() const {
    if (!feasible_) return {.feasible = false, .stall = 0, .lost = {}};
    const LinearProgram::Solution relaxed = program_.solve_relaxed({});
    if (relaxed.status == LinearProgram::Status::kInfeasible) return {};  // the solver does not prove it
    WholeBound bound{.feasible = true, .stall = in_nanos(relaxed.bound, 1e-9), .lost = lost_time(relaxed)};
    if (query_.most_nodes == 0) return bound;
    // The result of branch and bound holds within the solver's tolerances.
    const LinearProgram::Solution whole = program_.solve({.time = {}, .stop = nullptr, .nodes = query_.most_nodes});
    if (whole.status != LinearProgram::Status::kInfeasible)
      bound.stall = std::max(bound.stall, in_nanos(whole.bound - 1e-6, 1e-6));
    return bound;
  }

 private:
  // --- time: instants 2k and 2k + 1 are the beginning and the end of op k, the last one is the end of the step.
  // Segment 2k is the slot before op k, segment 2k + 1 is op k.

  std::int64_t within(std::int64_t t) const { return ((t % instants_) + instants_) % instants_; }
  std::int64_t position(std::int64_t t) const { return t / instants_ * step_.positions + within(t) / 2; }
  std::int64_t begin(std::int64_t position) const {
    return position / step_.positions * instants_ + position % step_.positions * 2;
  }
  std::int64_t end(std::int64_t position) const {
    if (position < 0) return -1;
    return begin(position) + (position % step_.positions < n_ ? 1 : 0);
  }
  static bool is_slot(std::int64_t segment_within) { return segment_within % 2 == 0; }
  double duration(std::int64_t op) const { return nanos(step_.duration[static_cast<std::size_t>(op)]) / unit_; }
  /// The duration of a segment.
  Sum length(std::int64_t segment) const {
    const std::int64_t s = within(segment);
    Sum sum;
    if (is_slot(s))
      sum.add(lost_[static_cast<std::size_t>(s / 2)]);
    else
      sum.constant = duration(s / 2);
    return sum;
  }

  void choose_unit() {
    double work = 0, copies = 0, largest = 1;
    for (const Nanos one : step_.duration) work += nanos(one), largest = std::max(largest, nanos(one));
    for (const StepContent& content : step_.contents) {
      out_time_.push_back(copy_time(content.size, machine_.d2h, machine_.storage.write));
      in_time_.push_back(copy_time(content.size, machine_.h2d, machine_.storage.read));
      copies += out_time_.back() + in_time_.back();
      largest = std::max({largest, out_time_.back(), in_time_.back()});
    }
    unit_ = largest;
    // Upper limit: before every op, the step waits for all copies and runs all ops again.
    longest_ = (work + copies) * static_cast<double>(n_ + 1) / unit_;
    for (std::vector<double>* times : {&out_time_, &in_time_})
      for (double& time : *times) time /= unit_;
  }
  double in_nanos(double time, double error) const {
    return std::max(0.0, std::min(time, longest_) * unit_ * (1 - error) - 1);
  }
  /// ns of a copy that has its link to itself. With two tiers: as if the copy used the links of both.
  double copy_time(Bytes size, const Link& link, const Link& tier) const {
    const Cut cut = machine_.cut(size);
    Nanos time;
    for (std::int64_t i = 0; i < cut.count; ++i) time += link.time(std::min(cut.size, size - cut.size * i));
    const double alone = std::max(nanos(time), 1.0);
    if (machine_.storage.capacity == Bytes{}) return alone;
    return 1 / (1 / alone + 1 / std::max(nanos(tier.time(size)), 1.0));
  }

  Variable decision() { return query_.most_nodes > 0 ? program_.integer(0, 1, 0) : program_.variable(0, 1, 0); }

  /// Adds the row lower <= sum, and returns it.
  std::uint32_t at_least(const Sum& sum, double lower) {
    const std::uint32_t row = program_.row(lower - sum.constant, LinearProgram::kInfinity);
    for (const auto& [variable, factor] : sum.terms) program_.add(row, variable, factor);
    return row;
  }
  std::uint32_t at_most(const Sum& smaller, const Sum& larger) { return at_least(Sum{larger}.add(smaller, -1), 0); }

  // --- running again

  void add_reruns() {
    again_.resize(static_cast<std::size_t>(n_));
    for (std::int64_t o = 0; o < n_; ++o) {
      const OpId op{static_cast<std::size_t>(o)};
      const bool any = std::any_of(step_.contents.begin(), step_.contents.end(),
                                   [&](const StepContent& content) { return content.producer == op; });
      again_[op.index()].first = o + 1;
      for (std::int64_t k = o + 1; any && k <= n_; ++k) again_[op.index()].variables.push_back(decision());
    }
    for (std::int64_t k = 0; k <= n_; ++k) {
      Sum work;
      for (std::int64_t o = 0; o < k; ++o) work.add(again(o, k), duration(o));
      if (!work.terms.empty()) work_rows_.emplace_back(at_most(work, length(2 * k)), k);
    }
  }
  /// The variable for op o running again before op k, if there is one.
  std::optional<Variable> again(std::int64_t o, std::int64_t k) const {
    return again_[static_cast<std::size_t>(o)].at(k);
  }
  /// The variable for a content's op running again in a segment, if there is one.
  std::optional<Variable> made_again(const StepContent& content, std::int64_t segment) const {
    if (!content.producer.valid() || segment >= instants_ || !is_slot(segment)) return std::nullopt;
    return again(content.producer.value(), segment / 2);
  }

  // --- contents

  Need need(const StepContent& content, std::int64_t t) const {
    const std::int64_t p = position(t);
    if (p == content.made) return content.held_when_made ? Need::kHeld : Need::kNone;
    if (p == n_ && content.end == StepContent::End::kDevice) return Need::kHeld;
    for (const StepContent::Use& use : content.uses)
      if (use.position == p) return use.held ? Need::kHeld : is_slot(within(t)) ? Need::kRead : Need::kNone;
    return Need::kNone;
  }
  /// The slot before the next op that needs the content, at or after this segment.
  std::optional<std::int64_t> due(const StepContent& content, std::int64_t segment) const {
    for (const StepContent::Use& use : content.uses)
      if (begin(use.position) >= segment) return begin(use.position);
    if (is_always(content) && !content.uses.empty()) return begin(content.uses.front().position) + instants_;
    if (content.end == StepContent::End::kDevice && segment <= 2 * n_) return 2 * n_;
    return std::nullopt;
  }
  static bool is_always(const StepContent& content) { return content.origin == StepContent::Origin::kAlways; }
  std::int64_t first_segment(const StepContent& content) const { return end(content.made) + 1; }
  std::int64_t last_instant(const StepContent& content) const { return end(content.last); }

  void add_variables(std::uint32_t c) {
    const StepContent& content = step_.contents[c];
    Line there{begin(std::max<std::int64_t>(content.made, 0)), {}}, in{first_segment(content), {}}, out = in;
    for (std::int64_t t = there.first; t <= last_instant(content); ++t)
      there.variables.push_back(need(content, t) == Need::kHeld ? program_.variable(1, 1, 0) : decision());
    for (std::int64_t t = in.first; query_.swap && t <= last_instant(content); ++t) {
      in.variables.push_back(program_.variable(0, 1, 0));
      // A step that is not repeated ends only when its last copy has ended.
      const std::optional<std::int64_t> until = due(content, t);
      if (until || !query_.repeats) ins_.push_back({t, until.value_or(2 * n_), in_time_[c], in.variables.back()});
      if (is_always(content)) continue;
      out.variables.push_back(program_.variable(0, 1, 0));
      outs_.push_back({out.first, t, out_time_[c], out.variables.back()});
    }
    there_.push_back(std::move(there));
    in_.push_back(std::move(in));
    out_.push_back(std::move(out));
    began_.emplace_back();
    if (content.origin == StepContent::Origin::kBefore)
      began_.back() = query_.swap ? decision() : program_.variable(0, 0, 0);
  }

  /// 1 if the content is in memory when a segment begins.
  Sum there_before(std::uint32_t c, std::int64_t segment) const {
    Sum sum;
    if (is_always(step_.contents[c])) return sum.add(there_[c].at(within(segment - 1)));
    if (segment > 0 || !began_[c]) return sum.add(there_[c].at(segment - 1));
    sum.constant = 1;
    return sum.add(began_[c], -1);
  }
  /// 1 if the content comes into memory in a segment.
  Sum comes(std::uint32_t c, std::int64_t segment) const {
    const StepContent& content = step_.contents[c];
    return Sum{}.add(in_[c].at(is_always(content) ? within(segment) : segment)).add(made_again(content, segment));
  }
  Sum available(std::uint32_t c, std::int64_t segment) const { return there_before(c, segment).add(comes(c, segment)); }
  /// 1 if the host has the content at the end of a segment.
  Sum on_host(std::uint32_t c, std::int64_t segment) const {
    Sum sum;
    if (is_always(step_.contents[c])) sum.constant = query_.swap ? 1 : 0;
    sum.add(began_[c]);
    for (std::int64_t t = out_[c].first; t <= segment; ++t) sum.add(out_[c].at(t));
    return sum;
  }

  void add_flow(std::uint32_t c) {
    const StepContent& content = step_.contents[c];
    for (std::int64_t t = first_segment(content); t <= last_instant(content); ++t) {
      if (need(content, t) == Need::kNone)
        at_most(Sum{}.add(there_[c].at(t)), available(c, t));
      else
        at_least(available(c, t), 1);
    }
  }

  void add_host(std::uint32_t c) {
    const StepContent& content = step_.contents[c];
    Sum copies;
    for (const Variable out : out_[c].variables) copies.add(out);
    if (copies.terms.size() > 1) at_most(copies, Sum{{}, 1});
    for (std::int64_t t = first_segment(content); t <= last_instant(content); ++t) {
      if (need(content, t) != Need::kNone) continue;
      const std::optional<std::int64_t> until = due(content, t + 1);
      const bool wanted_at_end = content.end != StepContent::End::kNone && t <= 2 * n_;
      if (!until && !wanted_at_end) continue;
      Sum sum = on_host(c, t).add(there_[c].at(t));
      for (std::int64_t s = t + 1; s <= until.value_or(2 * n_); ++s) sum.add(made_again(content, s));
      at_least(sum, 1);
    }
    if (content.end != StepContent::End::kBegan || !query_.swap) return;
    Sum began;
    for (std::uint32_t d = 0; d < step_.contents.size(); ++d)
      if (step_.contents[d].buffer == content.buffer) began.add(began_[d]);
    at_least(began.add(there_[c].at(2 * n_)), 1);
  }

  // --- memory

  struct Place {
    std::uint32_t content;
    std::int64_t instant;
  };
  /// Contents that may be in memory at an instant besides the working set.
  std::vector<Place> beside(std::int64_t t) const {
    std::vector<Place> found;
    for (std::uint32_t c = 0; c < step_.contents.size(); ++c)
      for (const std::int64_t at : {t, t + instants_})
        if (there_[c].at(at) && need(step_.contents[c], at) != Need::kHeld) found.push_back({c, at});
    return found;
  }

  void add_memory(std::int64_t t) {
    const std::vector<Place> places = beside(t);
    std::vector<Bytes> sizes;
    Bytes excess = step_.working_set[static_cast<std::size_t>(position(t))] - query_.capacity;
    for (const Place& place : places) {
      sizes.push_back(step_.contents[place.content].size);
      excess += sizes.back();
    }
    if (excess <= Bytes{}) return;
    const AbsentSets absent = absent_sets(sizes, excess);
    feasible_ = feasible_ && absent.possible;
    if (!absent.possible) return;
    std::vector<Sum> away(places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      away[i] = Sum{{}, 1}.add(there_[places[i].content].at(places[i].instant), -1);
    if (absent.sets.empty()) {
      Sum bytes;
      for (std::size_t i = 0; i < places.size(); ++i)
        bytes.add(away[i], static_cast<double>(sizes[i].count()) / static_cast<double>(absent.least.count()));
      at_least(bytes, 1);
      return;
    }
    Sum weights;
    std::vector<Sum> of_sets(places.size());
    for (const std::vector<std::uint32_t>& set : absent.sets) {
      const Variable weight = program_.variable(0, 1, 0);
      weights.add(weight);
      for (const std::uint32_t i : set) of_sets[i].add(weight);
    }
    at_least(weights, 1);
    for (std::size_t i = 0; i < places.size(); ++i)
      if (!of_sets[i].terms.empty()) at_most(of_sets[i], away[i]);
  }

  /// Adds rows for ops that run again: their inputs are in memory, and contents that stay through the slot fit beside
  /// them.
  void limit_reruns() {
    for (std::int64_t k = 1; k <= n_; ++k) {
      std::vector<std::pair<Place, Variable>> stays;
      for (const Place& place : through(k)) stays.emplace_back(place, add_stay(place));
      for (std::int64_t o = 0; o < k; ++o) {
        const std::optional<Variable> run = again(o, k);
        if (!run) continue;
        const Sum runs = Sum{}.add(run);
        for (const ContentInput& input : step_.inputs[static_cast<std::size_t>(o)])
          at_most(runs, available(input.content, 2 * k + input.shift / step_.positions * instants_));
        Sum bytes;
        const auto part = [&](Bytes size) {
          return static_cast<double>(size.count()) / static_cast<double>(query_.capacity.count());
        };
        bytes.add(run, part(step_.working_set[static_cast<std::size_t>(o)]));
        for (const auto& [place, stay] : stays) {
          const StepContent& content = step_.contents[place.content];
          if (need(content, place.instant - 2 * k + 2 * o) == Need::kHeld) continue;  // part of its working set
          bytes.add(stay, part(content.size));
        }
        if (bytes.terms.size() > 1) at_most(bytes, Sum{{}, 1});
      }
    }
  }
  /// Contents that may be in memory all through the slot before op k.
  std::vector<Place> through(std::int64_t k) const {
    std::vector<Place> found;
    for (std::uint32_t c = 0; c < step_.contents.size(); ++c)
      for (const std::int64_t at : {2 * k, 2 * k + instants_})
        if (at >= first_segment(step_.contents[c]) && there_[c].at(at)) found.push_back({c, at});
    return found;
  }
  /// A variable that is 1 if a content is in memory at an instant and did not come in the slot before.
  Variable add_stay(const Place& place) {
    const Variable stay = program_.variable(0, 1, 0);
    Sum least = comes(place.content, place.instant);
    for (auto& [variable, factor] : least.terms) factor = -factor;
    if (need(step_.contents[place.content], place.instant) == Need::kNone)
      least.add(there_[place.content].at(place.instant));
    else
      least.constant = 1;
    at_most(least, Sum{}.add(stay));
    return stay;
  }

  // --- copies

  std::vector<Window> add_windows(const std::vector<Job>& jobs) {
    std::set<std::int64_t> from, until;
    for (const Job& job : jobs) from.insert(within(job.from)), until.insert(within(job.until));
    std::vector<Window> windows;
    for (const std::int64_t first : from) {
      for (const std::int64_t turn : {0, 1, 2}) {
        if (turn > 0 && !query_.repeats) break;
        for (const std::int64_t one : until) {
          const std::int64_t last = one + turn * instants_;
          if (last >= first && last < first + 2 * instants_) add_window(jobs, first, last, windows);
        }
      }
    }
    if (query_.repeats && !jobs.empty()) {
      Sum time, length_of_all;
      for (const Job& job : jobs) time.add(job.variable, job.time);
      for (std::int64_t s = 0; s < instants_; ++s) length_of_all.add(length(s));
      windows.push_back({at_most(time, length_of_all), 0, instants_ - 1});
    }
    return windows;
  }
  void add_window(const std::vector<Job>& jobs, std::int64_t first, std::int64_t last, std::vector<Window>& windows) {
    Sum time, room;
    for (const Job& job : jobs)
      for (const std::int64_t turn : {-2, -1, 0, 1, 2})
        if (turn == 0 || query_.repeats)
          if (job.from + turn * instants_ >= first && job.until + turn * instants_ <= last)
            time.add(job.variable, job.time);
    if (time.terms.empty()) return;
    for (std::int64_t s = first; s <= last; ++s) room.add(length(s));
    windows.push_back({at_most(time, room), first, last});
  }

  /// The lost time by resource.
  LostTime lost_time(const LinearProgram::Solution& solution) const {
    if (solution.duals.empty() || solution.x.empty()) return {};
    const auto share = [&](const std::vector<Window>& windows) {
      double sum = 0;
      for (const Window& window : windows)
        for (std::int64_t s = window.from; s <= window.until; ++s)
          if (is_slot(within(s)))
            sum += solution.duals[window.row] * solution.x[lost_[static_cast<std::size_t>(within(s) / 2)]];
      return sum * unit_;
    };
    LostTime lost{.d2h = share(out_windows_), .h2d = share(in_windows_), .recompute = 0};
    for (const auto& [row, k] : work_rows_)
      lost.recompute += unit_ * solution.duals[row] * solution.x[lost_[static_cast<std::size_t>(k)]];
    return lost;
  }

  const StepContents& step_;
  const Machine& machine_;
  const WholeQuery& query_;
  const std::int64_t n_, instants_;
  double unit_ = 1, longest_ = 0;
  std::vector<double> out_time_, in_time_;  // by content
  LinearProgram program_;
  bool feasible_ = true;
  std::vector<Variable> lost_;  // by slot
  std::vector<Line> again_;     // by op; by slot
  std::vector<std::pair<std::uint32_t, std::int64_t>> work_rows_;
  std::vector<Line> there_, in_, out_;          // by content
  std::vector<std::optional<Variable>> began_;  // likewise
  std::vector<Job> outs_, ins_;
  std::vector<Window> out_windows_, in_windows_;
};

}  // namespace

WholeBound whole_bound(const StepContents& step, const Machine& machine, const WholeQuery& query) {
  return Program{step, machine, query}.solve();
}

}  // namespace tidepool
