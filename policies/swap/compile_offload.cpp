#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "policies/planning/gaps/copy_draft.hpp"
#include "policies/planning/remat/partition_ops.hpp"
#include "policies/planning/remat/saved.hpp"
#include "simulator/registry.hpp"
#include "traces/base/error.hpp"

namespace tidepool {
namespace {

/// Activation offloading of torch.compile (enable_activation_offloading, activation_offload_separate_stream). A tensor
/// that the forward phase makes and the backward phase reads is copied to the host after its last use in the forward
/// phase, and freed when the copy has ended, whatever the capacity. In PyTorch, the user marks the tensors to offload;
/// here all tensors of at least `least` bytes are marked. Inputs, parameters, views and the step's outputs stay.
///
/// The compute stream waits for each copy at once or, with sink-wait, for all copies at the end of the forward phase. A
/// swap-in begins before the first op that reads the tensor. With prefetch, swap-ins begin earlier. The backward phase
/// is walked from its end: a swap-in joins a queue at the op that needs it; each op shortens the remaining time of the
/// queue's head by its own time; when no time remains, the swap-in is placed before that op. A copy takes its bytes
/// over `bandwidth`. Only the times of matrix products, convolutions and attention count; if the backward phase has
/// none of these, all its ops count. Swap-ins that are still in the queue at the start of the backward phase begin
/// behind its first op, the last one first.
///
/// As in PyTorch, copies in each direction share one stream. Unlike here, PyTorch offloads only contiguous tensors, and
/// its forward graph ends before the loss if the loss is not compiled; here it ends where the backward phase begins. If
/// the first backward op reads a tensor whose copy to the host is still under way, the op waits for the copy and reads
/// the tensor in its place. If the copy has ended, the tensor is copied back first.
/// O(uses + tensors * outputs of the step) to plan. Source: PyTorch 2.11 to 2.15,
/// torch/_functorch/_activation_offloading/activation_offloading.py (pull requests 167880 and 168316).
class CompileOffload final : public Policy {
 public:
  CompileOffload(Bytes least, bool sink_wait, bool prefetch, Bytes per_second)
      : least_{least}, sink_wait_{sink_wait}, prefetch_{prefetch}, per_second_{per_second} {}

  std::vector<Action> plan(const Trace& trace, const RunSpec&) override {
    const std::uint32_t backward = first_backward_op(trace);
    const std::vector<Saved> offloaded = chosen(trace, backward);
    CopyDraft copies{trace};
    for (const Saved& each : offloaded) {
      copies.release(each.last_forward + 1, each.version);
      copies.await(sink_wait_ ? backward : each.last_forward + 1, each.version);
    }
    if (prefetch_)
      copy_back_early(trace, backward, offloaded, copies);
    else
      for (const Saved& each : offloaded) copies.copy_back(each.first_again, each.version);
    return copies.take();
  }

 private:
  /// The tensors to offload, in the order of their producers.
  std::vector<Saved> chosen(const Trace& trace, std::uint32_t backward) const {
    std::vector<Saved> chosen = saved_versions(trace, backward);
    std::erase_if(chosen, [&](const Saved& each) {
      const auto outputs = trace.outputs();
      return trace.size(each.version) < least_ || each.first_again >= trace.ops().size() ||
             std::any_of(outputs.begin(), outputs.end(), [&](VersionId v) { return trace.root(v) == each.version; });
    });
    return chosen;
  }

  void copy_back_early(const Trace& trace, std::uint32_t backward, std::vector<Saved> offloaded,
                       CopyDraft& copies) const {
    std::stable_sort(offloaded.begin(), offloaded.end(),
                     [](const Saved& a, const Saved& b) { return a.first_again < b.first_again; });
    const std::vector<Nanos> time = times(trace, backward);
    struct Waiting {
      VersionId version;
      Nanos left;
    };
    std::deque<Waiting> queue;
    std::vector<std::pair<std::uint32_t, VersionId>> placed;  // from the end of the step to its start
    for (auto op = static_cast<std::uint32_t>(trace.ops().size()); op-- > backward;) {
      if (!queue.empty() && (queue.front().left -= time[op]) <= Nanos{}) {
        placed.emplace_back(op, queue.front().version);
        queue.pop_front();
      }
      for (; !offloaded.empty() && offloaded.back().first_again == op; offloaded.pop_back())
        queue.push_back({offloaded.back().version, copy_time(trace.size(offloaded.back().version))});
    }
    for (const Waiting& each : queue) placed.emplace_back(backward, each.version);
    for (auto each = placed.rbegin(); each != placed.rend(); ++each)
      copies.copy_back(std::max(each->first, backward + 1), each->second);
  }

  static std::vector<Nanos> times(const Trace& trace, std::uint32_t backward) {
    std::vector<Nanos> all(trace.ops().size()), heavy(all.size());
    bool any = false;
    for (std::size_t i = backward; i < all.size(); ++i) {
      const Op& op = trace.op(OpId{i});
      all[i] = op.duration;
      if (!class_of_op(trace.text(op.name)).intensive) continue;
      heavy[i] = op.duration;
      any = true;
    }
    return any ? heavy : all;
  }

  Nanos copy_time(Bytes size) const {
    const double seconds = static_cast<double>(size.count()) / static_cast<double>(per_second_.count());
    return Nanos{static_cast<std::int64_t>(seconds * 1e9)};
  }

  Bytes least_;
  bool sink_wait_, prefetch_;
  Bytes per_second_;
};

const RegisterPolicy kCompileOffload{
    {.name = "compile-offload",
     .kind = PolicyKind::kSwap,
     .summary = "copies to the host what torch.compile saves, after its last forward use, and back just in time",
     .paper = "PyTorch 2.11 to 2.15, torch/_functorch/_activation_offloading (pull requests 167880, 168316)",
     .options = {{"least", "0B", "bytes", "smaller tensors are not marked and stay"},
                 {"sink-wait", "on", "on|off", "wait for copies at the end of the forward phase, not at once"},
                 {"prefetch", "on", "on|off", "begin copies back as early as `bandwidth` asks for"},
                 {"bandwidth", "50GiB", "bytes", "per second, for prefetch (activation_offload_cpu_gpu_bw)"}},
     .make = [](const Options& options) {
       const Bytes bandwidth = options.bytes("bandwidth");
       if (bandwidth < 1_MiB)
         throw InputError{"compile-offload: option 'bandwidth' is '" + options.word("bandwidth") +
                          "'; expected at least 1MiB"};
       return std::make_unique<CompileOffload>(options.bytes("least"), options.word("sink-wait") == "on",
                                               options.word("prefetch") == "on", bandwidth);
     }}};

}  // namespace
}  // namespace tidepool
