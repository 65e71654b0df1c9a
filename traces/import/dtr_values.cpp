#include "traces/import/dtr_values.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tidepool {
namespace {

using Kind = DtrInstruction::Kind;
using ValueId = std::uint32_t;
constexpr ValueId kNoValue = std::numeric_limits<ValueId>::max();

class Binding {
 public:
  Binding(const DtrLog& log, const Lines& lines)
      : log_{log}, lines_{lines}, bound_(log.names.size(), kNoValue), released_(log.names.size()) {}

  DtrValues run() {
    for (now_ = 0; now_ < log_.instructions.size(); ++now_) {
      found_.first_made.push_back(static_cast<ValueId>(found_.values.size()));
      step(log_.instructions[now_]);
    }
    find_outputs();
    find_chains();
    return std::move(found_);
  }

 private:
  void step(const DtrInstruction& next) {
    switch (next.kind) {
      case Kind::kConstant:
      case Kind::kCall:
        make(next);
        break;
      case Kind::kMutate:
        mutate(next);
        break;
      case Kind::kCopy:
        require_new(next.name);
        bind(next.name, get(next.source));
        break;
      case Kind::kCopyFrom:
        copy_from(next);
        break;
      case Kind::kRelease:  // a name that was never bound was released before the log began
        if (bound_[next.name] == kNoValue) break;
        release(value_of(next.name, "releases"));
        released_[next.name] = true;
        break;
      case Kind::kBackward:
        break;
    }
  }

  void make(const DtrInstruction& next) {
    read_args(next);
    for (std::uint32_t i = next.results.first; i < next.results.last; ++i) {
      const DtrResult& result = log_.results[i];
      require_new(result.name);
      const bool view = result.alias >= 0;
      const ValueId root = view ? found_.root(arg(next, static_cast<std::uint32_t>(result.alias))) : kNoValue;
      bind(result.name, add_value(result.name, result.size, root));
    }
  }

  /// All new values are made first; then all old ones lose their reference. This is the authors' order.
  void mutate(const DtrInstruction& next) {
    read_args(next);
    for (std::uint32_t i = next.mutated.first; i < next.mutated.last; ++i) {
      const std::int64_t size = root_of(arg(next, log_.mutated[i])).size;
      try {
        copied_.add(size, "sizes");
      } catch (const InputError& error) {
        throw error.at(position());
      }
      add_value(log_.args[next.args.first + log_.mutated[i]], size, kNoValue);
    }
    for (std::uint32_t i = next.mutated.first; i < next.mutated.last; ++i) {
      const std::uint32_t name = log_.args[next.args.first + log_.mutated[i]];
      release(std::exchange(bound_[name], found_.first_made[now_] + (i - next.mutated.first)));
    }
  }

  void copy_from(const DtrInstruction& next) {
    const ValueId old = value_of(next.name, "overwrites");
    if (old == value_of(next.source, "copies")) return;
    release(old);
    bound_[next.name] = get(next.source);
  }

  void read_args(const DtrInstruction& next) {
    for (std::uint32_t i = next.args.first; i < next.args.last; ++i) {
      const ValueId value = value_of(log_.args[i], "reads");
      root_of(value).last_read = now_;
      found_.args.push_back(value);
    }
  }

  ValueId get(std::uint32_t name) {
    const ValueId value = value_of(name, "copies");
    ++found_.values[value].refs;
    ++root_of(value).root_refs;
    return value;
  }

  void release(ValueId value) {
    --found_.values[value].refs;
    if (--root_of(value).root_refs == 0) found_.deaths.push_back({now_, found_.root(value)});
  }

  ValueId add_value(std::uint32_t name, std::int64_t size, ValueId root) {
    const auto id = static_cast<ValueId>(found_.values.size());
    DtrValue value;
    value.root = root == kNoValue ? id : root;
    value.name = name;
    value.size = size;
    value.refs = 1;
    found_.values.push_back(value);
    ++root_of(id).root_refs;
    return id;
  }

  void bind(std::uint32_t name, ValueId value) {
    by_appearance_.push_back(name);
    bound_[name] = value;
  }

  void find_outputs() {
    std::vector<bool> seen(found_.values.size());
    for (const std::uint32_t name : by_appearance_) {
      const ValueId value = bound_[name];
      if (found_.values[value].refs <= 0 || root_of(value).root_refs == 0 || seen[value]) continue;
      seen[value] = true;
      root_of(value).asked_for = true;
      found_.outputs.push_back(value);
    }
  }

  /// Whether a MUTATE writes in place. Either all of its writes are in place or none is; so its new values keep the
  /// order of the log.
  bool writes_in_place(std::size_t instruction) const {
    const DtrInstruction& next = log_.instructions[instruction];
    std::vector<ValueId> roots;
    for (std::uint32_t i = next.mutated.first; i < next.mutated.last; ++i) {
      const ValueId root = found_.root(arg(next, log_.mutated[i]));
      const bool ascending = i == next.mutated.first || log_.mutated[i - 1] < log_.mutated[i];
      if (!ascending || found_.values[root].last_read > instruction || found_.values[root].asked_for) return false;
      roots.push_back(root);
    }
    std::sort(roots.begin(), roots.end());
    return std::adjacent_find(roots.begin(), roots.end()) == roots.end();
  }

  void find_chains() {
    found_.in_place.resize(log_.instructions.size());
    std::vector<ValueId> replaces(found_.values.size(), kNoValue);
    for (std::size_t i = 0; i < log_.instructions.size(); ++i) {
      const DtrInstruction& next = log_.instructions[i];
      if (next.kind != Kind::kMutate || !writes_in_place(i)) continue;
      found_.in_place[i] = true;
      for (std::uint32_t k = next.mutated.first; k < next.mutated.last; ++k)
        replaces[found_.first_made[i] + (k - next.mutated.first)] = found_.root(arg(next, log_.mutated[k]));
    }
    for (ValueId id = 0; id < found_.values.size(); ++id) {
      if (found_.root(id) != id) continue;
      std::uint32_t& chain = found_.values[id].chain;
      chain = replaces[id] == kNoValue ? static_cast<std::uint32_t>(found_.chain_length.size())
                                       : found_.chain(replaces[id]);
      if (replaces[id] == kNoValue) found_.chain_length.push_back(0);
      ++found_.chain_length[chain];
    }
  }

  ValueId arg(const DtrInstruction& next, std::uint32_t position) const {
    return found_.args[next.args.first + position];
  }
  DtrValue& root_of(ValueId value) { return found_.values[found_.root(value)]; }

  ValueId value_of(std::uint32_t name, std::string_view verb) {
    const ValueId value = bound_[name];
    if (value == kNoValue) refuse("{} {}, which no line before made", verb, show(name));
    if (released_[name]) refuse("{} {}, which has been released", verb, show(name));
    return value;
  }

  void require_new(std::uint32_t name) const {
    if (bound_[name] != kNoValue) refuse("makes {}, which exists already; expected a new name", show(name));
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(position());
  }
  std::string position() const { return lines_.position(log_.instructions[now_].line); }
  std::string show(std::uint32_t name) const { return "'" + excerpt(log_.names[name]) + "'"; }

  const DtrLog& log_;
  const Lines& lines_;
  DtrValues found_;
  std::size_t now_ = 0;                       // instruction
  std::vector<ValueId> bound_;                // by name
  std::vector<bool> released_;                // by name
  std::vector<std::uint32_t> by_appearance_;  // names in the order in which they were first bound
  Total copied_;
};

}  // namespace

DtrValues find_dtr_values(const DtrLog& log, const Lines& lines) { return Binding{log, lines}.run(); }

}  // namespace tidepool
