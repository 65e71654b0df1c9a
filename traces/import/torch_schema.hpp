// PyTorch's operators: their arguments according to the schema, and what their names tell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

struct SchemaArgument {
  std::string name;
  bool written = false;  ///< marked as in "Tensor(a!)"
};

/// The arguments of "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)", in order; none
/// where the text is not of this form.
std::vector<SchemaArgument> schema_arguments(std::string_view schema);

/// "add_" of "aten::add_.Tensor(...)" or of "aten::add_".
std::string_view operator_name(std::string_view text);

/// Whether the name is that of an operator that changes its arguments: "add_", but not "__and__".
bool is_in_place(std::string_view operator_name);
/// Whether the operator overwrites its first argument without reading it: "copy_", "zero_".
bool overwrites(std::string_view operator_name);
/// Whether the operator allocates memory or makes views and runs nothing on the device: "empty_like", "set_".
bool only_allocates(std::string_view operator_name);

/// Whether a PyTorch operator of this name, without namespace, draws other numbers when it is run again.
bool draws_random_numbers(std::string_view name);

}  // namespace tidepool
