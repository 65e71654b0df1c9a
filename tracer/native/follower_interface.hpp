#pragma once

// The C interface of the follower, for tidepool_live/native_follower.py. core.cpp includes it, behind what it uses.

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tidepool::native {
namespace {

/// Storages that the plan keeps, by number.
struct Held {
  c10::intrusive_ptr<c10::StorageImpl> storage;
};

std::unordered_map<std::int64_t, Held>& held() {
  static auto* const storages = new std::unordered_map<std::int64_t, Held>;
  return *storages;
}

std::int64_t hold(c10::intrusive_ptr<c10::StorageImpl> storage) {
  static std::int64_t next = 0;
  const std::lock_guard lock{core().mutex};
  core().follower.add(kNow, resident_bytes(*storage));
  held().emplace(--next, Held{std::move(storage)});
  return next;
}

/// A storage of the job (above 0) or of the plan (below 0).
/// @throws std::runtime_error  if it has ended
c10::StorageImpl& storage_of(std::int64_t number) {
  if (number < 0) return *held().at(number).storage;
  const Tracked* const tracked = core().storages.find(number);
  if (!tracked) throw std::runtime_error("storage " + std::to_string(number) + " has ended");
  return *tracked->storage;
}

/// Counts the bytes that a storage has now.
void recount(std::int64_t number, std::int64_t before) {
  if (number < 0)
    core().follower.add(kNow, resident_bytes(*held().at(number).storage) - before);
  else if (Tracked* const tracked = core().storages.find(number))
    core().follower.count(*tracked, resident_bytes(*tracked->storage));
}

void empty(c10::StorageImpl& storage) { storage.set_data_ptr_noswap(c10::DataPtr(nullptr, storage.device())); }

/// Calls f. After an error, tidepool_error() says what it was. Returns the result of f, or kFailedCall.
constexpr std::int64_t kFailedCall = std::numeric_limits<std::int64_t>::min();

template <class F>
std::int64_t guarded(F&& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    core().follower.error = error.what();
    return kFailedCall;
  }
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::int64_t* words, std::int64_t count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (std::int64_t i = 0; i < count; ++i) found.emplace_back(words[2 * i], words[2 * i + 1]);
  return found;
}

}  // namespace
}  // namespace tidepool::native

extern "C" {

/// The recorded step: block size, limit, versions (buffer, producer), then lists that begin with their lengths: sizes
/// and first versions of buffers; ops (name, recipe, made bytes, uses as buffer, before, after, access; actions before
/// it as verb and subject); idle buffers (op, buffer).
void tidepool_step(const std::int64_t* words) {
  const std::lock_guard lock{core().mutex};
  Step& step = core().follower.step = Step{};
  step.unit = *words++;
  step.limit = *words++;
  Actions& actions = core().follower.actions;
  actions.buffer_of.clear();
  actions.producer.clear();
  actions.before.clear();
  for (std::int64_t left = *words++; left > 0; --left, words += 2) {
    actions.buffer_of.push_back(words[0]);
    actions.producer.push_back(words[1]);
  }
  step.states.assign(actions.buffer_of.size(), kUnmanaged);
  for (std::int64_t left = *words++; left > 0; --left, words += 2) {
    step.sizes.push_back(words[0]);
    step.first_version.push_back(words[1]);
  }
  for (std::int64_t left = *words++; left > 0; --left) {
    PlannedOp op{words[0], {}, words[1] != 0, false, words[2]};
    words += 3;
    for (std::int64_t uses = *words++; uses > 0; --uses, words += 4)
      op.uses.push_back({words[0], words[1], words[2], static_cast<Access>(words[3])});
    actions.before.emplace_back();
    for (std::int64_t each = *words++; each > 0; --each, words += 2)
      actions.before.back().push_back({static_cast<Verb>(words[0]), words[1]});
    op.acts = !actions.before.back().empty();
    step.ops.push_back(std::move(op));
  }
  step.idle = pairs(words + 1, words[0]);
  step.prepare();
}

/// Ops are compared with the step from now on. like: a TensorImpl on the device of the job's tensors, or 0 if all
/// actions are Python's. Returns whether that is possible: not while a recording is made.
int tidepool_follow(Follower::Asked asked, int on_gpu, std::int64_t like) {
  if (recording || following) return 0;
  core().storages.set_exact(on_gpu == 0);
  std::optional<c10::Device> device;
  if (like != 0) device = reinterpret_cast<c10::TensorImpl*>(like)->device();
  core().follower.actions.begin(device);
  core().follower.begin(asked, on_gpu != 0, on_gpu == 0);
  following = true;
  return 1;
}

/// Ops are not compared any more.
void tidepool_unfollow() { following = false; }

/// The address of an array of the step: homes, versions, states, modes, new modes, becomes.
void* tidepool_array(int which) {
  Step& step = core().follower.step;
  void* const arrays[] = {step.homes.data(), step.versions.data(),  step.states.data(),
                          step.modes.data(), step.new_modes.data(), step.becomes.data()};
  return arrays[which];
}

/// (storage, buffer, version) of storages that have ended. Returns the number of words, which are valid until the
/// next call.
std::int64_t tidepool_told(const std::int64_t** words) {
  static auto* const told = new std::vector<std::int64_t>;
  Dead dead;
  const std::lock_guard lock{core().mutex};
  core().storages.look_around([](Tracked& tracked) { core().follower.ended(tracked); },
                              std::numeric_limits<std::size_t>::max());
  dead = core().storages.take_dead();
  *told = core().follower.take_told();
  *words = told->data();
  return static_cast<std::int64_t>(told->size());
}

/// Facts of a storage: its kind, the bytes of its buffer, its buffer in the trace or -1, its device, and its bytes.
/// They stay as they are if it has ended. told: whether its end is told from now on.
void tidepool_facts(std::int64_t number, int told, std::int64_t* facts) {
  const std::lock_guard lock{core().mutex};
  Tracked* const tracked = core().storages.find(number);
  if (!tracked) return;
  tracked->told |= told != 0;
  facts[0] = static_cast<std::int64_t>(tracked->kind);
  facts[1] = tracked->bytes;
  facts[2] = tracked->slot;
  facts[3] = static_cast<std::int64_t>(tracked->storage->device().type()) |
             std::int64_t{tracked->storage->device().index() + 1} << 8;
  facts[4] = resident_bytes(*tracked->storage);
}

/// What was done of the plan since the last call: Actions::journal. Returns the number of words, which are valid until
/// the next call.
std::int64_t tidepool_journal(const std::int64_t** words) {
  static auto* const taken = new std::vector<std::int64_t>;
  const std::lock_guard lock{core().mutex};
  taken->clear();
  core().follower.actions.journal.swap(*taken);
  *words = taken->data();
  return static_cast<std::int64_t>(taken->size());
}

/// What Python knows of a version: its state, the number of its host's storage or 0, and whether copies are under way.
void tidepool_tell(std::int64_t version, std::int64_t state, std::int64_t host, int out, int in) {
  std::vector<StoragePtr> released;
  const std::lock_guard lock{core().mutex};
  core().follower.actions.tell(version, static_cast<State>(state), host, out != 0, in != 0);
  released = core().follower.actions.take_released();
}

/// Lets a tensor of bytes share the memory of a host's storage.
void tidepool_share_host(std::int64_t tensor, std::int64_t number) {
  const StoragePtr storage = core().follower.actions.hosts.at(number);
  auto* const impl = reinterpret_cast<c10::TensorImpl*>(tensor);
  impl->set_storage_keep_dtype(c10::Storage{storage});
  impl->set_sizes_contiguous({static_cast<std::int64_t>(storage->nbytes())});
}

/// A stream waits for an event.
void tidepool_wait(std::int64_t event, std::int64_t stream, int device, int type) {
  const auto found = core().follower.actions.events.find(event);
  if (found != core().follower.actions.events.end())
    found->second->block(
        c10::Stream::unpack3(stream, static_cast<c10::DeviceIndex>(device), static_cast<c10::DeviceType>(type)));
}

void tidepool_release_host(std::int64_t number) {
  StoragePtr last;
  const std::lock_guard lock{core().mutex};
  if (const auto found = core().follower.actions.hosts.find(number); found != core().follower.actions.hosts.end()) {
    last = std::move(found->second);
    core().follower.actions.hosts.erase(found);
  }
}

void tidepool_release_event(std::int64_t number) {
  const std::lock_guard lock{core().mutex};
  core().follower.actions.events.erase(number);
}

/// The trace's buffer that a storage is, or -1.
std::int64_t tidepool_slot(std::int64_t number) {
  const std::lock_guard lock{core().mutex};
  const Tracked* const tracked = core().storages.find(number);
  return tracked ? tracked->slot : -1;
}

/// The text of an error that the job gets.
void tidepool_set_error(const char* text) { core().follower.error = text; }

/// Decides what the buffer of a storage is. Its bytes are counted.
void tidepool_define(std::int64_t number, int kind, std::int64_t bytes) {
  const std::lock_guard lock{core().mutex};
  Tracked* const tracked = core().storages.find(number);
  if (!tracked) return;
  tracked->kind = static_cast<Kind>(kind);
  tracked->bytes = bytes;
  if (tracked->kind == Kind::kDevice) core().follower.count(*tracked, bytes);
}

void tidepool_set_away(std::int64_t number, int away) {
  const std::lock_guard lock{core().mutex};
  if (Tracked* const tracked = core().storages.find(number)) tracked->away = away != 0;
}

/// Storages of the step with their bytes on the device, those that were not used for the longest time first.
std::int64_t tidepool_by_last_use(std::int64_t least, std::int64_t* numbers, std::int64_t most) {
  const std::lock_guard lock{core().mutex};
  std::vector<const Tracked*> found;
  core().storages.for_each([&](Tracked& tracked) {
    if (tracked.kind == Kind::kDevice && tracked.counted >= least) found.push_back(&tracked);
  });
  std::sort(found.begin(), found.end(),
            [](auto* a, auto* b) { return std::pair(a->used, a->number) < std::pair(b->used, b->number); });
  for (std::size_t i = 0; i < found.size() && static_cast<std::int64_t>(i) < most; ++i) numbers[i] = found[i]->number;
  return static_cast<std::int64_t>(found.size());
}

void tidepool_bind(std::int64_t number, std::int64_t buffer, std::int64_t version) {
  const std::lock_guard lock{core().mutex};
  Tracked* const tracked = core().storages.find(number);
  if (!tracked) return;
  core().follower.step.bind(core().storages, *tracked, buffer, version);
  core().follower.step.used(*tracked, buffer);
}

void tidepool_unbind(std::int64_t buffer) {
  const std::lock_guard lock{core().mutex};
  core().follower.step.unbind(core().storages, buffer);
}

void tidepool_finish() {
  const std::lock_guard lock{core().mutex};
  core().follower.step.finish(core().storages);
}

void tidepool_remember() {
  const std::lock_guard lock{core().mutex};
  core().follower.step.remember(core().storages);
}

/// stays: (storage, buffer) of those that outlive all steps.
void tidepool_forget(const std::int64_t* stays, std::int64_t count) {
  const std::lock_guard lock{core().mutex};
  core().follower.step.forget(core().storages, pairs(stays, count));
}

// Storages, by number.

int tidepool_alive(std::int64_t number) {
  const std::lock_guard lock{core().mutex};
  return number < 0 || core().storages.find(number) != nullptr;
}

std::int64_t tidepool_bytes(std::int64_t number) {
  return guarded([&] { return resident_bytes(storage_of(number)); });
}

/// Whether the memory of a storage can be freed while it lives.
int tidepool_resizable(std::int64_t number) {
  if (number < 0) return 1;  // the plan's own
  const std::lock_guard lock{core().mutex};
  Tracked* const tracked = core().storages.find(number);
  return tracked && Storages::may_move(*tracked);
}

/// The memory of a storage stays as long as it lives: code of the job has its address.
void tidepool_pin(std::int64_t number) {
  const std::lock_guard lock{core().mutex};
  if (Tracked* const tracked = core().storages.find(number)) tracked->pinned = true;
}

std::int64_t tidepool_address(std::int64_t number) {
  return guarded([&] { return reinterpret_cast<std::int64_t>(storage_of(number).data()); });
}

/// Moves the content of a storage into memory of PyTorch's allocator. What owned its memory lets go of it.
std::int64_t tidepool_take_over(std::int64_t number) {
  return guarded([&] {
    c10::StorageImpl& storage = storage_of(number);
    c10::DataPtr own = c10::GetAllocator(storage.device_type())->allocate(storage.nbytes());
    std::memcpy(own.get(), storage.data(), storage.nbytes());
    storage.set_data_ptr_noswap(std::move(own));
    const std::lock_guard lock{core().mutex};
    if (Tracked* const tracked = core().storages.find(number)) {
      tracked->moves = true;
      core().storages.renew(*tracked);
    }
    return std::int64_t{0};
  });
}

/// Gives a storage other memory, without its content. Nothing happens if it has ended.
std::int64_t tidepool_resize(std::int64_t number, std::int64_t bytes) {
  return guarded([&] {
    if (tidepool_alive(number) == 0) return std::int64_t{0};
    c10::StorageImpl& storage = storage_of(number);
    const auto before = resident_bytes(storage);
    empty(storage);
    if (bytes > 0) allocate(storage, bytes);
    const std::lock_guard lock{core().mutex};
    recount(number, before);
    if (Tracked* const tracked = number > 0 ? core().storages.find(number) : nullptr; tracked && bytes > 0)
      core().storages.renew(*tracked);
    return std::int64_t{0};
  });
}

/// A storage that the plan keeps, on the device of a TensorImpl. Returns its number.
std::int64_t tidepool_new(std::int64_t like, std::int64_t bytes) {
  return guarded([&] {
    const BelowAll below;
    const auto device = reinterpret_cast<c10::TensorImpl*>(like)->device();
    const at::Tensor made = at::empty({bytes}, at::TensorOptions().dtype(c10::kByte).device(device));
    return hold(made.storage().getWeakStorageImpl().lock());
  });
}

void tidepool_release(std::int64_t number) {
  const auto found = held().find(number);
  if (found == held().end()) return;
  const Held last = std::move(found->second);
  held().erase(found);
  const std::lock_guard lock{core().mutex};
  core().follower.add(kNow, -resident_bytes(*last.storage));
}

/// Moves the memory of a storage of the plan into the empty one of the job's tensors.
std::int64_t tidepool_move(std::int64_t from, std::int64_t to) {
  return guarded([&] {
    c10::StorageImpl &source = storage_of(from), &target = storage_of(to);
    const auto bytes = source.nbytes();
    target.set_data_ptr_noswap(std::move(source._mutable_data_ptr_no_checks()));
    target.set_nbytes(bytes);
    empty(source);
    const std::lock_guard lock{core().mutex};
    core().follower.add(kNow, -static_cast<std::int64_t>(bytes));
    recount(to, 0);
    if (Tracked* const tracked = core().storages.find(to)) core().storages.renew(*tracked);
    return std::int64_t{0};
  });
}

/// Lets a tensor of bytes share all memory of a storage.
std::int64_t tidepool_share(std::int64_t tensor, std::int64_t number) {
  return guarded([&] {
    c10::StorageImpl& storage = storage_of(number);
    c10::raw::intrusive_ptr::incref(&storage);
    auto* const impl = reinterpret_cast<c10::TensorImpl*>(tensor);
    impl->set_storage_keep_dtype(c10::Storage{c10::intrusive_ptr<c10::StorageImpl>::reclaim(&storage)});
    impl->set_sizes_contiguous({static_cast<std::int64_t>(storage.nbytes())});
    return std::int64_t{0};
  });
}

// Recipes, by op.

/// Keeps the call that is being looked at. Returns the number of uses of its arguments, or -1.
std::int64_t tidepool_keep(std::int64_t op) {
  if (!core().follower.keep(op)) return -1;
  return static_cast<std::int64_t>(core().follower.recipes[static_cast<std::size_t>(op)]->given);
}

/// The number of uses of a kept call's arguments, or -1 if there is no such call.
std::int64_t tidepool_kept(std::int64_t op) {
  const auto& recipes = core().follower.recipes;
  if (static_cast<std::size_t>(op) >= recipes.size() || !recipes[static_cast<std::size_t>(op)]) return -1;
  return static_cast<std::int64_t>(recipes[static_cast<std::size_t>(op)]->given);
}

void tidepool_forget_recipes() {
  for (auto& recipe : core().follower.recipes) recipe.reset();
}

/// Runs a kept call again, with these storages for its uses. Writes the numbers of at most `most` storages that it
/// makes.
std::int64_t tidepool_run_again(std::int64_t op, const std::int64_t* places, std::int64_t* made, std::int64_t most) {
  return guarded([&] {
    Recipe& recipe = *core().follower.recipes.at(static_cast<std::size_t>(op));
    std::vector<c10::StorageImpl*> storages;
    for (std::size_t i = 0; i < recipe.given; ++i) storages.push_back(&storage_of(places[i]));
    const auto results = recipe.run(storages);
    for (std::size_t i = 0; i < results.size() && static_cast<std::int64_t>(i) < most; ++i) made[i] = hold(results[i]);
    return static_cast<std::int64_t>(results.size());
  });
}

/// Bytes that the call will make which is being looked at.
std::int64_t tidepool_made() { return core().follower.made(); }
}
