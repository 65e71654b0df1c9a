#include <algorithm>
#include <span>

#include "traces/base/refuse.hpp"
#include "traces/names.hpp"
#include "traces/trace.hpp"
#include "traces/trace_check.hpp"

namespace tidepool {
namespace {

constexpr std::uint32_t kNever = ~std::uint32_t{0};

/// The state of a buffer at one point of the walk.
struct Life {
  VersionId content = {};           ///< its current root version, if it has one
  std::uint32_t freed_by = kNever;  ///< the step that freed it
  bool live = false;
};

class Walk {
 public:
  explicit Walk(const TraceData& data) : data_{data}, lives_(data.buffers.size()), made_(data.versions.size()) {
    for (std::size_t i = 0; i < data.versions.size(); ++i) {
      const Version& version = data.versions[i];
      if (version.kind != VersionKind::kInitial) continue;
      VersionId& content = lives_[version.buffer.index()].content;
      if (content.valid()) refuse("version {}: a second initial version of buffer {}", i, version.buffer.value());
      content = VersionId{i};
    }
    for (std::size_t i = 0; i < data.buffers.size(); ++i) {
      if (!data.buffers[i].born_before) continue;
      lives_[i].live = true;
      sum_ += data.buffers[i].size;
      if (!lives_[i].content.valid()) refuse("buffer {}: existed before the trace, but has no initial version", i);
    }
    peak_ = sum_;
  }

  Bytes run() {
    std::size_t next_op = 0;
    for (step_ = 0; step_ < data_.events.size(); ++step_) {
      const Event event = data_.events[step_];
      switch (event.kind) {
        case EventKind::kAlloc:
          alloc(event.id);
          break;
        case EventKind::kFree:
          free(event.id);
          break;
        case EventKind::kRun:
          if (event.id != next_op)
            refuse("step {}: runs op {}; expected op {}, since ops run in the order of their ids", step_, event.id,
                   next_op);
          run(OpId{next_op++});
          break;
        case EventKind::kForget:
          forget(VersionId{event.id});
          break;
        default:
          refuse("step {}: unknown kind {}", step_, static_cast<int>(event.kind));
      }
    }
    if (next_op != data_.ops.size()) refuse("op {}: never runs", next_op);
    finish();
    return peak_;
  }

 private:
  void alloc(std::size_t i) {
    Life& life = lives_[i];
    if (life.live) refuse("step {}: alloc of buffer {}, which is already allocated", step_, i);
    if (life.freed_by != kNever)
      refuse("step {}: alloc of buffer {}, which was freed by step {}", step_, i, life.freed_by);
    life.live = true;
    sum_ += data_.buffers[i].size;
    peak_ = std::max(peak_, sum_);
  }

  void free(std::size_t i) {
    Life& life = lives_[i];
    if (!life.live) refuse("step {}: free of buffer {}, which is not allocated", step_, i);
    life.live = false;
    life.freed_by = static_cast<std::uint32_t>(step_);
    sum_ -= data_.buffers[i].size;
  }

  void forget(VersionId id) const {
    const Version& version = data_.versions[id.index()];
    const Life& life = lives_[version.buffer.index()];
    const bool exists = version.producer.valid() ? made_[id.index()] != 0 : life.live || life.freed_by != kNever;
    if (!exists) refuse("step {}: forgets version {}, which is not made before it", step_, id.value());
  }

  void run(OpId id) {
    const Op& op = data_.ops[id.index()];
    const std::span uses{data_.uses.data() + op.first_use, op.last_use - op.first_use};
    for (const Use& use : uses) check_use(id, use);
    for (const Use& use : uses)
      if (use.out.valid()) make(id, use);
  }

  void check_use(OpId id, const Use& use) const {
    const VersionId named = use.in.valid() ? use.in : use.out;
    if (!named.valid()) refuse("op {}: a use names no version", id.value());
    const Version& version = data_.versions[named.index()];
    const Life& life = lives_[version.buffer.index()];
    if (!life.live) refuse_dead(id, use, version.buffer);
    const bool reads = use.access != Access::kWrite;
    if (reads != use.in.valid() || (use.access != Access::kRead) != use.out.valid())
      refuse("op {}: a use of buffer {} has access {} but its versions do not match it", id.value(),
             version.buffer.value(), word(use.access));
    if (!reads) return;
    if (version.root != life.content)
      refuse("op {} reads version {} of buffer {}, which is not its content at that point", id.value(), named.value(),
             version.buffer.value());
    if (version.kind == VersionKind::kView && !made_[named.index()])
      refuse("op {} reads view {}, which is not made before it", id.value(), named.value());
  }

  void make(OpId id, const Use& use) {
    const Version& made = data_.versions[use.out.index()];
    if (made.producer != id)
      refuse("op {} makes version {}, whose producer is another op", id.value(), use.out.value());
    if (use.in.valid() && made.buffer != data_.versions[use.in.index()].buffer)
      refuse("op {} makes version {} of another buffer than it reads", id.value(), use.out.value());
    if ((made.kind == VersionKind::kView) != (use.access == Access::kView) ||
        (made.kind == VersionKind::kView && (made.parent != use.in || made_[use.out.index()])))
      refuse("op {} makes view {}, but the use does not say so", id.value(), use.out.value());
    VersionId& content = lives_[made.buffer.index()].content;
    if (made.kind != VersionKind::kView && content != use.out) {
      if (made.kind != (use.access == Access::kWrite ? VersionKind::kWrite : VersionKind::kUpdate))
        refuse("op {} makes version {} of another kind than its use says", id.value(), use.out.value());
      if (made.parent != content)
        refuse("op {} makes version {}, which does not follow the content of buffer {}", id.value(), use.out.value(),
               made.buffer.value());
      content = use.out;
    }
    made_[use.out.index()] = 1;
  }

  void finish() const {
    for (std::size_t i = 0; i < data_.buffers.size(); ++i) {
      const Life& life = lives_[i];
      if (!life.live && life.freed_by == kNever) refuse("buffer {}: never allocated", i);
      if (life.live != data_.buffers[i].outlives)
        refuse("buffer {}: says that it {} the trace, but it {}", i,
               data_.buffers[i].outlives ? "outlives" : "ends within", life.live ? "is never freed" : "is freed");
      if (!life.content.valid()) refuse("buffer {}: has no version", i);
    }
    for (std::size_t i = 0; i < data_.versions.size(); ++i)
      if (data_.versions[i].producer.valid() && !made_[i])
        refuse("version {}: its producer, op {}, does not make it", i, data_.versions[i].producer.value());
    for (const VersionId id : data_.outputs) {
      const Version& version = data_.versions[id.index()];
      const Life& life = lives_[version.buffer.index()];
      if (!life.live || version.root != life.content)
        refuse("output: version {} is not the content of a buffer at the end", id.value());
    }
  }

  [[noreturn]] void refuse_dead(OpId id, const Use& use, BufferId buffer) const {
    const char* verb = use.in.valid() ? "reads" : "writes";
    const std::uint32_t freed_by = lives_[buffer.index()].freed_by;
    if (freed_by == kNever) refuse("op {} {} buffer {}, which is not allocated yet", id.value(), verb, buffer.value());
    refuse("op {} {} buffer {}, which was freed before it (step {})", id.value(), verb, buffer.value(), freed_by);
  }

  const TraceData& data_;
  std::vector<Life> lives_;
  std::vector<std::uint8_t> made_;
  std::size_t step_ = 0;
  Bytes sum_, peak_;
};

}  // namespace

Bytes check_program(const TraceData& data) { return Walk{data}.run(); }

}  // namespace tidepool
