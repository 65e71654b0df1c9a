// Operators by what PyTorch's partitioner makes of their names.
#pragma once

#include <string_view>

namespace tidepool {

struct OpClass {
  bool recomputable = false;  ///< cheap: may run again without being asked for
  bool fusible = false;       ///< a compiler puts it into one kernel with its neighbours
  bool intensive = false;     ///< never runs again unless memory asks for it; likewise what is random
  bool random = false;
  bool view = false;   ///< free
  bool joins = false;  ///< what it reads can be written to its output at once
};

/// By the name of an operator, as aten::add_ or aten::mm.out: namespace aten, overload and the underscore of in-place
/// variants make no difference. What is not known is of no class. O(log n). Source: PyTorch 2.15,
/// torch/_functorch/partitioners.py, get_default_op_list, and the operators that are tagged as pointwise.
OpClass class_of_op(std::string_view name);

}  // namespace tidepool
