#include "simulator/solvers/bounds/step_contents.hpp"

#include <algorithm>

#include "simulator/solvers/bounds/op_bounds.hpp"

namespace tidepool {
namespace {

class Collector {
 public:
  Collector(const Trace& trace, bool repeats, bool remat)
      : trace_{trace}, repeats_{repeats}, remat_{remat}, n_{static_cast<std::int64_t>(trace.ops().size())} {}

  StepContents run() {
    describe_positions();
    find_last_versions();
    for (std::size_t i = 0; i < trace_.versions().size(); ++i)
      if (is_content(VersionId{i})) add(VersionId{i});
    find_inputs();
    return std::move(step_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void describe_positions() {
    step_.positions = n_ + 1;
    for (std::int64_t i = 0; i < n_; ++i) {
      const OpId op{static_cast<std::size_t>(i)};
      WorkingSet set = working_set(trace_, {}, op);
      step_.duration.push_back(trace_.op(op).duration);
      step_.working_set.push_back(set.bytes);
      held_.push_back(std::move(set.held));
    }
    step_.duration.push_back({});
    step_.working_set.push_back({});
  }

  void find_last_versions() {
    last_.resize(trace_.buffers().size());
    for (std::size_t i = 0; i < trace_.versions().size(); ++i)
      if (trace_.versions()[i].kind != VersionKind::kView) last_[trace_.versions()[i].buffer.index()] = VersionId{i};
    outputs_.resize(trace_.versions().size());
    for (const VersionId v : handed_on(trace_)) outputs_[v.index()] = true;
  }

  bool carried(VersionId v) const {
    const Buffer& buffer = trace_.buffer(trace_.version(v).buffer);
    return repeats_ && buffer.born_before && buffer.outlives;
  }
  bool is_content(VersionId v) const {
    const Version& version = trace_.version(v);
    if (version.kind == VersionKind::kView || trace_.size(v) == Bytes{}) return false;
    return version.kind != VersionKind::kInitial || trace_.buffer(version.buffer).born_before;
  }
  bool held(VersionId v, std::int64_t op) const {
    const std::vector<VersionId>& all = held_[static_cast<std::size_t>(op)];
    return std::binary_search(all.begin(), all.end(), v);
  }
  bool repeatable(OpId op) const { return remat_ && trace_.op(op).kind != OpKind::kSource; }

  /// The demand of the end of the step on an output in this buffer. A buffer whose first content nothing reads may
  /// begin on the host.
  StepContent::End end_of(BufferId id) const {
    const VersionId first = trace_.first_version(id);
    if (!trace_.buffer(id).born_before) return repeats_ ? StepContent::End::kHost : StepContent::End::kDevice;
    const bool of_use = !trace_.readers(first).empty() || outputs_[first.index()];
    return repeats_ || !of_use ? StepContent::End::kHost : StepContent::End::kBegan;
  }

  void add_uses(StepContent& content, VersionId v, std::int64_t shift) {
    for (const OpId reader : trace_.readers(v)) {
      const auto op = static_cast<std::int64_t>(reader.value());
      if (trace_.version(v).producer == reader) continue;
      content.uses.push_back({op + shift, held(v, op)});
      // Until the end of that iteration the op may run again.
      content.last = std::max(content.last, (repeatable(reader) ? n_ : op) + shift);
    }
  }

  void add(VersionId v) {
    const Version& version = trace_.version(v);
    const bool initial = version.kind == VersionKind::kInitial;
    if (initial && carried(v) && last_[version.buffer.index()] != v) return;  // the buffer's last version stands for it
    StepContent content{.version = v, .buffer = version.buffer, .size = trace_.size(v)};
    if (initial) {
      content.origin = carried(v) ? StepContent::Origin::kAlways : StepContent::Origin::kBefore;
      content.made = content.last = StepContent::kBefore;
    } else {
      content.made = content.last = version.producer.value();
      content.held_when_made = held(v, content.made);
      if (repeatable(version.producer)) content.producer = version.producer;
    }
    add_uses(content, v, 0);
    const bool goes_on = !initial && carried(v) && last_[version.buffer.index()] == v;
    if (goes_on) {
      const VersionId next = trace_.first_version(version.buffer);
      add_uses(content, next, step_.positions);
      if (!trace_.readers(next).empty()) shifted_.emplace_back(next, static_cast<std::uint32_t>(step_.contents.size()));
    }
    if (outputs_[v.index()]) {
      content.end = end_of(version.buffer);
      content.last = std::max(content.last, n_);
    }
    if (content.end == StepContent::End::kDevice) step_.working_set[static_cast<std::size_t>(n_)] += content.size;
    if (content.origin == StepContent::Origin::kAlways) content.last = n_;
    if (content.uses.empty() && content.end == StepContent::End::kNone) return;
    numbers_.emplace_back(v, static_cast<std::uint32_t>(step_.contents.size()));
    step_.contents.push_back(std::move(content));
  }

  void find_inputs() {
    std::vector<ContentInput> by_version(trace_.versions().size(), ContentInput{kNone, 0});
    for (const auto& [v, number] : numbers_) by_version[v.index()] = {number, 0};
    for (const auto& [v, number] : shifted_) by_version[v.index()] = {number, step_.positions};
    for (std::size_t i = 0; i < trace_.ops().size(); ++i) {
      std::vector<VersionId> roots;
      for (const Use& use : trace_.uses(OpId{i}))
        if (use.in.valid() && trace_.version(trace_.root(use.in)).producer != OpId{i})
          roots.push_back(trace_.root(use.in));
      std::sort(roots.begin(), roots.end());
      roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
      std::vector<ContentInput>& inputs = step_.inputs.emplace_back();
      for (const VersionId root : roots)
        if (by_version[root.index()].content != kNone) inputs.push_back(by_version[root.index()]);
    }
  }

  const Trace& trace_;
  const bool repeats_, remat_;
  const std::int64_t n_;
  std::vector<std::vector<VersionId>> held_;  // by op
  std::vector<VersionId> last_;               // by buffer
  std::vector<bool> outputs_;                 // by version
  std::vector<std::pair<VersionId, std::uint32_t>> numbers_, shifted_;
  StepContents step_;
};

}  // namespace

StepContents step_contents(const Trace& trace, bool repeats, bool remat) {
  return Collector{trace, repeats, remat}.run();
}

}  // namespace tidepool
