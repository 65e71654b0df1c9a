#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tidepool::native {

/// Calls the kernels of an op below our key.
using Proceed = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack);

/// In a dry run, the library of values does so, and computes those that decide sizes (values.cpp).
inline Proceed behind = nullptr;

inline void proceed(const c10::OperatorHandle& op, c10::DispatchKeySet below, torch::jit::Stack* stack) {
  if (behind) return behind(op, below, stack);
  op.redispatchBoxed(below, stack);
}

}  // namespace tidepool::native
