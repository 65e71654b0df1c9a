#include "traces/import/torch_snapshot.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include "traces/base/lines.hpp"
#include "traces/import/pickle.hpp"
#include "traces/import/recorded_names.hpp"

namespace tidepool {
namespace {

using PickleKind = Pickle::Kind;
/// Largest accepted address or size: sums of two of them still fit 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 61;
constexpr std::int64_t kMostSnapshotDevices = 256;

struct ActionName {
  std::string_view name;
  SnapshotAction action;
};
constexpr std::array<ActionName, 11> kActions{{{"alloc", SnapshotAction::kAlloc},
                                               {"free_requested", SnapshotAction::kFreeRequested},
                                               {"free_completed", SnapshotAction::kFreeCompleted},
                                               {"segment_alloc", SnapshotAction::kSegmentAlloc},
                                               {"segment_free", SnapshotAction::kSegmentFree},
                                               {"segment_map", SnapshotAction::kSegmentMap},
                                               {"segment_unmap", SnapshotAction::kSegmentUnmap},
                                               {"snapshot", SnapshotAction::kSnapshot},
                                               {"oom", SnapshotAction::kOom},
                                               {"user_defined", SnapshotAction::kOther},
                                               {"workspace_snapshot", SnapshotAction::kOther}}};

/// The keys of an event that are of interest.
enum class EventKey : std::uint8_t { kAction, kTime, kStream, kPool, kAddress, kDeviceFree, kSize, kFrames };
constexpr std::array<std::string_view, 8> kEventKeys{"action", "time_us",     "stream", "pool_id",
                                                     "addr",   "device_free", "size",   "frames"};

std::string_view name_of(std::string_view key) { return key; }
std::string_view name_of(EventKey key) { return kEventKeys[static_cast<std::size_t>(key)]; }

/// Finds the values of an event's keys by one look at its entries. A text of a pickle has one id, which it keeps.
class EventValues {
 public:
  void look_at(const Pickle& pickle, PickleId id) {
    values_.fill(kMissing);
    pickle.each_entry(id, [&](PickleId name, PickleId value) {
      if (pickle.kind(name) != Pickle::Kind::kText) return;
      if (name >= keys_.size()) keys_.resize(name + std::size_t{1}, kUnseen);
      if (keys_[name] == kUnseen)
        keys_[name] = static_cast<std::uint8_t>(std::ranges::find(kEventKeys, pickle.text(name)) - kEventKeys.begin());
      values_[keys_[name]] = value;
    });
  }
  PickleId operator[](EventKey key) const { return values_[static_cast<std::size_t>(key)]; }

  static constexpr PickleId kMissing = std::numeric_limits<PickleId>::max();

 private:
  static constexpr std::uint8_t kUnseen = 0xff;

  std::vector<std::uint8_t> keys_;                        // by the id of a text: its place in kEventKeys, or behind
  std::array<PickleId, kEventKeys.size() + 1> values_{};  // the last one: of any other key
};

/// The position of a record, for messages: a pattern with up to two indices.
struct Place {
  std::string_view pattern;
  std::size_t first = 0;
  std::size_t second = 0;
};

/// A dict of the file. find() looks at all its entries, and a file could refer to one dict again and again. So the
/// number of entries is limited, which keeps the work in proportion to the file.
class Record {
 public:
  /// @param values  of an event: gets its values; must outlive the record
  Record(const Pickle& pickle, PickleId id, Place place, EventValues* values = nullptr)
      : pickle_{pickle}, id_{id}, place_{place}, values_{values} {
    if (pickle.kind(id) != PickleKind::kDict) refuse("expected a dict");
    if (const std::size_t entries = pickle.size(id) / 2; entries > kMostEntries)
      refuse("a dict of {} entries; expected at most {}", entries, kMostEntries);
    if (values != nullptr) values->look_at(pickle, id);
  }

  /// The value of a key, the last one if there are several; nothing for a missing key or None.
  std::optional<PickleId> find(std::string_view key) const {
    std::optional<PickleId> found;
    pickle_.each_entry(id_, [&](PickleId name, PickleId value) {
      if (pickle_.kind(name) == PickleKind::kText && pickle_.text(name) == key) found = value;
    });
    if (found && pickle_.kind(*found) == PickleKind::kNone) return {};
    return found;
  }
  std::optional<PickleId> find(EventKey key) const {
    const PickleId found = (*values_)[key];
    if (found == EventValues::kMissing || pickle_.kind(found) == PickleKind::kNone) return {};
    return found;
  }

  template <class Key>
  std::optional<std::int64_t> find_whole(Key key, std::int64_t least, std::int64_t most) const {
    const std::optional<PickleId> found = find(key);
    if (!found) return {};
    if (pickle_.kind(*found) != PickleKind::kInt) refuse("'{}' is not a whole number", name_of(key));
    const std::int64_t value = pickle_.number(*found);
    if (value < least || value > most) refuse("'{}' is {}; expected {} to {}", name_of(key), value, least, most);
    return value;
  }
  template <class Key>
  std::int64_t whole(Key key, std::int64_t least, std::int64_t most) const {
    const std::optional<std::int64_t> value = find_whole(key, least, most);
    if (!value) refuse("no '{}'; expected a whole number", name_of(key));
    return *value;
  }
  template <class Key>
  std::int64_t whole_or(Key key, std::int64_t least, std::int64_t most, std::int64_t otherwise) const {
    return find_whole(key, least, most).value_or(otherwise);
  }
  /// A number with any value of 64 bits, such as a stream handle.
  template <class Key>
  std::int64_t bits(Key key, std::int64_t otherwise) const {
    using Limits = std::numeric_limits<std::int64_t>;
    return whole_or(key, Limits::min(), Limits::max(), otherwise);
  }

  template <class Key>
  std::string_view text(Key key) const {
    const std::optional<PickleId> found = find(key);
    if (!found) refuse("no '{}'; expected a text", name_of(key));
    if (pickle_.kind(*found) != PickleKind::kText) refuse("'{}' is not a text", name_of(key));
    return pickle_.text(*found);
  }

  bool flag(std::string_view key) const {
    const std::optional<PickleId> found = find(key);
    if (!found) return false;
    if (pickle_.kind(*found) != PickleKind::kBool && pickle_.kind(*found) != PickleKind::kInt)
      refuse("'{}' is not True or False", key);
    return pickle_.number(*found) != 0;
  }

  /// A list (or tuple); nothing if the key is missing.
  template <class Key>
  std::optional<PickleId> list(Key key) const {
    const std::optional<PickleId> found = find(key);
    if (found && pickle_.kind(*found) != PickleKind::kList && pickle_.kind(*found) != PickleKind::kTuple)
      refuse("'{}' is not a list", name_of(key));
    return found;
  }

  const Pickle& pickle() const { return pickle_; }
  Place place() const { return place_; }

  /// A pair of whole numbers; nothing if the key is missing.
  template <class Key>
  std::optional<SnapshotPool> pool(Key key) const {
    const std::optional<PickleId> found = list(key);
    if (!found) return {};
    std::vector<std::int64_t> numbers;
    if (pickle_.size(*found) == 2)
      pickle_.each(*found, [&](PickleId id) {
        if (pickle_.kind(id) == PickleKind::kInt) numbers.push_back(pickle_.number(id));
      });
    if (numbers.size() != 2) refuse("'{}' is not a pair of whole numbers", name_of(key));
    return SnapshotPool{numbers[0], numbers[1]};
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(
        fmt::format(fmt::runtime(place_.pattern), place_.first, place_.second));
  }

 private:
  static constexpr std::size_t kMostEntries = 64;

  const Pickle& pickle_;
  PickleId id_;
  Place place_;
  const EventValues* values_;
};

/// The lines of the user's code in call stacks. A stack, or a frame, that several records share is looked at once.
class UserLines {
 public:
  explicit UserLines(std::vector<std::string>& lines) : lines_{lines} {}

  /// The index of the line of the innermost frame of the user's code; 0 if there is none.
  /// @param key      of the record's stack, which has the innermost frame first
  /// @param lasting  values with greater ids may become others
  template <class Key>
  std::uint32_t of(const Record& record, Key key, PickleId lasting) {
    const std::optional<PickleId> frames = record.list(key);
    if (!frames) return 0;
    if (const std::uint32_t* known = known_line(*frames)) return *known;
    std::uint32_t found = 0;
    record.pickle().each(*frames, [&](PickleId id) {
      if (found != 0) return;
      if (const std::uint32_t* known = known_line(id)) return void(found = *known);
      found = of_frame(Record{record.pickle(), id, record.place()});
      keep(id, lasting, found);
    });
    keep(*frames, lasting, found);
    return found;
  }

 private:
  // A file could refer to one path again and again. This limit keeps the work in proportion to the file.
  static constexpr std::size_t kLongestPath = 1024;

  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

  const std::uint32_t* known_line(PickleId id) const {
    return id < of_.size() && of_[id] != kUnknown ? &of_[id] : nullptr;
  }
  void keep(PickleId id, PickleId lasting, std::uint32_t line) {
    if (id >= lasting) return;
    if (id >= of_.size()) of_.resize(id + std::size_t{1}, kUnknown);
    of_[id] = line;
  }

  std::uint32_t of_frame(const Record& frame) {
    const std::string_view file = frame.text("filename");
    if (!is_users(file)) return 0;
    const std::string_view name = file.substr(file.find_last_of("/\\") + 1);
    const std::string line = fmt::format("{}:{}", name, frame.whole("line", 0, kMost));
    const auto [known, is_new] = numbers_.try_emplace(line, static_cast<std::uint32_t>(lines_.size()));
    if (is_new) lines_.push_back(line);
    return known->second;
  }

  bool is_users(std::string_view file) {
    if (file.size() > kLongestPath) return false;
    const auto [entry, added] = files_.try_emplace(file.data());  // all uses of one text have the same address
    if (added) entry->second = is_user_code(file);
    return entry->second;
  }

  std::vector<std::string>& lines_;
  std::vector<std::uint32_t> of_;  // by stack or frame
  std::unordered_map<const char*, bool> files_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

class SnapshotReader {
 public:
  /// @param as_they_come  whether events are read while the pickle is, so that it need not hold them all. Then a
  ///                      message does not say which event is wrong.
  SnapshotReader(std::string_view bytes, bool as_they_come)
      : records_left_{bytes.size() / 8},
        pickle_{bytes, as_they_come
                           ? Pickle::Taker{[&](const Pickle& pickle, PickleId list, auto elements, PickleId lasting) {
                               return take(pickle, list, elements, lasting);
                             }}
                           : Pickle::Taker{}} {}

  TorchSnapshot run() {
    const PickleId root = pickle_.root();
    if (pickle_.kind(root) == PickleKind::kList) {  // torch.cuda.memory_snapshot() gives the segments alone
      segments(root);
      return std::move(out_);
    }
    const Record file{pickle_, root, {"snapshot"}};
    const std::optional<PickleId> segment_list = file.list("segments");
    const std::optional<PickleId> traces = file.list("device_traces");
    if (!segment_list) file.refuse("no 'segments'; expected the dict that torch.cuda.memory._dump_snapshot writes");
    segments(*segment_list);
    if (traces) device_traces(*traces);
    if (const std::optional<PickleId> found = file.find("allocator_settings"))
      settings(Record{pickle_, *found, {"allocator_settings"}});
    return std::move(out_);
  }

 private:
  /// Reads the events that are added to a list, if it has nothing else.
  bool take(const Pickle& pickle, PickleId list, std::span<const PickleId> elements, PickleId lasting) {
    const auto is_event = [&](PickleId id) {
      return pickle.kind(id) == PickleKind::kDict && event_record(pickle, id).find(EventKey::kAction);
    };
    const auto taken = taken_.find(list);
    if (elements.empty()) return false;
    if (!is_event(elements[0]) || pickle.size(list) > 0) {
      if (taken != taken_.end()) throw InputError{"a list of events and other values"};
      return false;
    }
    std::vector<SnapshotEvent>& events = taken != taken_.end() ? taken->second : taken_[list];
    make_room(events, elements.size(), pickle);
    for (const PickleId id : elements) {
      if (!is_event(id)) throw InputError{"a list of events and other values"};
      events.push_back(event(event_record(pickle, id), lasting));
    }
    return true;
  }
  Record event_record(const Pickle& pickle, PickleId id) { return {pickle, id, {"trace entry"}, &values_}; }

  /// Makes room for more events: once a part of the file has been read, for all that the rest may have.
  static void make_room(std::vector<SnapshotEvent>& events, std::size_t more, const Pickle& pickle) {
    const std::size_t wanted = events.size() + more;
    if (wanted <= events.capacity()) return;
    const std::size_t share = pickle.size_in_bytes() / std::max<std::size_t>(pickle.bytes_read(), 1);
    events.reserve(share < 8 ? wanted / 16 * 17 * (share + 1) : 2 * wanted);
  }

  /// Limits the number of records, since a small file could repeat one dict through the memo without end.
  void count_record(const Record& record) {
    if (records_left_-- == 0) record.refuse("more records than the file has room for");
  }

  template <class Key>
  Bytes size(const Record& record, Key key) {
    return Bytes{record.whole(key, 0, kMost)};
  }
  void add_to_total(const Record& record, Bytes size) {
    try {
      total_.add(size.count(), "sizes");
    } catch (const InputError& error) {
      record.refuse("{}", error.what());
    }
  }

  void segments(PickleId list) {
    pickle_.each(list, [&](PickleId id) { segment(Record{pickle_, id, {"segment {}", out_.segments.size()}}); });
  }

  void segment(const Record& record) {
    count_record(record);
    SnapshotSegment segment;
    segment.device = static_cast<int>(record.whole_or("device", 0, kMostSnapshotDevices - 1, 0));
    segment.address = record.whole("address", 0, kMost);
    segment.size = size(record, "total_size");
    add_to_total(record, segment.size);
    segment.stream = record.bits("stream", 0);
    segment.small = record.text("segment_type") == "small";
    segment.expandable = record.flag("is_expandable");
    segment.pool = record.pool("segment_pool_id").value_or(SnapshotPool{});
    const std::optional<PickleId> blocks = record.list("blocks");
    if (!blocks) record.refuse("no 'blocks'; expected a list");
    std::int64_t address = segment.address;
    pickle_.each(*blocks, [&](PickleId id) {
      segment.blocks.push_back(
          block(Record{pickle_, id, {"segment {}, block {}", out_.segments.size(), segment.blocks.size()}}, address));
      address = segment.blocks.back().address + segment.blocks.back().size.count();
    });
    out_.segments.push_back(std::move(segment));
  }

  SnapshotBlock block(const Record& record, std::int64_t address) {
    count_record(record);
    SnapshotBlock block;
    block.address = record.whole_or("address", 0, kMost, address);
    block.size = size(record, "size");
    block.requested = Bytes{record.whole_or("requested_size", 0, kMost, -1)};
    add_to_total(record, block.size);
    block.line = user_lines_.of(record, std::string_view{"frames"}, kLasting);
    const std::string_view state = record.text("state");
    if (state == "active_allocated")
      block.state = BlockState::kActive;
    else if (state == "active_pending_free" || state == "active_awaiting_free")
      block.state = BlockState::kPendingFree;
    else if (state != "inactive")
      record.refuse("'state' is '{}'; expected active_allocated, active_pending_free, active_awaiting_free or inactive",
                    excerpt(state));
    return block;
  }

  void device_traces(PickleId list) {
    if (pickle_.size(list) > kMostSnapshotDevices)
      throw InputError{
          fmt::format("device_traces: {} devices; expected at most {}", pickle_.size(list), kMostSnapshotDevices)};
    pickle_.each(list, [&](PickleId trace) {
      const std::size_t device = out_.device_traces.size();
      out_.device_traces.emplace_back();
      if (pickle_.kind(trace) != PickleKind::kList && pickle_.kind(trace) != PickleKind::kTuple)
        throw InputError{fmt::format("device {}: expected a list of trace entries", device)};
      std::vector<SnapshotEvent>& events = out_.device_traces.back();
      if (const auto taken = taken_.find(trace); taken != taken_.end()) events = std::exchange(taken->second, {});
      pickle_.each(trace, [&](PickleId id) {
        events.push_back(
            event(Record{pickle_, id, {"device {}, trace entry {}", device, events.size()}, &values_}, kLasting));
      });
    });
  }

  SnapshotEvent event(const Record& record, PickleId lasting) {
    count_record(record);
    SnapshotEvent event;
    const std::string_view action = record.text(EventKey::kAction);
    bool known = false;
    for (const ActionName& candidate : kActions)
      if (candidate.name == action) {
        event.action = candidate.action;
        known = true;
      }
    if (!known) ++out_.unknown_actions;
    event.time_us = record.whole_or(EventKey::kTime, 0, std::numeric_limits<std::int64_t>::max(), -1);
    event.stream = record.bits(EventKey::kStream, 0);
    event.pool = record.pool(EventKey::kPool);
    if (event.action == SnapshotAction::kOther) return event;
    const EventKey address = event.action == SnapshotAction::kOom ? EventKey::kDeviceFree : EventKey::kAddress;
    event.address =
        event.action == SnapshotAction::kSnapshot ? record.bits(address, 0) : record.whole(address, 0, kMost);
    event.size = size(record, EventKey::kSize);
    if (event.action == SnapshotAction::kAlloc || event.action == SnapshotAction::kOom)
      event.line = user_lines_.of(record, EventKey::kFrames, lasting);
    if (event.action == SnapshotAction::kAlloc || event.action == SnapshotAction::kFreeCompleted)
      add_to_total(record, event.size);
    return event;
  }

  void settings(const Record& record) {
    SnapshotSettings& settings = out_.settings;
    settings.recorded = true;
    for (const std::string_view key : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"})
      if (record.find(key)) settings.conf = record.text(key);
    if (const auto found = record.find("max_split_size"))  // unlimited: SIZE_MAX, in some files written as -1
      settings.max_split_size =
          Bytes{pickle_.kind(*found) == PickleKind::kHuge ? -1 : record.whole("max_split_size", -1, kMost)};
    if (const auto found = record.find("garbage_collection_threshold"))
      settings.garbage_collection_threshold =
          pickle_.kind(*found) == PickleKind::kFloat
              ? pickle_.real(*found)
              : static_cast<double>(record.whole("garbage_collection_threshold", 0, 1));
    settings.expandable_segments = record.flag("expandable_segments");
    if (const auto found = record.find_whole("large_segment_size", 0, kMost))
      settings.large_segment_size = Bytes{*found};
    if (const auto found = record.find("roundup_power2_divisions")) {
      const Record divisions{pickle_, *found, {"allocator_settings, roundup_power2_divisions"}};
      for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i)
        settings.roundup_power2_divisions[i] =
            static_cast<int>(divisions.whole_or(std::to_string(1 << i), 0, std::int64_t{1} << 30, 0));
    }
  }

  static constexpr PickleId kLasting = std::numeric_limits<PickleId>::max();  // of a whole pickle, all values last

  TorchSnapshot out_;
  UserLines user_lines_{out_.lines};
  std::size_t records_left_;
  Total total_;
  EventValues values_;                                              // of the event that is read
  std::unordered_map<PickleId, std::vector<SnapshotEvent>> taken_;  // by list
  const Pickle pickle_;
};

}  // namespace

TorchSnapshot parse_torch_snapshot(std::string_view bytes) {
  try {
    return SnapshotReader{bytes, true}.run();
  } catch (const InputError&) {
    return SnapshotReader{bytes, false}.run();
  }
}

}  // namespace tidepool
