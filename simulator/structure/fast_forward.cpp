#include "simulator/structure/fast_forward.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace tidepool {

/// A copy that was carried out: the times with which it began and ended.
struct FoldedProgram::Memory {
  std::vector<Nanos> lanes_before, lanes_after, before, after;  // by lane, and by role
};

std::vector<std::uint32_t> action_letters(const LaneProgram& program) {
  std::unordered_map<std::string, std::uint32_t> letters;
  std::vector<std::uint32_t> text;
  std::string key;
  const auto add = [&key](std::int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto add_register = [&](LaneProgram::Register one) { add(one < program.lanes() ? one : program.lanes()); };
  for (std::size_t i = 0; i < program.actions(); ++i) {
    key.clear();
    for (const LaneProgram::Instruction& one : program.instructions(i)) {
      add(one.more.count());
      add_register(one.target);
      for (const LaneProgram::Register source : program.sources(one)) add_register(source);
      add(-1);
    }
    text.push_back(letters.try_emplace(key, static_cast<std::uint32_t>(letters.size())).first->second);
  }
  return text;
}

FoldedProgram::FoldedProgram(const LaneProgram& program) : program_{program} {
  const std::vector<std::uint32_t> letters = action_letters(program);
  for (const Repeat& found : find_structure(letters, std::vector<bool>(letters.size())).repeats) {
    if (found.outer != Repeat::kNone) continue;
    Repeat repeat = found;
    while (repeat.copies >= 2) {  // what is alike by letters may be tied to other versions
      std::uint32_t alike = 0;
      Roles roles = roles_of(repeat, alike);
      if (alike >= 2) {
        repeats_.push_back({repeat.first, repeat.period, alike, Repeat::kNone});
        roles_.push_back(std::move(roles));
      }
      repeat.first += alike * repeat.period;
      repeat.copies -= alike;
    }
  }
}

/// @param alike  how many copies, from the first one on, use registers in the same pattern
FoldedProgram::Roles FoldedProgram::roles_of(const Repeat& repeat, std::uint32_t& alike) const {
  Roles roles;
  roles.lane_read.resize(program_.lanes());
  roles.lane_written.resize(program_.lanes());
  std::vector<std::uint32_t> pattern;  // of the first copy: roles in the order of their uses
  for (alike = 0; alike < repeat.copies; ++alike) {
    std::unordered_map<Register, std::uint32_t> known;
    std::vector<Register> mine;
    std::size_t next = 0;
    bool same = true;
    const auto use = [&](Register one, bool writes) {
      if (one < program_.lanes()) {
        if (alike == 0) (writes ? roles.lane_written : roles.lane_read)[one] = true;
        return;
      }
      const auto [found, added] = known.try_emplace(one, static_cast<std::uint32_t>(mine.size()));
      if (added) mine.push_back(one);
      if (alike == 0) {
        pattern.push_back(found->second);
        if (added) roles.read.push_back(!writes), roles.written.push_back(false);
        if (writes) roles.written[found->second] = true;
      } else {
        same = same && next < pattern.size() && pattern[next++] == found->second;
      }
    };
    for (std::size_t i = 0; i < repeat.period; ++i)
      for (const LaneProgram::Instruction& one :
           program_.instructions(repeat.first + alike * std::size_t{repeat.period} + i)) {
        for (const Register source : program_.sources(one)) use(source, false);
        use(one.target, true);
        if (alike != 0 || one.target != program_.host()) continue;
        roles.host += one.more;
        roles.host_waits = roles.host_waits || program_.sources(one).size() > 1;
      }
    if (!same) break;
    roles.registers.push_back(std::move(mine));
  }
  return roles;
}

/// Whether a copy begins as the one in memory did; then its end is set.
bool FoldedProgram::recall(const Roles& roles, const std::vector<Register>& mine, const Memory& memory,
                           std::vector<Nanos>& registers) const {
  const auto streams = static_cast<std::ptrdiff_t>(program_.streams());
  const Nanos past_then = *std::min_element(memory.lanes_before.begin(), memory.lanes_before.begin() + streams);
  const Nanos past_now = *std::min_element(registers.begin(), registers.begin() + streams);
  const Nanos later = past_now - past_then;
  const auto same = [&](Nanos then, Nanos now) {
    return now == then + later || (then <= past_then && now <= past_now);
  };
  const Register host = program_.host();
  // The host only adds up what it does, so that nothing waits for it as long as it is behind at the end of the copy.
  const bool host_is_behind = !roles.host_waits && memory.lanes_before[host] + roles.host <= past_then &&
                              registers[host] + roles.host <= past_now;
  for (Register lane = 0; lane < program_.lanes(); ++lane) {
    const Nanos then = memory.lanes_before[lane], now = registers[lane];
    if (lane < program_.streams() || (lane == host && !host_is_behind)) {
      if (now != then + later && (lane != host || roles.lane_read[host])) return false;
    } else if (lane != host && roles.lane_read[lane] && !same(then, now)) {
      return false;
    }
  }
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (roles.read[i] && !same(memory.before[i], registers[mine[i]])) return false;
  for (Register lane = 0; lane < program_.lanes(); ++lane) {
    if (!roles.lane_written[lane]) continue;
    if (lane == host && host_is_behind)
      registers[lane] += roles.host;
    else
      registers[lane] = memory.lanes_after[lane] + later;
  }
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (roles.written[i]) registers[mine[i]] = memory.after[i] + later;
  return true;
}

FoldedProgram::Run FoldedProgram::run() const {
  Run result;
  std::vector<Nanos> registers(program_.registers());
  std::size_t next = 0;
  const auto carry_out = [&](std::size_t last) {
    program_.run(registers, next, last);
    result.carried_out += last - next;
    next = last;
  };
  for (std::size_t i = 0; i < repeats_.size(); ++i) {
    const Repeat& repeat = repeats_[i];
    carry_out(repeat.first);
    Memory memory;
    const auto lanes = static_cast<std::ptrdiff_t>(program_.lanes());
    const auto look_at = [&](const std::vector<Register>& mine, std::vector<Nanos>& of_lanes,
                             std::vector<Nanos>& of_roles) {
      of_lanes.assign(registers.begin(), registers.begin() + lanes);
      of_roles.clear();
      for (const Register one : mine) of_roles.push_back(registers[one]);
    };
    for (std::uint32_t copy = 0; copy < repeat.copies; ++copy) {
      const std::vector<Register>& mine = roles_[i].registers[copy];
      if (copy > 0 && recall(roles_[i], mine, memory, registers)) {
        next += repeat.period;
        result.recalled += repeat.period;
        continue;
      }
      look_at(mine, memory.lanes_before, memory.before);
      carry_out(next + repeat.period);
      look_at(mine, memory.lanes_after, memory.after);
    }
  }
  carry_out(program_.actions());
  result.end = program_.end(registers);
  return result;
}

}  // namespace tidepool
