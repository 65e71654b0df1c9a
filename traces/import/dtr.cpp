// Operator logs of the DTR prototype (Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021) as traces.
#include <algorithm>

#include "traces/builder.hpp"
#include "traces/import/dtr_values.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"
#include "traces/import/torch_schema.hpp"

namespace tidepool {
namespace {

using Kind = DtrInstruction::Kind;
using ValueId = std::uint32_t;

/// Replays the instructions into a builder. The uses of an op are its arguments, in the order of the log, then the
/// values that it makes. An argument is used as the value that the log names, which may be a view.
class DtrImport {
 public:
  DtrImport(const DtrLog& log, const DtrValues& values)
      : log_{log},
        values_{values},
        version_(values.values.size()),
        buffer_(values.chain_length.size()),
        ended_(values.chain_length.size()) {}

  Trace run() {
    const auto is_backward = [](const DtrInstruction& next) { return next.kind == Kind::kBackward; };
    if (std::any_of(log_.instructions.begin(), log_.instructions.end(), is_backward)) enter(Phase::kForward, "forward");
    auto death = values_.deaths.begin();
    for (std::size_t i = 0; i < log_.instructions.size(); ++i) {
      const DtrInstruction& next = log_.instructions[i];
      if (is_backward(next) && phase_ != Phase::kBackward) enter(Phase::kBackward, "backward");
      if (next.kind == Kind::kConstant || next.kind == Kind::kCall || next.kind == Kind::kMutate) run_op(i);
      for (; death != values_.deaths.end() && death->instruction == i; ++death) end(death->root);
    }
    for (const ValueId value : values_.outputs) builder_.output(version_[value]);
    builder_.meta()["source"] = "dtr";
    builder_.meta()["time"] = "measured";
    return builder_.finish();
  }

 private:
  void enter(Phase phase, std::string_view name) {
    phase_ = phase;
    builder_.mark(MarkKind::kPhase, name);
  }

  void run_op(std::size_t instruction) {
    const DtrInstruction& next = log_.instructions[instruction];
    Op op;
    op.phase = phase_;
    op.kind = next.kind == Kind::kConstant ? OpKind::kSource : OpKind::kKernel;
    const std::string_view name = next.kind == Kind::kConstant ? "constant" : std::string_view{log_.names[next.op]};
    op.name = builder_.text(name);
    op.duration = Nanos{next.time_ns};
    op.random = next.kind != Kind::kConstant && draws_random_numbers(name);

    touches_.clear();
    made_.clear();
    for (std::uint32_t i = next.args.first; i < next.args.last; ++i) {
      const ValueId value = values_.args[i];
      touches_.push_back({buffer_[values_.chain(value)], Access::kRead, Evidence::kSchema, version_[value]});
    }
    const ValueId first = values_.first_made[instruction];
    if (next.kind == Kind::kMutate)
      mutate(next, first, values_.in_place[instruction]);
    else
      make(next, first);
    const std::vector<VersionId> versions = builder_.run(op, touches_);
    for (std::size_t k = 0; k < made_.size(); ++k) version_[first + k] = versions[made_[k]];
  }

  void make(const DtrInstruction& next, ValueId first) {
    const BufferKind kind = next.kind == Kind::kConstant ? BufferKind::kParameter : BufferKind::kUnknown;
    for (std::uint32_t i = next.results.first; i < next.results.last; ++i) {
      const std::int32_t alias = log_.results[i].alias;
      if (alias < 0) {
        write(first + (i - next.results.first), kind);
        continue;
      }
      TraceBuilder::Touch view = touches_[static_cast<std::size_t>(alias)];
      view.access = Access::kView;
      made_.push_back(touches_.size());
      touches_.push_back(view);
    }
  }

  void mutate(const DtrInstruction& next, ValueId first, bool in_place) {
    for (std::uint32_t i = next.mutated.first; i < next.mutated.last; ++i) {
      if (!in_place) {
        write(first + (i - next.mutated.first), BufferKind::kUnknown);
        continue;
      }
      touches_[log_.mutated[i]].access = Access::kReadWrite;
      made_.push_back(log_.mutated[i]);
    }
  }

  /// Adds a new buffer for a root, which the op fills.
  void write(ValueId root, BufferKind kind) {
    Buffer spec;
    spec.size = Bytes{values_.values[root].size};
    spec.name = builder_.text(log_.names[values_.values[root].name]);
    spec.kind = kind;
    const BufferId buffer = builder_.alloc(spec);
    buffer_[values_.chain(root)] = buffer;
    made_.push_back(touches_.size());
    touches_.push_back({buffer, Access::kWrite, Evidence::kSchema, VersionId{}});
  }

  /// Ends a root that no name refers to any more. A buffer that held several roots ends with the last of them.
  void end(ValueId root) {
    const std::uint32_t chain = values_.chain(root);
    if (values_.chain_length[chain] > 1) builder_.forget(version_[root]);
    if (++ended_[chain] == values_.chain_length[chain]) builder_.free(buffer_[chain]);
  }

  const DtrLog& log_;
  const DtrValues& values_;
  TraceBuilder builder_;
  Phase phase_ = Phase::kUnknown;
  std::vector<VersionId> version_;    // by value
  std::vector<BufferId> buffer_;      // by chain
  std::vector<std::uint32_t> ended_;  // by chain: number of roots that have ended
  std::vector<TraceBuilder::Touch> touches_;
  std::vector<std::size_t> made_;  // for each value that the op makes: index of its touch
};

int sniff_dtr(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  return line.starts_with('{') && line.find("\"INSTRUCTION\"") != std::string_view::npos ? 95 : 0;
}

const RegisterImporter kDtr{
    {"dtr", "operator logs of the DTR prototype (JSON lines)", {".log", ".jsonl"}, sniff_dtr, read_dtr}};

}  // namespace

Trace read_dtr(const Input& input) {
  const DtrLog log = parse_dtr_log(input);
  const DtrValues values = find_dtr_values(log, Lines{input.path(), input.bytes()});
  return DtrImport{log, values}.run();
}

}  // namespace tidepool
