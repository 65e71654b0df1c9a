#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "policies/planning/eviction/victims.hpp"
#include "policies/planning/gaps/schedule.hpp"
#include "policies/swap/g10/bandwidth_ledger.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"
#include "simulator/run_spec.hpp"

namespace tidepool {
namespace {

/// G10's smart tensor migration, to host memory only. While the estimated memory m_k of a slot k is above `line` times
/// the capacity, the policy takes the idle interval (gap) with the largest
///   benefit = size * sum of p_k over the slots k in [mid(out), mid(in)) with m_k above the line.
/// p_k is the duration of slot k. mid(out) and mid(in) are the slots in which half of the bytes have moved, if the
/// content leaves when the gap begins and is back when it ends. Copies use the bandwidth that earlier picks have left
/// in their direction of the link (see BandwidthLedger). Of equal benefits, the larger duration * size wins. The gap is
/// used if the swap-in begins in a later slot than the swap-out ends, if the host has room, and if it is longer than
///   T_out + (1 + delta) * T_in,
/// where T is the time of a copy. Then both copies are entered into the ledger, and the size is subtracted from m_k in
/// between. A gap that crosses the end of the step counts with all its slots; its copies take T_out and
/// (1 + delta) * T_in and are not entered into the ledger. With the option `eager`, each swap-in that does not cross
/// the end is then moved earlier, in the order in which they begin, as long as m_(k-1) is below the line by any amount.
/// On a remaining shortage, the version with the latest next read is swapped out.
///
/// Paper: Zhang et al., "G10: Enabling An Efficient Unified GPU Memory and Storage Architecture with Smart Tensor
/// Migrations", MICRO 2023; as in its code (platformxlab/G10, src/analysis.cc, scheduling_prefetch), with three
/// differences. Its SSD, which it tries before the host, is left out. Its kernels may run while some pages are not
/// resident; here whole tensors must be resident. A gap that turns out to be too short is passed over here; that code
/// picks the same gap again until it gives up.
///
/// Cost: O(picks * (slots + gaps log slots)).
class G10 final : public SwapOutLeast<FurthestFirst> {
 public:
  explicit G10(const Options& options)
      : delta_{number_of("g10", options, "delta", 1'000)},
        line_{number_of("g10", options, "line", 1)},
        eager_{options.flag("eager")} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty()) return {};
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps(trace, Bytes{1}, spec.assume);
    Migrations migrations{circle, gaps, spec.machine, scaled(spec.capacity, line_), delta_};
    migrations.choose();
    if (eager_) migrations.prefetch_eagerly();
    return draft_of(gaps, migrations.planned(), circle.size());
  }

 private:
  static Bytes scaled(Bytes size, double factor) {
    return Bytes{static_cast<std::int64_t>(static_cast<double>(size.count()) * factor)};
  }

  /// A gap that the plan uses. Its bytes are absent in the slots after `away` and before `issue`.
  struct Chosen {
    std::uint32_t gap;
    std::size_t away, issue;
  };

  class Migrations {
   public:
    Migrations(const StepCircle& circle, const std::vector<Gap>& gaps, const Machine& machine, Bytes line, double delta)
        : circle_{circle},
          gaps_{gaps},
          machine_{machine},
          line_{line},
          delta_{delta},
          out_{circle, machine.d2h.rate},
          in_{circle, machine.h2d.rate},
          memory_{circle.load},
          on_host_(circle.size()),
          pressure_(circle.size() + 1) {}

    void choose() {
      std::vector<bool> considered(gaps_.size());
      for (std::size_t left = gaps_.size(); left > 0 && add_up_pressure(); --left) {
        const std::size_t best = most_beneficial(considered);
        if (benefit(gaps_[best]) <= 0) return;
        considered[best] = true;
        if (gaps_[best].due - first_slot(gaps_[best]) > 1) use(static_cast<std::uint32_t>(best));
      }
    }

    void prefetch_eagerly() {
      std::stable_sort(chosen_.begin(), chosen_.end(),
                       [](const Chosen& a, const Chosen& b) { return a.issue < b.issue; });
      for (Chosen& each : chosen_) {
        if (gaps_[each.gap].crosses) continue;
        while (each.issue > each.away + 1 && memory_[each.issue - 1] < line_)
          memory_[--each.issue] += gaps_[each.gap].size;
      }
    }

    std::vector<PlannedGap> planned() const {
      std::vector<PlannedGap> planned;
      for (const Chosen& each : chosen_) planned.push_back({each.gap, static_cast<std::uint32_t>(each.issue), 0});
      return planned;
    }

   private:
    static std::size_t first_slot(const Gap& gap) { return gap.release + std::size_t{1}; }

    /// Finds the slots above the line. @return  false if there are none
    bool add_up_pressure() {
      for (std::size_t k = 0; k < memory_.size(); ++k)
        pressure_[k + 1] = pressure_[k] + (memory_[k] > line_ ? circle_.start[k + 1] - circle_.start[k] : Nanos{});
      return std::any_of(memory_.begin(), memory_.end(), [&](Bytes m) { return m > line_; });
    }

    double benefit(const Gap& gap) const {
      const std::size_t n = circle_.size(), first = first_slot(gap);
      Nanos under_pressure;
      if (gap.crosses) {
        under_pressure = first < n ? pressure_[n] - pressure_[first] + pressure_[gap.due - n]
                                   : pressure_[gap.due - n] - pressure_[first - n];
      } else {
        const std::size_t out = out_.ends(first, gap.size / 2), in = in_.begins(gap.due, gap.size / 2);
        if (out < in) under_pressure = pressure_[in] - pressure_[out];
      }
      return static_cast<double>(gap.size.count()) * static_cast<double>(under_pressure.count());
    }

    double area(const Gap& gap) const {
      return static_cast<double>((circle_.at(gap.due) - released(circle_, gap)).count()) *
             static_cast<double>(gap.size.count());
    }

    std::size_t most_beneficial(const std::vector<bool>& considered) const {
      std::size_t best = gaps_.size();
      double most = -1;
      for (std::size_t i = 0; i < gaps_.size(); ++i) {
        if (considered[i]) continue;
        const double value = benefit(gaps_[i]);
        if (best == gaps_.size() || value > most || (value == most && area(gaps_[i]) > area(gaps_[best])))
          best = i, most = value;
      }
      return best;
    }

    /// The position of the last slot that begins at or before a time.
    std::size_t position_at(Nanos time) const {
      const std::int64_t round = time / circle_.period();
      const auto next =
          std::upper_bound(circle_.start.begin(), circle_.start.end() - 1, time - circle_.period() * round);
      return static_cast<std::size_t>(next - circle_.start.begin()) - 1 +
             circle_.size() * static_cast<std::size_t>(round);
    }

    void use(std::uint32_t index) {
      const Gap& gap = gaps_[index];
      const std::size_t first = first_slot(gap);
      const Nanos out = machine_.d2h.time(gap.size);
      const Nanos in{
          static_cast<std::int64_t>(static_cast<double>(machine_.h2d.time(gap.size).count()) * (1 + delta_))};
      if (circle_.at(gap.due) - circle_.at(first) <= out + in || !fits_on_host(gap)) return;
      Chosen chosen{index, 0, 0};
      if (gap.crosses) {
        chosen.away = position_at(circle_.at(first) + out);
        chosen.issue = position_at(circle_.at(gap.due) - in);
        if (chosen.issue <= first) return;
      } else {
        chosen.away = out_.ends(first, gap.size);
        chosen.issue = in_.begins(gap.due, gap.size);
        if (chosen.issue <= chosen.away) return;
        out_.reserve(first, gap.size);
        in_.reserve(chosen.issue, gap.size);
      }
      for (std::size_t p = first; p < gap.due; ++p) on_host_[p % circle_.size()] += gap.size;
      for (std::size_t p = chosen.away + 1; p < chosen.issue; ++p) memory_[p % circle_.size()] -= gap.size;
      chosen_.push_back(chosen);
    }

    bool fits_on_host(const Gap& gap) const {
      for (std::size_t p = first_slot(gap); p < gap.due; ++p)
        if (on_host_[p % circle_.size()] + gap.size > machine_.host.capacity) return false;
      return true;
    }

    const StepCircle& circle_;
    const std::vector<Gap>& gaps_;
    const Machine& machine_;
    Bytes line_;
    double delta_;
    BandwidthLedger out_, in_;
    std::vector<Bytes> memory_, on_host_;  // by slot, as estimated
    std::vector<Nanos> pressure_;          // by slot: total time of earlier slots in which memory is above the line
    std::vector<Chosen> chosen_;
  };

  double delta_, line_;
  bool eager_;
};

const RegisterPolicy kG10{
    {.name = "g10",
     .kind = PolicyKind::kSwap,
     .summary = "chooses by benefit and a ledger of the link's bandwidth which idle buffers are on the host, and when",
     .paper = "G10: Zhang et al., MICRO 2023; without its SSD",
     .options = {{"delta", "0.5", "number", "share of its time by which a swap-in begins earlier than it must"},
                 {"line", "0.99", "number", "share of the capacity that the plan keeps the memory below"},
                 {"eager", "on", "on/off", "move copies back earlier while there is memory"}},
     .make = [](const Options& options) { return std::make_unique<G10>(options); }}};

}  // namespace
}  // namespace tidepool
