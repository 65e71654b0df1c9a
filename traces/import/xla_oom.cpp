// XLA's list of the largest buffers, which it prints when memory runs out:
//   Peak buffers:
//   	Buffer 1:
//   		Size: 6.00MiB
//   		Operator: op_name="jit(f)/dot" source_file="/home/ada/net.py" source_line=689
//   		XLA Label: fusion
//   		Shape: f32[4096,128,3]
// The text may stand among other lines of a log. Every buffer is alive at the one instant of the trace. Sizes are
// rounded in the text; the shape gives the size in bytes, where that rounds to the same.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/total.hpp"
#include "traces/builder.hpp"
#include "traces/import/importer.hpp"
#include "traces/import/readers.hpp"

namespace tidepool {
namespace {

/// "6.00MiB", "384.0KiB", "56B", "1.5G" (of TPUs): bytes; none for other texts.
std::optional<double> rounded_bytes(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == 0 || unit_at == std::string_view::npos) return {};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + unit_at, number);
  if (error != std::errc{} || end != text.data() + unit_at) return {};
  const std::string_view unit = text.substr(unit_at, text.find_first_of(" \t", unit_at) - unit_at);
  constexpr std::string_view kPrefixes = "KMGTP";
  const std::size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return unit == "B" ? std::optional{number} : std::nullopt;
  return number * std::pow(1024.0, static_cast<double>(power + 1));
}

/// The bytes of a shape without tuples, as in "f32[4096,128,3]"; none for others.
std::optional<std::int64_t> shape_bytes(std::string_view shape) {
  const std::size_t open = shape.find('['), close = shape.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  const std::string_view type = shape.substr(0, open);
  const std::size_t digit = type.find_first_of("0123456789");
  std::optional<std::int64_t> bits = type == "pred" ? std::optional<std::int64_t>{8} : std::nullopt;
  if (type.starts_with("f8")) bits = 8;
  if (!bits && digit != std::string_view::npos) bits = parse_whole(type.substr(digit));
  if (!bits || *bits < 1 || *bits > 128) return {};
  std::int64_t elements = 1;
  for (std::string_view rest = shape.substr(open + 1, close - open - 1); !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::optional<std::int64_t> extent = parse_whole(rest.substr(0, comma));
    if (!extent || *extent < 0 || __builtin_mul_overflow(elements, *extent, &elements)) return {};
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return elements > Total::kMost / *bits ? std::nullopt : std::optional{(elements * *bits + 7) / 8};
}

/// The text in quotes behind `key`, as in source_file="net.py".
std::string_view text_in_quotes(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find('"'));
}

class PeakReader {
 public:
  explicit PeakReader(const Input& input) : path_{input.path()}, lines_{path_, input.bytes()} {}

  Trace run() {
    bool any = false;
    while (lines_.next()) {
      if (value("Peak buffers")) any = true;
      const auto number = value("Buffer ");
      if (any && number && number->ends_with(':')) {
        finish_buffer();
        open_ = true;
      }
      if (!open_) continue;
      if (const auto size = value("Size: ")) read_size(*size);
      if (const auto op = value("Operator: ")) operator_ = *op;
      if (const auto label = value("XLA Label: ")) label_ = *label;
      if (const auto parameter = value("Entry Parameter Subshape: ")) shape_ = *parameter, label_ = "parameter";
      if (const auto shape = value("Shape: ")) shape_ = *shape;
    }
    finish_buffer();
    if (builder_.so_far().buffers.empty())
      refuse("{}: no buffer; expected XLA's text with 'Peak buffers:' and 'Buffer 1:'", path_);
    builder_.meta()["source"] = "xla-oom";
    builder_.meta()["lacks"] = "events, and all buffers but the largest ones when memory ran out";
    return builder_.finish();
  }

 private:
  /// What stands behind `key` at any place of the line; none: the line does not have it.
  std::optional<std::string_view> value(std::string_view key) const {
    const std::size_t at = lines_.text().find(key);
    if (at == std::string_view::npos) return {};
    const std::string_view found = lines_.text().substr(at + key.size());
    const std::size_t end = found.find_last_not_of(" \t");
    return found.substr(0, end == std::string_view::npos ? 0 : end + 1);
  }

  void read_size(std::string_view text) {
    size_ = rounded_bytes(text);
    if (!size_ || *size_ >= static_cast<double>(Total::kMost))
      lines_.refuse("the size is '{}'; expected one as in 6.00MiB", excerpt(text));
  }

  void finish_buffer() {
    if (!open_) return;
    if (!size_) lines_.refuse("a buffer without a size; expected one as in Size: 6.00MiB");
    Buffer spec;
    const std::optional<std::int64_t> exact = shape_bytes(shape_);
    const double least = *size_ * 0.99, most = *size_ * 1.01;
    const bool agrees = exact && static_cast<double>(*exact) >= least && static_cast<double>(*exact) <= most;
    spec.size = Bytes{agrees ? *exact : static_cast<std::int64_t>(*size_)};
    add(sizes_, spec.size.count(), "sizes", lines_);
    std::string_view name = text_in_quotes(operator_, "op_name=\"");
    if (name.empty()) name = label_;
    spec.name = builder_.text(fmt::format("{}{}{}", name, name.empty() ? "" : " ", shape_));
    const std::string_view file = text_in_quotes(operator_, "source_file=\"");
    const std::size_t line = operator_.find("source_line=");
    if (!file.empty() && line != std::string_view::npos) {
      const std::string_view number = operator_.substr(line + 12);
      spec.line = builder_.text(fmt::format("{}:{}", file, number.substr(0, number.find_first_not_of("0123456789"))));
    }
    builder_.existing(spec);
    open_ = false;
    size_.reset();
    operator_ = label_ = shape_ = {};
  }

  std::string path_;
  Lines lines_;
  TraceBuilder builder_;
  Total sizes_;
  bool open_ = false;
  std::optional<double> size_;
  std::string_view operator_, label_, shape_;
};

int sniff_xla_oom(std::string_view head) {
  return head.find("Peak buffers") != std::string_view::npos ||
                 head.find("BufferAssignment OOM") != std::string_view::npos
             ? 80
             : 0;
}

const RegisterImporter kXlaOom{{"xla-oom",
                                "XLA's list of the largest buffers when memory ran out, alone or in a log",
                                {".txt", ".log"},
                                sniff_xla_oom,
                                read_xla_oom}};

}  // namespace

Trace read_xla_oom(const Input& input) { return PeakReader{input}.run(); }

}  // namespace tidepool
