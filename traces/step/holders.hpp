// Modules and kinds of live buffers, with the names of the user's program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/names.hpp"
#include "traces/step/instant.hpp"

namespace tidepool {

/// Source of a holder's name.
enum class NamedBy : std::uint8_t {
  kModule,    ///< the dotted path of a module, such as blocks.0.mlp.fc1
  kLine,      ///< no module is recorded: the line of the user's code, such as model.py:88
  kOperator,  ///< neither is recorded: the operator that used the buffer first
  kNothing,   ///< none of them is recorded
};

template <>
std::span<const std::string_view> words<NamedBy>();

/// The buffers of one module and kind.
struct Holder {
  std::string module;  ///< empty for NamedBy::kNothing
  NamedBy named_by = NamedBy::kNothing;
  BufferKind kind = BufferKind::kUnknown;
  Bytes bytes;
  std::int64_t buffers = 0;
  std::int64_t joined = 1;  ///< number of modules or lines that the row stands for
  bool is_part = false;     ///< `module` is a part of the program, of which the row has `joined` modules or lines
};

/// The name of each buffer's module. A named parameter, its gradient and its optimizer state belong to the module in
/// the parameter's name. Any other buffer belongs to the module of the first op that has a module and uses the buffer.
/// If no use is recorded, it belongs to the module of the op that it was allocated for. If no module is recorded,
/// NamedBy says which name takes its place.
class ModuleNames {
 public:
  explicit ModuleNames(const Trace& trace);

  struct Name {
    std::string text;
    NamedBy by = NamedBy::kNothing;
  };
  const Name& of(BufferId buffer) const { return names_[buffer.index()]; }

 private:
  std::vector<Name> names_;
};

/// The live buffers by module and kind: most bytes first, then by name and kind.
/// @param depth  number of parts of a module's path that count, for example 2 for blocks.0; 0: all
std::vector<Holder> holders_of(const Trace& trace, const ModuleNames& names, std::span<const LiveBuffer> buffers,
                               std::size_t depth);

/// The live buffers by kind alone; `module` is empty.
std::vector<Holder> kinds_of(const Trace& trace, std::span<const LiveBuffer> buffers);

/// The rows of a table. Modules of repeated layers, whose paths differ only in numbers, are one row (12 x
/// blocks.*.mlp.fc1). Behind the first `most` rows, modules are joined by the first part of their path, and lines by
/// their file.
std::vector<Holder> joined_holders(const std::vector<Holder>& holders, std::size_t most);

/// "blocks.0.mlp.fc1", "12 x blocks.*.mlp.fc1", "14 lines of model.py", "of operator aten::mm", "(not recorded)".
std::string holder_text(const Holder& holder);

/// Sentences that name the data about buffers that the trace lacks, and how to record them; empty if it lacks none.
std::vector<std::string> missing_names(const Trace& trace);

}  // namespace tidepool
