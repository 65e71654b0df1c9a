// Names of ops and buffers as the user's program has them, for messages and tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.hpp"

namespace tidepool {

/// The op that makes the first content of a buffer; for initial content, the first op that reads it. None if there is
/// no such op.
OpId first_op(const Trace& trace, BufferId id);

/// first_op(). For a buffer without it, such as a workspace that no op names, the op that it was allocated for, or
/// none; this search is linear in the steps.
OpId op_it_is_for(const Trace& trace, BufferId id);

/// op_it_is_for() of each buffer, for callers that name many of them. Linear in the trace.
std::vector<OpId> ops_they_are_for(const Trace& trace);

/// The line of the user's code that allocated a buffer, as in model.py:88, or that called the op that it is for; "" if
/// neither is recorded. For a buffer that existed before the trace began, the line of an op is not used.
/// @param is_for  op_it_is_for() of the buffer
std::string_view line_of(const Trace& trace, BufferId id, OpId is_for);

/// The module and the line of an op, as in "blocks.0.mlp.fc1, model.py:88"; "" if neither is recorded.
std::string place_text(const Trace& trace, OpId id);

/// An op in words, as far as they are recorded: "op 12 (aten::mm in blocks.0.mlp.fc1, model.py:88)".
std::string op_text(const Trace& trace, OpId id);

/// The program's name for a buffer: its name, as in "blocks.0.mlp.fc1.weight", or the module of the op that it is for,
/// and then the line, as in "blocks.0.mlp.fc1, model.py:88". If that op has neither module nor line, the module is that
/// of the first op with a module that reads the buffer. "" if nothing is recorded.
/// @param is_for  op_it_is_for() of the buffer
std::string program_name(const Trace& trace, BufferId id, OpId is_for);

/// A buffer in words, as far as they are recorded: "buffer 632 (blocks.0.mlp.fc1, model.py:88)".
std::string buffer_text(const Trace& trace, BufferId id);
/// @param is_for  op_it_is_for() of the buffer
std::string buffer_text(const Trace& trace, BufferId id, OpId is_for);

}  // namespace tidepool
