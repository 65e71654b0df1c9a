#include "traces/step/holders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tidepool {
namespace {

std::string_view before_last_dot(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

/// The parameter that a name such as 0.weight.exp_avg belongs to; empty if there is none.
std::string_view parameter_in(std::string_view name, const std::set<std::string_view>& parameters) {
  for (; !name.empty(); name = before_last_dot(name))
    if (parameters.contains(name)) return name;
  return {};
}

/// The path of a parameter's module. A parameter of the outermost module has no path: its own name stands for it.
std::string module_of_parameter(std::string_view parameter) {
  const std::string_view module = before_last_dot(parameter);
  return std::string{module.empty() ? parameter : module};
}

ModuleNames::Name name_of(const Trace& trace, OpId id) {
  const Op& op = trace.op(id);
  if (!trace.text(op.module).empty()) return {std::string{trace.text(op.module)}, NamedBy::kModule};
  if (op.line.valid()) return {std::string{trace.text(op.line)}, NamedBy::kLine};
  if (!trace.text(op.name).empty()) return {std::string{trace.text(op.name)}, NamedBy::kOperator};
  return {};
}

std::string first_parts(const std::string& path, std::size_t depth) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < depth && end != std::string::npos; ++i) end = path.find('.', end == 0 ? 0 : end + 1);
  return depth == 0 || end == std::string::npos ? path : path.substr(0, end);
}

/// "blocks.*.mlp.fc1": a path in which * stands for the numbers of layers.
std::string without_numbers(std::string_view path) {
  std::string general;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const std::size_t name = part.find_last_not_of("0123456789") + 1;  // before the digits at the end
    const bool number = name < part.size() && (name == 0 || part[name - 1] == '_' || part[name - 1] == '-');
    general += (begin == 0 ? "" : ".") + std::string{part.substr(0, number ? name : part.size())} + (number ? "*" : "");
    begin = end + 1;
  }
  return general;
}

/// The part of the program that a row belongs to: the first part of a module's path, or a line's file.
std::string part_of(const Holder& holder) {
  return holder.module.substr(0, holder.module.find(holder.named_by == NamedBy::kLine ? ':' : '.'));
}

void sort(std::vector<Holder>& holders) {
  std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return std::tie(b.bytes, a.module, a.kind) < std::tie(a.bytes, b.module, b.kind);
  });
}

}  // namespace

template <>
std::span<const std::string_view> words<NamedBy>() {
  static constexpr std::array<std::string_view, 4> kWords{"module", "line", "operator", "nothing"};
  return kWords;
}

ModuleNames::ModuleNames(const Trace& trace) : names_(trace.buffers().size()) {
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const Name of_op = name_of(trace, OpId{i});
    for (const Use& use : trace.uses(OpId{i}))
      if (Name& name = names_[trace.version(use.in.valid() ? use.in : use.out).buffer.index()]; of_op.by < name.by)
        name = of_op;
  }
  for (std::size_t i = 0; i < trace.events().size(); ++i) {  // without recorded uses: the op it was allocated for
    const OpId op = trace.allocated_for(i);
    if (!op.valid()) continue;
    if (Name& name = names_[trace.events()[i].id]; name.by == NamedBy::kNothing) name = name_of(trace, op);
  }
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (const StringId line = trace.buffers()[i].line; names_[i].by != NamedBy::kModule && line.valid())
      names_[i] = {std::string{trace.text(line)}, NamedBy::kLine};
  std::set<std::string_view> parameters;
  for (const Buffer& buffer : trace.buffers())
    if (buffer.kind == BufferKind::kParameter && buffer.name.valid()) parameters.insert(trace.text(buffer.name));
  parameters.erase("");
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (const std::string_view found = parameter_in(trace.text(trace.buffers()[i].name), parameters); !found.empty())
      names_[i] = {module_of_parameter(found), NamedBy::kModule};
}

std::vector<Holder> holders_of(const Trace& trace, const ModuleNames& names, std::span<const LiveBuffer> buffers,
                               std::size_t depth) {
  std::map<std::tuple<std::string, NamedBy, BufferKind>, Holder> found;
  for (const LiveBuffer& live : buffers) {
    const Buffer& buffer = trace.buffer(live.buffer);
    const ModuleNames::Name& name = names.of(live.buffer);
    const std::string module = name.by == NamedBy::kModule ? first_parts(name.text, depth) : name.text;
    Holder& holder = found[{module, name.by, buffer.kind}];
    holder.module = module;
    holder.named_by = name.by;
    holder.kind = buffer.kind;
    holder.bytes += buffer.size;
    ++holder.buffers;
  }
  std::vector<Holder> holders;
  for (auto& [key, holder] : found) holders.push_back(std::move(holder));
  sort(holders);
  return holders;
}

std::vector<Holder> kinds_of(const Trace& trace, std::span<const LiveBuffer> buffers) {
  std::map<BufferKind, Holder> found;
  for (const LiveBuffer& live : buffers) {
    const Buffer& buffer = trace.buffer(live.buffer);
    Holder& holder = found[buffer.kind];
    holder.kind = buffer.kind;
    holder.bytes += buffer.size;
    ++holder.buffers;
  }
  std::vector<Holder> kinds;
  for (const auto& [kind, holder] : found) kinds.push_back(holder);
  sort(kinds);
  return kinds;
}

namespace {

/// Joins the holders of one kind for which `name_of` gives the same name. A holder that is joined with no other stays.
template <class NameOf>
std::vector<Holder> joined(std::span<const Holder> holders, bool parts, NameOf name_of) {
  std::map<std::tuple<std::string, NamedBy, BufferKind>, std::vector<const Holder*>> found;
  for (const Holder& holder : holders) found[{name_of(holder), holder.named_by, holder.kind}].push_back(&holder);
  std::vector<Holder> rows;
  for (const auto& [key, members] : found) {
    Holder row = *members.front();
    for (std::size_t i = 1; i < members.size(); ++i) {
      row.bytes += members[i]->bytes;
      row.buffers += members[i]->buffers;
      row.joined += members[i]->joined;
    }
    if (members.size() > 1) row.module = std::get<0>(key);
    row.is_part = row.is_part || (parts && members.size() > 1);
    rows.push_back(std::move(row));
  }
  sort(rows);
  return rows;
}

}  // namespace

std::vector<Holder> joined_holders(const std::vector<Holder>& holders, std::size_t most) {
  std::vector<Holder> rows = joined(holders, false, [](const Holder& holder) {
    return holder.named_by == NamedBy::kModule ? without_numbers(holder.module) : holder.module;
  });
  if (rows.size() <= most) return rows;
  const std::vector<Holder> parts = joined(std::span{rows}.subspan(most), true, part_of);
  rows.resize(most);
  rows.insert(rows.end(), parts.begin(), parts.end());
  return rows;
}

std::string holder_text(const Holder& holder) {
  if (holder.named_by == NamedBy::kNothing) return "(not recorded)";
  if (holder.is_part)
    return fmt::format("{} {} of {}", holder.joined, holder.named_by == NamedBy::kLine ? "lines" : "modules",
                       holder.module);
  if (holder.joined > 1) return fmt::format("{} x {}", holder.joined, holder.module);
  return (holder.named_by == NamedBy::kOperator ? "of operator " : "") + holder.module;
}

namespace {

/// Whether the job failed while PyTorch's hook recorded it.
bool failed_with_hook(const Trace& trace) {
  const auto& meta = trace.data().meta;
  const auto capture = meta.find("capture");
  return meta.contains("failure") && capture != meta.end() && capture->second.ends_with("torch");
}

}  // namespace

std::vector<std::string> missing_names(const Trace& trace) {
  const auto any_op = [&](auto&& has) { return std::any_of(trace.ops().begin(), trace.ops().end(), has); };
  const auto any_buffer = [&](auto&& has) { return std::any_of(trace.buffers().begin(), trace.buffers().end(), has); };
  std::vector<std::string> missing;
  if (trace.ops().empty())
    missing.emplace_back(
        "the trace has no ops, so it does not say which op uses a buffer; `tidepool record --torch` records them");
  else if (!any_op([&](const Op& op) { return !trace.text(op.module).empty(); }))
    missing.push_back(
        fmt::format("the trace has no modules, so {} stand for them; {}",
                    any_op([](const Op& op) { return op.line.valid(); }) ? "lines of the code" : "operators",
                    failed_with_hook(trace) ? "the job failed before a recorded step called one"
                                            : "`tidepool record --torch` records modules"));
  if (!any_buffer([](const Buffer& buffer) { return buffer.kind != BufferKind::kUnknown; }))
    missing.emplace_back("the trace has no kinds of buffers; `tidepool record --torch` records them");
  return missing;
}

}  // namespace tidepool
