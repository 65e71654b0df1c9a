// Changes of each kind that are worth proposing for a step.
#pragma once

#include <vector>

#include "simulator/studies/advise/advise.hpp"

namespace tidepool {

/// The input of all kinds of changes.
struct Question {
  const Trace& step;
  const RunSpec& spec;
  Nanos base;  ///< time of the step as it is
};

/// The actions that a change consists of. Its bound holds for all plans with these actions.
struct Mechanism {
  bool swap = false, remat = false, order = false;
};

/// Whether the ops are PyTorch's operators; otherwise they are kernels, as in a recording with --kernels.
bool has_operators(const Trace& trace);

/// What the recorder says of the ops of a job that torch.compile has compiled: "compiled" for its kernels, "graphs" for
/// the operators of its graphs, one by one; empty for another job.
std::string compiled_ops(const Trace& trace);

/// Order of changes: by the bytes of the peak above the capacity, then changes with a certain peak, then the fastest.
bool is_better(const Change& a, const Change& b, Bytes capacity);

/// The change with its time, its bound and whether it fits.
Change judged(Change change, const Question& question, Nanos time, Mechanism mechanism);

/// The same for a change that gives the step `changed`, which is executed without a limit.
Change judged(Change change, const Question& question, const Trace& changed, Mechanism mechanism);

/// The best choices of modules to checkpoint, at most three.
std::vector<Change> checkpoints(const Question& question);
/// Checkpoints that keep the outputs of some operators, at most two. Only for a step whose ops are operators; else
/// empty.
std::vector<Change> selective_checkpoints(const Question& question);
/// The activation_memory_budget of a model that torch.compile takes as one graph, with the policy min-cut: the largest
/// budget, in steps of 0.05, that fits; if none fits, the budget with the least peak. Only for a step whose ops are
/// operators; else empty.
std::vector<Change> budgets(const Question& question);
/// The best choices of modules whose saved tensors are copied to the host, at most two.
std::vector<Change> offloads(const Question& question);
/// The fewest micro-batches that fit, a power of two from 2 to 64; if none fit, the fewest whose peak exceeds the least
/// one by at most 1 % of the step's peak. The change has no bound.
std::vector<Change> batches(const Question& question);
/// A fused optimizer, if it lowers the peak. The time is an upper bound.
std::vector<Change> fused_optimizers(const Question& question);
/// Updates in backward, if they lower the peak.
std::vector<Change> early_updates(const Question& question);

}  // namespace tidepool
