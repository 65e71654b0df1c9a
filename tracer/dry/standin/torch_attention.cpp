// Which attention PyTorch takes. cuDNN makes its plans for attention with the device, which is not there, so PyTorch is told
// that the user has switched cuDNN's attention off: it takes its own kernels. Being preloaded, this library is asked first.

#pragma GCC visibility push(default)

namespace at {

class Context {
 public:
  bool userEnabledCuDNNSDP() const;
};

bool Context::userEnabledCuDNNSDP() const { return false; }

}  // namespace at

#pragma GCC visibility pop
