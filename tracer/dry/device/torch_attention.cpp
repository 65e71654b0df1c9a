// PyTorch's choice of an attention kernel. cuDNN plans its attention on the device, which a dry run lacks. So the
// dry device answers that the user has switched cuDNN's attention off, and PyTorch takes its own kernels. This library
// is preloaded, so its answer counts.

#pragma GCC visibility push(default)

namespace at {

class Context {
 public:
  bool userEnabledCuDNNSDP() const;
};

bool Context::userEnabledCuDNNSDP() const { return false; }

}  // namespace at

#pragma GCC visibility pop
