// Reader of the JSON-lines form.
#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/base/error.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/jsonl/json_lines.hpp"
#include "traces/jsonl/jsonl.hpp"
#include "traces/jsonl/relabel.hpp"

namespace tidepool {
namespace {

constexpr std::int64_t kMostId = std::int64_t{std::numeric_limits<std::uint32_t>::max()} - 1;

/// The numbers that a file gives to its buffers or versions. The builder numbers them in the order of appearance.
class Numbers {
 public:
  explicit Numbers(std::string what) : what_{std::move(what)} {}

  std::size_t size() const { return given_.size(); }
  const std::vector<std::uint32_t>& given() const { return given_; }

  /// Gives this number to the next buffer or version.
  void add(std::int64_t number) {
    if (find(number)) throw InputError{fmt::format("{} {} is numbered a second time", what_, number)};
    if (number != static_cast<std::int64_t>(given_.size())) moved_.emplace(number, given_.size());
    given_.push_back(static_cast<std::uint32_t>(number));
  }
  std::size_t at(std::int64_t number) const {
    if (const std::optional<std::size_t> index = find(number)) return *index;
    throw InputError{fmt::format("unknown {} {}; expected one that an earlier line defines", what_, number)};
  }
  /// @throws InputError  unless the numbers are 0 to n-1
  void check() const {
    for (const auto& [number, index] : moved_)
      if (number >= static_cast<std::int64_t>(given_.size()))
        throw InputError{fmt::format("{} {}: the file has {}; expected the numbers 0 to {}", what_, number,
                                     given_.size(), given_.size() - 1)};
  }
  bool by_appearance() const { return moved_.empty(); }

 private:
  std::optional<std::size_t> find(std::int64_t number) const {
    const auto index = static_cast<std::size_t>(number);
    if (index < given_.size() && given_[index] == index) return index;
    const auto moved = moved_.find(number);
    return moved == moved_.end() ? std::nullopt : std::optional{moved->second};
  }

  std::string what_;
  std::vector<std::uint32_t> given_;                     // by appearance
  std::unordered_map<std::int64_t, std::size_t> moved_;  // those that are not in the order of appearance
};

class JsonlReader {
 public:
  Trace read(const Input& input) {
    for_each_json_line(input, [this](JsonFields& line) { take(line); });
    try {
      if (!builder_) throw InputError{R"(no line; expected {"tidepool":1,...} on the first)"};
      return finish();
    } catch (const InputError& error) {
      throw error.at(input.path());
    }
  }

 private:
  void take(JsonFields& line) {
    if (!builder_) return header(line);
    using Handler = void (JsonlReader::*)(JsonFields&);
    static constexpr std::pair<std::string_view, Handler> kLines[] = {
        {"run", &JsonlReader::run},         {"alloc", &JsonlReader::alloc},
        {"free", &JsonlReader::free},       {"buffer", &JsonlReader::existing},
        {"forget", &JsonlReader::forget},   {"mark", &JsonlReader::mark},
        {"outputs", &JsonlReader::outputs}, {"output_buffers", &JsonlReader::output_buffers},
        {"losses", &JsonlReader::losses}};
    for (const auto& [key, handler] : kLines)
      if (line.has(key)) return (this->*handler)(line);
    throw InputError{
        "unknown kind of line; expected a key run, alloc, free, buffer, forget, mark, outputs, output_buffers or "
        "losses"};
  }

  void header(JsonFields& line) {
    if (!line.has("tidepool")) throw InputError{R"(not a trace; expected {"tidepool":1,...} on the first line)"};
    const std::int64_t version = line.integer("tidepool", 0);
    if (version != 1) throw InputError{fmt::format("format version {}; this tidepool reads version 1", version)};
    std::vector<std::string> streams = line.texts("streams");
    if (streams.empty()) streams.emplace_back("0");
    builder_.emplace(streams);
    for (const std::string& text : line.texts("strings")) builder_->text(text);
    line.each_text("meta", [this](std::string_view key, std::string_view value) {
      builder_->meta().insert_or_assign(std::string{key}, std::string{value});
    });
  }

  Buffer buffer_fields(JsonFields& line) {
    Buffer buffer;
    buffer.size = Bytes{line.required_integer("size_bytes")};
    buffer.address = line.integer("address", -1, -1);
    buffer.name = builder_->text(line.text("name", ""));
    buffer.stream = stream(line);
    buffer.device = static_cast<std::uint16_t>(line.integer("device", 0, 0, 65535));
    buffer.kind = line.word("kind", BufferKind::kUnknown);
    buffer.line = code_line(line);
    return buffer;
  }

  /// The line of the user's code; none if it is left out or empty.
  StringId code_line(JsonFields& line) {
    const std::string_view text = line.text("line", "");
    return text.empty() ? StringId{} : builder_->text(text);
  }

  StreamId stream(JsonFields& line) {
    const std::string_view name = line.text("stream", builder_->so_far().streams[0]);
    return builder_->stream(name);
  }

  void existing(JsonFields& line) {
    buffers_.add(line.required_integer("buffer", 0, kMostId));
    if (!line.flag("born_before", false))
      throw InputError{R"('buffer' without "born_before":true; expected 'alloc' for one that comes into being here)"};
    const BufferId id = builder_->existing(buffer_fields(line));
    number_initial(line, id);
  }

  void alloc(JsonFields& line) {
    buffers_.add(line.required_integer("alloc", 0, kMostId));
    const BufferId id = builder_->alloc(buffer_fields(line));
    if (line.has("initial")) number_initial(line, id);
  }

  void number_initial(JsonFields& line, BufferId id) {
    builder_->content(id);
    versions_.add(line.integer("initial", static_cast<std::int64_t>(versions_.size()), 0, kMostId));
  }

  /// Versions to which the file gave no number are numbered in the order of appearance.
  void number_rest() {
    while (versions_.size() < builder_->so_far().versions.size())
      versions_.add(static_cast<std::int64_t>(versions_.size()));
  }

  BufferId buffer(std::int64_t number) const { return BufferId{buffers_.at(number)}; }
  VersionId version(std::int64_t number) const { return VersionId{versions_.at(number)}; }

  void free(JsonFields& line) {
    const std::int64_t number = line.required_integer("free", 0, kMostId);
    if (!builder_->live(buffer(number)))
      throw InputError{fmt::format("free of buffer {}, which is not allocated", number)};
    builder_->free(buffer(number));
    number_rest();
  }

  void run(JsonFields& line) {
    Op op;
    op.name = builder_->text(line.text("run", ""));
    op.module = builder_->text(line.text("module", ""));
    op.line = code_line(line);
    op.stream = stream(line);
    op.kind = line.word("kind", OpKind::kKernel);
    op.phase = line.word("phase", Phase::kUnknown);
    op.random = line.flag("random", false);
    op.start = Nanos{line.integer("start_ns", -1, -1)};
    op.launch = Nanos{line.integer("launch_ns", -1, -1)};
    op.duration = Nanos{line.integer("duration_ns", 0)};
    touches_.clear();
    const auto id = static_cast<std::int64_t>(builder_->so_far().ops.size());
    line.each_row("uses", [this, id](const JsonRow& row) {
      if (row.size() < 3 || row.size() > 4)
        throw InputError{
            fmt::format("a use has {} parts; expected [buffer, access, evidence] and perhaps a version", row.size())};
      const std::int64_t number = row.integer(0, 0, kMostId);
      if (!builder_->live(buffer(number)))
        throw InputError{fmt::format("op {} uses buffer {}, which is not allocated", id, number)};
      touches_.push_back({buffer(number), row.word<Access>(1), row.word<Evidence>(2),
                          row.size() == 4 ? version(row.integer(3, 0, kMostId)) : VersionId{}});
    });
    for (const std::int64_t before : line.integers("waits_for", 0, kMostId)) {
      if (before >= id)
        throw InputError{fmt::format("op {} waits for op {}, which does not come before it", id, before)};
      builder_->order(OpId{static_cast<std::size_t>(before)}, OpId{static_cast<std::size_t>(id)});
    }
    const std::vector<VersionId> made = builder_->run(op, touches_);
    number_made(line, made);
  }

  void number_made(JsonFields& line, const std::vector<VersionId>& made) {
    const std::vector<std::int64_t> given = line.integers("makes", 0, kMostId);
    if (!line.has("makes")) return number_rest();
    // Buffers that are read before any write got their versions first.
    std::size_t first_made = builder_->so_far().versions.size();
    for (const VersionId id : made)
      if (id.valid()) first_made = std::min(first_made, id.index());
    const std::size_t count = builder_->so_far().versions.size() - first_made;
    if (given.size() != count)
      throw InputError{fmt::format("'makes' has {} numbers; the run makes {} versions", given.size(), count)};
    while (versions_.size() < first_made) versions_.add(static_cast<std::int64_t>(versions_.size()));
    for (const std::int64_t number : given) versions_.add(number);
  }

  void forget(JsonFields& line) { builder_->forget(version(line.required_integer("forget", 0, kMostId))); }

  void mark(JsonFields& line) { builder_->mark(line.word("mark", MarkKind::kIteration), line.text("name", "")); }

  void outputs(JsonFields& line) {
    builder_->only_given_outputs();
    // Buffers that no op has used get their versions now, which the outputs may name.
    for (std::size_t i = 0; i < builder_->so_far().buffers.size(); ++i) builder_->content(BufferId{i});
    number_rest();
    for (const std::int64_t number : line.integers("outputs", 0, kMostId)) builder_->output(version(number));
  }

  void output_buffers(JsonFields& line) {
    builder_->only_given_outputs();
    for (const std::int64_t number : line.integers("output_buffers", 0, kMostId))
      builder_->output(builder_->content(buffer(number)));
    number_rest();
  }

  void losses(JsonFields& line) {
    line.nested("losses", [this](JsonFields& fields) {
      Losses& lost = builder_->losses();
      lost.dropped_records = fields.integer("dropped_records", 0);
      lost.unmatched_frees = fields.integer("unmatched_frees", 0);
      lost.unknown_pointers = fields.integer("unknown_pointers", 0);
      lost.clock_residual_ns = fields.integer("clock_residual_ns", 0);
    });
  }

  Trace finish() {
    if (!buffers_.by_appearance() || !versions_.by_appearance()) return renumbered();
    return builder_->finish();
  }

  Trace renumbered() {
    Trace trace = builder_->finish();
    while (versions_.size() < trace.versions().size()) versions_.add(static_cast<std::int64_t>(versions_.size()));
    buffers_.check();
    versions_.check();
    return relabel(trace, buffers_.given(), versions_.given());
  }

  std::optional<TraceBuilder> builder_;
  Numbers buffers_{"buffer"}, versions_{"version"};
  std::vector<TraceBuilder::Touch> touches_;
};

int sniff(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '{') return 0;
  return head.substr(0, head.find('\n', start)).find("\"tidepool\"") != std::string_view::npos ? 100 : 0;
}

const RegisterImporter kJsonlImporter{
    {"jsonl", "Tidepool's own trace as JSON lines", {".jsonl", ".json"}, sniff, read_jsonl}};

}  // namespace

Trace read_jsonl(const Input& input) { return JsonlReader{}.read(input); }

}  // namespace tidepool
