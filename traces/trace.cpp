#include "traces/trace.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "traces/error.hpp"

namespace tidepool {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw InputError{fmt::format(text, std::forward<Args>(args)...)};
}

template <class Tag>
void require(Id<Tag> id, std::size_t count, std::string_view record, std::size_t index, std::string_view what) {
  if (id.index() >= count) {
    if (!id.valid()) refuse("{} {}: no {}; expected one of the {} in the trace", record, index, what, count);
    refuse("{} {}: unknown {} {}; the trace has {}", record, index, what, id.value(), count);
  }
}

/// Compressed rows: row i holds the values added with key i, in the order of adding.
struct Rows {
  std::vector<std::pair<std::uint32_t, OpId>> pairs;

  void add(VersionId key, OpId value) {
    pairs.emplace_back(key.value(), value);
  }
  void store(std::size_t rows, std::vector<OpId>& values, std::vector<std::uint32_t>& start) {
    start.assign(rows + 1, 0);
    for (const auto& [key, value] : pairs) ++start[key + 1];
    for (std::size_t i = 0; i < rows; ++i) start[i + 1] += start[i];
    values.resize(pairs.size());
    std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
    for (const auto& [key, value] : pairs) values[next[key]++] = value;
  }
};

/// Feeds single fields to the hash, so that padding and the layout of the structs do not matter.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(&state_); }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    XXH3_64bits_update(&state_, text.data(), text.size());
  }
  void add(std::uint64_t value) { XXH3_64bits_update(&state_, &value, sizeof value); }
  void add(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  template <class Tag>
  void add(Id<Tag> id) { add(std::uint64_t{id.value()}); }
  template <class Tag>
  void add(Quantity<Tag> value) { add(value.count()); }
  std::string text() { return fmt::format("{:016x}", XXH3_64bits_digest(&state_)); }

 private:
  XXH3_state_t state_;
};

std::string digest(const TraceData& data) {
  Digest hash;
  const auto flag = [](auto value) { return static_cast<std::uint64_t>(value); };
  for (const std::string& text : data.strings) hash.add(text);
  for (const std::string& name : data.streams) hash.add(name);
  for (const Buffer& b : data.buffers) {
    hash.add(b.size), hash.add(b.address), hash.add(b.name), hash.add(b.stream);
    hash.add(flag(b.device) | flag(b.kind) << 16 | flag(b.born_before) << 24 | flag(b.outlives) << 25);
  }
  for (const Op& op : data.ops) {
    hash.add(op.name), hash.add(op.module), hash.add(op.stream), hash.add(op.start), hash.add(op.launch);
    hash.add(op.duration), hash.add(flag(op.first_use)), hash.add(flag(op.last_use));
    hash.add(flag(op.kind) | flag(op.phase) << 8 | flag(op.random) << 16);
  }
  for (const Use& use : data.uses) hash.add(use.in), hash.add(use.out), hash.add(flag(use.access) | flag(use.evidence) << 8);
  for (const Version& v : data.versions) hash.add(v.buffer), hash.add(v.producer), hash.add(v.parent), hash.add(flag(v.kind));
  for (const Step& step : data.steps) hash.add(flag(step.kind) << 32 | step.id);
  for (const Mark& mark : data.marks) hash.add(flag(mark.kind) << 32 | mark.step), hash.add(mark.name);
  for (const Order& order : data.orders) hash.add(order.before), hash.add(order.after);
  for (const VersionId id : data.outputs) hash.add(id);
  const Losses& lost = data.losses;
  hash.add(lost.dropped_records), hash.add(lost.unmatched_frees), hash.add(lost.unknown_pointers), hash.add(lost.clock_residual_ns);
  for (const auto& [key, value] : data.meta) hash.add(key), hash.add(value);
  return hash.text();
}

/// Walks the program once and refuses what could not have happened.
class Walk {
 public:
  explicit Walk(const TraceData& data) : data_{data}, freed_by_(data.buffers.size(), kNever), current_(data.buffers.size()) {
    for (std::size_t i = 0; i < data.buffers.size(); ++i) {
      live_.push_back(data.buffers[i].born_before);
      peak_ += data.buffers[i].born_before ? data.buffers[i].size : Bytes{};
    }
    for (std::size_t i = 0; i < data.versions.size(); ++i) {
      const Version& version = data.versions[i];
      if (version.kind == VersionKind::kInitial) {
        if (current_[version.buffer.index()].valid())
          refuse("version {}: a second initial version of buffer {}", i, version.buffer.value());
        current_[version.buffer.index()] = VersionId{i};
      }
    }
    sum_ = peak_;
  }

  Bytes run() {
    std::size_t next_op = 0;
    for (step_ = 0; step_ < data_.steps.size(); ++step_) {
      const Step step = data_.steps[step_];
      switch (step.kind) {
        case StepKind::kAlloc: alloc(BufferId{step.id}); break;
        case StepKind::kFree: free(BufferId{step.id}); break;
        case StepKind::kRun:
          if (step.id != next_op) refuse("step {}: runs op {}; expected op {}, ops run in id order", step_, step.id, next_op);
          run(OpId{next_op++});
          break;
        case StepKind::kForget: break;
        default: refuse("step {}: unknown kind {}", step_, static_cast<int>(step.kind));
      }
    }
    if (next_op != data_.ops.size()) refuse("op {}: never runs", next_op);
    finish();
    return peak_;
  }

 private:
  static constexpr std::size_t kNever = ~std::size_t{0};

  void alloc(BufferId id) {
    const std::size_t i = id.index();
    if (live_[i]) refuse("step {}: alloc of buffer {}, which is already allocated", step_, i);
    if (freed_by_[i] != kNever) refuse("step {}: alloc of buffer {}, which was freed by step {}", step_, i, freed_by_[i]);
    live_[i] = true;
    sum_ += data_.buffers[i].size;
    peak_ = std::max(peak_, sum_);
  }

  void free(BufferId id) {
    const std::size_t i = id.index();
    if (!live_[i]) refuse("step {}: free of buffer {}, which is not allocated", step_, i);
    live_[i] = false;
    freed_by_[i] = step_;
    sum_ -= data_.buffers[i].size;
  }

  void run(OpId id) {
    const Op& op = data_.ops[id.index()];
    const std::span uses{data_.uses.data() + op.first_use, op.last_use - op.first_use};
    for (const Use& use : uses) {
      const VersionId named = use.in.valid() ? use.in : use.out;
      if (!named.valid()) refuse("op {}: a use names no version", id.value());
      const BufferId buffer = data_.versions[named.index()].buffer;
      if (!live_[buffer.index()]) {
        if (freed_by_[buffer.index()] == kNever)
          refuse("op {} {} buffer {}, which is not allocated yet", id.value(), verb(use), buffer.value());
        refuse("op {} {} buffer {}, which was freed before it (step {})", id.value(), verb(use), buffer.value(),
               freed_by_[buffer.index()]);
      }
      const bool reads = use.access != Access::kWrite;
      if (reads != use.in.valid() || (use.access != Access::kRead) != use.out.valid())
        refuse("op {}: a use of buffer {} has access {} but its versions do not match it", id.value(), buffer.value(),
               static_cast<int>(use.access));
      if (reads && data_.versions[use.in.index()].root != current_[buffer.index()])
        refuse("op {} reads version {} of buffer {}, which is not its content at that point", id.value(), use.in.value(),
               buffer.value());
    }
    for (const Use& use : uses) {
      if (!use.out.valid()) continue;
      const Version& made = data_.versions[use.out.index()];
      if (made.producer != id) refuse("op {} makes version {}, whose producer is another op", id.value(), use.out.value());
      if (use.in.valid() && made.buffer != data_.versions[use.in.index()].buffer)
        refuse("op {} makes version {} of another buffer than it reads", id.value(), use.out.value());
      const VersionKind expected = use.access == Access::kView    ? VersionKind::kView
                                   : use.access == Access::kWrite ? VersionKind::kWrite
                                                                  : VersionKind::kUpdate;
      VersionId& current = current_[made.buffer.index()];
      if (made.kind == VersionKind::kView) {
        if (expected != VersionKind::kView || made.parent != use.in)
          refuse("op {} makes view {}, but the use does not say so", id.value(), use.out.value());
      } else if (current != use.out) {
        if (made.kind != expected && made.kind != VersionKind::kUpdate)
          refuse("op {} makes version {} of another kind than its use says", id.value(), use.out.value());
        if (made.parent != current)
          refuse("op {} makes version {}, which does not follow the content of buffer {}", id.value(), use.out.value(),
                 made.buffer.value());
        current = use.out;
      }
      made_[use.out.index()] = true;
    }
  }

  void finish() {
    for (std::size_t i = 0; i < data_.buffers.size(); ++i) {
      if (!live_[i] && freed_by_[i] == kNever) refuse("buffer {}: never allocated", i);
      if (live_[i] != data_.buffers[i].outlives)
        refuse("buffer {}: says that it {} the trace, but it {}", i, data_.buffers[i].outlives ? "outlives" : "ends within",
               live_[i] ? "is never freed" : "is freed");
      if (!current_[i].valid()) refuse("buffer {}: has no version", i);
    }
    for (std::size_t i = 0; i < data_.versions.size(); ++i)
      if (data_.versions[i].producer.valid() && !made_[i])
        refuse("version {}: its producer, op {}, does not make it", i, data_.versions[i].producer.value());
    for (const VersionId id : data_.outputs) {
      const Version& version = data_.versions[id.index()];
      if (!live_[version.buffer.index()] || version.root != current_[version.buffer.index()])
        refuse("output: version {} is not the content of a buffer at the end", id.value());
    }
  }

  static std::string_view verb(const Use& use) { return use.in.valid() ? "reads" : "writes"; }

  const TraceData& data_;
  std::size_t step_ = 0;
  std::vector<bool> live_;
  std::vector<std::size_t> freed_by_;
  std::vector<VersionId> current_;
  std::vector<bool> made_ = std::vector<bool>(data_.versions.size());
  Bytes sum_, peak_;
};

}  // namespace

Trace::Trace(TraceData data) : data_{std::move(data)} {
  check();
  ideal_peak_ = Walk{data_}.run();
  index();
  hash_ = digest(data_);
}

void Trace::check() const {
  const TraceData& d = data_;
  if (d.strings.empty() || !d.strings[0].empty()) refuse("strings: the first one must be empty");
  if (d.streams.empty()) refuse("streams: none; a trace has at least one");
  for (std::size_t i = 0; i < d.buffers.size(); ++i) {
    const Buffer& buffer = d.buffers[i];
    if (buffer.size < Bytes{}) refuse("buffer {}: size is {}; expected at least 0", i, buffer.size.count());
    require(buffer.name, d.strings.size(), "buffer", i, "string");
    require(buffer.stream, d.streams.size(), "buffer", i, "stream");
  }
  for (std::size_t i = 0; i < d.versions.size(); ++i) {
    const Version& version = d.versions[i];
    require(version.buffer, d.buffers.size(), "version", i, "buffer");
    if (version.producer.valid()) require(version.producer, d.ops.size(), "version", i, "op");
    const bool made = version.kind != VersionKind::kInitial;
    if (made != version.producer.valid()) refuse("version {}: {} a producer", i, made ? "lacks" : "is initial and cannot have");
    if (version.parent.valid()) {
      require(version.parent, d.versions.size(), "version", i, "version");
      if (version.parent.index() >= i) refuse("version {}: its parent {} does not come before it", i, version.parent.value());
      if (d.versions[version.parent.index()].buffer != version.buffer)
        refuse("version {}: its parent {} belongs to another buffer", i, version.parent.value());
    } else if (version.kind == VersionKind::kUpdate || version.kind == VersionKind::kView) {
      refuse("version {}: an update or view needs a parent", i);
    }
    const VersionId root = version.kind == VersionKind::kView ? d.versions[version.parent.index()].root : VersionId{i};
    if (version.root != root) refuse("version {}: its root is {}; expected {}", i, version.root.value(), root.value());
  }
  std::uint32_t next_use = 0;
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    const Op& op = d.ops[i];
    require(op.name, d.strings.size(), "op", i, "string");
    require(op.module, d.strings.size(), "op", i, "string");
    require(op.stream, d.streams.size(), "op", i, "stream");
    if (op.duration < Nanos{}) refuse("op {}: duration is {}; expected at least 0", i, op.duration.count());
    if (op.first_use != next_use || op.last_use < op.first_use || op.last_use > d.uses.size())
      refuse("op {}: uses {} to {}; expected to start at {} and end by {}", i, op.first_use, op.last_use, next_use, d.uses.size());
    next_use = op.last_use;
  }
  if (next_use != d.uses.size()) refuse("use {}: belongs to no op", next_use);
  for (std::size_t i = 0; i < d.uses.size(); ++i) {
    if (d.uses[i].in.valid()) require(d.uses[i].in, d.versions.size(), "use", i, "version");
    if (d.uses[i].out.valid()) require(d.uses[i].out, d.versions.size(), "use", i, "version");
  }
  for (std::size_t i = 0; i < d.steps.size(); ++i) {
    const Step& step = d.steps[i];
    if (step.kind == StepKind::kRun) require(OpId{step.id}, d.ops.size(), "step", i, "op");
    else if (step.kind == StepKind::kForget) require(VersionId{step.id}, d.versions.size(), "step", i, "version");
    else require(BufferId{step.id}, d.buffers.size(), "step", i, "buffer");
  }
  for (std::size_t i = 0; i < d.marks.size(); ++i) {
    require(d.marks[i].name, d.strings.size(), "mark", i, "string");
    if (d.marks[i].step > d.steps.size()) refuse("mark {}: stands before step {}; the trace has {}", i, d.marks[i].step, d.steps.size());
  }
  for (std::size_t i = 0; i < d.orders.size(); ++i) {
    require(d.orders[i].before, d.ops.size(), "order", i, "op");
    require(d.orders[i].after, d.ops.size(), "order", i, "op");
    if (d.orders[i].before >= d.orders[i].after)
      refuse("order {}: op {} waits for op {}, which does not come before it", i, d.orders[i].after.value(), d.orders[i].before.value());
    if (i > 0 && d.orders[i].after < d.orders[i - 1].after) refuse("order {}: not sorted by the op that waits", i);
  }
  for (std::size_t i = 0; i < d.outputs.size(); ++i) require(d.outputs[i], d.versions.size(), "output", i, "version");
}

void Trace::index() {
  const TraceData& d = data_;
  first_version_.resize(d.buffers.size());
  for (std::size_t i = d.versions.size(); i-- > 0;)
    if (d.versions[i].kind != VersionKind::kView) first_version_[d.versions[i].buffer.index()] = VersionId{i};
  // An initial version may have been noted after a write of another buffer, but never after one of its own buffer.

  Rows readers, viewers;
  std::vector<OpId> last_reader(d.versions.size()), last_viewer(d.versions.size());
  const auto add_once = [](Rows& rows, std::vector<OpId>& last, VersionId key, OpId op) {
    if (last[key.index()] == op) return;
    last[key.index()] = op;
    rows.add(key, op);
  };
  for (std::size_t i = 0; i < d.ops.size(); ++i)
    for (const Use& use : uses(OpId{i})) {
      if (use.in.valid()) add_once(readers, last_reader, root(use.in), OpId{i});
      if (use.access == Access::kView) add_once(viewers, last_viewer, root(use.out), OpId{i});
    }
  readers.store(d.versions.size(), readers_, reader_start_);
  viewers.store(d.versions.size(), viewers_, viewer_start_);

  made_start_.assign(1, 0);
  for (std::size_t i = 0; i < d.ops.size(); ++i) {
    for (const Use& use : uses(OpId{i}))
      if (use.out.valid() && use.access != Access::kView &&
          std::find(made_.begin() + made_start_[i], made_.end(), use.out) == made_.end())
        made_.push_back(use.out);
    made_start_.push_back(static_cast<std::uint32_t>(made_.size()));
  }

  position_.resize(d.ops.size());
  allocated_for_.resize(d.steps.size());
  OpId next;
  for (std::size_t i = d.steps.size(); i-- > 0;) {
    if (d.steps[i].kind == StepKind::kRun) {
      next = OpId{d.steps[i].id};
      position_[next.index()] = static_cast<std::uint32_t>(i);
    } else if (d.steps[i].kind == StepKind::kAlloc) {
      allocated_for_[i] = next;
    } else {
      next = OpId{};
    }
  }
}

}  // namespace tidepool
