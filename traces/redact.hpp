// Removal of data about people and machines from a trace.
#pragma once

#include <string>
#include <string_view>

#include "traces/trace.hpp"

namespace tidepool {

/// The text with folders taken from paths ("/home/ada/net/train.py(12): step" becomes "train.py(12): step"), and with
/// "..." in place of users' folders ("/home/ada", "~ada"), mail addresses, "user@host.domain" and "user@host:/path".
/// Blanks and other characters may be in a path if it is in quotes or if a separator follows them. Names of operators
/// and kernels stay as they are, except a name with slashes that only a blank parts from a path without an extension.
std::string redacted(std::string_view text);

/// The same trace with redacted texts, and without the recorded command line and environment
/// (meta "command" and "env.NAME").
Trace redacted(Trace trace);

}  // namespace tidepool
