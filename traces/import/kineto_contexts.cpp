#include "traces/import/kineto_contexts.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

namespace tidepool {
namespace {

/// Whether an operator is a node of autograd's graph: "autograd::engine::evaluate_function: ..." or, in 2021, its name
/// alone, as in "AddmmBackward".
bool is_backward(std::string_view name) {
  if (name.starts_with("autograd::engine::evaluate_function")) return true;
  return name.substr(0, name.find_last_not_of("0123456789") + 1).ends_with("Backward");
}

/// The most bytes of a path. Without a limit, the memory for nested names could grow as the square of their number.
constexpr std::size_t kLongestPath = 1000;

/// Appends as many whole characters (UTF-8) of a name as the path may hold.
void append(std::string& path, std::string_view name) {
  path.append(path.empty() ? "" : ".").append(name);
  if (path.size() <= kLongestPath) return;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(path[at]) & 0xc0) == 0x80; };
  std::size_t end = kLongestPath;
  while (end > 0 && continues(end)) --end;
  path.resize(end);
}

void enter(const Kineto& file, const KinetoRange& range, KinetoContext& context) {
  constexpr std::string_view kModule = "nn.Module: ";
  const std::string_view name = file.texts[range.name];
  if (range.kind == KinetoRangeKind::kOperator && !context.operator_name) context.operator_name = range.name;
  if (range.kind == KinetoRangeKind::kModule && context.module.size() < kLongestPath)
    append(context.module, name.substr(std::min(kModule.size(), name.size())));
  if (range.kind == KinetoRangeKind::kAnnotation && name.starts_with("nccl:"))
    context.communication = static_cast<std::size_t>(&range - file.ranges.data());
  if (range.record_function >= 0) context.record_function = range.record_function;
  context.phase = phase_inside(context.phase, name, range.differentiated || range.kind == KinetoRangeKind::kModule);
}

/// The positions 0 to n - 1, sorted by `before`.
template <class Before>
std::vector<std::size_t> sorted(std::size_t n, Before before) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

/// The open ranges of a thread, each with the context that it and the ranges around it give.
class Open {
 public:
  explicit Open(const Kineto& file) : file_{file} {}

  void clear() { stack_.clear(); }
  void push(const KinetoRange& range) {
    while (!stack_.empty() && stack_.back().end <= range.begin && stack_.back().begin < range.begin) stack_.pop_back();
    KinetoContext context = stack_.empty() ? KinetoContext{} : stack_.back().context;
    enter(file_, range, context);
    stack_.push_back({range.begin, range.end, std::move(context)});
  }
  KinetoContext at(Nanos time) {
    while (!stack_.empty() && stack_.back().end < time) stack_.pop_back();
    return stack_.empty() ? KinetoContext{} : stack_.back().context;
  }

 private:
  struct Entry {
    Nanos begin, end;
    KinetoContext context;
  };
  const Kineto& file_;
  std::vector<Entry> stack_;
};

}  // namespace

Phase phase_inside(Phase around, std::string_view name, bool differentiated) {
  if (around != Phase::kUnknown) return around;
  if (is_backward(name)) return Phase::kBackward;
  if (name.starts_with("Optimizer.step#")) return Phase::kOptimizer;
  return differentiated ? Phase::kForward : Phase::kUnknown;
}

std::vector<KinetoContext> find_contexts(const Kineto& file, const std::vector<KinetoMoment>& moments) {
  const std::vector<KinetoRange>& ranges = file.ranges;
  const auto range_order = sorted(ranges.size(), [&](std::size_t a, std::size_t b) {
    return std::tie(ranges[a].thread, ranges[a].begin, ranges[b].end) <
           std::tie(ranges[b].thread, ranges[b].begin,
                    ranges[a].end);  // of those that begin together, the longest first
  });
  const auto moment_order = sorted(moments.size(), [&](std::size_t a, std::size_t b) {
    return std::tie(moments[a].thread, moments[a].time) < std::tie(moments[b].thread, moments[b].time);
  });
  std::vector<KinetoContext> contexts(moments.size());
  Open open{file};
  auto next = range_order.begin();
  for (std::size_t i = 0; i < moment_order.size(); ++i) {
    const KinetoMoment& moment = moments[moment_order[i]];
    if (i == 0 || moments[moment_order[i - 1]].thread != moment.thread) {
      open.clear();
      next = std::find_if(next, range_order.end(), [&](std::size_t r) { return ranges[r].thread >= moment.thread; });
    }
    for (; next != range_order.end() && ranges[*next].thread == moment.thread && ranges[*next].begin <= moment.time;
         ++next)
      open.push(ranges[*next]);
    contexts[moment_order[i]] = open.at(moment.time);
  }
  return contexts;
}

}  // namespace tidepool
