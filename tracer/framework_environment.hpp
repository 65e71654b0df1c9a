// Environment in which a framework asks the driver for each buffer, so that its allocations can be seen there.
#pragma once

#include <map>
#include <string>

namespace tidepool {

/// The environment variables that switch off the framework's own pool of device memory.
///
///   torch       none: --torch records tensors where they are made, within PyTorch's pool
///   jax         each buffer is allocated and freed by itself (XLA_PYTHON_CLIENT_ALLOCATOR=platform, which is very
///               slow according to JAX's documentation); no memory is reserved in advance. Within one compiled program,
///               buffers stay parts of one allocation: only XLA's own dump of its buffer assignment tells them apart
///   tensorflow  stream-ordered allocations of the driver, one for each tensor; also "tf"
///
/// @throws InputError  "--framework: 'mxnet' is no framework known here; expected jax, tensorflow (tf) or torch"
std::map<std::string, std::string> framework_environment(const std::string& name);

}  // namespace tidepool
