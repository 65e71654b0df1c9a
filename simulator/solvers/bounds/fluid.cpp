#include "simulator/solvers/bounds/fluid.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "simulator/solvers/bounds/absent_sets.hpp"

namespace tidepool {
namespace {

constexpr double kByte = 1.0 / (1 << 20);  // the program counts MiB
constexpr double kNano = 1e-6;             // and ms
constexpr double kUnlimited = LinearProgram::kInfinity;

double mebibytes(Bytes bytes) { return static_cast<double>(bytes.count()) * kByte; }
double milliseconds(Nanos time) { return static_cast<double>(time.count()) * kNano; }

class FluidProgram {
 public:
  FluidProgram(const Absences& step, const FluidQuery& query)
      : step_{step},
        query_{query},
        absences_{step.absences},
        n_{static_cast<std::int64_t>(step.load.size())},
        slots_{static_cast<std::size_t>(query.repeats ? n_ : n_ + 1)},
        out_rate_{query.out_rate * kByte / kNano},
        in_rate_{query.in_rate * kByte / kNano} {
    for (const Absence& absence : step.absences) total_ += mebibytes(absence.size);
    // Upper limit on the time that the best plan loses: a plan may copy all buffers one after the other, and run every
    // op again for each absence.
    longest_ = total_ / out_rate_ + total_ / in_rate_ +
               milliseconds(step.starts.back()) * (1 + static_cast<double>(query.remat ? step.absences.size() : 0));
    if (query.remat) find_recomputable();
    copies();
    memory();
    if (query.remat) recomputation();
  }

  FluidBound solve(const LinearProgram::Limits& limits) const {
    const LinearProgram::Solution solution = program_.solve(limits);
    FluidBound bound;
    bound.feasible = solution.status != LinearProgram::Status::kInfeasible;
    if (!bound.feasible) return bound;
    bound.stall = std::max(0.0, std::min(solution.bound, longest_) / kNano - 1);
    if (bound.stall > 0) bound.limited_by = lost_time(solution).mostly();
    const auto bytes_of = [&](const Column& variables) {
      std::vector<double> bytes;
      for (std::size_t g = 0; g < std::min(variables.size(), step_.absences.size()); ++g)
        bytes.push_back(solution.x[variables[g]] / kByte);
      return bytes;
    };
    if (solution.x.empty()) return bound;
    bound.copied = bytes_of(copied_), bound.recomputed = bytes_of(recomputed_);
    for (const std::uint32_t wait : wait_) bound.waits.push_back(solution.x[wait] / kNano);
    bound.prices.resize(step_.load.size());
    for (const auto& [row, k] : room_rows_)
      if (!solution.duals.empty()) bound.prices[k] -= solution.duals[row] * kByte / kNano;
    return bound;
  }

 private:
  using Column = std::vector<std::uint32_t>;  // variables or rows, most of them by slot

  double duration(std::size_t k) const {
    return k + 1 < step_.starts.size() ? milliseconds(step_.starts[k + 1] - step_.starts[k]) : 0;
  }
  /// The slot of a position. A repeated step wraps around to its beginning.
  std::size_t slot(std::int64_t position) const {
    return static_cast<std::size_t>(query_.repeats ? ((position % n_) + n_) % n_ : position);
  }
  std::size_t before(std::size_t k) const { return k > 0 ? k - 1 : slots_ - 1; }

  template <class Upper>
  Column variables(Upper upper, double cost = 0) {
    Column column;
    for (std::size_t k = 0; k < slots_; ++k) column.push_back(program_.variable(0, upper(k), cost));
    return column;
  }
  /// Adds the row x <= factor * y, and returns it.
  std::uint32_t at_most(std::uint32_t x, double factor, std::uint32_t y) {
    const std::uint32_t row = program_.row(-kUnlimited, 0);
    program_.add(row, x, 1);
    program_.add(row, y, -factor);
    return row;
  }
  /// The lost time by resource.
  LostTime lost_time(const LinearProgram::Solution& solution) const {
    if (solution.duals.empty()) return {};
    const auto share = [&](const Column& rows, double factor) {
      double sum = 0;
      for (std::size_t k = 0; k < rows.size(); ++k)
        sum -= factor * solution.duals[rows[k]] * (solution.x.empty() ? 1 : solution.x[wait_[k]]);
      return sum;
    };
    return {.d2h = share(out_rows_, out_rate_), .h2d = share(in_rows_, in_rate_), .recompute = share(work_rows_, 1)};
  }
  /// Adds rows that define the change of `stock` at each slot. In a repeated step the stock is carried over, unless
  /// `anew`.
  Column changes(const Column& stock, bool anew = false) {
    Column rows;
    for (std::size_t k = 0; k < slots_; ++k) {
      rows.push_back(program_.row(0, 0));
      program_.add(rows[k], stock[k], 1);
      if (k > 0 || (query_.repeats && !anew)) program_.add(rows[k], stock[before(k)], -1);
    }
    return rows;
  }
  /// Adds `variable` to a stock that starts anew in each iteration, in the slots [first, last). `changes` are the rows
  /// of the stock.
  void during(const Column& changes, std::int64_t first, std::int64_t last, std::uint32_t variable, double factor = 1) {
    if (first >= last) return;
    const std::size_t begin = slot(first), end = slot(last - 1) + 1;
    program_.add(changes[begin], variable, -factor);
    if (end < slots_) program_.add(changes[end], variable, factor);
    if (end <= begin) program_.add(changes[0], variable, -factor);  // it wraps around
  }

  /// Finds absences whose content can be recomputed. An op can run again only until its iteration ends. Content that
  /// stays absent beyond that end may be recomputed before it and copied out again: this part is an extra absence,
  /// listed after those of the step.
  void find_recomputable() {
    for (std::size_t g = 0; g < step_.absences.size(); ++g) {
      const Absence& absence = step_.absences[g];
      if (!absence.producer.valid() || absence.first >= n_ || absence.size == Bytes{}) continue;
      again_.push_back(g);
      if (absence.last <= n_) continue;
      beyond_.push_back(g);
      absences_.push_back(absence);
      absences_.back().first = n_;
    }
  }
  /// The absence whose part beyond the end is absence g; none if g is an absence of the step.
  std::optional<std::size_t> beyond(std::size_t g) const {
    if (g < step_.absences.size()) return std::nullopt;
    return beyond_[g - step_.absences.size()];
  }

  /// The op from whose start on a copy to the host may begin; kAlways: no copy is needed.
  std::int64_t copied_from(const Absence& absence) const { return may_lack_copy(absence) ? 0 : absence.copied_from; }
  /// Whether the content is from before the step and is on the host only if it began there.
  bool may_lack_copy(const Absence& absence) const {
    return absence.beginning && absence.copied_from == Absence::kAlways && !from_beginning(absence);
  }

  /// Absences grouped by content, without content that the host always has. In a group, they are sorted by the number
  /// of ops from the first possible copy to the absence.
  std::vector<std::vector<std::size_t>> by_content() const {
    const auto wait = [&](std::size_t g) { return absences_[g].first - copied_from(absences_[g]); };
    std::map<std::pair<BufferId, std::size_t>, std::vector<std::size_t>> found;
    for (std::size_t g = 0; g < absences_.size(); ++g)
      if (const std::int64_t from = copied_from(absences_[g]); from != Absence::kAlways)
        found[{absences_[g].buffer, slot(from)}].push_back(g);
    std::vector<std::vector<std::size_t>> groups;
    for (auto& [content, group] : found) {
      std::sort(group.begin(), group.end(), [&](std::size_t a, std::size_t b) { return wait(a) < wait(b); });
      groups.push_back(std::move(group));
    }
    return groups;
  }

  /// The variable for bytes of an absence that must be copied to the host, because they did not begin there.
  std::uint32_t leaves(std::size_t g) {
    const Absence& absence = absences_[g];
    if (!may_lack_copy(absence)) return copied_[g];
    const std::uint32_t left = program_.variable(0, mebibytes(absence.size), 0);
    program_.add(at_most(copied_[g], 1, left), began_[*absence.beginning], -1);
    return left;
  }

  /// Adds rows for beginnings: bytes that begin on the host come in, and bytes that end there began there or come back.
  void begin_and_end(const Column& ahead) {
    for (std::size_t b = 0; b < step_.beginnings.size(); ++b)
      program_.add(ahead[slot(step_.beginnings[b].due)], began_[b], 1);
    for (std::size_t g = 0; g < absences_.size(); ++g) {
      const Absence& absence = absences_[g];
      if (!absence.beginning || absence.due != Absence::kNever) continue;
      const std::uint32_t back = program_.variable(0, mebibytes(absence.size), 0);
      program_.add(at_most(copied_[g], 1, back), began_[*absence.beginning], -1);
      program_.add(ahead[slot(n_)], back, 1);
    }
  }

  /// Adds the bytes copied out for the absences of one content. Each absence adds its bytes beyond those of earlier
  /// absences.
  void copy_out(const std::vector<std::size_t>& group) {
    const Absence& last = absences_[group.back()];
    const Queue& queue = may_lack_copy(last) ? queues_.back() : queues_.front();
    const std::int64_t from = copied_from(last);
    const auto begins = [&](std::size_t g) { return from + absences_[g].first - copied_from(absences_[g]); };
    std::uint32_t so_far = leaves(group[0]);
    for (std::size_t i = 1; i < group.size(); ++i) {
      const std::uint32_t most = program_.variable(0, mebibytes(last.size), 0);
      at_most(so_far, 1, most);
      const std::uint32_t row = at_most(leaves(group[i]), 1, most);
      if (const auto whole = beyond(group[i])) program_.add(row, copied_[*whole], 1);  // the two share no bytes
      during(queue.early_changes, begins(group[i - 1]), begins(group[i]), so_far, -1);
      so_far = most;
    }
    program_.add(queue.changes[slot(from)], so_far, -1);
    during(queue.early_changes, from, last.first, so_far);
  }

  /// Whether the absence lasts from before the step to the first use.
  bool from_beginning(const Absence& absence) const {
    return absence.beginning && absence.first == 0 && absence.due == step_.beginnings[*absence.beginning].due;
  }

  /// Contents that wait for their copies to the host. Contents from before the step have a queue of their own: they
  /// could leave long before others, and in one queue they would hide bytes of others that are being copied.
  struct Queue {
    Column out, waiting, early;     // by slot
    Column changes, early_changes;  // rows
  };
  void add_queue() {
    const auto all = [&](std::size_t) { return total_; };
    const auto most = [&](std::size_t k) { return std::min(total_, out_rate_ * duration(k)); };
    Queue queue{.out = variables(most), .waiting = {}, .early = {}, .changes = {}, .early_changes = {}};
    const Column wait_out = variables(all);
    queue.waiting = variables(all), queue.early = variables(all);
    queue.changes = changes(queue.waiting), queue.early_changes = changes(queue.early, true);
    for (std::size_t k = 0; k < slots_; ++k) {
      if (queues_.empty()) {
        out_rows_.push_back(at_most(wait_out[k], out_rate_, wait_[k]));
      } else {
        program_.add(out_rows_[k], wait_out[k], 1);
        const std::uint32_t both = program_.row(-kUnlimited, most(k));
        program_.add(both, queues_[0].out[k], 1);
        program_.add(both, queue.out[k], 1);
      }
      at_most(queue.out[k], 1, queue.waiting[k]);
      program_.add(queue.changes[k], wait_out[k], 1);
      if (k > 0 || query_.repeats) program_.add(queue.changes[k], queue.out[before(k)], 1);
    }
    queues_.push_back(std::move(queue));
  }

  void copies() {
    const auto all = [&](std::size_t) { return total_; };
    for (const Absence& absence : absences_) copied_.push_back(program_.variable(0, mebibytes(absence.size), 0));
    wait_ = variables([&](std::size_t) { return longest_; }, 1);
    in_ = variables([&](std::size_t k) { return std::min(total_, in_rate_ * duration(k)); });
    const Column wait_in = variables(all);
    ahead_ = variables(all), away_ = variables(all);
    const Column ahead = changes(ahead_);
    away_changes_ = changes(away_, true);
    for (std::size_t k = 0; k < slots_; ++k) {
      in_rows_.push_back(at_most(wait_in[k], in_rate_, wait_[k]));
      program_.add(ahead[k], wait_in[k], -1);
      if (k > 0 || query_.repeats) program_.add(ahead[k], in_[before(k)], -1);
    }
    const bool two =
        std::any_of(absences_.begin(), absences_.end(), [&](const Absence& absence) { return may_lack_copy(absence); });
    for (int i = 0; i < (two ? 2 : 1); ++i) add_queue();
    for (const Beginning& beginning : step_.beginnings)
      began_.push_back(program_.variable(0, mebibytes(beginning.size), 0));
    for (const std::vector<std::size_t>& group : by_content()) copy_out(group);
    begin_and_end(ahead);
    for (std::size_t g = 0; g < absences_.size(); ++g) {
      const Absence& absence = absences_[g];
      if (from_beginning(absence))
        at_most(copied_[g], 1, began_[*absence.beginning]);
      else if (absence.due != Absence::kNever)
        program_.add(ahead[slot(absence.due)], copied_[g], 1);
      during(away_changes_, absence.first, absence.last, copied_[g]);
    }
  }

  /// Bytes that the load leaves free during op k; negative: bytes that must be absent.
  Bytes room_at(std::size_t k) const {
    constexpr std::size_t kMost = 32;  // with more sizes, some sum is close to any excess
    const Bytes excess = step_.load[k] - query_.capacity;
    if (!query_.whole || excess <= Bytes{}) return -excess;
    std::vector<Bytes> sizes;
    for (const Absence& absence : step_.absences)
      for (const std::int64_t turn : {std::int64_t{0}, n_})
        if (const auto at = static_cast<std::int64_t>(k) + turn; absence.first <= at && at < absence.last)
          sizes.push_back(absence.size);
    return sizes.size() > kMost ? -excess : -least_sum(sizes, excess);
  }

  void memory() {
    for (std::size_t k = 0; k < step_.load.size(); ++k) {
      const double room = mebibytes(room_at(k));
      if (room >= total_) continue;  // all bytes that come back early fit
      for (const bool behind : {false, true})
        for (std::size_t queues = 0; queues <= queues_.size(); ++queues) {
          const std::uint32_t row = program_.row(-kUnlimited, room);
          room_rows_.emplace_back(row, k);
          program_.add(row, away_[k], -1);
          program_.add(row, ahead_[k], 1);
          if (behind) program_.add(row, in_[k], 1);
          for (std::size_t q = 0; q < queues; ++q) {
            program_.add(row, queues_[q].waiting[k], 1);
            program_.add(row, queues_[q].early[k], -1);
            if (behind) program_.add(row, queues_[q].out[k], -1);
          }
        }
    }
  }

  /// Adds rows for recomputation: its work is available from the start of an absence on, and due at its end.
  void recomputation() {
    const auto all = [&](std::size_t) { return longest_; };
    const Column work = variables(all), open = variables(all), done = variables(all);
    const Column opened = changes(open), finished = changes(done);
    for (std::size_t k = 0; k < slots_; ++k) {
      work_rows_.push_back(at_most(work[k], 1, wait_[k]));
      program_.add(opened[k], work[k], 1);
      program_.add(finished[k], work[k], -1);
    }
    std::map<VersionId, const Absence*> versions;
    for (const Absence& absence : step_.absences) versions[absence.version] = &absence;
    std::map<OpId, double> made;  // by op: bytes of its outputs that may be absent
    for (const auto& [version, absence] : versions)
      if (absence->producer.valid()) made[absence->producer] += mebibytes(absence->size);
    for (std::size_t g = 0; g < step_.absences.size(); ++g) recomputed_.push_back(program_.variable(0, 0, 0));
    for (const std::size_t g : again_) {
      const Absence& absence = absences_[g];
      recomputed_[g] = program_.variable(0, mebibytes(absence.size), 0);
      const std::int64_t last = std::min(absence.last, n_);
      const std::uint32_t size = program_.row(-kUnlimited, mebibytes(absence.size));
      program_.add(size, copied_[g], 1);
      program_.add(size, recomputed_[g], 1);
      const double time = duration(absence.producer.index()) / made[absence.producer];
      program_.add(opened[slot(absence.first)], recomputed_[g], -time);
      program_.add(finished[slot(last)], recomputed_[g], time);
      during(away_changes_, absence.first, last, recomputed_[g]);
    }
    for (std::size_t g = step_.absences.size(); g < absences_.size(); ++g)
      at_most(copied_[g], 1, recomputed_[*beyond(g)]);
  }

  const Absences& step_;
  const FluidQuery& query_;
  std::vector<Absence> absences_;            // first those of the step, then those beyond the end
  std::vector<std::size_t> again_, beyond_;  // indices: those to recompute; those of them that go beyond the end
  const std::int64_t n_;
  const std::size_t slots_;  // one for each op, and one for the end of a step that is not repeated
  const double out_rate_, in_rate_;
  double total_ = 0, longest_ = 0;
  LinearProgram program_;
  Column copied_, recomputed_;       // by absence
  Column began_;                     // by beginning
  Column wait_, in_, ahead_, away_;  // by slot
  std::vector<Queue> queues_;
  Column away_changes_;
  Column out_rows_, in_rows_, work_rows_;                         // by slot: rows for work during lost time
  std::vector<std::pair<std::uint32_t, std::size_t>> room_rows_;  // rows that limit the memory during an op, and the op
};

}  // namespace

FluidBound fluid_bound(const Absences& step, const FluidQuery& query, const LinearProgram::Limits& limits) {
  if (step.load.empty() || step.absences.empty()) return {};
  return FluidProgram{step, query}.solve(limits);
}

}  // namespace tidepool
