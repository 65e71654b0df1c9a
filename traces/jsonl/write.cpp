// Writer of the JSON-lines form.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "traces/builder.hpp"
#include "traces/export/exporter.hpp"
#include "traces/jsonl/jsonl.hpp"
#include "traces/names.hpp"

namespace tidepool {
namespace {

/// Calls the visitor for every line, in order. The line of a buffer that existed before comes before the first line
/// that names this buffer, or one with a higher number.
template <class Visitor>
void visit_program(const Trace& trace, Visitor& visitor) {
  const TraceData& data = trace.data();
  std::size_t next_existing = 0, next_mark = 0;
  const auto existing_below = [&](std::size_t end) {
    for (; next_existing < end; ++next_existing)
      if (data.buffers[next_existing].born_before) visitor.existing(BufferId{next_existing});
  };
  const auto marks_until = [&](std::size_t step) {
    for (; next_mark < data.marks.size() && data.marks[next_mark].event <= step; ++next_mark)
      visitor.mark(data.marks[next_mark]);
  };
  for (std::size_t i = 0; i < data.events.size(); ++i) {
    const Event event = data.events[i];
    if (event.kind == EventKind::kRun)
      for (const Use& use : trace.uses(OpId{event.id}))
        existing_below(trace.version(use.in.valid() ? use.in : use.out).buffer.index() + 1);
    else if (event.kind == EventKind::kForget)
      existing_below(trace.version(VersionId{event.id}).buffer.index() + 1);
    else
      existing_below(event.id + std::size_t{1});
    marks_until(i);
    switch (event.kind) {
      case EventKind::kAlloc:
        visitor.alloc(BufferId{event.id});
        break;
      case EventKind::kFree:
        visitor.free(BufferId{event.id});
        break;
      case EventKind::kRun:
        visitor.run(OpId{event.id});
        break;
      case EventKind::kForget:
        visitor.forget(VersionId{event.id});
        break;
    }
  }
  existing_below(data.buffers.size());
  marks_until(data.events.size());
}

/// The trace that the reader makes of the lines if these have no `makes` and no `initial`.
class Rebuilt {
 public:
  explicit Rebuilt(const Trace& trace) : trace_{trace}, builder_{trace.data().streams} { visit_program(trace, *this); }

  /// Whether the reader would give buffers and versions the numbers that they have in the trace.
  bool same_numbers() {
    if (!same_) return false;
    for (std::size_t i = 0; i < trace_.buffers().size(); ++i) builder_.content(BufferId{i});
    return builder_.so_far().versions == trace_.data().versions;
  }
  bool same_texts() const { return builder_.so_far().strings == trace_.data().strings; }
  bool same_outputs() const {
    std::vector<VersionId> kept;
    for (std::size_t i = 0; i < trace_.buffers().size(); ++i)
      if (builder_.live(BufferId{i})) kept.push_back(builder_.current(BufferId{i}));
    return kept == trace_.data().outputs;
  }

  void existing(BufferId id) {
    texts_of(trace_.buffer(id));
    if (same_) same_ = builder_.existing({}) == id;
  }
  void alloc(BufferId id) {
    texts_of(trace_.buffer(id));
    if (same_) same_ = builder_.alloc({}) == id;
  }
  void free(BufferId id) {
    if (same_) builder_.free(id);
  }
  void run(OpId id) {
    builder_.text(trace_.text(trace_.op(id).name));
    builder_.text(trace_.text(trace_.op(id).module));
    if (trace_.op(id).line.valid()) builder_.text(trace_.text(trace_.op(id).line));
    std::vector<TraceBuilder::Touch> touches;
    for (const Use& use : trace_.uses(id)) {
      const bool through_view = use.in.valid() && trace_.version(use.in).kind == VersionKind::kView;
      if (through_view && use.in.index() >= builder_.so_far().versions.size()) same_ = false;
      touches.push_back({trace_.version(use.in.valid() ? use.in : use.out).buffer, use.access, use.evidence,
                         through_view ? use.in : VersionId{}});
    }
    if (same_) builder_.run({}, touches);
  }
  void forget(VersionId) {}
  void mark(const Mark& mark) { builder_.text(trace_.text(mark.name)); }

 private:
  void texts_of(const Buffer& buffer) {
    builder_.text(trace_.text(buffer.name));
    if (buffer.line.valid()) builder_.text(trace_.text(buffer.line));
  }

  const Trace& trace_;
  TraceBuilder builder_;
  bool same_ = true;
};

class Lines {
 public:
  explicit Lines(const Trace& trace)
      : trace_{trace}, data_{trace.data()}, initial_(data_.buffers.size()), said_(data_.versions.size()) {}

  std::string write() {
    Rebuilt rebuilt{trace_};
    numbered_ = !rebuilt.same_numbers();
    say_made_ = numbered_ || names_versions();
    for (std::size_t i = 0; i < data_.versions.size(); ++i)
      if (data_.versions[i].kind == VersionKind::kInitial) initial_[data_.versions[i].buffer.index()] = VersionId{i};
    header(!rebuilt.same_texts());
    visit_program(trace_, *this);
    if (numbered_ || !rebuilt.same_outputs()) outputs();
    losses();
    return fmt::to_string(out_);
  }

  void existing(BufferId id) {
    add("{{\"buffer\":{},\"born_before\":true", id.value());
    buffer_fields(id);
  }
  void alloc(BufferId id) {
    add("{{\"alloc\":{}", id.value());
    buffer_fields(id);
  }
  void free(BufferId id) { add("{{\"free\":{}}}\n", id.value()); }
  void forget(VersionId id) { add("{{\"forget\":{}}}\n", id.value()); }
  void mark(const Mark& mark) {
    add("{{\"mark\":\"{}\",\"name\":{}}}\n", word(mark.kind), quoted(trace_.text(mark.name)));
  }

  void run(OpId id) {
    const Op& op = trace_.op(id);
    add("{{\"run\":{},\"uses\":[", quoted(trace_.text(op.name)));
    const char* comma = "";
    for (const Use& use : trace_.uses(id)) {
      const VersionId named = use.in.valid() ? use.in : use.out;
      add("{}[{},\"{}\",\"{}\"", comma, trace_.version(named).buffer.value(), word(use.access), word(use.evidence));
      if (use.in.valid() && trace_.version(use.in).kind == VersionKind::kView) add(",{}", use.in.value());
      add("]");
      comma = ",";
    }
    add("],\"duration_ns\":{}", op.duration.count());
    if (say_made_) made(id);
    stream(op.stream);
    if (op.kind != OpKind::kKernel) add(",\"kind\":\"{}\"", word(op.kind));
    if (op.phase != Phase::kUnknown) add(",\"phase\":\"{}\"", word(op.phase));
    if (!trace_.text(op.module).empty()) add(",\"module\":{}", quoted(trace_.text(op.module)));
    code_line(op.line);
    if (op.random) add(",\"random\":true");
    if (op.start != Nanos{-1}) add(",\"start_ns\":{}", op.start.count());
    if (op.launch != Nanos{-1}) add(",\"launch_ns\":{}", op.launch.count());
    waits(id);
    add("}}\n");
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  /// A text as a JSON string. The texts of a trace are UTF-8.
  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\')
        (out += '\\') += c;
      else if (static_cast<unsigned char>(c) < 0x20)
        out += fmt::format("\\u{:04x}", static_cast<int>(c));
      else
        out += c;
    }
    return out += '"';
  }
  static std::string quoted(const std::vector<std::string>& texts) {
    std::string out = "[";
    for (const std::string& text : texts) (out += out.size() > 1 ? "," : "") += quoted(std::string_view{text});
    return out += ']';
  }

  /// Whether a line names a version, so that the line that makes it should show its number.
  bool names_versions() const {
    const auto is_view = [](const Version& version) { return version.kind == VersionKind::kView; };
    const auto forgets = [](const Event& step) { return step.kind == EventKind::kForget; };
    return std::any_of(data_.versions.begin(), data_.versions.end(), is_view) ||
           std::any_of(data_.events.begin(), data_.events.end(), forgets);
  }

  void header(bool with_texts) {
    add("{{\"tidepool\":1,\"meta\":{{");
    const char* comma = "";
    for (const auto& [key, value] : data_.meta) add("{}{}:{}", comma, quoted(key), quoted(value)), comma = ",";
    add("}},\"streams\":{}", quoted(data_.streams));
    if (with_texts) add(",\"strings\":{}", quoted(data_.strings));
    add("}}\n");
  }

  void buffer_fields(BufferId id) {
    const Buffer& buffer = trace_.buffer(id);
    add(",\"size_bytes\":{}", buffer.size.count());
    if (buffer.kind != BufferKind::kUnknown) add(",\"kind\":\"{}\"", word(buffer.kind));
    if (!trace_.text(buffer.name).empty()) add(",\"name\":{}", quoted(trace_.text(buffer.name)));
    code_line(buffer.line);
    if (buffer.device != 0) add(",\"device\":{}", buffer.device);
    stream(buffer.stream);
    if (buffer.address != -1) add(",\"address\":{}", buffer.address);
    if (numbered_ && initial_[id.index()].valid()) add(",\"initial\":{}", initial_[id.index()].value());
    add("}}\n");
  }

  void code_line(StringId id) {
    if (id.valid()) add(",\"line\":{}", quoted(trace_.text(id)));
  }

  void stream(StreamId id) {
    if (id.index() != 0) add(",\"stream\":{}", quoted(std::string_view{data_.streams[id.index()]}));
  }

  void made(OpId id) {
    bool first = true;
    for (const Use& use : trace_.uses(id)) {
      if (!use.out.valid() || said_[use.out.index()]) continue;
      said_[use.out.index()] = true;
      add("{}{}", first ? ",\"makes\":[" : ",", use.out.value());
      first = false;
    }
    if (!first) add("]");
  }

  void waits(OpId id) {
    if (next_order_ == data_.orders.size() || data_.orders[next_order_].after != id) return;
    const char* before = ",\"waits_for\":[";
    for (; next_order_ < data_.orders.size() && data_.orders[next_order_].after == id; ++next_order_)
      add("{}{}", before, data_.orders[next_order_].before.value()), before = ",";
    add("]");
  }

  void outputs() {
    add("{{\"outputs\":[");
    for (std::size_t i = 0; i < data_.outputs.size(); ++i) add("{}{}", i > 0 ? "," : "", data_.outputs[i].value());
    add("]}}\n");
  }

  void losses() {
    const Losses& lost = data_.losses;
    if (lost == Losses{}) return;
    add("{{\"losses\":{{\"dropped_records\":{},\"unmatched_frees\":{},\"unknown_pointers\":{},\"clock_residual_ns\":{}}"
        "}}}\n",
        lost.dropped_records, lost.unmatched_frees, lost.unknown_pointers, lost.clock_residual_ns);
  }

  const Trace& trace_;
  const TraceData& data_;
  std::vector<VersionId> initial_;  // by buffer
  std::vector<bool> said_;          // by version: a "makes" of an earlier line has it
  bool numbered_ = false;           // the lines give the numbers of all versions
  bool say_made_ = false;
  std::size_t next_order_ = 0;
  fmt::memory_buffer out_;
};

const RegisterExporter kJsonlExporter{
    {.name = "jsonl", .summary = "everything, as JSON lines for people and other programs", .write = to_jsonl}};

}  // namespace

std::string to_jsonl(const Trace& trace) { return Lines{trace}.write(); }

}  // namespace tidepool
