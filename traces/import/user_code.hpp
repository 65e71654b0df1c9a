// Recognition of the user's own code among the files of a call stack.
#pragma once

#include <string_view>

namespace tidepool {

/// Whether a file of a call stack is Python code that the user wrote: a cell of a notebook, standard input or a .py
/// file, but not one of an installed package, of Python itself, of PyTorch's sources, or one that a compiler made.
/// @param file  as code objects name it, of any system: "/home/ada/net/model.py", "C:\\net\\model.py",
///              "<ipython-input-3-0a1b>", "<stdin>"
bool is_user_code(std::string_view file);

}  // namespace tidepool
