// Names of ops and buffers as the user's program has them, for messages and tables.
#pragma once

#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// The op that first writes a buffer, or first uses one that nothing writes; none if no op uses it.
OpId first_op(const Trace& trace, BufferId id);

/// first_op(); of a buffer that no op uses, as a workspace, the op that it was allocated for. Linear in the steps then.
OpId op_it_is_for(const Trace& trace, BufferId id);

/// The line of the user's code that allocated a buffer, as in model.py:88, or that called the op that it is for; "" if
/// neither is recorded. Of a buffer that existed before the trace began, an op does not tell it.
std::string_view line_of(const Trace& trace, BufferId id);

/// The module and the line of an op, as in "blocks.0.mlp.fc1, model.py:88"; "" if neither is recorded.
std::string place_text(const Trace& trace, OpId id);

/// "op 12 (aten::mm in blocks.0.mlp.fc1, model.py:88)", as far as it is recorded.
std::string op_text(const Trace& trace, OpId id);

/// What the program calls a buffer: its name, as in "blocks.0.mlp.fc1.weight", or the module of the op that it is for
/// (of the first op that reads it, if that one has neither module nor line); then the line, as in "blocks.0.mlp.fc1,
/// model.py:88"; "" if nothing is recorded.
std::string program_name(const Trace& trace, BufferId id);

/// "buffer 632 (blocks.0.mlp.fc1, model.py:88)", as far as it is recorded.
std::string buffer_text(const Trace& trace, BufferId id);

}  // namespace tidepool
