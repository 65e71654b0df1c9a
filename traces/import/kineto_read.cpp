#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "traces/base/lines.hpp"
#include "traces/import/json_walk.hpp"
#include "traces/import/kineto.hpp"
#include "traces/op_names.hpp"

namespace tidepool {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(Input::kPadding >= simdjson::SIMDJSON_PADDING, "events are parsed where they stand");

/// Times, addresses and sizes above this count as damaged. Sums of two allowed values fit 64 bits.
constexpr std::int64_t kMostWhole = std::int64_t{1} << 61;
constexpr std::int64_t kMostKinetoDevices = 256;

enum class Category : std::uint8_t { kActivity, kLaunch, kRange };

struct CategoryName {
  std::string_view name;  ///< in lower case
  Category category;
  OpKind op = OpKind::kKernel;
  KinetoRangeKind range = KinetoRangeKind::kOperator;
};
/// The categories of events. Since 2022 they are in lower case; files of 2021 have capitals, and some other names.
constexpr std::array kCategories{
    CategoryName{"kernel", Category::kActivity, OpKind::kKernel},
    CategoryName{"gpu_memcpy", Category::kActivity, OpKind::kCopy},
    CategoryName{"memcpy", Category::kActivity, OpKind::kCopy},
    CategoryName{"gpu_memset", Category::kActivity, OpKind::kMemset},
    CategoryName{"memset", Category::kActivity, OpKind::kMemset},
    CategoryName{"cuda_runtime", Category::kLaunch},
    CategoryName{"cuda_driver", Category::kLaunch},
    CategoryName{"runtime", Category::kLaunch},
    CategoryName{"cpu_op", Category::kRange},
    CategoryName{"operator", Category::kRange},
    CategoryName{"user_annotation", Category::kRange, OpKind::kKernel, KinetoRangeKind::kAnnotation},
    CategoryName{"python_function", Category::kRange, OpKind::kKernel, KinetoRangeKind::kModule},
};
constexpr std::string_view kModule = "nn.Module: ";

const CategoryName* find_category(std::string_view name) {
  const auto same = [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + ('a' - 'A') : b); };
  const auto* const found = std::find_if(kCategories.begin(), kCategories.end(), [&](const CategoryName& known) {
    return std::equal(known.name.begin(), known.name.end(), name.begin(), name.end(), same);
  });
  return found == kCategories.end() ? nullptr : found;
}

std::string_view strip_blanks(std::string_view token) { return token.substr(0, token.find_last_not_of(" \t\r\n") + 1); }

std::string_view unquote(std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"' && token.back() == '"';
  return quoted ? token.substr(1, token.size() - 2) : token;
}

/// A time as in "4203669604595.407" us, without digits below 1 ns; none for other texts. As a double, a time since 1970
/// would be off by up to 125 ns.
std::optional<Nanos> parse_microseconds(std::string_view token) {
  const std::size_t point = std::min(token.find('.'), token.size());
  std::int64_t whole = 0, fraction = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + point, whole);
  if (error != std::errc{} || end != token.data() + point || whole > kMostWhole / 1000 || whole < -kMostWhole / 1000)
    return {};
  std::int64_t digit = 100;
  for (const char c : token.substr(std::min(point + 1, token.size()))) {
    if (c < '0' || c > '9') return {};
    fraction += digit * (c - '0');
    digit /= 10;
  }
  return Nanos{whole * 1000 + (token.starts_with('-') ? -fraction : fraction)};
}

std::optional<KinetoWaitKind> wait_kind(std::string_view call) {
  if (call == "cudaStreamSynchronize" || call == "cudaEventSynchronize" || call == "hipStreamSynchronize" ||
      call == "hipEventSynchronize")
    return KinetoWaitKind::kStream;
  if (call == "cudaDeviceSynchronize" || call == "hipDeviceSynchronize") return KinetoWaitKind::kDevice;
  if (call == "cudaStreamWaitEvent" || call == "hipStreamWaitEvent") return KinetoWaitKind::kEvent;
  return {};
}

/// Shapes and element types of a collective's inputs, as JSON.
struct NcclInputs {
  std::string_view dims, types;
};

std::optional<std::int64_t> element_bytes(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 13> kSizes{{{"float", 4},
                                                                              {"double", 8},
                                                                              {"int", 4},
                                                                              {"long int", 8},
                                                                              {"long", 8},
                                                                              {"short int", 2},
                                                                              {"short", 2},
                                                                              {"c10::Half", 2},
                                                                              {"c10::BFloat16", 2},
                                                                              {"unsigned char", 1},
                                                                              {"signed char", 1},
                                                                              {"char", 1},
                                                                              {"bool", 1}}};
  const auto* const found =
      std::find_if(kSizes.begin(), kSizes.end(), [&](const auto& known) { return known.first == type; });
  if (found == kSizes.end()) return {};
  return found->second;
}

/// The bytes of all inputs; none if a type is unknown or the text has another form.
std::optional<std::int64_t> bytes_of(const NcclInputs& inputs) {
  simdjson::dom::parser dims_parser, types_parser;
  simdjson::dom::array dims, types;
  if (dims_parser.parse(simdjson::padded_string{inputs.dims}).get(dims) != simdjson::SUCCESS ||
      types_parser.parse(simdjson::padded_string{inputs.types}).get(types) != simdjson::SUCCESS ||
      dims.size() != types.size())
    return {};
  std::int64_t total = 0;
  auto type = types.begin();
  for (const simdjson::dom::element shape : dims) {
    std::string_view name;
    simdjson::dom::array extents;
    if ((*type).get(name) != simdjson::SUCCESS || shape.get(extents) != simdjson::SUCCESS) return {};
    std::optional<std::int64_t> bytes = element_bytes(name);
    if (!bytes) return {};
    for (const simdjson::dom::element extent : extents) {
      std::int64_t count = 0;
      if (extent.get(count) != simdjson::SUCCESS || count < 0 || __builtin_mul_overflow(*bytes, count, &*bytes))
        return {};
    }
    if (__builtin_add_overflow(total, *bytes, &total)) return {};
    ++type;
  }
  return total;
}

/// Members of an event, as they are written in the file; "" = absent.
struct Head {
  std::string_view phase, category, name, thread, time, duration;
};

class KinetoReader {
 public:
  explicit KinetoReader(const Input& input) : input_{input}, walk_{input} {}

  Kineto run() {
    bool events = false;
    while (walk_.next_member()) {
      if (walk_.key() == "traceEvents" && walk_.is_array()) {
        for (events = true; walk_.next_element(); ++index_) read_event(walk_.element());
      } else if (const std::string_view text = walk_.value(); walk_.key() == "deviceProperties") {
        read_devices(text);
      } else if (walk_.key() == "distributedInfo") {
        read_rank(text);
      }
    }
    if (!events) throw InputError{input_.path() + ": no \"traceEvents\"; expected a list, as torch.profiler writes it"};
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw InputError{fmt::format(text, std::forward<Args>(args)...)}.at(
        fmt::format("{}:event {}", input_.path(), index_));
  }

  /// Names of the devices; a file whose list is of another form has none.
  void read_devices(std::string_view text) {
    simdjson::dom::parser parser;
    simdjson::dom::array devices;
    if (parser.parse(text.data(), text.size()).get(devices) != simdjson::SUCCESS) return;
    for (const simdjson::dom::element device : devices) {
      std::int64_t number = 0;
      std::string_view name;
      if (device["id"].get(number) == simdjson::SUCCESS && device["name"].get(name) == simdjson::SUCCESS)
        out_.devices[number] = name;
    }
  }

  void read_rank(std::string_view text) {
    simdjson::dom::parser parser;
    simdjson::dom::element info;
    if (parser.parse(text.data(), text.size()).get(info) != simdjson::SUCCESS) return;
    std::int64_t number = 0;
    if (info["rank"].get(number) == simdjson::SUCCESS) out_.rank = number;
    if (info["world_size"].get(number) == simdjson::SUCCESS) out_.world_size = number;
  }

  void read_event(std::string_view text) {
    if (!text.starts_with('{')) refuse("'{}'; expected an object", excerpt(text));
    try {
      ondemand::document event = parser_.iterate(
          simdjson::padded_string_view{text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING});
      const Head head = read_head(event);
      const CategoryName* const category = find_category(unquote(head.category));
      // The memory events of 2021 have no category.
      if (head.phase == "\"i\"" && head.name == "\"[memory]\"")
        read_memory(event, head);
      else if (head.phase == "\"X\"" && category != nullptr)
        read_span(event, head, *category);
      else if (head.phase == "\"X\"" && unquote(head.category).starts_with("mtia_"))
        out_.foreign = unquote(head.category);
    } catch (const simdjson::simdjson_error& error) {
      refuse("'{}' is not JSON ({})", excerpt(text), simdjson::error_message(error.error()));
    }
  }

  static Head read_head(ondemand::document& event) {
    Head head;
    for (auto field : event.get_object()) {
      const ondemand::raw_json_string key = field.key();
      std::string_view* const wanted = key == "ph"     ? &head.phase
                                       : key == "cat"  ? &head.category
                                       : key == "name" ? &head.name
                                       : key == "tid"  ? &head.thread
                                       : key == "ts"   ? &head.time
                                       : key == "dur"  ? &head.duration
                                                       : nullptr;
      if (wanted != nullptr) *wanted = strip_blanks(field.value().raw_json_token());
    }
    return head;
  }

  void read_span(ondemand::document& event, const Head& head, const CategoryName& category) {
    const Nanos time = time_of(head, category.name);
    switch (category.category) {
      case Category::kActivity:
        read_activity(event, head, category, time);
        break;
      case Category::kLaunch: {
        const Nanos end = time + std::max(duration_of(head).value_or(Nanos{}), Nanos{});
        if (const std::optional<KinetoWaitKind> wait = wait_kind(unquote(head.name)))
          out_.waits.push_back({*wait, text(event, head), thread_of(head), time, end});
        const std::optional<std::int64_t> correlation = argument(event, "correlation");
        if (correlation) out_.launches.push_back({*correlation, thread_of(head), time, end});
        break;
      }
      case Category::kRange:
        if (category.range == KinetoRangeKind::kModule && !unquote(head.name).starts_with(kModule)) break;
        read_range(event, head, category.range, time);
        break;
    }
  }

  void read_activity(ondemand::document& event, const Head& head, const CategoryName& category, Nanos time) {
    KinetoActivity activity;
    activity.kind = category.op;
    activity.start = time;
    activity.duration = duration_of(head).value_or(Nanos{-1});
    if (activity.duration < Nanos{}) {
      activity.duration = Nanos{-1};
    } else {
      add(durations_, activity.duration.count(), "durations");
    }
    each_argument(event, [&](ondemand::raw_json_string key, ondemand::value value) {
      if (key == "device")
        activity.device = whole(value, "device", 0, kMostKinetoDevices - 1);
      else if (key == "stream")
        activity.stream = whole(value, "stream", -kMostWhole, kMostWhole);
      else if (key == "correlation")
        activity.correlation = whole(value, "correlation", -kMostWhole, kMostWhole);
      else if (key == "Process Group Ranks")
        activity.group_ranks = text(value);
    });
    activity.name = text(event, head);
    const std::string& name = out_.texts[activity.name];
    if (activity.kind == OpKind::kKernel && names_collective(name)) activity.kind = OpKind::kCollective;
    out_.activities.push_back(activity);
  }

  void read_range(ondemand::document& event, const Head& head, KinetoRangeKind kind, Nanos time) {
    KinetoRange range;
    range.kind = kind;
    range.thread = thread_of(head);
    range.begin = time;
    range.end = time + std::max(duration_of(head).value_or(Nanos{}), Nanos{});
    std::int64_t external = -1;
    NcclInputs inputs;
    const bool communicates = unquote(head.name).starts_with("nccl:");
    each_argument(event, [&](ondemand::raw_json_string key, ondemand::value value) {
      if (key == "External id")
        external = whole(value, "External id", -1, kMostWhole);
      else if (key == "Sequence number")
        range.differentiated = whole(value, "Sequence number", -1, kMostWhole) >= 0;
      else if (key == "Record function id")
        range.record_function = whole(value, "Record function id", -1, kMostWhole);
      else if (communicates && key == "Input Dims")
        inputs.dims = list_text(value);
      else if (communicates && (key == "Input type" || key == "Input Type"))
        inputs.types = list_text(value);
    });
    if (communicates) range.input_bytes = bytes_of(inputs).value_or(-1);
    if (range.record_function < 0) range.record_function = external;
    range.name = text(event, head);
    if (kind == KinetoRangeKind::kOperator && out_.texts[range.name].starts_with("ProfilerStep#"))
      range.kind = KinetoRangeKind::kAnnotation;  // the form of 2021
    out_.ranges.push_back(range);
  }

  void read_memory(ondemand::document& event, const Head& head) {
    KinetoMemory memory;
    memory.time = time_of(head, "[memory]");
    memory.thread = thread_of(head);
    std::optional<std::int64_t> type, bytes;
    each_argument(event, [&](ondemand::raw_json_string key, ondemand::value value) {
      if (key == "Device Type")
        type = whole(value, "Device Type", 0, kMostKinetoDevices);
      else if (key == "Device Id")
        memory.device = whole(value, "Device Id", -1, kMostKinetoDevices - 1);
      else if (key == "Addr")
        memory.address = whole(value, "Addr", 0, kMostWhole);
      else if (key == "Bytes")
        bytes = whole(value, "Bytes", -kMostWhole, kMostWhole);
      else if (key == "Total Allocated")
        memory.total = whole(value, "Total Allocated", 0, kMostWhole);
      else if (key == "Total Reserved")
        memory.reserved = whole(value, "Total Reserved", 0, kMostWhole);
    });
    if (!type) refuse("[memory] without \"Device Type\"");
    if (!bytes) refuse("[memory] without \"Bytes\"");
    if (*type == 0) out_.has_host_memory = true;
    if (*type == 0 || *bytes == 0) return;
    memory.bytes = *bytes;
    memory.device = std::max<std::int64_t>(memory.device, 0);
    add(sizes_, std::abs(*bytes), "sizes");
    out_.memory.push_back(memory);
  }

  /// Calls `take` with the members of "args".
  template <class Take>
  void each_argument(ondemand::document& event, Take take) {
    event.rewind();
    ondemand::value found;
    const simdjson::error_code missing = event.find_field("args").get(found);
    if (missing == simdjson::NO_SUCH_FIELD) return;
    if (missing != simdjson::SUCCESS) throw simdjson::simdjson_error{missing};
    ondemand::object arguments = found.get_object();
    for (auto field : arguments) {
      const ondemand::raw_json_string key = field.key();
      take(key, field.value());
    }
  }

  std::optional<std::int64_t> argument(ondemand::document& event, std::string_view wanted) {
    std::optional<std::int64_t> found;
    each_argument(event, [&](ondemand::raw_json_string key, ondemand::value value) {
      if (key == wanted) found = whole(value, wanted, -kMostWhole, kMostWhole);
    });
    return found;
  }

  std::int64_t whole(ondemand::value value, std::string_view key, std::int64_t least, std::int64_t most) const {
    const std::string_view token = strip_blanks(value.raw_json_token());
    const std::optional<std::int64_t> number = parse_whole(unquote(token));
    if (!number) refuse("\"{}\" is {}; expected a whole number", key, excerpt(token));
    if (*number < least || *number > most) refuse("\"{}\" is {}; expected {} to {}", key, *number, least, most);
    return *number;
  }

  Nanos time_of(const Head& head, std::string_view what) const {
    if (head.time.empty()) refuse("{} without \"ts\"", what);
    const std::optional<Nanos> time = parse_microseconds(unquote(head.time));
    if (!time) refuse("\"ts\" is {}; expected a time in us", excerpt(head.time));
    return *time;
  }

  std::optional<Nanos> duration_of(const Head& head) const {
    if (head.duration.empty()) return {};
    const std::optional<Nanos> duration = parse_microseconds(unquote(head.duration));
    if (!duration) refuse("\"dur\" is {}; expected a time in us", excerpt(head.duration));
    return duration;
  }

  /// Threads of the host have numbers, as text in 2021; threads with other names count as -1.
  static std::int64_t thread_of(const Head& head) { return parse_whole(unquote(head.thread)).value_or(-1); }

  /// The event's name, unescaped at its first use.
  KinetoText text(ondemand::document& event, const Head& head) {
    const auto [entry, added] = texts_.try_emplace(head.name, static_cast<KinetoText>(out_.texts.size()));
    if (added) {
      event.rewind();
      std::string_view name;
      if (event.find_field("name").get_string().get(name) != simdjson::SUCCESS)
        refuse("\"name\" is {}; expected a string", head.name.empty() ? "missing" : excerpt(head.name));
      out_.texts.emplace_back(name);
    }
    return entry->second;
  }

  /// A list as written in the file; "" if the value is something else.
  static std::string_view list_text(ondemand::value value) {
    if (value.type().value() != ondemand::json_type::array) return {};
    return value.get_array().value().raw_json().value();
  }

  /// A text among an event's arguments, unescaped; "" if it is something else.
  KinetoText text(ondemand::value value) {
    std::string_view found;
    if (value.get_string().get(found) != simdjson::SUCCESS) found = "";
    const auto [entry, added] = arguments_.try_emplace(std::string{found}, static_cast<KinetoText>(out_.texts.size()));
    if (added) out_.texts.emplace_back(found);
    return entry->second;
  }

  void add(Total& total, std::int64_t value, std::string_view what) const {
    try {
      total.add(value, what);
    } catch (const InputError& error) {
      refuse("{}", error.what());
    }
  }

  const Input& input_;
  JsonWalk walk_;
  std::size_t index_ = 0;
  ondemand::parser parser_;
  Kineto out_;
  std::unordered_map<std::string_view, KinetoText> texts_;  // by the name as written in the file
  std::unordered_map<std::string, KinetoText> arguments_;
  Total sizes_, durations_;
};

}  // namespace

Kineto parse_kineto(const Input& input) { return KinetoReader{input}.run(); }

}  // namespace tidepool
