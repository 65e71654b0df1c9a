#include "policies/planning/search/rerun_state.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tidepool {

template <class Visit>
void RerunState::Stages::take(Visit visit) {
  for (std::size_t i = 0; i < words_.size(); ++i)
    while (words_[i] != 0) {
      const int bit = std::countr_zero(words_[i]);
      words_[i] &= words_[i] - 1;
      visit(static_cast<Stage>(i * 64) + bit);
    }
}

RerunState::RerunState(const RerunProblem& problem)
    : problem_{problem},
      ops_{static_cast<Stage>(problem.ops())},
      uses_(problem.ops()),
      forced_(problem.ops()),
      stage_runs_(problem.ops()),
      again_(problem.ops()),
      reads_(problem.ops()),
      lives_(problem.ops()),
      carried_(problem.ops() + 1),
      local_(problem.ops()),
      is_touched_(problem.ops()),
      marks_(problem.ops()) {
  for (Op i = 0; i < problem.ops(); ++i)
    for (const Op input : problem.inputs[i]) uses_[input].push_back(static_cast<Stage>(i));
  for (Op v = 0; v < problem.ops(); ++v) {
    first_.push_back(static_cast<std::uint32_t>(intervals_.size()));
    Stage from = static_cast<Stage>(v);
    for (const Stage use : uses_[v]) {
      intervals_.push_back({v, from, use});
      held_.push_back(kept(intervals_.back()));
      from = use;
    }
    intervals_.push_back({v, from, ops_});
    held_.push_back({from, ops_, ops_, false});
  }
  unscheduled_.reset(problem.ops());
  unmeasured_.reset(problem.ops());
  for (Op v = 0; v < problem.ops(); ++v) find_lives(v);
  unmeasured_.take([this](Stage stage) { measure(stage); });
  add_up();
}

std::uint32_t RerunState::interval_at(Op value, Stage stage) const {
  std::uint32_t i = first_[value];
  while (intervals_[i].to < stage) ++i;
  return i;
}

RerunState::Stage RerunState::next_rerun(Op op, Stage stage) const {
  for (const Again& each : again_[op])
    if (each.stage > stage) return each.stage;
  return ops_;
}

std::vector<RerunState::Op> RerunState::runs() const {
  std::vector<Op> runs;
  for (Op i = 0; i < problem_.ops(); ++i) {
    runs.insert(runs.end(), stage_runs_[i].begin(), stage_runs_[i].end());
    runs.push_back(i);
  }
  return runs;
}

void RerunState::exchange(std::span<Change> changes) {
  for (Change& change : changes) choose(change.interval, change.held);
  unscheduled_.take([this](Stage stage) { schedule(stage); });
  for (const Op value : touched_) {
    is_touched_[value] = false;
    find_lives(value);
  }
  touched_.clear();
  unmeasured_.take([this](Stage stage) { measure(stage); });
  add_up();
}

bool RerunState::is_held(Op value, Stage stage) const {
  const std::uint32_t i = interval_at(value, stage);
  if (held_[i].at(stage)) return true;
  return held_[i].stays && next_rerun(value, intervals_[i].from) < stage;
}

bool RerunState::is_forced(std::uint32_t interval) const {
  return held_[interval].until < held_[interval].again && held_[interval].again < intervals_[interval].to;
}

/// Marks the stages in (after, to] that read a value, since it may have become present or absent in them.
void RerunState::look_again(Op value, Stage after, Stage to) {
  if (to < ops_) unscheduled_.add(to);
  for (const Stage read : reads_[value])
    if (read > after && read <= to) unscheduled_.add(read);
}

void RerunState::choose(std::uint32_t interval, Held& held) {
  const Interval& each = intervals_[interval];
  const auto forced = [&]() -> std::vector<Op>& {
    const auto stage = static_cast<std::size_t>(held_[interval].again);
    unscheduled_.add(held_[interval].again);
    return forced_[stage];
  };
  if (is_forced(interval)) std::erase(forced(), each.value);
  std::swap(held_[interval], held);
  if (is_forced(interval)) forced().push_back(each.value);
  look_again(each.value, each.from, each.to);
}

void RerunState::want(Op value) {
  if (std::exchange(marks_[value], mark_) != mark_) wanted_.push_back(value);
}

/// Finds the ops that run again in a stage.
void RerunState::schedule(Stage stage) {
  const auto op = static_cast<Op>(stage);
  ++mark_;
  wanted_.clear();
  for (const Op value : forced_[op]) want(value);
  for (const Op input : problem_.inputs[op])
    if (!is_held(input, stage)) want(input);
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    for (const Op input : problem_.inputs[wanted_[i]])
      if (!is_held(input, stage)) want(input);
  work_ += static_cast<std::int64_t>(problem_.inputs[op].size() + 2 * wanted_.size() + 1);
  std::sort(wanted_.begin(), wanted_.end());
  std::vector<Op>& now = stage_runs_[op];
  if (now == wanted_) return;
  now.swap(wanted_);
  const std::vector<Op>& before = wanted_;
  auto old = before.begin();
  auto added = now.begin();
  while (old != before.end() || added != now.end()) {
    if (old == before.end() || (added != now.end() && *added < *old)) {
      run_again(*added++, stage);
    } else if (added == now.end() || *old < *added) {
      run_no_more(*old++, stage);
    } else {
      ++old, ++added;
    }
  }
  unmeasured_.add(stage);
}

void RerunState::run_again(Op op, Stage stage) {
  std::vector<Again>& again = again_[op];
  const auto at = std::find_if(again.begin(), again.end(), [&](const Again& each) { return each.stage > stage; });
  again.insert(at, {stage, static_cast<std::uint32_t>(reruns_.size())});
  reruns_.push_back({op, stage});
  totals_.again += problem_.cost[op];
  if (problem_.most_runs > 0 && static_cast<std::int32_t>(again.size()) == problem_.most_runs) ++too_often_;
  touch(op);
  for (const Op input : problem_.inputs[op]) {
    std::vector<Stage>& reads = reads_[input];
    reads.insert(std::upper_bound(reads.begin(), reads.end(), stage), stage);
    touch(input);
  }
  const std::uint32_t i = interval_at(op, stage);
  if (held_[i].stays) look_again(op, stage, intervals_[i].to);
}

void RerunState::run_no_more(Op op, Stage stage) {
  std::vector<Again>& again = again_[op];
  const auto at = std::find_if(again.begin(), again.end(), [&](const Again& each) { return each.stage == stage; });
  const std::uint32_t index = at->index;
  if (problem_.most_runs > 0 && static_cast<std::int32_t>(again.size()) == problem_.most_runs) --too_often_;
  again.erase(at);
  if (const Rerun last = reruns_.back(); index + 1 < reruns_.size()) {
    reruns_[index] = last;
    for (Again& each : again_[last.op])
      if (each.stage == last.stage) each.index = index;
  }
  reruns_.pop_back();
  totals_.again -= problem_.cost[op];
  touch(op);
  for (const Op input : problem_.inputs[op]) {
    std::vector<Stage>& reads = reads_[input];
    reads.erase(std::lower_bound(reads.begin(), reads.end(), stage));
    touch(input);
  }
  const std::uint32_t i = interval_at(op, stage);
  if (held_[i].stays) look_again(op, stage, intervals_[i].to);
}

void RerunState::touch(Op value) {
  if (is_touched_[value]) return;
  is_touched_[value] = true;
  touched_.push_back(value);
}

void RerunState::find_lives(Op value) {
  found_.assign(1, {static_cast<Stage>(value), static_cast<Stage>(value)});
  for (const Again& each : again_[value]) found_.push_back({each.stage, each.stage});
  const auto read = [&](const std::vector<Stage>& stages) {
    std::size_t life = 0;
    for (const Stage stage : stages) {
      while (life + 1 < found_.size() && found_[life + 1].made <= stage) ++life;
      found_[life].last = std::max(found_[life].last, stage);
    }
  };
  read(uses_[value]);
  read(reads_[value]);
  work_ += static_cast<std::int64_t>(uses_[value].size() + reads_[value].size() + found_.size());
  if (found_ == lives_[value]) return;
  const std::int64_t bytes = problem_.bytes[value];
  const auto note = [&](std::int64_t change) {
    for (const Life& life : lives_[value]) {
      carried_[static_cast<std::size_t>(life.made) + 1] += change;
      carried_[static_cast<std::size_t>(life.last) + 1] -= change;
      unmeasured_.add(life.made);
      unmeasured_.add(life.last);
    }
  };
  note(-bytes);
  lives_[value].swap(found_);
  note(bytes);
}

/// Whether no later stage reads the content that a stage reads or makes.
bool RerunState::ends(Op value, Stage stage) const {
  const std::vector<Life>& lives = lives_[value];
  std::size_t i = lives.size() - 1;
  while (lives[i].made > stage) --i;
  return lives[i].last == stage;
}

void RerunState::measure(Stage stage) {
  order_ = stage_runs_[static_cast<std::size_t>(stage)];
  order_.push_back(static_cast<Op>(stage));
  released_.assign(order_.size(), 0);
  ++mark_;
  for (std::size_t p = order_.size(); p-- > 0;) {
    const auto last_seen = [&](Op value) {
      if (std::exchange(marks_[value], mark_) != mark_ && ends(value, stage)) released_[p] += problem_.bytes[value];
    };
    last_seen(order_[p]);
    for (const Op input : problem_.inputs[order_[p]]) last_seen(input);
  }
  work_ += static_cast<std::int64_t>(4 * order_.size());
  std::int64_t bytes = 0, most = 0;
  for (std::size_t p = 0; p < order_.size(); ++p) {
    bytes += problem_.bytes[order_[p]];
    most = std::max(most, bytes);
    bytes -= released_[p];
  }
  local_[static_cast<std::size_t>(stage)] = most;
}

void RerunState::add_up() {
  work_ += ops_ / 16;
  std::int64_t carried = 0, excess = 0, most = 0;
  totals_.worst = -1;
  for (std::size_t t = 0; t < local_.size(); ++t) {
    carried += carried_[t];
    const std::int64_t over = carried + local_[t] - problem_.room;
    if (over <= 0) continue;
    excess += over;
    if (over > most) most = over, totals_.worst = static_cast<Stage>(t);
  }
  totals_.excess = static_cast<double>(excess) / static_cast<double>(std::max<std::int64_t>(problem_.room, 1));
  totals_.too_often = too_often_ > 0;
}

}  // namespace tidepool
