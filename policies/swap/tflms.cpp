#include <algorithm>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/gaps/gap_draft.hpp"
#include "simulator/option_values.hpp"
#include "simulator/registry.hpp"

namespace tidepool {
namespace {

/// The parameters of TFLMS, in levels of the topological sort.
struct Tuning {
  std::uint32_t threshold = 1, ahead = 1, group_by = 0;
  int sync = 0;  ///< 1: ops wait for swap-outs; 2: swap-ins wait for all ops before their reader; 3: both
};

/// Rewrites a data-flow graph so that tensors with late readers are on the host in between.
class Rewriter {
 public:
  Rewriter(const Trace& trace, Bytes least) : trace_{trace}, level_(trace.ops().size()) {
    for (std::size_t i = 0; i < level_.size(); ++i)
      for_each_source(OpId{i}, [&](OpId source) { level_[i] = std::max(level_[i], level_[source.index()] + 1); });
    for (const std::uint32_t level : level_) levels_ = std::max(levels_, level + 1);
    by_level_.resize(levels_);
    for (std::size_t i = 0; i < level_.size(); ++i) by_level_[level_[i]].push_back(static_cast<std::uint32_t>(i));
    for (std::size_t i = 0; i < trace.ops().size(); ++i)
      for (const VersionId made : trace.made(OpId{i}))
        if (trace.size(made) >= least && trace.op(OpId{i}).kind != OpKind::kSource) candidates_.push_back(made);
  }

  std::uint32_t levels() const { return levels_; }

  std::vector<Action> draft(const Tuning& tuning) const {
    CopyDraft copies{trace_};
    for (const VersionId v : candidates_) swap(v, tuning, copies);
    return copies.take();
  }

 private:
  /// Calls visit(OpId) for every op that makes an input of `op`.
  template <class Visit>
  void for_each_source(OpId op, Visit visit) const {
    for (const Use& use : trace_.uses(op))
      if (use.in.valid())
        if (const OpId source = trace_.version(trace_.root(use.in)).producer; source.valid() && source != op)
          visit(source);
  }

  void swap(VersionId v, const Tuning& tuning, CopyDraft& copies) const {
    const std::uint32_t maker = trace_.version(v).producer.value();
    std::uint32_t last = maker, last_level = level_[maker];  // the last reader before the tensor leaves
    bool copied = false;
    for (const OpId reader : trace_.readers(v)) {
      const std::uint32_t op = reader.value(), level = level_[op];
      const bool far = level > level_[maker] + tuning.threshold;
      const bool shares = copied && tuning.group_by > 0 && level <= last_level + tuning.group_by;
      if (far && op > last + 1 && !shares) {
        if (!copied) copies.copy_out(maker + 1, v);
        if (!copied && (tuning.sync & 1) != 0) copies.await(maker + 1, v);
        copied = true;
        copies.release(last + 1, v);
        copies.copy_back(issue(v, last, op, tuning), v);
      }
      last = op;
      last_level = level;
    }
  }

  /// The position after the op that triggers the swap-in for `due`. `due` depends on that op, which is more than
  /// `ahead` levels before it, in the nearest of ten levels that has such an op. Without such an op, the position of
  /// `due`.
  std::uint32_t issue(VersionId v, std::uint32_t last, std::uint32_t due, const Tuning& tuning) const {
    if ((tuning.sync & 2) != 0) return due;
    constexpr std::uint32_t kTried = 10;
    const std::uint32_t lowest = level_[trace_.version(v).producer.index()] + 1;
    const std::uint32_t behind = level_[due] > tuning.ahead ? level_[due] - tuning.ahead : 0;
    const std::uint32_t from = std::max(lowest, behind > kTried ? behind - kTried : 0);
    if (behind <= from) return due;
    const std::vector<bool> reached = ancestors(due, from);
    for (std::uint32_t level = behind; level-- > from;) {
      const std::vector<std::uint32_t>& ops = by_level_[level];
      const auto found =
          std::find_if(ops.rbegin(), ops.rend(), [&](std::uint32_t op) { return op < due && reached[op]; });
      if (found != ops.rend()) return std::clamp(*found + 1, last + 1, due);
    }
    return due;
  }

  /// By op: whether `op` depends on it. Only ops of level `from` and higher are found.
  std::vector<bool> ancestors(std::uint32_t op, std::uint32_t from) const {
    std::vector<bool> reached(level_.size());
    std::vector<std::uint32_t> open{op};
    while (!open.empty()) {
      const OpId next{open.back()};
      open.pop_back();
      for_each_source(next, [&](OpId source) {
        if (level_[source.index()] < from || reached[source.index()]) return;
        reached[source.index()] = true;
        open.push_back(source.value());
      });
    }
    return reached;
  }

  const Trace& trace_;
  std::vector<std::uint32_t> level_;  // by op: its level in the topological sort
  std::uint32_t levels_ = 0;
  std::vector<std::vector<std::uint32_t>> by_level_;
  std::vector<VersionId> candidates_;
};

/// TensorFlow Large Model Support. An edge of the data-flow graph whose ends are more than `threshold` levels of the
/// topological sort apart is cut: the tensor is copied to the host as soon as it has been made, leaves the device when
/// its near readers have run, and is swapped in for its far readers. Far readers within `groupby` levels of each other
/// share one swap-in. It is triggered by an op that the first of these readers depends on, more than `ahead` levels
/// before that reader.
/// Parameters that are not given are searched as in TFLMS, by simulation, in this order: the largest threshold that
/// fits the memory, then the largest ahead, then a groupby that fits (the largest of all if it fits). If no threshold
/// fits, sync is raised: 1, ops after the maker wait for the swap-out; 2, swap-ins begin only when all ops before their
/// reader have run; 3, both. If that is not enough either, the run is out of memory.
///
/// Paper: Le, Imai, Negishi and Kawachiya, "TFLMS: Large Model Support in TensorFlow by Graph Rewriting", arXiv
/// 1807.02037; the search and its order from the authors' program (IBM/tensorflow-large-model-support, lms.py).
///
/// A trace has no dimensions: TFLMS leaves out vectors; here, tensors below `least` are left out. Ops keep the
/// program's order. TFLMS searches with nine tenths of the memory in a simulator of its own; here the run itself is
/// simulated. Cost: at most `effort` simulations.
class Tflms final : public Policy {
 public:
  explicit Tflms(const Options& options)
      : threshold_{count_of<std::int64_t>("tflms", options, "threshold", 1'000'000'000, -1)},
        ahead_{count_of<std::int64_t>("tflms", options, "ahead", 1'000'000'000, -1)},
        group_by_{count_of<std::int64_t>("tflms", options, "groupby", 1'000'000'000, -1)},
        sync_{static_cast<int>(options.number("sync"))},
        least_{options.bytes("least")},
        effort_{count_of<std::int64_t>("tflms", options, "effort", 1'000'000'000, 0)} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec& spec) override {
    if (trace.ops().empty()) return {};
    const Rewriter rewriter{trace, least_};
    const auto fits = [&](const Tuning& tuning) {
      ++judged_;
      return judge(trace, spec, follow_draft({rewriter.draft(tuning), {}}, OnDemand::kNothing)).outcome == Outcome::kOk;
    };
    /// The largest value that fits, by bisection, or any value that fits; the present value if none is found.
    const auto search = [&](Tuning tuning, std::uint32_t Tuning::*value, std::uint32_t least, bool largest) {
      std::uint32_t behind = rewriter.levels() + 1;
      while (least < behind && judged_ < effort_) {
        Tuning tried = tuning;
        tried.*value = least + (behind - least - 1) / 2;
        if (fits(tried))
          tuning = tried, least = largest ? tried.*value + 1 : behind;
        else
          behind = tried.*value;
      }
      return tuning;
    };
    const auto given = [](std::int64_t value, std::uint32_t otherwise) {
      return value < 0 ? otherwise : static_cast<std::uint32_t>(value);
    };
    Tuning tuning{given(threshold_, 1), given(ahead_, 1), given(group_by_, 0), sync_};
    if (threshold_ < 0) {
      if (fits({rewriter.levels(), 1, 0, sync_})) return {};
      while (judged_ < effort_ && !fits(tuning) && tuning.sync < 3) ++tuning.sync;
      tuning = search(tuning, &Tuning::threshold, 1, true);
    }
    if ((tuning.sync & 2) != 0) return rewriter.draft(tuning);
    if (ahead_ < 0) tuning = search(tuning, &Tuning::ahead, 1, true);
    if (group_by_ < 0) {
      Tuning one = tuning;
      one.group_by = rewriter.levels();
      tuning = judged_ < effort_ && fits(one) ? one : search(tuning, &Tuning::group_by, 0, false);
    }
    return rewriter.draft(tuning);
  }

  std::int64_t cost_evaluations() const override { return judged_; }

 private:
  std::int64_t threshold_, ahead_, group_by_;
  int sync_;
  Bytes least_;
  std::int64_t effort_, judged_ = 0;
};

const RegisterPolicy kTflms{
    {.name = "tflms",
     .kind = PolicyKind::kSwap,
     .summary = "cuts long edges of the data-flow graph: copies out what is made, back what is read late",
     .paper = "TFLMS: Le et al., arXiv 1807.02037; IBM/tensorflow-large-model-support",
     .options = {{"threshold", "-1", "number", "levels; longer edges are cut (swapout_threshold); -1: searched"},
                 {"ahead", "-1", "number", "levels by which a swap-in is triggered before its reader (swapin_ahead)"},
                 {"groupby", "-1", "number", "levels within which readers share a swap-in (swapin_groupby)"},
                 {"sync", "0", "0|1|2|3",
                  "1: ops wait for swap-outs; 2: swap-ins wait for all ops before their reader; 3: both (sync_mode)"},
                 {"least", "64KiB", "bytes", "smaller tensors stay"},
                 {"effort", "60", "number", "simulations to search with"}},
     .make = [](const Options& options) { return std::make_unique<Tflms>(options); }}};

}  // namespace
}  // namespace tidepool
