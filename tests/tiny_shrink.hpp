// Shrinks a tiny step on which a check fails, as long as the check still fails.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tests/tiny_case.hpp"
#include "traces/names.hpp"

namespace tidepool::tests {

/// Removes ops, touches and special features of a step, and lowers sizes, times and the capacity, as long as `fails` is
/// true for the result. A recipe whose trace is refused counts as one that does not fail.
template <class Fails>
TinyRecipe shrink(TinyRecipe recipe, Fails fails) {
  const auto attempt = [&](auto change) {
    TinyRecipe smaller = recipe;
    if (!change(smaller)) return false;
    try {
      if (smaller.ops.empty() || !fails(smaller)) return false;
    } catch (const InputError&) {
      return false;
    }
    recipe = std::move(smaller);
    return true;
  };
  const auto less = [](int& value, int least) {
    if (value <= least) return false;
    value = std::max(least, value / 2);
    return true;
  };
  for (bool shrinks = true; std::exchange(shrinks, false);) {
    for (std::size_t i = recipe.ops.size(); i-- > 0;) {
      shrinks |= attempt([&](TinyRecipe& r) {
        r.ops.erase(r.ops.begin() + static_cast<std::ptrdiff_t>(i));
        for (TinyRecipe::Buffer& buffer : r.buffers) buffer.last_op -= buffer.last_op > static_cast<int>(i);
        return true;
      });
    }
    for (std::size_t i = 0; i < recipe.ops.size(); ++i) {
      for (std::size_t j = recipe.ops[i].touches.size(); j-- > 0;) {
        shrinks |= attempt([&](TinyRecipe& r) {
          r.ops[i].touches.erase(r.ops[i].touches.begin() + static_cast<std::ptrdiff_t>(j));
          return true;
        });
        if (j < recipe.ops[i].touches.size())
          shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.ops[i].touches[j].through_view, false); });
      }
      shrinks |= attempt([&](TinyRecipe& r) { return less(r.ops[i].milliseconds, 1); });
      shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.ops[i].random, false); });
      shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.ops[i].forgets, false); });
      shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.ops[i].stream, 0) != 0; });
      shrinks |=
          attempt([&](TinyRecipe& r) { return std::exchange(r.ops[i].kind, OpKind::kKernel) != OpKind::kKernel; });
    }
    for (std::size_t i = 0; i < recipe.buffers.size(); ++i) {
      shrinks |= attempt([&](TinyRecipe& r) { return less(r.buffers[i].mebibytes, 1); });
      shrinks |= attempt([&](TinyRecipe& r) { return r.buffers[i].mebibytes > 1 && r.buffers[i].mebibytes-- > 1; });
      shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.buffers[i].existing, false); });
    }
    shrinks |= attempt([&](TinyRecipe& r) { return r.mebibytes > 1 && r.mebibytes-- > 1; });
    shrinks |= attempt([&](TinyRecipe& r) { return std::exchange(r.names_none, false); });
  }
  return recipe;
}

/// The recipe as text: capacity, buffers, ops, links.
inline std::string to_text(const TinyRecipe& recipe) {
  const Trace trace = recipe.trace();
  std::string text = fmt::format("{} MiB", recipe.mebibytes);
  for (std::size_t i = 0; i < trace.buffers().size(); ++i) {
    const Buffer& buffer = trace.buffers()[i];
    text += fmt::format("; b{} {} MiB{}{}", i, buffer.size / 1_MiB, buffer.born_before ? " from before" : "",
                        buffer.outlives ? " handed on" : "");
  }
  for (std::size_t i = 0; i < trace.ops().size(); ++i) {
    const Op& op = trace.ops()[i];
    text += fmt::format("; op{} {} ms{}{}:", i, op.duration.count() / 1'000'000,
                        op.kind == OpKind::kSource ? " source" : "",
                        trace.data().streams.size() > 1 ? fmt::format(" stream {}", op.stream.value()) : "");
    for (const Use& use : trace.uses(OpId{i}))
      text += fmt::format(" {} b{}", word(use.access), trace.version(use.in.valid() ? use.in : use.out).buffer.value());
  }
  const Machine& machine = recipe.machine;
  return text + fmt::format("; in {} MiB/s + {}, out {} MiB/s + {}", machine.h2d.rate.count() >> 20,
                            tidepool::to_text(machine.h2d.latency), machine.d2h.rate.count() >> 20,
                            tidepool::to_text(machine.d2h.latency));
}

}  // namespace tidepool::tests
