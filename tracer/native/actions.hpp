#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracer/native/cells.hpp"
#include "tracer/native/copies.hpp"
#include "tracer/native/recipe.hpp"
#include "tracer/native/step.hpp"
#include "tracer/native/storages.hpp"

namespace tidepool::native {

enum class Verb : std::int8_t { kOther, kSwapOut, kSwapIn, kDrop, kDiscard, kFree, kAwait, kRun, kBecome };

/// An action of the plan on a version; of kRun, on an op.
struct Action {
  Verb verb;
  std::int64_t subject;
};

/// Executes actions of the plan whose versions are in the storages of the job's tensors, or on the host. The others are
/// Python's (tidepool_live/actions.py), which also learns here what was done: the journal. Each function returns
/// whether the action was such a one; if not, it has done nothing. The caller has the lock, which is given up where
/// memory is freed.
class Actions {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Actions(Step& step, Storages& storages, std::vector<std::unique_ptr<Recipe>>& recipes)
      : step_{step}, storages_{storages}, recipes_{recipes} {}

  std::vector<std::vector<Action>> before;        // by op
  std::vector<std::int64_t> buffer_of, producer;  // by version
  // Verb, below 0 for what is no action of the plan; subject; number of the host's storage that a copy has filled, 1
  // for a copy to the device, or the version that another becomes; number of an event.
  std::vector<std::int64_t> journal;
  std::unordered_map<std::int64_t, StoragePtr> hosts;  // by number
  std::unordered_map<std::int64_t, EventPtr> events;

  /// device: of the job's tensors; none: all actions are Python's.
  void begin(std::optional<c10::Device> device) {
    copies_.reset();
    if (device) copies_.emplace(*device);
    held_.clear();
    journal.clear();
  }

  bool act(Lock& lock, const Action& action) {
    if (!copies_) return false;
    switch (action.verb) {
      case Verb::kSwapOut:
        return swap_out(lock, action.subject);
      case Verb::kSwapIn:
        return swap_in(lock, action.subject);
      case Verb::kDrop:
      case Verb::kDiscard:
        return drop(lock, action.subject, action.verb == Verb::kDiscard);
      case Verb::kFree:
      case Verb::kAwait:
        return end(action.subject, action.verb == Verb::kFree);
      case Verb::kRun:
        return run(lock, action.subject);
      default:
        return false;
    }
  }

  /// An op has changed a version in place.
  bool become(std::int64_t version, std::int64_t after) {
    if (!copies_ || step_.states[version] != kManaged || step_.states[after] != kUnmanaged) return false;
    if (const auto held = held_.find(version); held != held_.end()) {
      if (held->second.source) return false;
      held_.erase(held);
    }
    step_.states[version] = kUnmanaged;
    step_.states[after] = kManaged;
    note(Verb::kBecome, version, after);
    return true;
  }

  /// Whether a version that is kMoved is in its storage, and no copy into it is under way that has not been awaited.
  bool is_there(const Tracked& tracked, std::int64_t version) const {
    const auto held = held_.find(version);
    return held != held_.end() && !held->second.in && resident_bytes(*tracked.storage) > 0;
  }

  /// An op reads or writes a version that is kMoved: what comes next on the device waits for the copies.
  void ready(const Tracked& tracked, std::int64_t version, bool writes) {
    const auto held = held_.find(version);
    if (held == held_.end() || resident_bytes(*tracked.storage) == 0) return;
    wait(held->second, writes);
    if (!held->second.out && !held->second.in) step_.states[version] = kManaged;
  }

  /// What Python knows of a version: the number of its host's storage or 0, and whether copies are under way.
  void tell(std::int64_t version, State state, std::int64_t host, bool out, bool in) {
    step_.states[version] = state;
    if (host == 0) return forget(version);
    Held& held = held_[version];
    held.host = hosts.at(host);
    if (!out) drop_out(held);
    if (!in) held.in.reset();
  }

  /// Storages that nothing keeps any more. The caller drops them without its lock.
  std::vector<StoragePtr> take_released() { return std::exchange(released_, {}); }

 private:
  /// Gives up the caller's lock.
  class Unlocked {
   public:
    explicit Unlocked(Lock& lock) : lock_{lock} { lock_.unlock(); }
    ~Unlocked() { lock_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

   private:
    Lock& lock_;
  };

  /// A version with a copy on the host that this class has made.
  struct Held {
    StoragePtr host, source;  // source: what a copy to the host reads
    EventPtr out, in;         // ends of copies that have not been awaited
  };

  /// The storage of the job's tensors that have this version.
  struct Home {
    c10::StorageImpl* storage = nullptr;
    Tracked* tracked = nullptr;

    explicit operator bool() const { return tracked != nullptr; }
    bool resident() const { return resident_bytes(*storage) > 0; }
  };

  /// The storage is kept until take_released(), so that it does not end while the caller has the lock.
  Home home(std::int64_t version) {
    const std::int64_t buffer = buffer_of[version];
    if (step_.homes[buffer] == 0 || step_.versions[buffer] != version) return {};
    Tracked* const tracked = storages_.find(step_.homes[buffer]);
    if (!tracked || tracked->away) return {};
    released_.push_back(tracked->weak.lock());
    return {released_.back().get(), tracked};
  }

  void note(Verb verb, std::int64_t subject, std::int64_t number = 0, std::int64_t event = 0) {
    journal.insert(journal.end(), {static_cast<std::int64_t>(verb), subject, number, event});
  }

  std::int64_t keep(const EventPtr& event) {
    if (!event) return 0;
    events.emplace(++last_event_, event);
    return last_event_;
  }

  void drop_out(Held& held) {
    held.out.reset();
    if (held.source) released_.push_back(std::move(held.source));
    held.source.reset();
  }

  void forget(std::int64_t version) {
    const auto held = held_.find(version);
    if (held == held_.end()) return;
    drop_out(held->second);
    held_.erase(held);
  }

  void wait(Held& held, bool all) {
    if (held.in) copies_->wait(*held.in);
    held.in.reset();
    if (!all) return;
    if (held.out) copies_->wait(*held.out);
    drop_out(held);
  }

  /// Python may have a copy under way that this class does not know.
  bool is_pythons(std::int64_t version) const {
    return step_.states[version] == kMoved && held_.find(version) == held_.end();
  }

  static void count(std::int64_t bytes) {
    tidepool_cells[kNow] += bytes;
    tidepool_cells[kPeak] = std::max(tidepool_cells[kPeak], tidepool_cells[kNow]);
  }

  static void recount(Tracked& tracked) {
    const std::int64_t bytes = resident_bytes(*tracked.storage);
    count(bytes - tracked.counted);
    tracked.counted = bytes;
  }

  bool swap_out(Lock& lock, std::int64_t version) {
    const Home at = home(version);
    if (!at || !at.resident() || is_pythons(version)) return false;
    if (held_.count(version) > 0) return note(Verb::kSwapOut, version), true;
    if (step_.states[version] != kUnmanaged || !copies_->can_copy(resident_bytes(*at.storage))) return false;
    Held held;
    {
      const Unlocked unlocked{lock};
      std::tie(held.host, held.out) = copies_->out(*at.storage);
    }
    if (held.out) held.source = at.tracked->weak.lock();
    step_.states[version] = held.out ? kMoved : kManaged;
    hosts.emplace(++last_host_, held.host);
    note(Verb::kSwapOut, version, last_host_, keep(held.out));
    held_[version] = std::move(held);
    return true;
  }

  bool drop(Lock& lock, std::int64_t version, bool for_good) {
    Home at = home(version);
    if (!at || !at.resident() || is_pythons(version) || !Storages::may_move(*at.tracked)) return false;
    const std::int64_t op = producer[version];
    const bool can_compute = !for_good && op >= 0 && recipes_[static_cast<std::size_t>(op)];
    if (held_.count(version) == 0 && !can_compute) {
      if (!for_good || !swap_out(lock, version)) return false;
      journal[journal.size() - 4] *= -1;  // it is no action of the plan
    }
    if (const auto held = held_.find(version); held != held_.end()) wait(held->second, true);
    {
      const Unlocked unlocked{lock};
      at.storage->set_data_ptr_noswap(c10::DataPtr(nullptr, at.storage->device()));
    }
    recount(*at.tracked);
    step_.states[version] = kMoved;
    note(Verb::kDrop, version);
    return true;
  }

  bool swap_in(Lock& lock, std::int64_t version) {
    Home at = home(version);
    const auto found = held_.find(version);
    if (!at || found == held_.end()) return false;
    if (at.resident()) return note(Verb::kSwapIn, version), true;
    const StoragePtr host = found->second.host;
    const EventPtr after = found->second.out;
    const auto bytes = static_cast<std::int64_t>(host->nbytes());
    if (tidepool_cells[kNow] + bytes > step_.limit || !fill(lock, *at.storage, bytes)) return false;
    EventPtr end;
    {
      const Unlocked unlocked{lock};
      end = copies_->in(*at.storage, *host, after);
    }
    recount(*at.tracked);
    storages_.renew(*at.tracked);
    Held& held = held_[version];
    held.in = end;
    step_.states[version] = held.in || held.out ? kMoved : kManaged;
    note(Verb::kSwapIn, version, 1, keep(end));
    return true;
  }

  /// Gives a storage memory. Without memory, nothing is done: Python tries it again, and says it.
  static bool fill(Lock& lock, c10::StorageImpl& storage, std::int64_t bytes) {
    const Unlocked unlocked{lock};
    try {
      allocate(storage, bytes);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// The plan has no further use of a version, or waits for its copies.
  bool end(std::int64_t version, bool for_good) {
    if (is_pythons(version)) return false;
    if (step_.states[version] == kUnmanaged) return true;
    if (const auto held = held_.find(version); held != held_.end()) {
      wait(held->second, true);
      if (const Home at = home(version); at && at.resident()) step_.states[version] = kManaged;
    }
    if (for_good) note(Verb::kFree, version);
    return true;
  }

  /// Runs an op again whose arguments are in the storages of the job's tensors, and so are its results.
  bool run(Lock& lock, std::int64_t op) {
    Recipe* const recipe = recipes_[static_cast<std::size_t>(op)].get();
    const auto& uses = step_.ops[static_cast<std::size_t>(op)].uses;
    if (!recipe || recipe->given > uses.size()) return false;
    std::vector<c10::StorageImpl*> places;
    std::vector<Home> results;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const PlannedUse& use = uses[i];
      if (i < recipe->given) {
        const Home at = use.before < 0 || use.after >= 0 ? Home{} : home(use.before);
        if (!at || !at.resident() || is_pythons(use.before)) return false;
        if (step_.states[use.before] == kMoved) ready(*at.tracked, use.before, false);
        places.push_back(at.storage);
      } else {
        results.push_back(use.after < 0 ? Home{} : home(use.after));
        if (!results.back() || (results.back().resident() && is_pythons(use.after))) return false;
        bytes += step_.sizes[static_cast<std::size_t>(use.buffer)];
      }
    }
    if (tidepool_cells[kNow] + bytes > step_.limit) return false;
    std::vector<StoragePtr> made;
    try {
      const Unlocked unlocked{lock};
      made = recipe->run(places);
    } catch (const std::exception&) {  // Python tries it again, and says what is wrong
      return false;
    }
    released_.insert(released_.end(), made.begin(), made.end());
    if (made.size() != results.size()) return false;
    for (const StoragePtr& each : made) count(static_cast<std::int64_t>(each->nbytes()));
    for (std::size_t i = 0; i < made.size(); ++i) {
      count(-static_cast<std::int64_t>(made[i]->nbytes()));
      if (!results[i].resident()) move(*made[i], results[i], uses[recipe->given + i].after);
    }
    note(Verb::kRun, op);
    return true;
  }

  void move(c10::StorageImpl& from, const Home& to, std::int64_t version) {
    to.storage->set_data_ptr_noswap(std::move(from._mutable_data_ptr_no_checks()));
    to.storage->set_nbytes(from.nbytes());
    from.set_data_ptr_noswap(c10::DataPtr(nullptr, from.device()));
    recount(*to.tracked);
    storages_.renew(*to.tracked);
    step_.states[version] = kManaged;
  }

  Step& step_;
  Storages& storages_;
  std::vector<std::unique_ptr<Recipe>>& recipes_;
  std::optional<Copies> copies_;
  std::unordered_map<std::int64_t, Held> held_;  // by version
  std::vector<StoragePtr> released_;
  std::int64_t last_host_ = 0, last_event_ = 0;
};

}  // namespace tidepool::native
