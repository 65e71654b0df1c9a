#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "policies/planning/eviction/victims.hpp"
#include "policies/swap/autoswap/combined_score.hpp"
#include "policies/swap/autoswap/trials.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// AutoSwap: swaps the gaps with the best scores until the load is within the limit. The score is one of the paper's
/// four, or Tidepool's `excess` (see GapScore). With score=tuned, it is the weighted sum of the paper's four, with the
/// weights whose plan is the fastest (see tune_weights).
/// Paper: Zhang, Yeung, Shu, He and Wang, "Efficient Memory Management for GPU-based Deep Learning Systems", arXiv
/// 1903.06631, section 4.
///
/// With scheduling=published, copies are scheduled as in the paper ("stick to the limit") and gaps are selected once.
/// With scheduling=late, which is Tidepool's, every swap-in is as late as the periodic steady state allows. For each
/// of several slacks, gaps are selected for the limit less the slack. Then they are selected again, with the bytes of
/// copies under way also subtracted.
/// Up to `effort` drafts are judged by simulation of the run itself, and the best is taken. This is done even if the
/// load is within the limit, since the pool may not find a place for every buffer. On a remaining shortage, the version
/// with the latest next read is swapped out.
///
/// Cost: at most `effort` + 1 simulations if `effort` is at least 8; with scheduling=published, none unless
/// score=tuned.
class AutoSwap final : public SwapOutLeast<FurthestFirst> {
 public:
  explicit AutoSwap(const Options& options)
      : tuned_{options.word("score") == "tuned"},
        score_{tuned_ ? GapScore::kDoa : find_gap_score(options.word("score"))},
        late_{options.word("scheduling") == "late"},
        at_peak_{options.word("candidates") == "peak"},
        least_{options.bytes("least")},
        effort_{count_of<std::int64_t>("autoswap", options, "effort", 1'000'000'000, 0)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty() || (!late_ && trace.ideal_peak() <= spec.capacity)) return {};
    const StepCircle circle = step_circle(trace);
    const std::vector<Gap> gaps = find_gaps(trace, least_, spec.assume);
    const std::vector<bool> allowed = at_peak_ ? around_peak(circle, gaps) : std::vector<bool>{};
    Select select = [&](const SlotLimits& limits) {
      return select_gaps(circle, gaps, spec.machine, score_, limits, allowed);
    };
    if (!late_ && !tuned_) return published(circle, gaps, select, spec);
    Trials trials{trace, spec, effort_};
    std::vector<double> scores;
    if (tuned_) {
      scores = tune(trials, circle, gaps, allowed, spec);
      select = [&](const SlotLimits& limits) { return select_by_score(circle, gaps, scores, limits, allowed); };
    }
    Bytes largest;
    for (const Gap& gap : gaps) largest = std::max(largest, gap.size);
    constexpr int kSlacks = 16, kRounds = 6;
    for (int i = 0; late_ && i < kSlacks && !trials.over(); ++i)
      try_rounds(trials, circle, gaps, spec, largest * i / 10, kRounds, select);
    judged_ = trials.judged();
    return late_ ? trials.best_draft().copies : published(circle, gaps, select, spec);
  }

  std::int64_t cost_evaluations() const override { return judged_ + SwapOutLeast<FurthestFirst>::cost_evaluations(); }

 private:
  using Select = std::function<Selection(const SlotLimits&)>;

  static std::vector<PlannedGap> stick_to_limit(const StepCircle& circle, const std::vector<Gap>& gaps,
                                                const Selection& selection, const RunSpec& spec) {
    return schedule_stick_to_limit(circle, gaps, selection.gaps, spec.machine, spec.capacity);
  }
  static std::vector<Action> published(const StepCircle& circle, const std::vector<Gap>& gaps, const Select& select,
                                       const RunSpec& spec) {
    const Selection selection = select(SlotLimits(circle.size(), spec.capacity));
    return draft_of(gaps, stick_to_limit(circle, gaps, selection, spec), circle.size());
  }

  /// The weighted sum of the scores, by gap. Each choice of weights is tried with one selection and schedule; the
  /// weights of the fastest plan are taken.
  std::vector<double> tune(Trials& trials, const StepCircle& circle, const std::vector<Gap>& gaps,
                           const std::vector<bool>& allowed, const RunSpec& spec) const {
    const SlotLimits limits(circle.size(), spec.capacity);
    const CombinedScore combined{circle, gaps, spec.machine, limits};
    const auto time_of = [&](const ScoreWeights& weights) {
      const Selection selection = select_by_score(circle, gaps, combined(weights), limits, allowed);
      const std::vector<PlannedGap> planned =
          late_ ? schedule_late(circle, gaps, selection.gaps, spec.machine, spec.capacity)
                : stick_to_limit(circle, gaps, selection, spec);
      const Result& result = trials.add(gaps, planned);
      return result.outcome == Outcome::kOk ? static_cast<double>(result.totals.makespan.count())
                                            : std::numeric_limits<double>::infinity();
    };
    const auto free = static_cast<double>(trials.best_result().baseline.count());
    return combined(tune_weights(time_of, static_cast<int>(effort_ / 2), free));
  }

  /// By gap: whether it contains the first slot with the highest load.
  static std::vector<bool> around_peak(const StepCircle& circle, const std::vector<Gap>& gaps) {
    const std::size_t n = circle.size();
    const auto peak =
        static_cast<std::size_t>(std::max_element(circle.load.begin(), circle.load.end()) - circle.load.begin());
    std::vector<bool> allowed;
    for (const Gap& gap : gaps) allowed.push_back((gap.release < peak && peak < gap.due) || peak + n < gap.due);
    return allowed;
  }

  bool tuned_;
  GapScore score_;
  bool late_, at_peak_;
  Bytes least_;
  std::int64_t effort_, judged_ = 0;
};

const RegisterPolicy kAutoswap{
    {.name = "autoswap",
     .kind = PolicyKind::kSwap,
     .summary = "chooses by a score of their absences which idle buffers are on the host, and when",
     .paper = "AutoSwap: Zhang et al., arXiv 1903.06631, section 4",
     .options = {{"score", "swdoa", "doa|aoa|wdoa|swdoa|tuned|excess",
                  "what an absence is worth; tuned: the published combination; excess: not the paper's"},
                 {"scheduling", "late", "late|published",
                  "late: Tidepool's, as late as the periodic steady state allows; published: stick to the limit"},
                 {"candidates", "all", "all|peak",
                  "peak: only absences during which the load is highest, as published"},
                 {"least", "1MiB", "bytes", "smaller buffers stay"},
                 {"effort", "96", "number", "drafts to simulate, with scheduling=late or score=tuned"}},
     .make = [](const Options& options) { return std::make_unique<AutoSwap>(options); }}};

}  // namespace
}  // namespace tidepool
