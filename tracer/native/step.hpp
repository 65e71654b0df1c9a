#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tracer/native/call.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

constexpr std::int64_t kBlock = 512;  // bytes: PyTorch's allocator for GPUs rounds sizes up to multiples of it

/// One use in the recorded step: the version that is read and the one that is written, -1 for none.
struct PlannedUse {
  std::int64_t buffer, before, after;
  Access access;
};

/// One op of the recorded step.
struct PlannedOp {
  std::int64_t name;
  std::vector<PlannedUse> uses;
  bool recipe;        ///< whether the plan may run it again
  bool acts;          ///< whether actions of the plan precede it
  std::int64_t made;  ///< bytes of the storages that it makes or overwrites as a whole
};

/// The recorded step, and which storages of the job are its buffers now. Python reads and writes the vectors at their
/// addresses; tidepool_live/follower.py says what they mean.
struct Step {
  std::vector<PlannedOp> ops;
  std::vector<std::int64_t> sizes, first_version;           ///< by buffer of the trace
  std::vector<std::pair<std::int64_t, std::int64_t>> idle;  ///< (op, buffer): ends before the op, and no op uses it
  std::int64_t unit = 1, limit = 0, largest = 0;

  std::vector<std::int64_t> homes, versions;  ///< by buffer: number of its storage or 0, and its version
  std::vector<std::int8_t> states;            ///< by version: see State
  std::vector<std::int8_t> modes, new_modes;  ///< by op: whether gradients are recorded, 2 if that is not known
  std::vector<std::int64_t> becomes, became;  ///< by buffer: the one that it is in the next iteration, or -1
  std::vector<bool> taken;                    ///< by buffer: whether `becomes` names it

  std::int64_t rounded(std::int64_t size) const { return (size + unit - 1) / unit * unit; }

  std::int64_t buffers() const { return static_cast<std::int64_t>(sizes.size()); }

  void prepare() {
    const auto count = sizes.size();
    homes.assign(count, 0);
    versions.assign(count, -1);
    becomes.assign(count, -1);
    became.assign(count, -1);
    taken.assign(count, false);
    modes.assign(ops.size(), 2);
    new_modes.assign(ops.size(), 2);
    for (const PlannedOp& op : ops) largest = std::max(largest, op.made);
  }

  /// Whether the first uses of op `index` are these; the op itself has as many uses, or more.
  bool begins_with(std::int64_t index, const BufferUse* uses, std::size_t count) const {
    const PlannedOp& op = ops[static_cast<std::size_t>(index)];
    if (count > op.uses.size()) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const PlannedUse& use = op.uses[i];
      const Tracked& tracked = *uses[i].tracked;
      if (use.access != uses[i].access || (tracked.slot >= 0 && tracked.slot != use.buffer)) return false;
      if (rounded(tracked.bytes) != rounded(sizes[static_cast<std::size_t>(use.buffer)])) return false;
    }
    return true;
  }

  // A storage that outlives an iteration: which buffer of the trace it is in the next one is learnt
  // (tidepool_live/lasting.py).

  void used(const Tracked& tracked, std::int64_t buffer) {
    if (tracked.before < 0) return;
    if (const std::int64_t then = becomes[tracked.before]; then >= 0) taken[then] = false;
    becomes[tracked.before] = buffer;
    taken[buffer] = true;
  }

  /// A storage ends that no op of the iteration has used.
  void ended_idle(const Tracked& tracked, std::int64_t index) {
    if (tracked.before < 0) return;
    for (const auto& [op, buffer] : idle)
      if (std::abs(op - index) <= 2 && rounded(tracked.bytes) == rounded(sizes[buffer]) && !taken[buffer])
        return used(tracked, buffer);
  }

  void bind(Storages& storages, Tracked& tracked, std::int64_t buffer, std::int64_t version) {
    if (version < 0 || version >= static_cast<std::int64_t>(states.size())) return;  // no op uses the buffer
    unbind(storages, buffer);
    if (tracked.slot >= 0) homes[tracked.slot] = 0;
    tracked.slot = static_cast<std::int32_t>(buffer);
    homes[buffer] = tracked.number;
    versions[buffer] = version;
  }

  void unbind(Storages& storages, std::int64_t buffer) {
    if (homes[buffer] == 0) return;
    if (Tracked* const bound = storages.find(homes[buffer])) bound->slot = -1;
    homes[buffer] = 0;
  }

  void unbind_all(Storages& storages) {
    storages.for_each([](Tracked& tracked) { tracked.slot = -1; });
    homes.assign(homes.size(), 0);
  }

  /// An iteration has ended. Storages whose buffers are known in the next one get them.
  void finish(Storages& storages) {
    std::vector<Tracked*> known;
    storages.for_each([&](Tracked& tracked) {
      tracked.before = tracked.slot;
      tracked.remembered = tracked.slot >= 0 ? static_cast<std::int32_t>(becomes[tracked.slot]) : -1;
      if (tracked.remembered >= 0) known.push_back(&tracked);
    });
    became = becomes;
    unbind_all(storages);
    for (Tracked* each : known) bind(storages, *each, each->remembered, first_version[each->remembered]);
  }

  /// Assumes that the storages that outlived the last whole iteration are the ones that exist now.
  void remember(Storages& storages) {
    becomes = became;
    taken.assign(taken.size(), false);
    for (const std::int64_t then : becomes)
      if (then >= 0) taken[then] = true;
    unbind_all(storages);
    storages.for_each([&](Tracked& tracked) {
      if (tracked.remembered >= 0) bind(storages, tracked, tracked.remembered, first_version[tracked.remembered]);
    });
  }

  /// The storages that outlive an iteration have changed. `stays`: (storage, buffer) of those that no op uses.
  void forget(Storages& storages, const std::vector<std::pair<std::int64_t, std::int64_t>>& stays) {
    became.assign(became.size(), -1);
    storages.for_each([](Tracked& tracked) { tracked.before = tracked.remembered = -1; });
    for (const auto& [number, buffer] : stays) {
      became[buffer] = buffer;
      if (Tracked* const tracked = storages.find(number)) tracked->remembered = static_cast<std::int32_t>(buffer);
    }
  }
};

/// What Python's part knows of a version.
enum State : std::int8_t {
  kUnmanaged = 0,  ///< nothing: it is where the job has it
  kManaged = 1,    ///< the plan has moved it, and it is in the storage of the job's tensors now
  kMoved = 2,      ///< it is elsewhere, or a copy of it is under way
};

}  // namespace tidepool::native
