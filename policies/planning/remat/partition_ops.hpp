// Classes of operators in PyTorch's partitioner, by their names.
#pragma once

#include <string_view>

namespace tidepool {

struct OpClass {
  bool recomputable = false;  ///< cheap: may run again at any time
  bool fusible = false;       ///< a compiler puts it into one kernel with its neighbours
  bool intensive = false;     ///< expensive: runs again only if memory requires it, as do random operators
  bool random = false;
  bool view = false;   ///< costs nothing
  bool joins = false;  ///< its inputs can be written straight to its output
};

/// The class of an operator's name, such as aten::add_ or aten::mm.out. The namespace aten, the overload and the
/// underscore of in-place variants are ignored. Unknown names have no class. O(log n). Source: PyTorch 2.15,
/// torch/_functorch/partitioners.py, get_default_op_list, and the operators that are tagged as pointwise.
OpClass class_of_op(std::string_view name);

}  // namespace tidepool
